// Moves of fields along M(∇log π + u), with u = Σⱼ ∇₂kᵢⱼ (1/κᵢ + 1/κⱼ) (Blob) or Σⱼ ∇₂kᵢⱼ/κᵢ (a kernel density), κᵢ = Σⱼ kᵢⱼ

// The right-hand side of a slope's sums: rate · x, and for Blob w and w · rate · x with w = 1/κⱼ. `kappa`: `splits`
// partial sums, the second of two columns; null for the sums of κ itself, which need points alone.
extern "C" __global__ void prepare_ratio(const real *__restrict__ state, const real *__restrict__ scale,
                                         const real *__restrict__ mean,
                                         const double *__restrict__ h, int count, int slope_group,
                                         const real *__restrict__ kappa, int splits, real *__restrict__ points,
                                         int point_stride, real *__restrict__ rhs, int rhs_stride) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (size_t)count * DIMENSION) return;
    const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
    real raw[BLOCKS], z[BLOCKS], w = 0;
    const real unit = unit_of(scale, c);
    load(state, unit, i, c, raw, z);
    if (kappa) {
        for (int s = 0; s < splits; s++) w += kappa[2 * ((size_t)s * count + i) + 1];
        w = 1 / w;
    }
    real *out = rhs + (size_t)i * rhs_stride;
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const int group = GROUP_OF(b);
        if (group < 0) continue;
        const real centred = z[b] - centre_of(mean, unit, b, c);
        points[(size_t)i * point_stride + b * DIMENSION + c] = centred * (real)sqrt(UNIT / h[group]);
        if (!kappa) continue;
        const bool slopes = slope_group == group || slope_group == ALL_GROUPS;
        const real x = slopes ? centred * (real)(SLOPE / h[group]) : real(0);
        out[b * DIMENSION + c] = x;
        if (IS_BLOB) out[(SEEN_BLOCKS + b) * DIMENSION + c] = w * x;
    }
    if (IS_BLOB && kappa && c == 0) out[2 * SEEN_BLOCKS * DIMENSION] = w;
}

// Adds a slope's part of u; after the last, moves along M(∇log π + u), or along M∇log π + ∇·C + A u where the part of
// M that repels is A.
extern "C" __global__ void combine_ratio(real *__restrict__ state, const real *__restrict__ score,
                                         const real *__restrict__ log_densities, const real *__restrict__ scale,
                                         const real *__restrict__ mean, const double *__restrict__ h, int count,
                                         int slope_group, const real *__restrict__ kappa, int kappa_splits,
                                         const real *__restrict__ partial, int splits, real *__restrict__ push,
                                         int is_first, int is_last, RESCALING, const Move *__restrict__ move,
                                         double *__restrict__ speeds, u64 *__restrict__ fault) {
    constexpr int WIDE = (1 + IS_BLOB) * SEEN_BLOCKS * DIMENSION + IS_BLOB + 1;
    double squares[MOVED] = {};
    const size_t all = (size_t)count * DIMENSION;
    for (size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += (size_t)gridDim.x * blockDim.x) {
        const int i = (int)(at / DIMENSION), c = (int)(at % DIMENSION);
        real own = 0, mass = 0, others = 0, sum[BLOCKS] = {}, weighted[BLOCKS] = {};
        for (int s = 0; s < kappa_splits; s++) own += kappa[2 * ((size_t)s * count + i) + 1];
        own = 1 / own;
        for (int s = 0; s < splits; s++) {
            const real *row = partial + ((size_t)s * count + i) * WIDE;
#pragma unroll
            for (int b = 0; b < SEEN_BLOCKS; b++) {
                sum[b] += row[b * DIMENSION + c];
                if (IS_BLOB) weighted[b] += row[(SEEN_BLOCKS + b) * DIMENSION + c];
            }
            if (IS_BLOB) others += row[WIDE - 2];
            mass += row[WIDE - 1];
        }
        real raw[BLOCKS], z[BLOCKS], u[BLOCKS];
        const real unit = unit_of(scale, c);
        load(state, unit, i, c, raw, z);
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const int group = GROUP_OF(b);
            const bool slopes = group >= 0 && (slope_group == group || slope_group == ALL_GROUPS);
            const real x = slopes ? (z[b] - centre_of(mean, unit, b, c)) * (real)(SLOPE / h[group]) : real(0);
            u[b] = slopes ? (own * mass + others) * x - own * sum[b] - weighted[b] : real(0);
            const size_t place = ((size_t)i * BLOCKS + b) * DIMENSION + c;
            if (!is_first) u[b] += push[place];
            if (!is_last) push[place] = u[b];
        }
        if (!is_last) continue;
        real g[BLOCKS], f[BLOCKS], pushed[BLOCKS];
        const real s = unit * score[(size_t)i * DIMENSION + c];
        const Locals here = locals_at(z, log_densities, i, s);
        gradient(z, s, g);
        apply(real(1), here.c, g, f);
        repel(real(1), here.c, u, pushed);
#pragma unroll
        for (int m = 0; m < MOVED; m++) {
            const int b = MOVING[m];
            const real v = f[b] + pushed[b] + (IS_STARRED ? here.of_c[b] : real(0));
            squares[m] += (double)v * v;
            put(state, unit, i, c, b, raw[b], displacement(v, move, RESCALED, at, all), move, fault);
        }
    }
    if (!is_last) return;
    for (int m = 0; m < MOVED; m++) {
        const double total = block_sum(squares[m]);
        if (threadIdx.x == 0) speeds[m * gridDim.x + blockIdx.x] = total;
    }
}
