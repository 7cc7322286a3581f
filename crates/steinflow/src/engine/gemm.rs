//! Products of small row-major tiles, single-threaded, so that their bits depend on nothing else.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};

/// The product of two row-major tiles.
pub trait Gemm: Sized {
    /// `out = a · bᵀ` for `a` of `m × k` and `b` of `n × k`.
    #[doc(hidden)]
    fn product_transposed(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize) {
        Self::product_of_strips(a, k, b, k, out, m, n, k);
    }

    /// `out = a · bᵀ` for the first `k` columns of `a` and `b`, whose rows begin `stride_a` and
    /// `stride_b` entries apart.
    #[doc(hidden)]
    fn product_of_strips(
        a: &[Self],
        stride_a: usize,
        b: &[Self],
        stride_b: usize,
        out: &mut [Self],
        m: usize,
        n: usize,
        k: usize,
    );

    /// `out = a · b` for `a` of `m × k` and `b` of `k × n`.
    #[doc(hidden)]
    fn product(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize);

    /// `out = a · b` for `a` of `m × k` and `b` of `k × n`, where `n` is large and strips of columns are
    /// shared between threads.
    #[doc(hidden)]
    fn product_by_columns(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize);

    /// `out += a · b` for `a` of `m × k` and `b` of `k × n`.
    #[doc(hidden)]
    fn accumulate_product(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize);

    /// `out += a · bᵀ` for `a` of `m × k` and `b` of `n × k`.
    #[doc(hidden)]
    fn accumulate_product_transposed(
        a: &[Self],
        b: &[Self],
        out: &mut [Self],
        m: usize,
        n: usize,
        k: usize,
    );

    /// `out = aᵀ · b` for `a` of `k × m` and `b` of `k × n`.
    #[doc(hidden)]
    fn transposed_product(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize);

    /// `out += aᵀ · b` for `a` of `k × m` and `b` of `k × n`.
    #[doc(hidden)]
    fn accumulate_transposed_product(
        a: &[Self],
        b: &[Self],
        out: &mut [Self],
        m: usize,
        n: usize,
        k: usize,
    );
}

/// Columns of a strip that one thread computes.
const STRIP: usize = 384;

/// Cuts at multiples of [`STRIP`], wherever there are threads to spare.
fn by_columns<T: ComplexField>(a: MatRef<'_, T>, b: MatRef<'_, T>, out: MatMut<'_, T>) {
    let strips = out.ncols().div_ceil(STRIP);
    if strips <= 1 {
        return matmul(out, Accum::Replace, a, b, T::one_impl(), Par::Seq);
    }
    let at = strips / 2 * STRIP;
    let ((left, right), (b_left, b_right)) = (out.split_at_col_mut(at), b.split_at_col(at));
    rayon::join(|| by_columns(a, b_left, left), || by_columns(a, b_right, right));
}

fn rows<T>(data: &[T], rows: usize, cols: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(data, rows, cols)
}

/// Writes a · b, or adds it, to a row-major tile.
fn multiply<T: ComplexField>(out: &mut [T], accum: Accum, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    let out = MatMut::from_row_major_slice_mut(out, a.nrows(), b.ncols());
    matmul(out, accum, a, b, T::one_impl(), Par::Seq);
}

macro_rules! gemm {
    ($($real:ty),*) => {$(
        impl Gemm for $real {
            fn product_of_strips(
                a: &[Self], stride_a: usize, b: &[Self], stride_b: usize, out: &mut [Self],
                m: usize, n: usize, k: usize,
            ) {
                let a = MatRef::from_row_major_slice_with_stride(a, m, k, stride_a);
                let b = MatRef::from_row_major_slice_with_stride(b, n, k, stride_b);
                multiply(out, Accum::Replace, a, b.transpose());
            }
            fn product(a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize) {
                multiply(out, Accum::Replace, rows(a, m, k), rows(b, k, n));
            }
            fn product_by_columns(
                a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize,
            ) {
                let out = MatMut::from_row_major_slice_mut(out, m, n);
                by_columns(rows(a, m, k), rows(b, k, n), out);
            }
            fn accumulate_product(
                a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize,
            ) {
                multiply(out, Accum::Add, rows(a, m, k), rows(b, k, n));
            }
            fn accumulate_product_transposed(
                a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize,
            ) {
                multiply(out, Accum::Add, rows(a, m, k), rows(b, n, k).transpose());
            }
            fn transposed_product(
                a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize,
            ) {
                multiply(out, Accum::Replace, rows(a, k, m).transpose(), rows(b, k, n));
            }
            fn accumulate_transposed_product(
                a: &[Self], b: &[Self], out: &mut [Self], m: usize, n: usize, k: usize,
            ) {
                multiply(out, Accum::Add, rows(a, k, m).transpose(), rows(b, k, n));
            }
        }
    )*};
}
gemm!(f32, f64);
