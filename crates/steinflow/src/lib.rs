//! Samplers for a density known up to a constant.

pub mod engine;
mod error;
mod matrix;
pub mod random;
mod real;
pub mod target;

pub use error::{Error, Result};
pub use matrix::{MatMut, MatRef, Matrix};
pub use real::Real;
pub use target::{LogDensity, Minibatch};
