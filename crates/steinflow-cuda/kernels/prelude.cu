// What every kernel shares. `real` is the run's precision, by `-DREAL`.
typedef REAL real;
typedef unsigned int u32;
typedef unsigned long long u64;

// Profiles of a factor of the kernel. Points are scaled so that q = |x − y|² is in units of the profile.
#define SQUARED_EXPONENTIAL 0  // 2^(−q)
#define INVERSE_MULTIQUADRIC 1 // (1 + q)^(−1/2)
#define MULTIQUADRIC_SLOPE 2   // (1 + q)^(−3/2)

__device__ __forceinline__ float exp2_of_negated(float q) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(-q));
    return y;
}
__device__ __forceinline__ double exp2_of_negated(double q) { return exp2(-q); }

template <int KIND, typename T> __device__ __forceinline__ T profile(T q) {
    if (KIND == SQUARED_EXPONENTIAL) return exp2_of_negated(q);
    T k = rsqrt(T(1) + q);
    return KIND == INVERSE_MULTIQUADRIC ? k : k * k * k;
}

// The move under way.
struct Move {
    real dt;
    u32 step_low, step_high, draw;
};

// A fault is a step, a particle and what is not finite; the first of the run is kept.
__device__ __forceinline__ void report(u64 *fault, const Move *move, int particle, int what) {
    const u64 step = ((u64)move->step_high << 32) | move->step_low;
    atomicMin(fault, (step << 32) | ((u64)particle << 2) | what);
}
