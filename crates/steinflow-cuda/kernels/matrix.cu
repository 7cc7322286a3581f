// Kernel sums of some hundred particles in many dimensions: K is stored, which takes less than the particles do, and with
// it the squared distances over every block of the state, so that only those of a block that moved are found anew.
//
// Numbers are split into two halves of 11 bits, hi + lo, as in `tiles.cu`: PRODUCTS = 3 or 1 of their products are taken.

#define BM 128
#define BN 128
#define BK 32
#define HALVES (PRODUCTS == 3 ? 2 : 1)
#define SCALE 12            // K is scaled by 2^12: so small ones keep their bits
#define LEFT (BM * (BK + 8))
#define RIGHT (BN * (BK + 8)) // of K columns a row; as many halves are enough for BK rows of BN + 8

// The largest |z − mean| of a block, as bits; `largest` holds 0 before.
extern "C" __global__ void largest_of_block(const float *__restrict__ state, const float *__restrict__ scale,
                                            const float *__restrict__ mean, int count, int size, int first, int dim,
                                            u32 *largest) {
    float most = 0;
    const size_t all = (size_t)count * dim;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int c = (int)(at % dim);
        float x = state[at / dim * size + first + c] - mean[first + c];
        if (scale) x /= scale[c];
        most = fmaxf(most, fabsf(x));
    }
    for (int step = 16; step; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    if (threadIdx.x % 32 == 0) atomicMax(largest, __float_as_uint(most));
}

// A power of two that brings the largest number to 2^10 or less.
__device__ __forceinline__ float power_for(const u32 *largest) {
    const float most = __uint_as_float(*largest);
    return most > 0 && most < 3e38f ? exp2f(10 - ceilf(log2f(most))) : 1.0f;
}

// Two numbers as halves, at a place of either part; returns the sum of their squares as they are kept.
__device__ __forceinline__ double keep(float a, float b, half *hi, half *lo) {
    const u32 head = pack(a, b), tail = pack(a - low(head), b - high(head));
    *(u32 *)hi = head;
    *(u32 *)lo = tail;
    const float x = low(head) + (PRODUCTS == 3 ? low(tail) : 0.0f), y = high(head) + (PRODUCTS == 3 ? high(tail) : 0.0f);
    return (double)x * x + (double)y * y;
}

// A block of the state as halves, `padded` a row, with the squared norms of the rows. A block a row.
extern "C" __global__ void __launch_bounds__(256)
split_block(const float *__restrict__ state, const float *__restrict__ scale, const float *__restrict__ mean, int count,
            int size, int first, int dim, int padded, const u32 *__restrict__ largest, half *__restrict__ hi,
            half *__restrict__ lo, float *__restrict__ norms) {
    const int i = blockIdx.x;
    const float power = power_for(largest);
    double norm = 0;
#pragma unroll 4
    for (int c = 2 * threadIdx.x; c < padded; c += 512) {
        float x[2] = {};
#pragma unroll
        for (int e = 0; e < 2; e++)
            if (c + e < dim) {
                x[e] = state[(size_t)i * size + first + c + e] - mean[first + c + e];
                if (scale) x[e] /= scale[c + e];
                x[e] *= power;
            }
        norm += keep(x[0], x[1], hi + (size_t)i * padded + c, lo + (size_t)i * padded + c);
    }
    norm = block_sum(norm);
    if (threadIdx.x == 0) norms[i] = (float)norm;
}

// The right-hand side as halves, columns divided by their scales. A block a row.
extern "C" __global__ void __launch_bounds__(256)
split_right(const float *__restrict__ rhs, int width, int padded, const float *__restrict__ scale, half *__restrict__ hi,
            half *__restrict__ lo) {
    const size_t i = blockIdx.x;
#pragma unroll 4
    for (int c = 2 * threadIdx.x; c < padded; c += 512) {
        const float a = c < width ? rhs[i * width + c] / scale[c] : 0.0f;
        const float b = c + 1 < width ? rhs[i * width + c + 1] / scale[c + 1] : 0.0f;
        keep(a, b, hi + i * padded + c, lo + i * padded + c);
    }
}

// Fetches BK columns of the left factor's rows, and of the right one's: rows of it, or columns where it is not turned.
template <bool TURNED>
__device__ __forceinline__ void fetch(half *stage, const half *const *a, int a_stride, int i0, int rows,
                                      const half *const *b, int b_stride, int j0, int columns, int k0, int depth) {
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
        half *left = stage + h * LEFT, *right = stage + HALVES * LEFT + h * RIGHT;
#pragma unroll
        for (int at = threadIdx.x; at < BM * BK / 8; at += 256) {
            const int r = at / (BK / 8), c = at % (BK / 8) * 8;
            const bool exists = i0 + r < rows;
            copy16(left + r * (BK + 8) + c, a[h] + (exists ? (size_t)(i0 + r) * a_stride + k0 + c : 0), exists);
        }
        if (TURNED) {
#pragma unroll
            for (int at = threadIdx.x; at < BN * BK / 8; at += 256) {
                const int r = at / (BK / 8), c = at % (BK / 8) * 8;
                const bool exists = j0 + r < columns;
                copy16(right + r * (BK + 8) + c, b[h] + (exists ? (size_t)(j0 + r) * b_stride + k0 + c : 0), exists);
            }
        } else {
#pragma unroll
            for (int at = threadIdx.x; at < BK * BN / 8; at += 256) {
                const int r = at / (BN / 8), c = at % (BN / 8) * 8;
                const bool exists = k0 + r < depth && j0 + c < b_stride;
                copy16(right + r * (BN + 8) + c, b[h] + (exists ? (size_t)(k0 + r) * b_stride + j0 + c : 0), exists);
            }
        }
    }
    asm volatile("cp.async.commit_group;");
}

// sums += A Bᵀ (TURNED) or A B of a tile of BM × BN, over k from `begin` to `end`, multiples of BK. Eight warps, 64 × 32 each.
template <bool TURNED>
__device__ __forceinline__ void multiply_tile(half *shared, const half *const *a, int a_stride, int i0, int rows,
                                              const half *const *b, int b_stride, int j0, int columns, int begin,
                                              int end, int depth, float (*sums)[4][4]) {
    constexpr int STAGE = HALVES * (LEFT + RIGHT);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, wm = warp / 4 * 64, wn = warp % 4 * 32;
    const int steps = (end - begin) / BK;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch<TURNED>(shared + s * STAGE, a, a_stride, i0, rows, b, b_stride, j0, columns, begin + s * BK, depth);
        else asm volatile("cp.async.commit_group;");
    }
    for (int t = 0; t < steps; t++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const int next = t + STAGES - 1;
        if (next < steps)
            fetch<TURNED>(shared + next % STAGES * STAGE, a, a_stride, i0, rows, b, b_stride, j0, columns, begin + next * BK, depth);
        else asm volatile("cp.async.commit_group;");
        const half *left = shared + t % STAGES * STAGE, *right = left + HALVES * LEFT;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            u32 x[HALVES][4][4], y[HALVES][2][4];
#pragma unroll
            for (int h = 0; h < HALVES; h++) {
#pragma unroll
                for (int m = 0; m < 4; m++)
                    load4(x[h][m], left + h * LEFT + (wm + m * 16 + lane % 16) * (BK + 8) + k + lane / 16 * 8);
#pragma unroll
                for (int n = 0; n < 2; n++) {
                    const half *from = right + h * RIGHT;
                    if (TURNED)
                        load4(y[h][n], from + (wn + n * 16 + lane % 8 + lane / 16 * 8) * (BK + 8) + k + lane / 8 % 2 * 8);
                    else
                        load4_transposed(y[h][n], from + (k + lane % 16) * (BN + 8) + wn + n * 16 + lane / 16 * 8);
                }
            }
            // Three products one after the other, so that no sum waits for itself.
#pragma unroll
            for (int product = PRODUCTS - 1; product >= 0; product--)
#pragma unroll
                for (int m = 0; m < 4; m++)
#pragma unroll
                    for (int n = 0; n < 4; n++) {
                        const u32 *of_a = x[product == 2 ? HALVES - 1 : 0][m];
                        const u32 *of_b = y[product == 1 ? HALVES - 1 : 0][n / 2] + n % 2 * 2;
                        mma(sums[m][n], of_a, of_b[0], of_b[1]);
                    }
        }
    }
}

// X Xᵀ, tiles on and below the diagonal; blocks along y take chunks of columns and write a matrix each.
extern "C" __global__ void __launch_bounds__(256, RESIDENT)
gram(const half *__restrict__ hi, const half *__restrict__ lo, int count, int padded, int chunk,
     float *__restrict__ partial) {
    extern __shared__ __align__(16) half shared[];
    int row = 0;
    while ((row + 1) * (row + 2) / 2 <= (int)blockIdx.x) row++;
    const int i0 = row * BM, j0 = ((int)blockIdx.x - row * (row + 1) / 2) * BN;
    const half *x[2] = {hi, lo};
    float sums[4][4][4] = {};
    const int begin = blockIdx.y * chunk, end = min(begin + chunk, padded);
    multiply_tile<true>(shared, x, padded, i0, count, x, padded, j0, count, begin, end, padded, sums);
    float *out = partial + (size_t)blockIdx.y * count * count;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = i0 + warp / 4 * 64 + m * 16 + lane / 4 + e / 2 * 8;
                const int j = j0 + warp % 4 * 32 + n * 8 + lane % 4 * 2 + e % 2;
                if (i < count && j < count) out[(size_t)i * count + j] = sums[m][n][e];
            }
}

// Squared distances from the parts of X Xᵀ, for both halves of the matrix.
extern "C" __global__ void finish_squares(const float *__restrict__ partial, int parts, const float *__restrict__ norms,
                                          const u32 *__restrict__ largest, int count, float *__restrict__ squares) {
    const int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= count || j >= count) return;
    const int a = max(i, j), b = min(i, j);
    float sum = 0;
    for (int k = 0; k < parts; k++) sum += partial[((size_t)k * count + a) * count + b];
    const float power = power_for(largest);
    squares[(size_t)i * count + j] = i == j ? 0.0f : fmaxf(norms[a] + norms[b] - 2 * sum, 0.0f) / (power * power);
}

// K as halves, `stride` a row, from the squared distances of up to three blocks; Σⱼ kᵢⱼ goes to column `width` of the
// result. A warp a row.
extern "C" __global__ void kernel_matrix(const float *__restrict__ a, const float *__restrict__ b,
                                         const float *__restrict__ c, int group_a, int group_b, int group_c,
                                         const double *__restrict__ h, double unit, int count, int stride,
                                         half *__restrict__ hi, half *__restrict__ lo, float *__restrict__ out, int width) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    const float rate_a = a ? (float)(unit / h[group_a]) : 0, rate_b = b ? (float)(unit / h[group_b]) : 0,
                rate_c = c ? (float)(unit / h[group_c]) : 0;
    float mass = 0;
    for (int j = 2 * lane; j < stride; j += 64) {
        float k[2] = {};
#pragma unroll
        for (int e = 0; e < 2; e++)
            if (j + e < count) {
                const size_t at = (size_t)i * count + j + e;
                float q = -SCALE;
                if (a) q = fmaf(rate_a, a[at], q);
                if (b) q = fmaf(rate_b, b[at], q);
                if (c) q = fmaf(rate_c, c[at], q);
                k[e] = exp2_of_negated(q);
            }
        mass += k[0] + k[1];
        const u32 head = pack(k[0], k[1]);
        *(u32 *)(hi + (size_t)i * stride + j) = head;
        *(u32 *)(lo + (size_t)i * stride + j) = pack(k[0] - low(head), k[1] - high(head));
    }
    for (int step = 16; step; step /= 2) mass += __shfl_xor_sync(~0u, mass, step);
    if (lane == 0) out[(size_t)i * (width + 1) + width] = mass * (1.0f / (1 << SCALE));
}

// K R, into the first `width` columns of the result.
extern "C" __global__ void __launch_bounds__(256, RESIDENT)
multiply(const half *__restrict__ k_hi, const half *__restrict__ k_lo, int stride, const half *__restrict__ r_hi,
         const half *__restrict__ r_lo, const float *__restrict__ r_scale, int count, int width, int padded,
         float *__restrict__ out) {
    extern __shared__ __align__(16) half shared[];
    const half *k[2] = {k_hi, k_lo}, *r[2] = {r_hi, r_lo};
    const int i0 = blockIdx.y * BM, j0 = blockIdx.x * BN;
    float sums[4][4][4] = {};
    multiply_tile<false>(shared, k, stride, i0, count, r, padded, j0, width, 0, stride, count, sums);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = i0 + warp / 4 * 64 + m * 16 + lane / 4 + e / 2 * 8;
                const int j = j0 + warp % 4 * 32 + n * 8 + lane % 4 * 2 + e % 2;
                if (i < count && j < width) out[(size_t)i * (width + 1) + j] = sums[m][n][e] * r_scale[j] * (1.0f / (1 << SCALE));
            }
}
