// What kernels find where CUDA would be: each thread is a fibre, and all of a block share one thread of the processor.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "emulator.h"

static Emulator *emulator;
extern "C" void begin(Emulator *own) { emulator = own; }

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
// One block runs at a time.
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define threadIdx (emulator->thread)
#define blockIdx (emulator->block)
#define blockDim (emulator->threads)
#define gridDim (emulator->blocks)
#define __cvta_generic_to_shared(pointer) 0

inline void __syncthreads() { emulator->barrier(); }

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

using std::abs, std::copysign, std::exp, std::exp2, std::expm1, std::fabs, std::fma, std::fmax, std::isfinite, std::log;
using std::log1p, std::log2, std::sqrt, std::tanh, std::cos, std::sin, std::pow;
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double cospi(double x) { return std::cos(M_PI * x); }
inline float cospif(float x) { return (float)cospi(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
template <class T> T __ldg(const T *from) { return *from; }

template <class To, class From> To bits_as(From from) {
    To to{};
    memcpy(&to, &from, sizeof(from) < sizeof(to) ? sizeof(from) : sizeof(to));
    return to;
}
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }

template <class T> T exchanged(T *at, T with) {
    T before = *at;
    *at = with;
    return before;
}
template <class T> T atomicMin(T *at, T x) { return exchanged(at, x < *at ? x : *at); }
template <class T> T atomicMax(T *at, T x) { return exchanged(at, x > *at ? x : *at); }
template <class T> T atomicAdd(T *at, T x) { return exchanged(at, *at + x); }

inline int own_lane() { return (threadIdx.x + threadIdx.y * blockDim.x) % 32; }
template <class T> T from_lane(T x, int lane) {
    unsigned numbers[2] = {};
    memcpy(numbers, &x, sizeof(T));
    auto all = emulator->exchange(numbers, sizeof(T) / 4);
    memcpy(&x, all[lane], sizeof(T));
    return x;
}
template <class T> T __shfl_xor_sync(unsigned, T x, int mask) { return from_lane(x, own_lane() ^ mask); }
template <class T> T __shfl_up_sync(unsigned, T x, int by) {
    return from_lane(x, own_lane() < by ? own_lane() : own_lane() - by);
}
inline void __syncwarp() { from_lane(0, 0); }
inline bool __all_sync(unsigned, bool holds) {
    unsigned own = holds;
    auto all = emulator->exchange(&own, 1);
    for (int lane = 0; lane < 32; lane++) holds &= all[lane][0] != 0;
    return holds;
}

// What assembly does, by the names that `device.cpp` puts in its place.
inline unsigned short half_of(float x) { return bits_as<unsigned short>((_Float16)x); }
inline float float_of(unsigned half) { return (float)bits_as<_Float16>((unsigned short)half); }
inline unsigned halves_of(float low, float high) { return half_of(low) | (unsigned)half_of(high) << 16; }
inline void multiply_16_8_16(float *c, const unsigned *a, unsigned b0, unsigned b1) {
    unsigned numbers[6] = {a[0], a[1], a[2], a[3], b0, b1};
    auto all = emulator->exchange(numbers, 6);
    auto half = [](unsigned two, int which) { return float_of(two >> 16 * which); };
    const int group = own_lane() / 4, pair = own_lane() % 4;
    for (int e = 0; e < 4; e++) {
        const int row = group + e / 2 * 8, column = 2 * pair + e % 2;
        for (int k = 0; k < 16; k++) {
            const float left = half(all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2);
            c[e] += left * half(all[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
        }
    }
}
inline void load_matrices(unsigned *r, const unsigned short *row, bool is_turned) {
    auto all = emulator->exchange(bits_as<std::array<unsigned, 2>>(row).data(), 2);
    for (int matrix = 0; matrix < 4; matrix++) {
        auto at = [&](int row, int column) {
            const unsigned short *from;
            memcpy(&from, all[matrix * 8 + row], sizeof(from));
            return (unsigned)from[column];
        };
        const int a = own_lane() / 4, b = own_lane() % 4 * 2;
        r[matrix] = is_turned ? at(b, a) | at(b + 1, a) << 16 : at(a, b) | at(a, b + 1) << 16;
    }
}
inline void copy_or_clear(void *to, const void *from, int bytes) {
    if (bytes) memcpy(to, from, 16);
    else memset(to, 0, 16);
}

// A kernel with its arguments, which a launch gives by their addresses.
template <class... A> std::function<void()> *bound(void (*kernel)(A...), void **arguments) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
        auto own = std::make_tuple(*(std::remove_cv_t<A> *)arguments[I]...);
        return new std::function<void()>([kernel, own] { std::apply(kernel, own); });
    }(std::index_sequence_for<A...>{});
}
