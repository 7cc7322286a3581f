// Targets with a linear predictor η = Xθ: log π = scale Σ ℓ(ηᵢ, yᵢ) − precision |θ|²/2, on all rows of the data or on
// those of a minibatch. The target writes `likelihood(eta, y, slope)`, which returns ℓ and sets ∂ℓ/∂η.
//
// A block of 16 × 16 threads has 32 particles; rows come through shared memory, 32 at a time, in order.

#define STRIDE (DIMENSION + 1)
#define COLUMNS ((DIMENSION + 15) / 16)

extern "C" __global__ void __launch_bounds__(256)
evaluate(const real *__restrict__ state, int count, int size, const real *__restrict__ rows,
         const real *__restrict__ outcomes, int row_count, const int *__restrict__ batches, double scale,
         double precision, real *__restrict__ score, real *__restrict__ log_densities, const Move *__restrict__ move,
         u64 *__restrict__ fault) {
    extern __shared__ __align__(16) unsigned char memory[];
    real *theta = (real *)memory, *x = theta + 32 * STRIDE, *slopes = x + 32 * STRIDE, *y = slopes + 32 * 33;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, first = blockIdx.x * 32;
    for (int at = threadIdx.x; at < 32 * DIMENSION; at += 256) {
        const int p = at / DIMENSION, c = at % DIMENSION;
        theta[p * STRIDE + c] = state[(size_t)min(first + p, count - 1) * size + c];
    }
    const int *batch = batches ? batches + (size_t)move->batch * row_count : nullptr;
    real sum[2][COLUMNS] = {};
    double value[2] = {};
    for (int row = 0; row < row_count; row += 32) {
        __syncthreads();
        for (int at = threadIdx.x; at < 32 * DIMENSION; at += 256) {
            const int r = at / DIMENSION, c = at % DIMENSION, number = row + r;
            const bool exists = number < row_count;
            const int from = exists ? (batch ? batch[number] : number) : 0;
            x[r * STRIDE + c] = exists ? rows[(size_t)from * DIMENSION + c] : real(0);
            if (c == 0) y[r] = exists ? outcomes[from] : real(0);
        }
        __syncthreads();
        real eta[2][2] = {};
#pragma unroll 4
        for (int c = 0; c < DIMENSION; c++) {
            const real a0 = theta[ty * STRIDE + c], a1 = theta[(ty + 16) * STRIDE + c];
            const real b0 = x[tx * STRIDE + c], b1 = x[(tx + 16) * STRIDE + c];
            eta[0][0] = fma(a0, b0, eta[0][0]), eta[0][1] = fma(a0, b1, eta[0][1]);
            eta[1][0] = fma(a1, b0, eta[1][0]), eta[1][1] = fma(a1, b1, eta[1][1]);
        }
#pragma unroll
        for (int p = 0; p < 2; p++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int number = tx + 16 * r;
                real slope = 0;
                if (row + number < row_count) value[p] += (double)likelihood(eta[p][r], y[number], &slope);
                slopes[(ty + 16 * p) * 33 + number] = slope;
            }
        __syncthreads();
#pragma unroll 4
        for (int r = 0; r < 32; r++) {
            const real a0 = slopes[ty * 33 + r], a1 = slopes[(ty + 16) * 33 + r];
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) {
                const int c = tx + 16 * k;
                const real b = c < DIMENSION ? x[r * STRIDE + c] : real(0);
                sum[0][k] = fma(a0, b, sum[0][k]), sum[1][k] = fma(a1, b, sum[1][k]);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < 2; p++) {
        const int i = first + ty + 16 * p;
        double squares = 0;
        bool is_finite = true;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int c = tx + 16 * k;
            if (c >= DIMENSION) continue;
            const real own = theta[(ty + 16 * p) * STRIDE + c];
            squares += (double)own * own;
            const real s = (real)scale * sum[p][k] - (real)precision * own;
            is_finite &= isfinite(s);
            if (i < count) score[(size_t)i * DIMENSION + c] = s;
        }
        // Sixteen neighbouring lanes have the same particle.
        double total = scale * value[p] - precision * squares / 2;
        for (int step = 8; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
        if (i >= count) continue;
        if (tx == 0) log_densities[i] = (real)total;
        if (!is_finite) report(fault, move, i, 0);
        else if (tx == 0 && !isfinite((real)total)) report(fault, move, i, 1);
    }
}
