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

// What one piece of work of a step is told: how long it moves, which step and draw it is, and where in the ring its
// minibatch is. Of a preconditioner, `amount` is the weight of what it has learnt; of a rule with averages, `second`
// is what the squares are multiplied by.
struct Move {
    double amount, second;
    u32 step_low, step_high, draw, batch;
};

// A fault is a step, a particle and what is not finite; the first of the run is kept.
__device__ __forceinline__ void report(u64 *fault, const Move *move, int particle, int what) {
    const u64 step = ((u64)move->step_high << 32) | move->step_low;
    atomicMin(fault, (step << 32) | ((u64)particle << 2) | what);
}

// Adds one number a thread over a block, in fixed order; the first thread has the sum.
__device__ __forceinline__ double block_sum(double x) {
    __shared__ double sums[32];
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    double total = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0;
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    return total;
}
