// What kernels and the emulated device tell each other.
#pragma once
#include <functional>

struct Place {
    unsigned x, y, z;
};

struct Emulator {
    Place thread, block, threads, blocks;
    unsigned char *dynamic_shared;
    void (*barrier)();
    // Shows numbers to the lanes of the warp, and what all 32 have shown.
    unsigned (*(*exchange)(const unsigned *numbers, int count))[16];
};
