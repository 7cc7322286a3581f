// Bandwidths by the library's median rules: all pairs of few particles, always the same sample of many.

// A fixed pseudo-random shift from 1 to n − 1 for every number, by the finaliser of SplitMix64.
__device__ __forceinline__ int nth_shift(u64 number, u64 n) {
    u64 x = (number + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return 1 + (int)(x % (n - 1));
}

// The particles of a pair, as the library numbers them.
__device__ __forceinline__ void find_pair(int pair, int count, int is_exact, int firsts, int stride, int shifts, int &i,
                                          int &j) {
    if (is_exact) {
        // Pair number i(i − 1)/2 + j, with j < i.
        i = (int)((1.0f + sqrtf(1.0f + 8.0f * pair)) / 2.0f);
        while (i * (i - 1) / 2 > pair) i--;
        while (i * (i + 1) / 2 <= pair) i++;
        j = pair - i * (i - 1) / 2;
    } else {
        i = pair % firsts * stride;
        j = (i + nth_shift(shifts == 1 ? pair : pair / firsts, count)) % count;
    }
}

// The same where the squared distances of up to three blocks are known, for all particles.
extern "C" __global__ void gather_squares(const real *__restrict__ a, const real *__restrict__ b,
                                          const real *__restrict__ c, int count, int pairs, int is_exact, int firsts,
                                          int stride, int shifts, real *__restrict__ squares) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair >= pairs) return;
    int i, j;
    find_pair(pair, count, is_exact, firsts, stride, shifts, i, j);
    const size_t at = (size_t)i * count + j;
    real q = 0;
    if (a) q += a[at];
    if (b) q += b[at];
    if (c) q += c[at];
    squares[pair] = q;
}

// Squared distances of `pairs` pairs, over columns first … first + columns. `lanes` threads a pair. The first `scaled`
// columns are divided by `scale`.
extern "C" __global__ void pair_squares(const real *__restrict__ state, const real *__restrict__ scale, int scaled,
                                        int count, int size, int first, int columns,
                                        int pairs, int is_exact, int firsts, int stride, int shifts, int lanes,
                                        real *__restrict__ squares) {
    const int pair = (blockIdx.x * blockDim.x + threadIdx.x) / lanes, lane = threadIdx.x % lanes;
    if (pair >= pairs) return;
    int i, j;
    find_pair(pair, count, is_exact, firsts, stride, shifts, i, j);
    const real *x = state + (size_t)i * size + first, *y = state + (size_t)j * size + first;
    real q = 0;
    for (int c = lane; c < columns; c += lanes) {
        real d = x[c] - y[c];
        if (first + c < scaled) d /= scale[first + c];
        q = fma(d, d, q);
    }
    for (int step = lanes / 2; step; step /= 2) q += __shfl_xor_sync(~0u, q, step);
    if (lane == 0) squares[pair] = q;
}

// Bits of numbers ≥ 0 are in their order.
#if IS_DOUBLE
typedef u64 key;
__device__ __forceinline__ key key_of(real x) { return (u64)__double_as_longlong(x); }
__device__ __forceinline__ double value_of(key k) { return __longlong_as_double((long long)k); }
#define KEY_BITS 64
#else
typedef u32 key;
__device__ __forceinline__ key key_of(real x) { return __float_as_uint(x); }
__device__ __forceinline__ double value_of(key k) { return __uint_as_float(k); }
#define KEY_BITS 32
#endif

// h[group] = (the middle of `squares`)/divisor, with ranks `low` and `high` = low or low + 1; a negative `low` is a
// zero of the diagonal. By roots: the square of the mean of the two roots. Where it is 0: the mean of all.
// One block of 1024 threads: finds the number of rank `high` digit by digit.
extern "C" __global__ void __launch_bounds__(1024)
middle(const real *__restrict__ squares, int pairs, int low, int high, int by_roots, double divisor, int group,
       double *__restrict__ h) {
    __shared__ u32 counts[256];
    __shared__ u32 below_total, digit_found;
    __shared__ key largest_below;
    __shared__ double sums[32];
    const int t = threadIdx.x;
    key prefix = 0;
    u32 rank = high < 0 ? 0 : high, below = 0;
    for (int bits = KEY_BITS - 8; bits >= 0; bits -= 8) {
        if (t < 256) counts[t] = 0;
        __syncthreads();
        for (int at = t; at < pairs; at += 1024) {
            const key k = key_of(squares[at]);
            if (bits == KEY_BITS - 8 || (k >> (bits + 8)) == (prefix >> (bits + 8)))
                atomicAdd(&counts[(k >> bits) & 255], 1u);
        }
        __syncthreads();
        if (t < 32) {
            // Eight counts a lane; the lane that holds the rank finds its digit.
            u32 own[8], sum = 0;
            for (int k = 0; k < 8; k++) sum += own[k] = counts[8 * t + k];
            u32 upto = sum;
            for (int step = 1; step < 32; step *= 2) {
                const u32 other = __shfl_up_sync(~0u, upto, step);
                if (t >= step) upto += other;
            }
            u32 before = upto - sum;
            if (rank >= before && rank < upto) {
                for (int k = 0; k < 8; k++) {
                    if (rank < before + own[k]) {
                        digit_found = 8 * t + k;
                        below_total = before;
                        break;
                    }
                    before += own[k];
                }
            }
        }
        __syncthreads();
        prefix |= (key)digit_found << bits;
        rank -= below_total;
        below += below_total;
        __syncthreads();
    }
    // `below` numbers are smaller; the one of rank `low` is among them if it is not the same.
    if (t == 0) largest_below = 0;
    __syncthreads();
    key own_largest = 0;
    double sum = 0;
    for (int at = t; at < pairs; at += 1024) {
        const key k = key_of(squares[at]);
        if (k < prefix && k > own_largest) own_largest = k;
        sum += (double)squares[at];
    }
    atomicMax(&largest_below, own_largest);
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (t % 32 == 0) sums[t / 32] = sum;
    __syncthreads();
    if (t > 0) return;
    const double upper = high < 0 ? 0.0 : value_of(prefix);
    const double lower = low < 0 ? 0.0 : (u32)low < below ? value_of(largest_below) : upper;
    double square = 0.5 * (lower + upper);
    if (by_roots) {
        const double root = 0.5 * (sqrt(lower) + sqrt(upper));
        square = root * root;
    }
    if (!(square > 0)) {
        square = 0;
        for (int k = 0; k < 32; k++) square += sums[k];
        square /= pairs;
    }
    h[group] = square > 0 ? square / divisor : 1.0;
}
