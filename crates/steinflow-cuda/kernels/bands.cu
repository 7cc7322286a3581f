// Kernel sums in any number of dimensions: bands of rows of K are stored, then multiplied by R.
//
// A band has so many rows that it takes no more memory than the particles do.

#define SIDE 64
#define DEPTH 16

// band[i][j] (×)= profile(|xᵢ − xⱼ|²) over columns first … first + columns of the points.
extern "C" __global__ void __launch_bounds__(256)
kernel_band(const real *__restrict__ points, int count, int stride, int first, int columns, int row, int rows,
            int kind, int is_further, real *__restrict__ band) {
    __shared__ real a[DEPTH][SIDE + 1], b[DEPTH][SIDE + 1];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int i0 = blockIdx.y * SIDE, j0 = blockIdx.x * SIDE;
    real q[4][4] = {};
    for (int c0 = 0; c0 < columns; c0 += DEPTH) {
        for (int at = threadIdx.x; at < SIDE * DEPTH; at += 256) {
            const int r = at / DEPTH, c = at % DEPTH;
            const bool inside = c0 + c < columns;
            const int i = row + i0 + r, j = j0 + r;
            a[c][r] = inside && i0 + r < rows ? points[(size_t)i * stride + first + c0 + c] : real(0);
            b[c][r] = inside && j < count ? points[(size_t)j * stride + first + c0 + c] : real(0);
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < DEPTH; c++) {
            real x[4], y[4];
#pragma unroll
            for (int k = 0; k < 4; k++) x[k] = a[c][ty + 16 * k], y[k] = b[c][tx + 16 * k];
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int n = 0; n < 4; n++) {
                    const real d = x[m] - y[n];
                    q[m][n] = fma(d, d, q[m][n]);
                }
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int i = i0 + ty + 16 * m, j = j0 + tx + 16 * n;
            if (i >= rows || j >= count) continue;
            real k = kind == SQUARED_EXPONENTIAL    ? profile<SQUARED_EXPONENTIAL>(q[m][n])
                     : kind == INVERSE_MULTIQUADRIC ? profile<INVERSE_MULTIQUADRIC>(q[m][n])
                                                    : profile<MULTIQUADRIC_SLOPE>(q[m][n]);
            real *out = band + (size_t)i * count + j;
            *out = is_further ? *out * k : k;
        }
}

// out[row + i] = Σⱼ band[i][j] (Rⱼ, 1), of `width` columns and one.
extern "C" __global__ void __launch_bounds__(256)
band_product(const real *__restrict__ band, const real *__restrict__ rhs, int count, int width, int row, int rows,
             real *__restrict__ out) {
    __shared__ real a[DEPTH][SIDE + 1], b[DEPTH][SIDE + 1];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int i0 = blockIdx.y * SIDE, c0 = blockIdx.x * SIDE;
    real sum[4][4] = {}, total[4][4] = {};
    for (int j0 = 0; j0 < count; j0 += DEPTH) {
        for (int at = threadIdx.x; at < SIDE * DEPTH; at += 256) {
            const int r = at / DEPTH, j = at % DEPTH;
            a[j][r] = i0 + r < rows && j0 + j < count ? band[(size_t)(i0 + r) * count + j0 + j] : real(0);
            const int depth = at / SIDE, c = at % SIDE;
            const int column = c0 + c;
            b[depth][c] = j0 + depth >= count || column > width ? real(0)
                          : column == width                      ? real(1)
                                                                 : rhs[(size_t)(j0 + depth) * width + column];
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < DEPTH; j++) {
            real x[4], y[4];
#pragma unroll
            for (int k = 0; k < 4; k++) x[k] = a[j][ty + 16 * k], y[k] = b[j][tx + 16 * k];
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int n = 0; n < 4; n++) sum[m][n] = fma(x[m], y[n], sum[m][n]);
        }
        // Rounding errors grow with the length of a sum: add up short ones.
        if (j0 % 1024 == 0 || j0 + DEPTH >= count) {
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int n = 0; n < 4; n++) total[m][n] += sum[m][n], sum[m][n] = 0;
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int i = i0 + ty + 16 * m, column = c0 + tx + 16 * n;
            if (i < rows && column <= width) out[(size_t)(row + i) * (width + 1) + column] = total[m][n];
        }
}
