// Kernel sums in up to 128 dimensions, on tensor cores: Σⱼ kᵢⱼ (Rⱼ, 1) with K never stored.
//
// As in flash attention: a tile of XXᵀ becomes a tile of K in registers, which multiplies a tile of R. Numbers are
// split into two halves of 11 bits, hi + lo, and three of their four products taken (PRODUCTS = 3: 22 bits);
// with PRODUCTS = 1 hi alone is used, as precise as TF32. Sums are in single precision.
//
// Chunks are multiples of BN; norms go on to the next multiple of BN, with 3e38. X: DIM numbers a row, R: WIDTH numbers a row (multiples of 16), both rows of halves. WIDTH_OUT columns of R
// are real ones; column WIDTH_OUT of the result is Σⱼ kᵢⱼ. A warp owns MT groups of 16 rows i.

#define BN 64                 // rows j of a tile
#define SUB 32                // rows j that are worked on at a time
#define SCALE 12              // K is scaled by 2^12: so small ones keep their bits
#define STRETCH 2048          // rows j between two additions to the result
#define XS (DIM + 8)          // strides in shared memory: no two rows on the same banks
#define RS (WIDTH + 8)
#define HALVES (PRODUCTS == 3 ? 2 : 1)
#define STAGE (BN * (XS + RS) * HALVES)

// Rows first … first + BN of X and R into shared memory; rows that are not there become zeros.
__device__ __forceinline__ void fetch(half *stage, const half *const *x, const half *const *r, int first, int end) {
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
        half *xs = stage + h * BN * XS, *rs = stage + HALVES * BN * XS + h * BN * RS;
        for (int at = threadIdx.x; at < BN * DIM / 8; at += THREADS) {
            int row = at / (DIM / 8), col = at % (DIM / 8) * 8;
            bool exists = first + row < end;
            copy16(xs + row * XS + col, x[h] + (exists ? (size_t)(first + row) * DIM + col : 0), exists);
        }
        for (int at = threadIdx.x; at < BN * WIDTH / 8; at += THREADS) {
            int row = at / (WIDTH / 8), col = at % (WIDTH / 8) * 8;
            bool exists = first + row < end;
            copy16(rs + row * RS + col, r[h] + (exists ? (size_t)(first + row) * WIDTH + col : 0), exists);
        }
    }
    asm volatile("cp.async.commit_group;");
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
tiles(const half *__restrict__ x_hi, const half *__restrict__ x_lo, const float *__restrict__ norms,
      const half *__restrict__ r_hi, const half *__restrict__ r_lo, const float *__restrict__ r_scale, int count,
      int chunk, float *__restrict__ partial) {
    extern __shared__ __align__(16) half shared[];
    const half *x[2] = {x_hi, x_lo}, *r[2] = {r_hi, r_lo};
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int base = (blockIdx.x * (THREADS / 32) + warp) * (16 * MT);
    const int group = lane / 4, pair = lane % 4;
    const int begin = blockIdx.y * chunk, end = min(begin + chunk, count);

    // The warp's own rows, as the left factor of XXᵀ, and their norms.
    u32 own[HALVES][MT][DIM / 16][4];
    float own_norm[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int half_row = 0; half_row < 2; half_row++) {
            int i = min(base + m * 16 + half_row * 8 + group, count - 1);
            own_norm[m][half_row] = norms[i] - (PROFILE == SQUARED_EXPONENTIAL ? SCALE : 0);
#pragma unroll
            for (int h = 0; h < HALVES; h++)
#pragma unroll
                for (int k = 0; k < DIM / 16; k++) {
                    const u32 *row = (const u32 *)(x[h] + (size_t)i * DIM + k * 16);
                    own[h][m][k][half_row] = row[pair];
                    own[h][m][k][half_row + 2] = row[pair + 4];
                }
        }
    }
    float sums[MT][WIDTH / 8][4], mass[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
        mass[m][0] = mass[m][1] = 0;
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) sums[m][n][e] = 0;
    }

    const int tile_count = (end - begin + BN - 1) / BN;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tile_count) fetch(shared + s * STAGE, x, r, begin + s * BN, end);
        else asm volatile("cp.async.commit_group;");
    }
    int stretch = 0;
    bool is_first = true;
    for (int t = 0; t < tile_count; t++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        const int first = begin + t * BN;
        if (t + STAGES - 1 < tile_count)
            fetch(shared + (t + STAGES - 1) % STAGES * STAGE, x, r, first + (STAGES - 1) * BN, end);
        else asm volatile("cp.async.commit_group;");
        const half *xs = shared + t % STAGES * STAGE, *rs = xs + HALVES * BN * XS;

#pragma unroll 1
        for (int sub = 0; sub < BN; sub += SUB) {
        // X Xᵀ of the rows i and of SUB rows j.
        float dots[MT][SUB / 8][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < SUB / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) dots[m][n][e] = 0;
#pragma unroll
        for (int k = 0; k < DIM / 16; k++) {
#pragma unroll
            for (int n = 0; n < SUB / 16; n++) {
                // Two neighbouring groups of 8 rows j, each with 16 coordinates.
                const half *at = xs + (sub + n * 16 + lane % 8 + lane / 16 * 8) * XS + k * 16 + lane / 8 % 2 * 8;
                u32 b[HALVES][4];
                load4(b[0], at);
                if (PRODUCTS == 3) load4(b[HALVES - 1], at + BN * XS);
                // Three products one after the other, so that no sum waits for itself.
#pragma unroll
                for (int product = PRODUCTS - 1; product >= 0; product--)
#pragma unroll
                    for (int m = 0; m < MT; m++)
#pragma unroll
                        for (int half_n = 0; half_n < 2; half_n++) {
                            const u32 *left = own[product == 2 ? HALVES - 1 : 0][m][k];
                            const u32 *right = b[product == 1 ? HALVES - 1 : 0];
                            mma(dots[m][2 * n + half_n], left, right[2 * half_n], right[2 * half_n + 1]);
                        }
            }
        }
        // K, as the left factor of K R.
        u32 kernel[HALVES][MT][SUB / 16][4];
        const bool is_diagonal = first + sub < base + 16 * MT && base < first + sub + SUB;
#pragma unroll
        for (int n = 0; n < SUB / 8; n++) {
            const int j = first + sub + n * 8 + 2 * pair;
            // Rows that are not there are infinitely far away.
            const float2 others = __ldg((const float2 *)(norms + j));
            const float other[2] = {others.x, others.y};
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int half_row = 0; half_row < 2; half_row++) {
                    float k[2];
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        float q = fmaf(-2.0f, dots[m][n][2 * half_row + e], own_norm[m][half_row] + other[e]);
                        if (PROFILE == SQUARED_EXPONENTIAL) {
                            k[e] = exp2_of_negated(q);
                        } else {
                            k[e] = profile<PROFILE>(fmaxf(q, 0.0f)) * (1 << SCALE);
                        }
                    }
                    // Rounding must not move a particle away from itself.
                    if (is_diagonal) {
                        const int i = base + m * 16 + half_row * 8 + group;
                        if (i == j) k[0] = 1 << SCALE;
                        if (i == j + 1) k[1] = 1 << SCALE;
                    }
                    mass[m][half_row] += k[0] + k[1];
                    const u32 hi = pack(k[0], k[1]);
                    kernel[0][m][n / 2][half_row + 2 * (n % 2)] = hi;
                    if (PRODUCTS == 3)
                        kernel[HALVES - 1][m][n / 2][half_row + 2 * (n % 2)] =
                            pack(k[0] - low(hi), k[1] - high(hi));
                }
        }
#pragma unroll
        for (int k = 0; k < SUB / 16; k++)
#pragma unroll
            for (int n = 0; n < WIDTH / 16; n++) {
                const half *at = rs + (sub + k * 16 + lane % 16) * RS + n * 16 + lane / 16 * 8;
                u32 b[HALVES][4];
                load4_transposed(b[0], at);
                if (PRODUCTS == 3) load4_transposed(b[HALVES - 1], at + BN * RS);
#pragma unroll
                for (int product = PRODUCTS - 1; product >= 0; product--)
#pragma unroll
                    for (int m = 0; m < MT; m++)
#pragma unroll
                        for (int half_n = 0; half_n < 2; half_n++) {
                            const u32 *left = kernel[product == 2 ? HALVES - 1 : 0][m][k];
                            const u32 *right = b[product == 1 ? HALVES - 1 : 0];
                            mma(sums[m][2 * n + half_n], left, right[2 * half_n], right[2 * half_n + 1]);
                        }
            }
        }
        stretch += BN;
        // Tensor cores round towards zero, so long sums would be too small: add up short ones.
        if (stretch >= STRETCH || t + 1 == tile_count) {
            stretch = 0;
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int half_row = 0; half_row < 2; half_row++) {
                    const int i = base + m * 16 + half_row * 8 + group;
                    float *out = partial + ((size_t)blockIdx.y * count + i) * (WIDTH_OUT + 1);
#pragma unroll
                    for (int n = 0; n < WIDTH / 8; n++)
#pragma unroll
                        for (int e = 0; e < 2; e++) {
                            const int column = n * 8 + 2 * pair + e;
                            float *sum = &sums[m][n][2 * half_row + e];
                            if (i < count && column < WIDTH_OUT) {
                                float more = *sum * r_scale[column] * (1.0f / (1 << SCALE));
                                out[column] = is_first ? more : out[column] + more;
                            }
                            *sum = 0;
                        }
                    // Four neighbouring lanes have the same row.
                    float *own_mass = &mass[m][half_row];
                    *own_mass += __shfl_xor_sync(~0u, *own_mass, 1);
                    *own_mass += __shfl_xor_sync(~0u, *own_mass, 2);
                    if (i < count && pair == 0) {
                        float more = *own_mass * (1.0f / (1 << SCALE));
                        out[WIDTH_OUT] = is_first ? more : out[WIDTH_OUT] + more;
                    }
                    *own_mass = 0;
                }
            is_first = false;
        }
    }
}
