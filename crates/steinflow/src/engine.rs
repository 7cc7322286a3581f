//! Where sums over particles are done.

mod gemm;

pub use gemm::Gemm;
