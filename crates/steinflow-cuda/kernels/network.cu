// The posterior of a network: log π = c Σ log N(y | f, 1/γ) + log N(w | 0, 1/λ) + log p(log γ) + log p(log λ), on all
// rows of the data or on those of a minibatch. With two outputs f and t, the precision of a row is γeˢ, s = L tanh(t/L).
//
// A block has a particle, whose weights come to shared memory where there is room (WEIGHTS_FIT). Activations are stored unit by unit, TILE rows of data each, and become δ on the way back; rows
// come tile by tile, in order. WIDTHS: units of every layer, the inputs first and the outputs last.

#define TILE (32 * PER_LANE)       // rows of data at a time
#define STRIDE (TILE + 4)          // of a unit: eight units at a distance stand on different banks
#define WARPS 8

__device__ constexpr int WIDTHS[] = {WIDTH_LIST};
constexpr int LAYERS = sizeof(WIDTHS) / sizeof(int) - 1;
constexpr int OUTPUTS = WIDTHS[LAYERS];

// Where W of a layer begins in θ, and where its input begins among the activations.
template <int L> struct Layer {
    static constexpr int weights = Layer<L - 1>::weights + (WIDTHS[L - 1] + 1) * WIDTHS[L];
    static constexpr int units = Layer<L - 1>::units + WIDTHS[L - 1];
};
template <> struct Layer<0> {
    static constexpr int weights = 0;
    static constexpr int units = 0;
};
constexpr int WEIGHTS = Layer<LAYERS>::weights;
constexpr int UNITS = Layer<LAYERS>::units;

// Some rows of a unit, next to one another.
struct __align__(PER_LANE * sizeof(real) < 16 ? PER_LANE * sizeof(real) : 16) Rows {
    real of[PER_LANE];
};
__device__ __forceinline__ Rows rows_of(const real *unit, int lane) { return *(const Rows *)(unit + PER_LANE * lane); }

// The same rows for the products over rows: four at a time.
struct __align__(16) Four {
    real of[4];
};

// a_l = φ(W a_{l−1} + b) of all hidden layers; a warp has four units at a time.
template <int L> __device__ __forceinline__ void forward(const real *theta, real *units) {
    if constexpr (L < LAYERS - 1) {
        constexpr int inputs = WIDTHS[L], outputs = WIDTHS[L + 1];
        const real *w = theta + Layer<L>::weights, *b = w + inputs * outputs;
        const real *in = units + Layer<L>::units * STRIDE;
        real *out = units + Layer<L + 1>::units * STRIDE;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        for (int first = 4 * warp; first < outputs; first += 4 * WARPS) {
            real sum[4][PER_LANE];
            const real *own[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int unit = min(first + u, outputs - 1);
                own[u] = w + unit * inputs;
#pragma unroll
                for (int r = 0; r < PER_LANE; r++) sum[u][r] = b[unit];
            }
#pragma unroll 4
            for (int k = 0; k < inputs; k++) {
                const Rows x = rows_of(in + k * STRIDE, lane);
#pragma unroll
                for (int u = 0; u < 4; u++) {
                    const real weight = own[u][k];
#pragma unroll
                    for (int r = 0; r < PER_LANE; r++) sum[u][r] = fma(weight, x.of[r], sum[u][r]);
                }
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                if (first + u >= outputs) continue;
                Rows a;
#pragma unroll
                for (int r = 0; r < PER_LANE; r++) a.of[r] = activate(sum[u][r]);
                *(Rows *)(out + (first + u) * STRIDE + PER_LANE * lane) = a;
            }
        }
        __syncthreads();
        forward<L + 1>(theta, units);
    }
}

// Adds ∂/∂W of a hidden layer, δ aᵀ, to the score: a warp has 16 units and 32 inputs, a lane 4 × 4 of them. Then goes
// down: δ_{l−1} = Wᵀδ ⊙ φ′, with Σ δ for the biases.
template <int L>
__device__ __forceinline__ void backward(const real *theta, real *units, real *score, int rows, bool is_first) {
    if constexpr (L >= 0) {
        constexpr int inputs = WIDTHS[L], outputs = WIDTHS[L + 1];
        constexpr int across = (inputs + 31) / 32, down = (outputs + 15) / 16;
        // Where there are few of these, two warps have half of the rows each.
        constexpr int turns = 2 * across * down <= WARPS ? 2 : 1;
        const int half_rows = (rows + 4 * turns - 1) / (4 * turns) * 4;
        const real *w = theta + Layer<L>::weights;
        real *in = units + Layer<L>::units * STRIDE;
        const real *delta = units + Layer<L + 1>::units * STRIDE;
        real *out = score + Layer<L>::weights;
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        for (int share = warp; share < turns * across * down; share += WARPS) {
            const int tile = share % (across * down), turn = share / (across * down);
            const int k0 = tile % across * 32 + lane % 8, u0 = tile / across * 16 + lane / 8;
            real sum[4][4] = {};
            const real *d[4], *x[4];
#pragma unroll
            for (int m = 0; m < 4; m++) {
                d[m] = delta + min(u0 + 4 * m, outputs - 1) * STRIDE;
                x[m] = in + min(k0 + 8 * m, inputs - 1) * STRIDE;
            }
#pragma unroll 2
            for (int r = turn * half_rows; r < min((turn + 1) * half_rows, TILE); r += 4) {
                Four a[4], b[4];
#pragma unroll
                for (int m = 0; m < 4; m++) a[m] = *(const Four *)(d[m] + r), b[m] = *(const Four *)(x[m] + r);
#pragma unroll
                for (int m = 0; m < 4; m++)
#pragma unroll
                    for (int n = 0; n < 4; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) sum[m][n] = fma(a[m].of[e], b[n].of[e], sum[m][n]);
            }
#pragma unroll
            for (int now = 0; now < turns; now++) {
                if (now == turn) {
#pragma unroll
                    for (int m = 0; m < 4; m++)
#pragma unroll
                        for (int n = 0; n < 4; n++) {
                            const int u = u0 + 4 * m, k = k0 + 8 * n;
                            if (u >= outputs || k >= inputs) continue;
                            real *to = out + u * inputs + k;
                            *to = is_first && turn == 0 ? sum[m][n] : *to + sum[m][n];
                        }
                }
                if (turns > 1) __syncthreads();
            }
        }
        // Warps without a share wait with the others.
        if (turns > 1 && warp >= turns * across * down)
            for (int now = 0; now < turns; now++) __syncthreads();
        if constexpr (L > 0) {
            __syncthreads();
            real *bias = score + Layer<L>::weights - inputs;
            for (int first = 4 * warp; first < inputs; first += 4 * WARPS) {
                real sum[4][PER_LANE] = {};
#pragma unroll 4
                for (int u = 0; u < outputs; u++) {
                    const Rows d = rows_of(delta + u * STRIDE, lane);
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const real weight = w[u * inputs + min(first + k, inputs - 1)];
#pragma unroll
                        for (int r = 0; r < PER_LANE; r++) sum[k][r] = fma(weight, d.of[r], sum[k][r]);
                    }
                }
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    if (first + k >= inputs) continue;
                    Rows *at = (Rows *)(in + (first + k) * STRIDE + PER_LANE * lane), a = *at;
                    real total = 0;
#pragma unroll
                    for (int r = 0; r < PER_LANE; r++) {
                        a.of[r] = sum[k][r] * derivative(a.of[r]);
                        total += a.of[r];
                    }
                    *at = a;
                    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
                    if (lane == 0) bias[first + k] = is_first ? total : bias[first + k] + total;
                }
            }
            __syncthreads();
        }
        backward<L - 1>(theta, units, score, rows, is_first);
    }
}

extern "C" __global__ void __launch_bounds__(256)
evaluate(const real *__restrict__ state, int size, const real *__restrict__ rows, const real *__restrict__ outcomes,
         int row_count, const int *__restrict__ batches, double scale, const double *__restrict__ precisions,
         real *score_of_all, real *__restrict__ log_densities, const Move *__restrict__ move,
         u64 *__restrict__ fault) {
    extern __shared__ __align__(16) unsigned char memory[];
    // Activations; then δ of the outputs, y, and the weights.
    real *units = (real *)memory, *delta = units + UNITS * STRIDE, *y = delta + OUTPUTS * TILE, *near = y + TILE;
    __shared__ double gamma, lambda;
    __shared__ int from[TILE];
    const int i = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32;
    const real *theta = state + (size_t)i * size;
    if (WEIGHTS_FIT) {
#pragma unroll 4
        for (int c = t; c < DIMENSION; c += 256) near[c] = theta[c];
        __syncthreads();
        theta = near;
    }
    real *score = score_of_all + (size_t)i * DIMENSION;
    const bool learns_gamma = precisions[0] != 0, learns_lambda = precisions[5] != 0;
    const int log_gamma = WEIGHTS, log_lambda = WEIGHTS + learns_gamma;
    if (t == 0) gamma = learns_gamma ? exp((double)theta[log_gamma]) : precisions[1];
    if (t == 32) lambda = learns_lambda ? exp((double)theta[log_lambda]) : precisions[6];
    const int *batch = batches ? batches + (size_t)move->batch * row_count : nullptr;
    constexpr int last = LAYERS - 1, inputs = WIDTHS[last];
    const real *w = theta + Layer<last>::weights, *b = w + inputs * OUTPUTS;
    real *a = units + Layer<last>::units * STRIDE;
    real *w_score = score + Layer<last>::weights;
    double squares = 0, logs = 0;
    // Once at least, so that no data leave the prior.
    for (int first = 0; first == 0 || first < row_count; first += TILE) {
        const bool is_first = first == 0;
        __syncthreads();
        if (t < TILE) {
            const bool exists = first + t < row_count;
            const int own = exists ? (batch ? batch[first + t] : first + t) : -1;
            from[t] = own;
            y[t] = exists ? outcomes[own] : real(0);
        }
        __syncthreads();
#pragma unroll 8
        for (int at = t; at < TILE * WIDTHS[0]; at += 256) {
            const int r = at / WIDTHS[0], k = at % WIDTHS[0], own = from[r];
            units[k * STRIDE + r] = own >= 0 ? rows[(size_t)own * WIDTHS[0] + k] : real(0);
        }
        __syncthreads();
        forward<0>(theta, units);
        // The outputs: the threads share the inputs of a row.
        constexpr int shares = 256 / TILE < 1 ? 1 : 256 / TILE;
        const int row = t % TILE, share = t / TILE;
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) {
            real sum = 0;
            if (share < shares)
                for (int k = share; k < inputs; k += shares) sum = fma(w[o * inputs + k], a[k * STRIDE + row], sum);
            // With PER_LANE = 4, two shares; else more, which are added one after the other.
            for (int turn = 0; turn < shares; turn++) {
                if (share == turn) delta[o * TILE + row] = (turn ? delta[o * TILE + row] : b[o]) + sum;
                __syncthreads();
            }
        }
        if (t < TILE) {
            const bool exists = first + t < row_count;
            const real factor = (real)(scale * gamma), residual = y[t] - delta[t];
            if (OUTPUTS == 1) {
                squares += exists ? (double)(residual * residual) : 0.0;
                delta[t] = exists ? factor * residual : real(0);
            } else {
                const real bounded = tanh(delta[TILE + t] / (real)LOG_FACTOR), s = (real)LOG_FACTOR * bounded;
                const real weighted = exp(s) * residual;
                squares += exists ? (double)(weighted * residual) : 0.0;
                logs += exists ? (double)s : 0.0;
                delta[t] = exists ? factor * weighted : real(0);
                delta[TILE + t] = exists ? real(0.5) * ((real)scale - factor * weighted * residual) * (1 - bounded * bounded)
                                         : real(0);
            }
        }
        __syncthreads();
        // ∂/∂W of the outputs, δ of the last hidden layer and its biases: a warp a unit.
        for (int k = warp; k < inputs; k += WARPS) {
            Rows *at = (Rows *)(a + k * STRIDE + PER_LANE * lane), own = *at;
            real sums[OUTPUTS] = {}, total = 0;
#pragma unroll
            for (int r = 0; r < PER_LANE; r++) {
                real d = 0;
#pragma unroll
                for (int o = 0; o < OUTPUTS; o++) {
                    const real of_output = delta[o * TILE + PER_LANE * lane + r];
                    sums[o] = fma(of_output, own.of[r], sums[o]);
                    d = fma(w[o * inputs + k], of_output, d);
                }
                if (last > 0) {
                    own.of[r] = d * derivative(own.of[r]);
                    total += own.of[r];
                }
            }
            for (int step = 16; step; step /= 2) {
#pragma unroll
                for (int o = 0; o < OUTPUTS; o++) sums[o] += __shfl_xor_sync(~0u, sums[o], step);
                if (last > 0) total += __shfl_xor_sync(~0u, total, step);
            }
            if (last > 0) *at = own;
            if (lane == 0) {
                for (int o = 0; o < OUTPUTS; o++) {
                    real *to = w_score + o * inputs + k;
                    *to = is_first ? sums[o] : *to + sums[o];
                }
                if (last > 0) {
                    real *to = w_score - inputs + k;
                    *to = is_first ? total : *to + total;
                }
            }
        }
        if (warp < OUTPUTS) {
            real total = 0;
            for (int r = lane; r < TILE; r += 32) total += delta[warp * TILE + r];
            for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
            real *to = w_score + OUTPUTS * inputs + warp;
            if (lane == 0) *to = is_first ? total : *to + total;
        }
        __syncthreads();
        backward<last - 1>(theta, units, score, min(row_count - first, TILE), is_first);
    }
    __syncthreads();
    double norm = 0;
    bool is_finite = true;
    for (int c = t; c < WEIGHTS; c += 256) {
        norm += (double)theta[c] * theta[c];
        const real s = score[c] - (real)lambda * theta[c];
        is_finite &= isfinite(s);
        score[c] = s;
    }
    if (!is_finite) report(fault, move, i, 0);
    norm = block_sum(norm);
    squares = scale * block_sum(squares);
    logs = scale * block_sum(logs);
    if (t > 0) return;
    const double counted = scale * row_count, log_tau = 1.8378770664093453;
    const double at_gamma = learns_gamma ? (double)theta[log_gamma] : log(gamma);
    const double at_lambda = learns_lambda ? (double)theta[log_lambda] : log(lambda);
    double value = counted * (at_gamma - log_tau) + logs - gamma * squares + WEIGHTS * (at_lambda - log_tau) - lambda * norm;
    value /= 2;
    if (learns_gamma) {
        const double shape = precisions[2], rate = precisions[3];
        value += shape * at_gamma - rate * gamma + precisions[4];
        score[log_gamma] = (real)((counted - gamma * squares) / 2 + shape - rate * gamma);
        is_finite &= isfinite(score[log_gamma]);
    }
    if (learns_lambda) {
        const double shape = precisions[7], rate = precisions[8];
        value += shape * at_lambda - rate * lambda + precisions[9];
        score[log_lambda] = (real)((WEIGHTS - lambda * norm) / 2 + shape - rate * lambda);
        is_finite &= isfinite(score[log_lambda]);
    }
    log_densities[i] = (real)value;
    if (!is_finite) report(fault, move, i, 0);
    else if (!isfinite((real)value)) report(fault, move, i, 1);
}
