//! Bayesian regressions on a CSV file: linear with known noise, and logistic.
//!
//! Both have a linear predictor ηᵢ = xᵢᵀθ, where xᵢ is an intercept 1 followed by the features of row
//! i, each shifted and scaled to mean 0 and standard deviation 1, and the prior θ ~ N(0, s² I). In
//! these units s = 2.5, the default, is weakly informative (as in rstanarm).

mod design;
pub(crate) mod linear;
pub(crate) mod logistic;
mod predictor;

pub use design::Design;
pub use linear::LinearRegression;
pub use logistic::LogisticRegression;

/// The prior standard deviation s of every coefficient unless the user says otherwise.
pub const DEFAULT_PRIOR_SD: f64 = 2.5;

/// The noise standard deviation of the linear regression unless the user says otherwise, in units of
/// the target's standard deviation.
pub const DEFAULT_NOISE_SD: f64 = 1.0;

/// Particles start this close to 0, where no feature matters.
const START_SD: f64 = 0.1;
