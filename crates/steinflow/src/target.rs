//! The target π: log π and its score ∇log π, for a whole batch of particles at once.

mod autodiff;
mod per_particle;

pub use autodiff::{Autodiff, DualNum, GenericLogDensity};
pub use per_particle::PerParticle;

use std::sync::Arc;

use crate::{MatMut, MatRef, Real, Result};

/// A density known up to a constant: what a user writes.
///
/// Rows of `theta` are particles. An implementation fills `log_density[i]` with log π(θᵢ) and row
/// `i` of `score` with ∇log π(θᵢ). It need not check its numbers: the run loop finds non-finite
/// ones and names the particle.
pub trait LogDensity<T: Real = f64>: Send + Sync {
    /// The number of coordinates of θ.
    fn dim(&self) -> usize;

    /// How many rows of data the likelihood sums over; 0 when there are none to take minibatches of.
    fn data_rows(&self) -> usize {
        0
    }

    /// Evaluates log π and ∇log π at every row of `theta`.
    ///
    /// With `rows`, the likelihood takes only those rows of the data and multiplies their sum by
    /// [`Minibatch::scale`]; the prior is never scaled. A target without data ignores it.
    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()>;
}

/// A subset of the data rows, drawn without replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Minibatch {
    /// Indices of the rows.
    pub indices: Vec<usize>,
    /// n / batch size: what the likelihood of these rows is multiplied by.
    pub scale: f64,
}

macro_rules! delegate_to_pointee {
    ($($pointer:ty),*) => {$(
        impl<T: Real, D: LogDensity<T> + ?Sized> LogDensity<T> for $pointer {
            fn dim(&self) -> usize {
                (**self).dim()
            }
            fn data_rows(&self) -> usize {
                (**self).data_rows()
            }
            fn evaluate(
                &self,
                theta: MatRef<'_, T>,
                rows: Option<&Minibatch>,
                log_density: &mut [T],
                score: MatMut<'_, T>,
            ) -> Result<()> {
                (**self).evaluate(theta, rows, log_density, score)
            }
        }
    )*};
}
delegate_to_pointee!(&D, Box<D>, Arc<D>);
