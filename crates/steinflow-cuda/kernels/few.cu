// A move of a few particles in one kernel. As there are so few, who moves some columns of all particles also finds what
// they add to the squared distances of all pairs; the next move adds that up, in every block anew.
//
// squares: for every part (a block of the grid), group (a factor of the kernel) and pair, the squared distance over the
// part's columns. Pair number i(i − 1)/2 + j, with j < i.

#define COLUMNS 16
#define THREADS 512

constexpr int PAIRS = COUNT * (COUNT - 1) / 2;
constexpr int PADDED = (PAIRS + 31) / 32 * 32;
// Threads that share a pair, as far as there are.
constexpr int SLICES = THREADS / PADDED < 4 ? THREADS / PADDED : 4;

__device__ __forceinline__ int pair_of(int i, int j) { return i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i; }

// The columns of one block of the state, of all particles.
typedef real Columns[COUNT][COLUMNS + 1];

// The pair of a thread, and its share of the columns.
struct Pair {
    int slice, number, i, j;
    real squares[GROUPS];

    __device__ Pair() : slice(threadIdx.x / PADDED), number(threadIdx.x % PADDED), squares{} {
        i = (int)((1.0f + sqrtf(1.0f + 8.0f * number)) / 2.0f);
        if (i * (i - 1) / 2 > number) i--;
        if (i * (i + 1) / 2 <= number) i++;
        j = number - i * (i - 1) / 2;
    }
    __device__ bool exists() const { return slice < SLICES && number < PAIRS; }
    __device__ void add(const Columns *z) {
        if (!exists()) return;
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            if (GROUP_OF(b) < 0) continue;
#pragma unroll
            for (int c = 0; c < COLUMNS; c += SLICES) {
                const real d = c + slice < COLUMNS ? z[b][i][c + slice] - z[b][j][c + slice] : real(0);
                squares[GROUP_OF(b)] = fma(d, d, squares[GROUP_OF(b)]);
            }
        }
    }
    // Adds the shares, which come to threads of the first slice.
    __device__ real total(real own, real *slices) const {
        __syncthreads();
        slices[threadIdx.x] = own;
        __syncthreads();
        if (slice > 0) return own;
#pragma unroll
        for (int m = 1; m < SLICES; m++) own += slices[m * PADDED + number];
        return own;
    }
    __device__ void write(real *out, real *slices) const {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            const real sum = total(squares[g], slices);
            if (slice == 0 && number < PAIRS) out[((size_t)blockIdx.x * GROUPS + g) * PAIRS + number] = sum;
        }
    }
};

// Squared distances where no move has left them.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
few_squares(const real *__restrict__ state, const real *__restrict__ scale, real *__restrict__ squares) {
    __shared__ real slices[THREADS];
    __shared__ Columns z[BLOCKS];
    const int i = threadIdx.x / COLUMNS, column = threadIdx.x % COLUMNS;
    Pair pair;
    for (int first = blockIdx.x * COLUMNS; first < DIMENSION; first += PARTS * COLUMNS) {
        const int c = first + column;
        real raw[BLOCKS] = {}, own[BLOCKS] = {};
        if (i < COUNT && c < DIMENSION) load(state, unit_of(scale, c), i, c, raw, own);
        __syncthreads();
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            if (i < COUNT) z[b][i][column] = own[b];
        __syncthreads();
        pair.add(z);
    }
    pair.write(squares, slices);
}

// `known`: squared distances in PARTS parts, as many as blocks; `squares`: where they go after the move. Bandwidths are chosen by the
// ranks of the middle, as in `bandwidth.cu`, or were before. v = (Σⱼ kᵢⱼ f(zⱼ) + M(zⱼ)∇₂kᵢⱼ) · share.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
few_move(real *__restrict__ state, const real *__restrict__ score, const real *__restrict__ log_densities,
         const real *__restrict__ scale,
         const real *__restrict__ known, real *__restrict__ squares, int has_median, int low, int high, int by_roots,
         double divisor, double *h, double share, RESCALING, const Move *__restrict__ move, double *__restrict__ speeds,
         u64 *__restrict__ fault) {
    __shared__ real slices[THREADS], k[COUNT][COUNT + 1], rates[GROUPS], units[GROUPS];
    __shared__ __align__(16) real q[GROUPS][PADDED];
    __shared__ int ranks[2][THREADS];
    // Of a multiquadric: its slope over its value.
    __shared__ real slopes[RADIAL == SQUARED_EXPONENTIAL ? 1 : GROUPS][RADIAL == SQUARED_EXPONENTIAL ? 1 : COUNT][COUNT + 1];
    __shared__ Columns z[BLOCKS], f[MOVED], coefficients[COEFFICIENTS];
    __shared__ real middle[2];
    const int t = threadIdx.x, i = t / COLUMNS, column = t % COLUMNS;
    // What is needed comes first, all at once: the memory is far away.
    int c = blockIdx.x * COLUMNS + column;
    real raw[BLOCKS] = {}, own[BLOCKS] = {}, unit = 1, s = 0;
    if (i < COUNT && c < DIMENSION) {
        unit = unit_of(scale, c);
        load(state, unit, i, c, raw, own);
        s = unit * score[(size_t)i * DIMENSION + c];
    }
    const Move told = *move;
    double widths[GROUPS];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) widths[g] = t == 0 && !has_median ? h[g] : 1.0;
    Pair pair;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
        real sum = 0;
        if (pair.exists())
#pragma unroll
            for (int part = 0; part < PARTS; part += SLICES)
                if (part + pair.slice < PARTS) sum += known[((size_t)(part + pair.slice) * GROUPS + g) * PAIRS + pair.number];
        sum = pair.total(sum, slices);
        // Beyond the pairs: after all of them.
        if (pair.slice == 0) q[g][pair.number] = pair.number < PAIRS ? sum : real(3e38);
        __syncthreads();
        if (has_median) {
            int below = 0, upto = 0;
            const real mine = q[g][pair.number];
            if (pair.exists())
#pragma unroll 8
                for (int m = 4 * pair.slice; m < PADDED; m += 4 * SLICES)
#pragma unroll
                    for (int e = 0; e < 4; e++) below += q[g][m + e] < mine, upto += q[g][m + e] <= mine;
            ranks[0][t] = below;
            ranks[1][t] = upto;
            __syncthreads();
            if (pair.slice == 0 && pair.number < PAIRS) {
#pragma unroll
                for (int m = 1; m < SLICES; m++)
                    below += ranks[0][m * PADDED + pair.number], upto += ranks[1][m * PADDED + pair.number];
                // Of equal ones, all write the same.
                if (below <= low && low < upto) middle[0] = mine;
                if (below <= high && high < upto) middle[1] = mine;
            }
            __syncthreads();
        }
        if (t == 0) {
            if (has_median) {
                const real lower = low < 0 ? real(0) : middle[0], upper = high < 0 ? real(0) : middle[1];
                const real root = real(0.5) * (sqrt(lower) + sqrt(upper));
                double square = by_roots ? root * root : real(0.5) * (lower + upper);
                if (!(square > 0)) {
                    square = 0;
                    for (int m = 0; m < PAIRS; m++) square += q[g][m];
                    square /= PAIRS;
                }
                widths[g] = square > 0 ? square / divisor : 1.0;
                if (blockIdx.x == 0) h[g] = widths[g];
            }
            rates[g] = (real)(SLOPE / widths[g]);
            units[g] = (real)(UNIT / widths[g]);
        }
    }
    __syncthreads();
    for (int at = t; at < COUNT * COUNT; at += THREADS) {
        const int a = at / COUNT, b = at % COUNT;
        real exponent = 0, value = 1;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            const real scaled = a == b ? real(0) : q[g][pair_of(a, b)] * units[g];
            if (RADIAL == SQUARED_EXPONENTIAL) exponent += scaled;
            else {
                value *= profile<INVERSE_MULTIQUADRIC>(scaled);
                slopes[g][a][b] = 1 / (1 + scaled);
            }
        }
        k[a][b] = RADIAL == SQUARED_EXPONENTIAL ? profile<SQUARED_EXPONENTIAL>(exponent) : value;
    }
    double sums[MOVED] = {};
    for (int first = blockIdx.x * COLUMNS; first < DIMENSION; first += PARTS * COLUMNS) {
        c = first + column;
        const bool exists = i < COUNT && c < DIMENSION;
        if (first > blockIdx.x * COLUMNS && exists) {
            unit = unit_of(scale, c);
            load(state, unit, i, c, raw, own);
            s = unit * score[(size_t)i * DIMENSION + c];
        }
        __syncthreads();
        if (i < COUNT) {
            real g[BLOCKS], force[BLOCKS];
            const Locals here = locals_at(own, log_densities, i, s);
            gradient(own, s, g);
            apply(real(1), here.c, g, force);
#pragma unroll
            for (int k = 0; k < VARIES; k++) coefficients[k][i][column] = here.c[k];
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) z[b][i][column] = exists ? own[b] : real(0);
#pragma unroll
            for (int m = 0; m < MOVED; m++) {
                const int b = MOVING[m];
                f[m][i][column] = exists ? force[b] + here.of_a[b] + here.of_c[b] : real(0);
            }
        }
        __syncthreads();
        real v[MOVED] = {};
        if (exists)
#pragma unroll 4
            for (int j = 0; j < COUNT; j++) {
                real other[BLOCKS], varying[COEFFICIENTS] = {}, x[BLOCKS], pushed[BLOCKS];
                const real weight = k[i][j];
#pragma unroll
                for (int b = 0; b < BLOCKS; b++) {
                    other[b] = z[b][j][column];
                    const int g = GROUP_OF(b);
                    x[b] = 0;
                    if (g >= 0) {
                        real slope = weight * rates[g];
                        if (RADIAL != SQUARED_EXPONENTIAL) slope *= slopes[g][i][j];
                        x[b] = slope * (own[b] - other[b]);
                    }
                }
#pragma unroll
                for (int l = 0; l < VARIES; l++) varying[l] = coefficients[l][j][column];
                repel(real(1), varying, x, pushed);
#pragma unroll
                for (int m = 0; m < MOVED; m++) v[m] += weight * f[m][j][column] + pushed[MOVING[m]];
            }
        __syncthreads();
        if (exists) {
#pragma unroll
            for (int m = 0; m < MOVED; m++) {
                const int b = MOVING[m];
                v[m] *= (real)share;
                sums[m] += (double)v[m] * v[m];
                const size_t place = (size_t)i * DIMENSION + c;
                const real by = displacement(v[m], &told, RESCALED, place, (size_t)COUNT * DIMENSION);
                put(state, unit, i, c, b, raw[b], by, &told, fault);
                const real moved = raw[b] + (PRECONDITIONED && b == 0 ? unit * by : by);
                z[b][i][column] = PRECONDITIONED && b == 0 ? moved / unit : moved;
            }
        }
        __syncthreads();
        pair.add(z);
    }
    pair.write(squares, slices);
    for (int m = 0; m < MOVED; m++) {
        const double total = block_sum(sums[m]);
        if (t == 0) speeds[m * gridDim.x + blockIdx.x] = total;
    }
}
