//! The precisions γ of the noise and λ of the weights: fixed, or learned under
//! log p(log γ) = a log γ − bγ + a log b − log Γ(a), the Gamma(a, b) prior with its Jacobian.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use steinflow::target::DevicePrecision;

use crate::Result;
use crate::checks::require_scale;

/// The inverse variance of a Gaussian.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// A coordinate of θ, as its logarithm, under a Gamma prior of mean shape / rate.
    Learned {
        /// a.
        shape: f64,
        /// b.
        rate: f64,
    },
    /// Known, and no part of θ.
    Fixed(f64),
}

impl Default for Precision {
    /// Gamma(1, 0.1).
    fn default() -> Self {
        Self::Learned { shape: 1.0, rate: 0.1 }
    }
}

/// The two precisions of a Bayesian neural network.
///
/// With both learned, the joint mode is w → 0, λ → ∞: a network that predicts a constant. A sampler
/// that spreads its particles stays clear of it; one that climbs to the mode does not, and then a
/// fixed λ helps.
///
/// ```
/// use steinflow_models::network::{Precision, Precisions};
/// let known_noise = Precisions { noise: Precision::Fixed(25.0), ..Default::default() };
/// assert_eq!(known_noise.weights, Precision::Learned { shape: 1.0, rate: 0.1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Precisions {
    /// γ: y ~ N(f(x), 1/γ).
    pub noise: Precision,
    /// λ: weights and biases ~ N(0, 1/λ).
    pub weights: Precision,
}

/// The value of a precision and its prior at one particle.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtParticle {
    pub(super) value: f64,
    pub(super) log: f64,
    pub(super) log_prior: f64,
    /// ∂ log prior / ∂ log precision.
    pub(super) prior_score: f64,
}

impl Precision {
    /// What starting values are drawn from.
    pub(super) fn for_start(self) -> Self {
        const LARGEST_MEAN: f64 = 10.0;
        match self {
            Self::Learned { shape, rate } => {
                Self::Learned { shape, rate: rate.max(shape / LARGEST_MEAN) }
            }
            Self::Fixed(_) => self,
        }
    }

    pub(super) fn require_valid(self, names: [&'static str; 3]) -> Result<()> {
        match self {
            Self::Learned { shape, rate } => {
                require_scale(names[0], shape)?;
                require_scale(names[1], rate)?;
            }
            Self::Fixed(value) => require_scale(names[2], value)?,
        }
        Ok(())
    }

    /// `log` is the coordinate of θ that carries the precision where it is learned.
    pub(super) fn at(self, log: Option<f64>) -> AtParticle {
        match (self, log) {
            (Self::Learned { shape, rate }, Some(log)) => {
                let value = log.exp();
                let normaliser = shape * rate.ln() - libm::lgamma(shape);
                AtParticle {
                    value,
                    log,
                    log_prior: shape * log - rate * value + normaliser,
                    prior_score: shape - rate * value,
                }
            }
            (fixed, _) => {
                let value = fixed.mean();
                AtParticle { value, log: value.ln(), log_prior: 0.0, prior_score: 0.0 }
            }
        }
    }

    /// As a device reads it.
    pub(super) fn on_device(self) -> DevicePrecision {
        let value = self.mean();
        match self {
            Self::Learned { shape, rate } => {
                let normaliser = shape * rate.ln() - libm::lgamma(shape);
                DevicePrecision { is_learned: true, value, shape, rate, normaliser }
            }
            Self::Fixed(_) => {
                DevicePrecision { is_learned: false, value, shape: 0.0, rate: 0.0, normaliser: 0.0 }
            }
        }
    }

    /// The value, or the mean of the prior.
    pub(super) fn mean(self) -> f64 {
        match self {
            Self::Learned { shape, rate } => shape / rate,
            Self::Fixed(value) => value,
        }
    }

    /// The logarithm of a draw from the prior.
    pub(super) fn draw_log(self, generator: &mut ChaCha8Rng) -> f64 {
        let draw = match self {
            Self::Learned { shape, rate } => {
                // The two are checked when the model is built, so the mean is never taken.
                Gamma::new(shape, 1.0 / rate).map_or(shape / rate, |gamma| gamma.sample(generator))
            }
            Self::Fixed(value) => value,
        };
        // A prior of tiny shape puts most of its mass below the smallest number.
        draw.max(f64::MIN_POSITIVE).ln()
    }
}
