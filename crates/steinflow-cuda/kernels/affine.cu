// Sums with the affine part c(1 + x·y) of a kernel: products of plain matrices.

// Rows (1, x) of the columns that the kernel sees, the first `scaled` divided by `scale`; and what stands beside the
// result, the number of terms that M x is taken of: one for every particle, and one for the diagonal's divergence.
extern "C" __global__ void features(const real *__restrict__ state, const real *__restrict__ scale, int scaled, int count,
                                    int size, int seen, real *__restrict__ rows, real *__restrict__ out, int width) {
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (size_t)count * (seen + 1)) return;
    const int i = (int)(at / (seen + 1)), k = (int)(at % (seen + 1));
    real x = 1;
    if (k > 0) {
        x = state[(size_t)i * size + k - 1];
        if (k - 1 < scaled) x /= scale[k - 1];
    } else {
        out[(size_t)i * (width + 1) + width] = count + 1;
    }
    rows[at] = x;
}

// C = alpha A B of m × k and k × n numbers, whose entries are a_row and a_column apart. Blocks along y take chunks of k
// and write a matrix each, c_all apart.
extern "C" __global__ void __launch_bounds__(256)
product(const real *__restrict__ a, int a_row, int a_column, const real *__restrict__ b, int b_row, int b_column,
        real *__restrict__ c, int c_row, u64 c_all, int m, int n, int k, int chunk, double alpha) {
    __shared__ real left[16][65], right[16][65];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, across = (n + 63) / 64;
    const int i0 = blockIdx.x / across * 64, j0 = blockIdx.x % across * 64;
    const int begin = blockIdx.y * chunk, end = min(begin + chunk, k);
    real sum[4][4] = {}, total[4][4] = {};
    for (int first = begin; first < end; first += 16) {
        for (int at = threadIdx.x; at < 64 * 16; at += 256) {
            // Neighbours in memory go to neighbouring threads.
            const int ai = a_column == 1 ? at / 16 : at % 64, ak = a_column == 1 ? at % 16 : at / 64;
            const bool in_a = i0 + ai < m && first + ak < end;
            left[ak][ai] = in_a ? a[(size_t)(i0 + ai) * a_row + (size_t)(first + ak) * a_column] : real(0);
            const int bj = b_column == 1 ? at % 64 : at / 16, bk = b_column == 1 ? at / 64 : at % 16;
            const bool in_b = j0 + bj < n && first + bk < end;
            right[bk][bj] = in_b ? b[(size_t)(first + bk) * b_row + (size_t)(j0 + bj) * b_column] : real(0);
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; d++) {
            real x[4], y[4];
#pragma unroll
            for (int e = 0; e < 4; e++) x[e] = left[d][ty + 16 * e], y[e] = right[d][tx + 16 * e];
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int s = 0; s < 4; s++) sum[r][s] = fma(x[r], y[s], sum[r][s]);
        }
        __syncthreads();
        // Rounding errors grow with the length of a sum: add up short ones.
        if ((first - begin) % 512 == 496 || first + 16 >= end)
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int s = 0; s < 4; s++) total[r][s] += sum[r][s], sum[r][s] = 0;
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const int i = i0 + ty + 16 * r, j = j0 + tx + 16 * s;
            if (i < m && j < n) c[blockIdx.y * c_all + (size_t)i * c_row + j] = (real)alpha * total[r][s];
        }
}

// Adds `parts` matrices of `size` numbers to the first, in order.
extern "C" __global__ void add_parts(real *__restrict__ all, u64 size, int parts) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= size) return;
    real sum = all[at];
    for (int k = 1; k < parts; k++) sum += all[k * size + at];
    all[at] = sum;
}
