// One move of the particles. The host writes, for the dynamics at hand,
//   apply(one, c, x, out)      M x, with constant entries times `one` and varying ones times their c
//   repel(one, c, x, out)      the part of M that repels
//   gradient(z, score, g)      ∇log π(z) of one coordinate, all blocks
//   root(c, out)               √(2A), diagonal
//   locals(…)                  what varies at a coordinate, VARIES coefficients c and divergences, as the dynamics have it
// Every entry of M is diagonal in the coordinates, so that a thread has one coordinate of one particle, all blocks.

__device__ constexpr int MOVING[] = {MOVING_LIST};
constexpr int MOVED = sizeof(MOVING) / sizeof(int);
constexpr int COEFFICIENTS = VARIES ? VARIES : 1;

// What varies: coefficients, ∇·A and ∇·C.
struct Locals {
    real c[COEFFICIENTS], of_a[BLOCKS], of_c[BLOCKS];
};
__device__ __forceinline__ Locals locals_at(const real *z, const real *log_densities, int i, real score) {
    Locals own = {};
    if (VARIES) locals(z, log_densities[i], score, own.c, own.of_a, own.of_c);
    return own;
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

// s of the preconditioner's θ = s ⊙ u; 1 where there is none.
__device__ __forceinline__ real unit_of(const real *scale, int c) { return PRECONDITIONED ? scale[c] : real(1); }

// A coordinate of a particle, as it stands and as dynamics and kernel see it.
__device__ __forceinline__ void load(const real *state, real unit, int i, int c, real *raw, real *z) {
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        z[b] = raw[b] = state[(size_t)i * (BLOCKS * DIMENSION) + b * DIMENSION + c];
        if (PRECONDITIONED && b == 0) z[b] = raw[b] / unit;
    }
}

__device__ __forceinline__ real centre_of(const real *mean, real unit, int b, int c) {
    const real own = mean[b * DIMENSION + c];
    return PRECONDITIONED && b == 0 ? own / unit : own;
}

// The displacement that a velocity makes: for a time, or by a rule with averages of velocities and of their squares,
// `all` numbers each. Such a rule is for one block.
__device__ __forceinline__ real displacement(real v, const Move *move, real *averages, double keep_mean,
                                             double keep_square, double add_square, size_t place, size_t all) {
    if (!averages) return (real)move->amount * v;
    const real mean = (real)keep_mean * averages[place] + (1 - (real)keep_mean) * v;
    const real square = (real)keep_square * averages[all + place] + (real)add_square * (v * v);
    averages[place] = mean;
    averages[all + place] = square;
    return (real)move->amount * mean / (sqrt((real)move->second * square) + real(1e-8));
}
#define RESCALING real *averages, double keep_mean, double keep_square, double add_square
#define RESCALED averages, keep_mean, keep_square, add_square

// Moves one block of it.
__device__ __forceinline__ void put(real *state, real unit, int i, int c, int b, real raw, real by, const Move *move,
                                    u64 *fault) {
    const real moved = raw + (PRECONDITIONED && b == 0 ? unit * by : by);
    state[(size_t)i * (BLOCKS * DIMENSION) + b * DIMENSION + c] = moved;
    if (!isfinite(moved)) report(fault, move, i, 2);
}

// Scaled points, SEEN_BLOCKS blocks of a row, and the right-hand side of a part: M ∇log π + ∇·M where it drifts, less
// M applied to rate · (z − mean); then c where it varies. `rates`: per block, of the part's slope.
extern "C" __global__ void prepare(const real *__restrict__ state, const real *__restrict__ score,
                                   const real *__restrict__ log_densities, const real *__restrict__ scale,
                                   const real *__restrict__ mean, const double *__restrict__ h, int count,
                                   int drifts, int slope_group, real *__restrict__ points, int point_stride,
                                   real *__restrict__ rhs, int rhs_stride) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (size_t)count * DIMENSION) return;
    const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
    real raw[BLOCKS], z[BLOCKS], x[BLOCKS], force[BLOCKS];
    const real unit = unit_of(scale, c);
    load(state, unit, i, c, raw, z);
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const int group = GROUP_OF(b);
        const real centred = z[b] - centre_of(mean, unit, b, c);
        x[b] = 0;
        if (group >= 0) {
            if (points) points[(size_t)i * point_stride + b * DIMENSION + c] = centred * (real)sqrt(UNIT / h[group]);
            if (slope_group == group || slope_group == ALL_GROUPS) x[b] = -centred * (real)(SLOPE / h[group]);
        }
    }
    const real s = drifts || VARIES ? unit * score[(size_t)i * DIMENSION + c] : real(0);
    const Locals own = locals_at(z, log_densities, i, s);
    repel(real(1), own.c, x, force);
    if (drifts) {
        real g[BLOCKS], f[BLOCKS];
        gradient(z, s, g);
        apply(real(1), own.c, g, f);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) force[b] += f[b] + own.of_a[b] + own.of_c[b];
    }
    real *out = rhs + (size_t)i * rhs_stride;
#pragma unroll
    for (int m = 0; m < MOVED; m++) out[m * DIMENSION + c] = force[MOVING[m]];
#pragma unroll
    for (int k = 0; k < VARIES; k++) out[(MOVED + k) * DIMENSION + c] = own.c[k];
}

// v = (sums + M(Σ k c) rate (z − mean)) · share of a part, from `splits` partial sums; the last part moves.
extern "C" __global__ void combine(real *__restrict__ state, const real *__restrict__ scale, const real *__restrict__ mean,
                                   const double *__restrict__ h, int count, int slope_group,
                                   const real *__restrict__ partial, int splits, real *__restrict__ velocity,
                                   int is_first, int is_last, double share, double affine, RESCALING,
                                   const Move *__restrict__ move, double *__restrict__ speeds, u64 *__restrict__ fault) {
    constexpr int WIDE = (MOVED + VARIES) * DIMENSION + 1;
    double squares[MOVED] = {};
    const size_t all = (size_t)count * DIMENSION;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
        real sum[MOVED] = {}, mass = 0, varying[COEFFICIENTS] = {};
        for (int s = 0; s < splits; s++) {
            const real *own = partial + ((size_t)s * count + i) * WIDE;
#pragma unroll
            for (int m = 0; m < MOVED; m++) sum[m] += own[m * DIMENSION + c];
#pragma unroll
            for (int k = 0; k < VARIES; k++) varying[k] += own[(MOVED + k) * DIMENSION + c];
            mass += own[WIDE - 1];
        }
        real raw[BLOCKS], z[BLOCKS], x[BLOCKS], pushed[BLOCKS];
        const real unit = unit_of(scale, c);
        load(state, unit, i, c, raw, z);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const int group = GROUP_OF(b);
            const bool slopes = group >= 0 && (slope_group == group || slope_group == ALL_GROUPS);
            // The affine part repels from 0: its slope is x.
            if (slope_group == AFFINE) x[b] = group >= 0 ? (real)affine * z[b] : real(0);
            else x[b] = slopes ? (z[b] - centre_of(mean, unit, b, c)) * (real)(SLOPE / h[group]) : real(0);
        }
        repel(mass, varying, x, pushed);
#pragma unroll
        for (int m = 0; m < MOVED; m++) {
            const size_t place = ((size_t)i * MOVED + m) * DIMENSION + c;
            real v = sum[m] + pushed[MOVING[m]];
            if (!is_first) v += velocity[place];
            if (is_last) {
                v *= (real)share;
                squares[m] += (double)v * v;
                const real by = displacement(v, move, RESCALED, at, all);
                put(state, unit, i, c, MOVING[m], raw[MOVING[m]], by, move, fault);
            } else {
                velocity[place] = v;
            }
        }
    }
    if (!is_last) return;
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
extern "C" __global__ void diffuse(real *__restrict__ state, const real *__restrict__ score,
                                   const real *__restrict__ log_densities, const real *__restrict__ scale, int count, u64 seed, int is_random, RESCALING,
                                   const Move *__restrict__ move, double *__restrict__ speeds,
                                   u64 *__restrict__ fault) {
    double squares[MOVED] = {};
    const size_t all = (size_t)count * DIMENSION;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
        real raw[BLOCKS], z[BLOCKS], g[BLOCKS], f[BLOCKS], a[BLOCKS];
        const real unit = unit_of(scale, c), dt = (real)move->amount;
        load(state, unit, i, c, raw, z);
        const real s = unit * score[(size_t)i * DIMENSION + c];
        const Locals own = locals_at(z, log_densities, i, s);
        gradient(z, s, g);
        apply(real(1), own.c, g, f);
        root(own.c, a);
#pragma unroll
        for (int m = 0; m < MOVED; m++) {
            const int b = MOVING[m];
            const real v = f[b] + own.of_a[b] + own.of_c[b];
            squares[m] += (double)v * v;
            real by = displacement(v, move, RESCALED, at, all);
            if (is_random && a[b] > 0) by += sqrt(dt) * a[b] * normal(seed, move, at, b);
            put(state, unit, i, c, b, raw[b], by, move, fault);
        }
    }
    for (int m = 0; m < MOVED; m++) {
        const double total = block_sum(squares[m]);
        if (threadIdx.x == 0) speeds[m * gridDim.x + blockIdx.x] = total;
    }
}
