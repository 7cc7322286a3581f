// A GPU that is not there: as much of CUDA's driver and of NVRTC as Steinflow calls, with kernels that the C++ compiler
// has compiled and the processor runs, one block after the other. For whether kernels are right, not for how fast they
// are. `cargo xtask emulate` builds it and runs the tests of a device on it.
//
// It ends the process where a GPU would do something undefined: a warp that is split between a shuffle and a barrier, a
// launch with too many threads. Memory is not zero when it is allocated, and shared memory not when a block begins.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "emulator.h"

using Work = std::function<void()>;

[[noreturn]] static void end(const char *why) {
    fprintf(stderr, "the emulated GPU: %s\n", why);
    abort();
}

// ---- Threads of a block

extern "C" void switch_stack(void **save, void *to);
asm(R"(
.text
.globl switch_stack
switch_stack:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
)");

enum State { READY, AT_EXCHANGE, AT_BARRIER, DONE };
struct Fibre {
    void *stack_pointer;
    char *stack;
    State state;
    Place place;
    unsigned parity;
};
constexpr int MOST_THREADS = 1024;
constexpr size_t STACK = 512 << 10, DYNAMIC_SHARED = 227 << 10;

static Emulator emulator;
static Fibre fibres[MOST_THREADS];
// Two of each warp: who is late still reads the first when others write the second.
static unsigned shown[MOST_THREADS / 32][2][32][16];
static void *scheduler;
static int current;
static const Work *kernel;

static void leave(State state) {
    fibres[current].state = state;
    switch_stack(&fibres[current].stack_pointer, scheduler);
}
static void barrier() { leave(AT_BARRIER); }
static unsigned (*exchange(const unsigned *numbers, int count))[16] {
    auto own = shown[current / 32][fibres[current].parity ^= 1];
    memcpy(own[current % 32], numbers, count * sizeof(unsigned));
    leave(AT_EXCHANGE);
    return own;
}
static void run_thread() {
    (*kernel)();
    leave(DONE);
    end("a thread went on");
}

static void begin_thread(int number) {
    Fibre &own = fibres[number];
    if (!own.stack)
        own.stack = (char *)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own.stack == MAP_FAILED) end("no memory for a stack");
    // Seven words that `switch_stack` takes off: six registers, and where to go on.
    void **top = (void **)(own.stack + STACK - 64);
    *--top = nullptr;
    *--top = (void *)run_thread;
    for (int k = 0; k < 6; k++) *--top = nullptr;
    const unsigned across = emulator.threads.x;
    own = {top, own.stack, READY, {number % across, number / across, 0}, 0};
}

// Runs the lanes of a warp until all are done or at a barrier; how many are there.
static int run_warp(int first, int last) {
    for (;;) {
        int at_exchange = 0, at_barrier = 0;
        for (int t = first; t < last; t++) {
            if (fibres[t].state == READY) {
                current = t;
                emulator.thread = fibres[t].place;
                switch_stack(&scheduler, fibres[t].stack_pointer);
            }
            at_exchange += fibres[t].state == AT_EXCHANGE;
            at_barrier += fibres[t].state == AT_BARRIER;
        }
        if (!at_exchange) return at_barrier;
        if (at_barrier) end("a warp is split between a shuffle and a barrier");
        for (int t = first; t < last; t++)
            if (fibres[t].state == AT_EXCHANGE) fibres[t].state = READY;
    }
}

static void run_block(int threads) {
    for (int t = 0; t < threads; t++) begin_thread(t);
    for (;;) {
        int waiting = 0;
        for (int first = 0; first < threads; first += 32)
            waiting += run_warp(first, first + 32 < threads ? first + 32 : threads);
        if (!waiting) return;
        for (int t = 0; t < threads; t++)
            if (fibres[t].state == AT_BARRIER) fibres[t].state = READY;
    }
}

// ---- Launches, and graphs of them

struct Task {
    std::shared_ptr<Work> kernel;
    Place blocks, threads;
    unsigned shared;
    // Without a kernel: bytes that are set.
    char *at;
    size_t bytes;
    int value;
};
static std::recursive_mutex one_at_a_time;
static thread_local std::vector<Task> *recording;

static void run(const Task &task) {
    if (!task.kernel) {
        memset(task.at, task.value, task.bytes);
        return;
    }
    static unsigned char *dynamic = (unsigned char *)aligned_alloc(128, DYNAMIC_SHARED);
    emulator = {{}, {}, task.threads, task.blocks, dynamic, barrier, exchange};
    kernel = task.kernel.get();
    for (unsigned y = 0; y < task.blocks.y; y++)
        for (unsigned x = 0; x < task.blocks.x; x++) {
            memset(dynamic, 0xff, task.shared);
            emulator.block = {x, y, 0};
            run_block(task.threads.x * task.threads.y);
        }
}
static int start(const Task &task) {
    std::lock_guard guard(one_at_a_time);
    if (recording) recording->push_back(task);
    else run(task);
    return 0;
}
static int copy(void *to, const void *from, size_t bytes) {
    std::lock_guard guard(one_at_a_time);
    if (recording) end("a copy between host and device is recorded");
    memcpy(to, from, bytes);
    return 0;
}

// ---- Kernels: CUDA C++ becomes C++

// Assembly by a part of its text, and what does the same.
static const std::pair<const char *, const char *> ASSEMBLY[] = {
    {"\"ex2.approx", "y = exp2f(-q);"},
    {"\"cvt.rn.f16x2", "r = halves_of(a, b);"},
    {"cvt.f32.f16 %0, l;", "r = float_of(x & 0xffff);"},
    {"cvt.f32.f16 %0, h;", "r = float_of(x >> 16);"},
    {"\"cvt.rn.f16.f32", "h = half_of(x);"},
    {"\"cvt.f32.f16", "x = float_of(h);"},
    {"\"mma.sync.aligned.m16n8k16", "multiply_16_8_16(c, a, b0, b1);"},
    {"x4.shared", "load_matrices(r, at, false);"},
    {"x4.trans", "load_matrices(r, at, true);"},
    {"\"cp.async.cg", "copy_or_clear(to, from, bytes);"},
    {"\"cp.async.commit_group", ";"},
    {"\"cp.async.wait_group", ";"},
};

static std::string without_assembly(const std::string &text) {
    static const std::regex begin(R"(\basm( volatile)?\()");
    std::string out;
    auto from = text.begin();
    for (std::smatch found; std::regex_search(from, text.end(), found, begin);) {
        out.append(from, found[0].first);
        auto to = found[0].second;
        for (bool quoted = false; quoted || *to != ';'; ++to) quoted ^= *to == '"';
        const std::string own(found[0].first, ++to);
        const char *same = nullptr;
        for (auto [part, text] : ASSEMBLY)
            if (!same && own.find(part) != std::string::npos) same = text;
        if (!same) end(("nothing is known of " + own).c_str());
        out += same;
        from = to;
    }
    return out.append(from, text.end());
}

struct Program {
    std::string text, log, library;
};

static std::string as_cpp(const Program &own, int count, const char *const *options) {
    std::string text = "#include \"kernels.h\"\n";
    for (int k = 0; k < count; k++) {
        const std::string option = options[k];
        const size_t equals = option.find('=');
        if (option.rfind("-D", 0) == 0)
            text += "#define " + option.substr(2, equals - 2) + " " + option.substr(equals + 1) + "\n";
    }
    static const std::regex shared(R"(extern __shared__ __align__\(\d+\) ([\w ]+) (\w+)\[\];)");
    const std::string code = without_assembly(own.text);
    text += std::regex_replace(code, shared, "$1 *$2 = ($1 *)emulator->dynamic_shared;");
    static const std::regex kernel(R"(extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\()");
    for (std::sregex_iterator at(code.begin(), code.end(), kernel), none; at != none; ++at) {
        const std::string name = (*at)[1];
        text += "\nextern \"C\" std::function<void()> *bound_" + name + "(void **a) { return bound(" + name + ", a); }";
    }
    return text + "\n";
}

static std::string read(const std::string &path) {
    std::ifstream file(path);
    return (std::stringstream() << file.rdbuf()).str();
}

extern "C" {
int nvrtcCreateProgram(Program **own, const char *text, const char *, int, void *, void *) {
    *own = new Program{text, "", ""};
    return 0;
}
int nvrtcCompileProgram(Program *own, int count, const char *const *options) {
    static std::atomic<int> number;
    const std::string text = as_cpp(*own, count, options);
    // What was compiled once is kept beside this library.
    const std::string name = KEPT "/" + std::to_string(std::hash<std::string>{}(text + read(SOURCES "/kernels.h")));
    own->library = name + ".so";
    if (access(own->library.c_str(), R_OK) == 0) return 0;
    const std::string own_name = name + "." + std::to_string(getpid()) + "." + std::to_string(number++);
    std::ofstream(own_name + ".cpp") << text;
    const std::string command = "c++ -std=c++20 -O1 -march=native -ffp-contract=off -w -fPIC -shared -I " SOURCES " " + own_name +
                                ".cpp -o " + own_name + ".so 2> " + own_name + ".log";
    const bool failed = system(command.c_str()) != 0 || rename((own_name + ".so").c_str(), own->library.c_str()) != 0;
    own->log = read(own_name + ".log");
    for (auto end : {".cpp", ".log"}) unlink((own_name + end).c_str());
    return failed ? 6 : 0;
}
int nvrtcGetPTXSize(Program *own, size_t *size) { return *size = own->library.size() + 1, 0; }
int nvrtcGetPTX(Program *own, char *out) { return memcpy(out, own->library.c_str(), own->library.size() + 1), 0; }
int nvrtcGetProgramLogSize(Program *own, size_t *size) { return *size = own->log.size() + 1, 0; }
int nvrtcGetProgramLog(Program *own, char *out) { return memcpy(out, own->log.c_str(), own->log.size() + 1), 0; }
int nvrtcDestroyProgram(Program **own) { return delete *own, 0; }

// ---- The driver

static void *const THERE = &emulator;

int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int size, int) { return snprintf(name, size, "an emulated GPU"), 0; }
// Compute capability 9.0; 4 multiprocessors; no pools of memory.
int cuDeviceGetAttribute(int *value, int which, int) { return *value = which == 75 ? 9 : which == 16 ? 4 : 0, 0; }
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = THERE, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *) { return 0; }
int cuCtxGetCurrent(void **context) { return *context = THERE, 0; }
int cuMemGetInfo_v2(size_t *free, size_t *all) { return *free = *all = (size_t)8 << 30, 0; }
int cuMemAlloc_v2(void **at, size_t bytes) {
    *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *at ? memset(*at, 0xff, bytes), 0 : 2;
}
int cuMemFree_v2(void *at) { return free(at), 0; }
int cuMemsetD8Async(char *at, unsigned char value, size_t bytes, void *) { return start({{}, {}, {}, 0, at, bytes, value}); }
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *) { return copy(to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *) { return copy(to, from, bytes); }
int cuStreamCreate(void **stream, unsigned) { return *stream = THERE, 0; }
int cuStreamDestroy_v2(void *) { return 0; }
int cuStreamSynchronize(void *) { return 0; }
int cuStreamWaitEvent(void *, void *, unsigned) { return 0; }
int cuEventCreate(void **event, unsigned) { return *event = THERE, 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuEventDestroy_v2(void *) { return 0; }
int cuModuleLoadData(void **module, const char *library) {
    *module = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!*module) return fprintf(stderr, "%s\n", dlerror()), 200;
    return ((void (*)(Emulator *))dlsym(*module, "begin"))(&emulator), 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **kernel, void *module, const char *name) {
    *kernel = dlsym(module, (std::string("bound_") + name).c_str());
    return *kernel ? 0 : 500;
}
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                   void *, void **arguments, void **) {
    const bool fits = x && y && z == 1 && tz == 1 && y < 1 << 16 && tx * ty <= MOST_THREADS && shared <= DYNAMIC_SHARED;
    if (!fits) end("a launch that no GPU would take");
    std::shared_ptr<Work> work(((Work * (*)(void **)) kernel)(arguments));
    return start({work, {x, y, 1}, {tx, ty, 1}, shared, nullptr, 0, 0});
}
int cuStreamBeginCapture_v2(void *, int) { return recording = new std::vector<Task>, 0; }
int cuStreamEndCapture(void *, void **graph) { return *graph = recording, recording = nullptr, 0; }
int cuGraphInstantiateWithFlags(void **ready, void *graph, unsigned long long) { return *ready = graph, 0; }
int cuGraphLaunch(std::vector<Task> *graph, void *) {
    std::lock_guard guard(one_at_a_time);
    for (const Task &task : *graph) run(task);
    return 0;
}
int cuGraphExecDestroy(std::vector<Task> *) { return 0; }
int cuGraphDestroy(std::vector<Task> *graph) { return delete graph, 0; }
int cuGetErrorString(int, const char **text) { return *text = "the emulated GPU failed", 0; }
int cuGetErrorName(int error, const char **text) { return cuGetErrorString(error, text); }
}
