// One move of the particles. The host writes, for the dynamics at hand,
//   apply(one, c, x, out)      M x, with constant entries times `one` and varying ones times c
//   repel(one, c, x, out)      the part of M that repels
//   gradient(z, score, g)      ∇log π(z) of one coordinate, all blocks
//   coefficient(z)             c of the coordinate
//   divergence(out)            ∇·M
//   root(out)                  √(2A), diagonal
// Every entry of M is diagonal in the coordinates, so that a thread has one coordinate of one particle, all blocks.

__device__ constexpr int MOVING[] = {MOVING_LIST};
constexpr int MOVED = sizeof(MOVING) / sizeof(int);

extern "C" __global__ void set_move(Move *move, double dt, u64 step, int draw) {
    *move = {(real)dt, (u32)step, (u32)(step >> 32), (u32)draw};
}

// The mean of up to 256 particles, near which all are: sums of differences lose less there. Blocks of 32 × 32.
extern "C" __global__ void centre(const real *__restrict__ state, int count, int size, real *__restrict__ mean) {
    __shared__ real sums[32][33];
    const int column = blockIdx.x * 32 + threadIdx.x, stride = (count + 255) / 256;
    real sum = 0;
    for (int k = threadIdx.y; k * stride < count; k += 32)
        if (column < size) sum += state[(size_t)k * stride * size + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= size) return;
    real total = 0;
    for (int k = 0; k < 32; k++) total += sums[k][threadIdx.x];
    mean[column] = total / ((count + stride - 1) / stride);
}

__device__ __forceinline__ void load(const real *state, int i, int c, real *z) {
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) z[b] = state[(size_t)i * (BLOCKS * DIMENSION) + b * DIMENSION + c];
}

// Scaled points, SEEN_BLOCKS blocks of a row, and the right-hand side of a part: M ∇log π + ∇·M where it drifts, less
// M applied to rate · (z − mean); then c where it varies. `rates`: per block, of the part's slope.
extern "C" __global__ void prepare(const real *__restrict__ state, const real *__restrict__ score,
                                   const real *__restrict__ mean, const double *__restrict__ h, int count,
                                   int drifts, int slope_group, real *__restrict__ points, int point_stride,
                                   real *__restrict__ rhs, int rhs_stride) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (size_t)count * DIMENSION) return;
    const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
    real z[BLOCKS], x[BLOCKS], force[BLOCKS];
    load(state, i, c, z);
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const int group = GROUP_OF(b);
        const real centred = z[b] - mean[b * DIMENSION + c];
        x[b] = 0;
        if (group >= 0) {
            if (points) points[(size_t)i * point_stride + b * DIMENSION + c] = centred * (real)sqrt(UNIT / h[group]);
            if (slope_group == group || slope_group == ALL_GROUPS) x[b] = -centred * (real)(SLOPE / h[group]);
        }
    }
    const real k = coefficient(z);
    repel(real(1), k, x, force);
    if (drifts) {
        real g[BLOCKS], f[BLOCKS], d[BLOCKS];
        gradient(z, score[(size_t)i * DIMENSION + c], g);
        apply(real(1), k, g, f);
        divergence(d);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) force[b] += f[b] + d[b];
    }
    real *out = rhs + (size_t)i * rhs_stride;
#pragma unroll
    for (int m = 0; m < MOVED; m++) out[m * DIMENSION + c] = force[MOVING[m]];
    if (VARIES) out[MOVED * DIMENSION + c] = k;
}

// Adds one number a thread over a block, in fixed order; the first thread has the sum.
__device__ __forceinline__ double block_sum(double x) {
    __shared__ double sums[32];
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    double total = 0;
    if (threadIdx.x == 0)
        for (u32 k = 0; k < blockDim.x / 32; k++) total += sums[k];
    return total;
}

// v = (sums + M(Σ k c) rate (z − mean))/N of a part, from `splits` partial sums; the last part moves.
extern "C" __global__ void combine(real *__restrict__ state, const real *__restrict__ mean,
                                   const double *__restrict__ h, int count, int slope_group,
                                   const real *__restrict__ partial, int splits, real *__restrict__ velocity,
                                   int is_first, int is_last, const Move *__restrict__ move,
                                   double *__restrict__ speeds, u64 *__restrict__ fault) {
    constexpr int WIDE = (MOVED + VARIES) * DIMENSION + 1;
    double squares[MOVED] = {};
    const size_t all = (size_t)count * DIMENSION;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
        real sum[MOVED] = {}, mass = 0, varying = 0;
        for (int s = 0; s < splits; s++) {
            const real *own = partial + ((size_t)s * count + i) * WIDE;
#pragma unroll
            for (int m = 0; m < MOVED; m++) sum[m] += own[m * DIMENSION + c];
            if (VARIES) varying += own[MOVED * DIMENSION + c];
            mass += own[WIDE - 1];
        }
        real z[BLOCKS], x[BLOCKS], pushed[BLOCKS];
        load(state, i, c, z);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const int group = GROUP_OF(b);
            const bool slopes = group >= 0 && (slope_group == group || slope_group == ALL_GROUPS);
            x[b] = slopes ? (z[b] - mean[b * DIMENSION + c]) * (real)(SLOPE / h[group]) : real(0);
        }
        repel(mass, varying, x, pushed);
#pragma unroll
        for (int m = 0; m < MOVED; m++) {
            const size_t place = ((size_t)i * MOVED + m) * DIMENSION + c;
            real v = sum[m] + pushed[MOVING[m]];
            if (!is_first) v += velocity[place];
            if (is_last) v /= count;
            if (!is_last || !move) velocity[place] = v;
            if (is_last && move) {
                squares[m] += (double)v * v;
                const real moved = z[MOVING[m]] + move->dt * v;
                state[(size_t)i * (BLOCKS * DIMENSION) + MOVING[m] * DIMENSION + c] = moved;
                if (!isfinite(moved)) report(fault, move, i, 2);
            }
        }
    }
    if (!is_last || !move) return;
    for (int m = 0; m < MOVED; m++) {
        const double total = block_sum(squares[m]);
        if (threadIdx.x == 0) speeds[m * gridDim.x + blockIdx.x] = total;
    }
}

// Philox 4×32-10: four random words at an address, under a key.
__device__ __forceinline__ void philox(u32 *c, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u32 high0 = __umulhi(0xD2511F53u, c[0]), low0 = 0xD2511F53u * c[0];
        const u32 high1 = __umulhi(0xCD9E8D57u, c[2]), low1 = 0xCD9E8D57u * c[2];
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

// A standard normal at (seed, step, draw, place), by Box and Muller.
__device__ __forceinline__ real normal(u64 seed, const Move *move, u64 place, u32 block) {
    u32 c[4] = {(u32)place, (u32)(place >> 32) ^ (block << 24) ^ (move->draw << 16), move->step_low, move->step_high};
    philox(c, (u32)seed, (u32)(seed >> 32));
#if IS_DOUBLE
    const double u = ((((u64)c[0] << 32) | c[1]) >> 11) * 0x1p-53 + 0x1p-54, angle = c[2] * 0x1p-31;
    return sqrt(-2 * log(u)) * cospi(angle);
#else
    const float u = c[0] * 0x1p-32f + 0x1p-33f, angle = c[1] * 0x1p-31f;
    return sqrtf(-2 * logf(u)) * cospif(angle);
#endif
}

// z += dt f + √(2 A dt) noise; without noise where `is_random` is 0.
extern "C" __global__ void diffuse(real *__restrict__ state, const real *__restrict__ score, int count, u64 seed,
                                   int is_random, const Move *__restrict__ move, double *__restrict__ speeds,
                                   u64 *__restrict__ fault) {
    double squares[MOVED] = {};
    const size_t all = (size_t)count * DIMENSION;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
        real z[BLOCKS], g[BLOCKS], f[BLOCKS], d[BLOCKS], a[BLOCKS];
        load(state, i, c, z);
        gradient(z, score[(size_t)i * DIMENSION + c], g);
        apply(real(1), coefficient(z), g, f);
        divergence(d);
        root(a);
#pragma unroll
        for (int m = 0; m < MOVED; m++) {
            const int b = MOVING[m];
            const real v = f[b] + d[b];
            squares[m] += (double)v * v;
            real moved = z[b] + move->dt * v;
            if (is_random && a[b] > 0) moved += sqrt(move->dt) * a[b] * normal(seed, move, at, b);
            state[(size_t)i * (BLOCKS * DIMENSION) + b * DIMENSION + c] = moved;
            if (!isfinite(moved)) report(fault, move, i, 2);
        }
    }
    for (int m = 0; m < MOVED; m++) {
        const double total = block_sum(squares[m]);
        if (threadIdx.x == 0) speeds[m * gridDim.x + blockIdx.x] = total;
    }
}
