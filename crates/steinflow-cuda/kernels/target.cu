// log π and its score, LANES threads a particle: one, or a warp. The target writes `log_density(theta, score, data)`,
// which may share its coordinates out, from LANE on every LANES-th, and add up by `total`; or have every lane do all.

#define LANE ((int)(threadIdx.x % LANES))

// The sum over the lanes of a particle, which all of them get.
__device__ __forceinline__ real total(real x) {
#pragma unroll
    for (int step = LANES / 2; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ __forceinline__ real log_density(const real *theta, real *score, const real *data);

extern "C" __global__ void evaluate(const real *__restrict__ state, int count, int size,
                                    const real *__restrict__ data, real *__restrict__ score,
                                    real *__restrict__ log_densities, const Move *__restrict__ move,
                                    u64 *__restrict__ fault) {
    const int i = (int)(((size_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES);
    if (i >= count) return;
    const real *theta = state + (size_t)i * size;
    real *own = score + (size_t)i * DIMENSION;
    const real value = log_density(theta, own, data);
    if (LANE == 0) log_densities[i] = value;
    // Other lanes may have written what this one looks at.
    __syncwarp();
    bool is_finite = true;
    for (int c = LANE; c < DIMENSION; c += LANES) is_finite &= isfinite(own[c]);
    if (!is_finite) report(fault, move, i, 0);
    else if (LANE == 0 && !isfinite(value)) report(fault, move, i, 1);
}
