// Kernel sums in few dimensions: Σⱼ kᵢⱼ (Rⱼ, 1), every pair in registers.
//
// A record is a particle's scaled points, SEEN numbers, and its right-hand side, WIDTH numbers, padded to RECORD.
// A thread owns ROWS particles i; records j come through shared memory, the same for all threads of a block.
// Column WIDTH of the result is Σⱼ kᵢⱼ. Blocks along y take chunks of j; who reads adds them in order.

// Pairs that are added before the sum goes to the total: rounding errors grow with the length of a sum.
#define STRETCH 2048

struct Factor {
    int end;
    int profile;
};
__device__ constexpr Factor FACTORS[] = {FACTOR_LIST};
constexpr int FACTOR_COUNT = sizeof(FACTORS) / sizeof(Factor);

template <int G> __device__ __forceinline__ real weight(const real *x, const real *y) {
    constexpr int first = G == 0 ? 0 : FACTORS[G > 0 ? G - 1 : 0].end;
    real q = 0;
#pragma unroll
    for (int c = first; c < FACTORS[G].end; c++) {
        real d = x[c] - y[c];
        q = c == first ? d * d : fma(d, d, q);
    }
    real k = profile<FACTORS[G].profile>(q);
    if constexpr (G + 1 < FACTOR_COUNT) k *= weight<G + 1>(x, y);
    return k;
}

// With one exponential in single precision, 2^(−|x − y|²) = 2^(−|x|²) 2^(2x·y − |y|²) takes two instructions less for a
// pair. That is as good as long as |x|² is moderate; whoever has a particle further out takes differences.
constexpr bool BY_PRODUCTS =
    sizeof(real) == 4 && FACTOR_COUNT == 1 && FACTORS[0].profile == SQUARED_EXPONENTIAL;
constexpr int EXTRA = BY_PRODUCTS ? 1 : 0;
// Numbers of a record in shared memory: −|y|² comes after the right-hand side.
constexpr int KEPT = (SEEN + WIDTH + EXTRA + 3) / 4 * 4;
#define MODERATE 80

template <bool PRODUCTS>
__device__ __forceinline__ void add_tile(const real *tile, int here, const real (*x)[SEEN], real (*sum)[WIDTH + 1]) {
#pragma unroll 4
    for (int j = 0; j < here; j++) {
        __align__(16) real other[KEPT];
#pragma unroll
        for (int c = 0; c < KEPT * (int)sizeof(real) / 16; c++)
            ((float4 *)other)[c] = ((const float4 *)(tile + j * KEPT))[c];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            real k;
            if constexpr (PRODUCTS) {
                // x is 2x here.
                real t = other[SEEN + WIDTH];
#pragma unroll
                for (int c = 0; c < SEEN; c++) t = fma(x[r][c], other[c], t);
                k = exp2_of_negated(-t);
            } else {
                k = weight<0>(x[r], other);
            }
#pragma unroll
            for (int c = 0; c < WIDTH; c++) sum[r][c] = fma(k, other[SEEN + c], sum[r][c]);
            sum[r][WIDTH] += k;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
pairs(const real *__restrict__ records, int count, int chunk, real *__restrict__ partial) {
    __shared__ __align__(16) real tile[TILE * KEPT];
    const int base = blockIdx.x * (THREADS * ROWS) + threadIdx.x;
    real x[ROWS][SEEN], sum[ROWS][WIDTH + 1], total[ROWS][WIDTH + 1], norm[ROWS];
    bool is_moderate = BY_PRODUCTS;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int i = min(base + r * THREADS, count - 1);
        norm[r] = 0;
#pragma unroll
        for (int c = 0; c < SEEN; c++) {
            x[r][c] = records[(size_t)i * RECORD + c];
            norm[r] = fma(x[r][c], x[r][c], norm[r]);
        }
        is_moderate &= norm[r] < MODERATE;
#pragma unroll
        for (int c = 0; c <= WIDTH; c++) sum[r][c] = total[r][c] = 0;
    }
    // A warp goes one way.
    is_moderate = BY_PRODUCTS && __all_sync(~0u, is_moderate);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < SEEN; c++)
            if (is_moderate) x[r][c] *= 2;
    const int begin = blockIdx.y * chunk, end = min(begin + chunk, count);
    int stretch = 0;
    for (int first = begin; first < end; first += TILE) {
        const int here = min(TILE, end - first);
        __syncthreads();
        for (int j = threadIdx.x; j < here; j += THREADS) {
            const real *from = records + (size_t)(first + j) * RECORD;
            real *to = tile + j * KEPT;
            if constexpr (!BY_PRODUCTS) {
#pragma unroll
                for (int c = 0; c < RECORD * (int)sizeof(real) / 16; c++)
                    ((float4 *)to)[c] = ((const float4 *)from)[c];
            } else {
                real square = 0;
#pragma unroll
                for (int c = 0; c < SEEN + WIDTH; c++) to[c] = from[c];
#pragma unroll
                for (int c = 0; c < SEEN; c++) square = fma(from[c], from[c], square);
                to[SEEN + WIDTH] = -square;
            }
        }
        __syncthreads();
        if (is_moderate) add_tile<BY_PRODUCTS>(tile, here, x, sum);
        else add_tile<false>(tile, here, x, sum);
        stretch += here;
        if (stretch >= STRETCH || first + TILE >= end) {
            stretch = 0;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c <= WIDTH; c++) {
                    total[r][c] += sum[r][c];
                    sum[r][c] = 0;
                }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int i = base + r * THREADS;
        if (i >= count) continue;
        const real scale = is_moderate ? exp2_of_negated(norm[r]) : real(1);
        real *out = partial + ((size_t)blockIdx.y * count + i) * (WIDTH + 1);
#pragma unroll
        for (int c = 0; c <= WIDTH; c++) out[c] = scale * total[r][c];
    }
}
