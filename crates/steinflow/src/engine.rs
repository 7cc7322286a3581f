//! Where sums over pairs of particles are done.
//!
//! One primitive carries the whole cost of an interacting field: [`kernel_sums`], O(N²·columns)
//! time and O(N·columns) memory. Nothing above this module knows how it is computed.

mod gemm;
mod kernel_sums;
mod lanes;
mod simd;

pub use gemm::Gemm;
pub use lanes::Lanes;
pub(crate) use simd::squared_distances_to_rows;

pub use kernel_sums::{KernelSums, kernel_matrix, kernel_sums};

/// What the engine needs of a number. Implemented for `f32` and `f64`.
pub trait Arithmetic: Gemm + Lanes {
    /// Replaces every x ≥ 0 by exp(−x).
    #[doc(hidden)]
    fn exp_of_negated(values: &mut [Self]);
}

impl Arithmetic for f32 {
    fn exp_of_negated(values: &mut [Self]) {
        simd::exp_of_negated_f32(values);
    }
}

impl Arithmetic for f64 {
    fn exp_of_negated(values: &mut [Self]) {
        simd::exp_of_negated_f64(values);
    }
}
