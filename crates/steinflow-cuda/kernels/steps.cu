// What a step of the run is told, and what a preconditioner learns from scores.

// Up to eight pieces of work, which belong to the same step.
extern "C" __global__ void set_moves(Move *moves, u64 step, int draw, double a0, double a1, double a2, double a3,
                                     double a4, double a5, double a6, double a7, double s0, double s1, double s2,
                                     double s3, double s4, double s5, double s6, double s7, int b0, int b1, int b2, int b3,
                                     int b4, int b5, int b6, int b7) {
    const double amounts[8] = {a0, a1, a2, a3, a4, a5, a6, a7};
    const double seconds[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    const int batches[8] = {b0, b1, b2, b3, b4, b5, b6, b7};
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (threadIdx.x == k)
            moves[k] = {amounts[k], seconds[k], (u32)step, (u32)(step >> 32), (u32)(draw + k), (u32)batches[k]};
}

// moments = decay · moments + mean over particles of the squared score; scale = (√(moments/weight) + floor)^(−1/2), with the
// weight as the move's amount. A block has 32 columns, and 32 threads for each.
extern "C" __global__ void learn(const real *__restrict__ score, int count, int dim, double decay, double floor,
                                 double *__restrict__ moments, real *__restrict__ scale,
                                 const Move *__restrict__ move) {
    __shared__ double sums[32][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    double sum = 0;
    if (column < dim)
#pragma unroll 8
        for (int i = threadIdx.y; i < count; i += 32) {
            const double s = score[(size_t)i * dim + column];
            sum += s * s;
        }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= dim) return;
    double total = 0;
    for (int k = 0; k < 32; k++) total += sums[k][threadIdx.x];
    const double moment = decay * moments[column] + total / count;
    moments[column] = moment;
    scale[column] = (real)(1 / sqrt(sqrt(moment / move->amount) + floor));
}

extern "C" __global__ void keep(const real *__restrict__ from, real *__restrict__ to, u64 size) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) to[at] = from[at];
}

// What moves have made of `from`, for particles that were at `before`: before + factor (state − from).
extern "C" __global__ void rebase(real *__restrict__ state, const real *__restrict__ before,
                                  const real *__restrict__ from, double factor, u64 size) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) state[at] = before[at] + (real)factor * (state[at] - from[at]);
}

// The largest |state − from| and |state − before|, as bits; `largest` holds zeros before. Blocks of 256.
extern "C" __global__ void largest_changes(const real *__restrict__ state, const real *__restrict__ before,
                                           const real *__restrict__ from, u64 size, u64 *__restrict__ largest) {
    double change = 0, whole = 0;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < size; at += (u64)gridDim.x * blockDim.x) {
        change = fmax(change, (double)fabs(state[at] - from[at]));
        whole = fmax(whole, (double)fabs(state[at] - before[at]));
    }
    for (int step = 16; step; step /= 2) {
        change = fmax(change, __shfl_xor_sync(~0u, change, step));
        whole = fmax(whole, __shfl_xor_sync(~0u, whole, step));
    }
    if (threadIdx.x % 32 > 0) return;
    // Bits of numbers ≥ 0 are in their order.
    atomicMax(largest, (u64)__double_as_longlong(change));
    atomicMax(largest + 1, (u64)__double_as_longlong(whole));
}
