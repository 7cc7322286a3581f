//! Where sums over pairs of particles are done.
//!
//! One primitive carries the whole cost of an interacting field: [`kernel_sums`], O(N²·columns)
//! time and O(N·columns) memory. Nothing above this module knows how it is computed.

mod batches;
mod cloud;
mod dots;
mod gemm;
mod kernel_sums;
mod lanes;
mod points;
mod scratch;
mod simd;
mod symmetric;

pub use batches::batch_sums;
pub(crate) use cloud::{Products, centre, strip_width, strips_of_a_part, write_centred};
pub use gemm::Gemm;
pub(crate) use kernel_sums::known_kernel;
pub use kernel_sums::{KernelSums, kernel_matrix, kernel_sums, write_kernel_sums};
pub use lanes::Lanes;
pub use points::Factor;
pub(crate) use scratch::BorrowedCloud;
pub use scratch::{Borrowed, Scratch};
pub(crate) use simd::{
    all_finite, squared_distances_of_pairs, squared_distances_to_rows, sum_of_squares, vectorised,
};

/// How many rows of this width are worth another thread, where every number is touched once or twice.
///
/// Handing work over costs about 2 µs, as long as the other threads are awake; they fall asleep when there is
/// nothing to do for some 15 µs, and waking them costs ten times as much. So little work is shared out too.
pub(crate) fn rows_per_task(width: usize) -> usize {
    const NUMBERS: usize = 1 << 14;
    NUMBERS.div_ceil(width.max(1))
}

/// What the engine needs of a number. Implemented for `f32` and `f64`.
pub trait Arithmetic: Gemm + Lanes {
    /// Below this share of |x|² + |y|², a squared distance that comes from products is computed again from
    /// differences: so its relative error stays below about ε/share, 1e-5 in `f32` and 1e-11 in `f64`.
    /// Few pairs of a cloud around its centre are that close.
    #[doc(hidden)]
    const CLOSE: Self;

    /// Replaces every x by exp(−rate·x), which must not be larger than the largest number.
    #[doc(hidden)]
    fn exp_of_negated(values: &mut [Self], rate: Self);
}

impl Arithmetic for f32 {
    const CLOSE: Self = 1e-2;

    fn exp_of_negated(values: &mut [Self], rate: Self) {
        simd::exp_of_negated_f32(values, rate);
    }
}

impl Arithmetic for f64 {
    const CLOSE: Self = 1e-5;

    fn exp_of_negated(values: &mut [Self], rate: Self) {
        simd::exp_of_negated_f64(values, rate);
    }
}
