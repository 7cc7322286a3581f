//! Targets that ship with Steinflow: toy densities whose answers are known exactly, Bayesian
//! regressions and neural networks with their predictions, and the [data] they read.
//!
//! A model is a [`steinflow::LogDensity`] that also describes itself ([`Describe`]): the names of
//! its parameters, where particles start, and, where there is a closed form, its moments, exact
//! samples and the shares of its modes. [`build`] makes one from a name of the [`catalogue()`].
//!
//! ```
//! use steinflow_models::{ModelSpec, build};
//!
//! let model = build::<f64>(&ModelSpec::named("tri-crescent"))?;
//! assert_eq!(model.parameter_names(), ["x", "y"]);
//!
//! let sample = model.exact_sample(3_000, 1).expect("the tri-crescent has an exact sampler");
//! let parts = model.parts().expect("the tri-crescent has three parts");
//! for share in parts.shares_of(sample.as_ref()) {
//!     assert!((share - 1.0 / 3.0).abs() < 0.04);
//! }
//! # Ok::<(), steinflow_models::Error>(())
//! ```

mod catalogue;
mod checks;
mod cholesky;
pub mod data;
pub mod density;
mod error;
pub mod memory;
mod model;
pub mod network;
mod one_particle;
mod pool;
pub mod posteriors;
pub mod prediction;
mod prior;
pub mod regression;
pub mod stan;
pub mod toy;

pub use catalogue::{ModelInfo, ModelSpec, NETWORK, build, catalogue};
pub use data::TableError;
pub use density::Density;
pub use error::{Error, Result};
pub use model::{Describe, Model, Moments, Parts, Start, Units};
