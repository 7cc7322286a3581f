//! The target π: log π and its score ∇log π, for a whole batch of particles at once.

mod autodiff;
mod per_particle;

pub use autodiff::{Autodiff, DualNum, GenericLogDensity};
pub use per_particle::PerParticle;

use std::sync::Arc;

use crate::random::{Purpose, stream};
use crate::{MatMut, MatRef, Matrix, Real, Result};

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

    /// The same density as text, where it is known: then a device needs no help from the host.
    fn device_source(&self) -> Option<DeviceSource> {
        None
    }

    /// What messages call a coordinate, where it has a name.
    fn coordinate_name(&self, coordinate: usize) -> Option<String> {
        let _ = coordinate;
        None
    }
}

/// A subset of the data rows, drawn without replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct Minibatch {
    /// Indices of the rows.
    pub indices: Vec<usize>,
    /// n / batch size: what the likelihood of these rows is multiplied by.
    pub scale: f64,
}

impl Minibatch {
    /// Minibatch number `number` of a run: `size` of so many rows.
    pub fn draw(seed: u64, number: u64, rows: usize, size: usize) -> Self {
        let mut generator = stream(seed, Purpose::Minibatch, number, 0);
        let indices = rand::seq::index::sample(&mut generator, rows, size).into_vec();
        Self { indices, scale: rows as f64 / size as f64 }
    }
}

/// A target as text, for engines that keep particles on a device. `real` stands for the run's precision there.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceSource {
    /// Evaluated a particle at a time.
    PerParticle {
        /// A C++ function `real log_density(const real *theta, real *score, const real *data)`. LANES threads call it
        /// for the same particle: in many dimensions they may share the coordinates, from LANE on every LANES-th, and
        /// add up what they found by `total(x)`.
        code: String,
        /// Numbers that it reads.
        data: Vec<f64>,
    },
    /// With a linear predictor: log π = c Σ ℓ(xᵢ·θ, yᵢ) − precision |θ|²/2.
    Linear {
        /// A C++ function `real likelihood(real eta, real y, real *slope)`: ℓ, and ∂ℓ/∂η.
        code: String,
        /// X.
        rows: Matrix<f64>,
        /// y.
        outcomes: Vec<f64>,
        /// Of the prior.
        precision: f64,
    },
    /// A network for regression, θ = [W₁ | b₁ | W₂ | b₂ | … | log γ | log λ]: y ~ N(f, 1/γ), weights ~ N(0, 1/λ). With
    /// a second output t the precision of a row is γeˢ, s = L tanh(t/L).
    Network {
        /// Units of every layer: inputs first, then hidden layers, the outputs last.
        layers: Vec<usize>,
        /// C++ functions `real activate(real z)` and `real derivative(real a)`, the latter of φ(z) = a.
        code: String,
        /// The inputs, a row of data each.
        rows: Matrix<f64>,
        /// y.
        outcomes: Vec<f64>,
        /// γ and λ.
        precisions: [DevicePrecision; 2],
        /// L.
        largest_log_factor: f64,
    },
}

/// The inverse variance of a Gaussian in a [`DeviceSource::Network`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DevicePrecision {
    /// Whether its logarithm is a coordinate of θ, with the density of Gamma(shape, rate).
    pub is_learned: bool,
    /// Its value, where it is not.
    pub value: f64,
    /// Of the prior.
    pub shape: f64,
    /// Of the prior.
    pub rate: f64,
    /// The constant of the prior's log density.
    pub normaliser: f64,
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
            fn device_source(&self) -> Option<DeviceSource> {
                (**self).device_source()
            }
            fn coordinate_name(&self, coordinate: usize) -> Option<String> {
                (**self).coordinate_name(coordinate)
            }
        }
    )*};
}
delegate_to_pointee!(&D, Box<D>, Arc<D>);
