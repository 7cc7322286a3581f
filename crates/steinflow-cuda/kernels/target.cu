// log π and its score, a thread a particle. The target writes `log_density(theta, score, data)`.

extern "C" __global__ void evaluate(const real *__restrict__ state, int count, int size,
                                    const real *__restrict__ data, real *__restrict__ score,
                                    real *__restrict__ log_densities, const Move *__restrict__ move,
                                    u64 *__restrict__ fault) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const real *theta = state + (size_t)i * size;
    real *own = score + (size_t)i * DIMENSION;
    const real value = log_density(theta, own, data);
    log_densities[i] = value;
    bool is_finite = true;
    for (int c = 0; c < DIMENSION; c++) is_finite &= isfinite(own[c]);
    if (!is_finite) report(fault, move, i, 0);
    else if (!isfinite(value)) report(fault, move, i, 1);
}
