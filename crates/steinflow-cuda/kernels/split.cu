// Numbers split into two halves of 11 bits, for tensor cores: x/scale = hi + lo.

__device__ __forceinline__ unsigned short to_half(float x) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
__device__ __forceinline__ float from_half(unsigned short h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

// The largest |x| of every column; `largest` holds zeros before. Bits of floats ≥ 0 are in their order.
extern "C" __global__ void column_largest(const float *rows, int count, int columns, u32 *largest) {
    __shared__ float found[8][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float most = 0;
    if (column < columns)
        for (int i = blockIdx.y * 64 + threadIdx.y; i < min(count, (int)(blockIdx.y + 1) * 64); i += 8)
            most = fmaxf(most, fabsf(rows[(size_t)i * columns + column]));
    found[threadIdx.y][threadIdx.x] = most;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int k = 1; k < 8; k++) most = fmaxf(most, found[k][threadIdx.x]);
        atomicMax(largest + column, __float_as_uint(most));
    }
}

// Powers of two, so that scaling rounds nothing; the largest number becomes 2^10 or less.
extern "C" __global__ void column_scales(const u32 *largest, int columns, float *scale) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const float most = __uint_as_float(largest[column]);
    scale[column] = most > 0 && most < 3e38f ? exp2f(ceilf(log2f(most)) - 10) : 1.0f;
}

// Rows of `columns` numbers become rows of `padded` halves; `scale` and `norms` may be null. A warp a row;
// norms have a place for every row of the grid.
extern "C" __global__ void split_rows(const float *rows, int count, int columns, int padded, const float *scale,
                                      unsigned short *hi, unsigned short *lo, float *norms) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= count) {
        // Rows up to the end of a tile are infinitely far away.
        if (norms && lane == 0) norms[i] = 3e38f;
        return;
    }
    float norm = 0;
    for (int c = lane; c < padded; c += 32) {
        float x = c < columns ? rows[(size_t)i * columns + c] : 0.0f;
        if (scale && c < columns) x /= scale[c];
        // What is so far out that its weights vanish.
        x = fminf(fmaxf(x, -6e4f), 6e4f);
        const unsigned short head = to_half(x), tail = to_half(x - from_half(head));
        hi[(size_t)i * padded + c] = head;
        lo[(size_t)i * padded + c] = tail;
        const float kept = from_half(head) + (norms && SPLIT == 1 ? 0.0f : from_half(tail));
        norm = fmaf(kept, kept, norm);
    }
    if (!norms) return;
    for (int step = 16; step; step /= 2) norm += __shfl_xor_sync(~0u, norm, step);
    if (lane == 0) norms[i] = norm;
}
