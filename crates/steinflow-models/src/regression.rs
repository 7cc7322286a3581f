//! Bayesian regressions on a table: a linear predictor η = Xβ, a [`Family`] that says what it means for
//! the target, and a prior of the coefficients β.
//!
//! A row of X is an intercept 1 and the features of a row of data, each shifted and scaled to mean 0 and
//! standard deviation 1, and so are targets with a unit. In these units s = 2.5, the default of the
//! prior's standard deviation, is weakly informative (as in rstanarm). It is an inner matter: parameters
//! are [shown](crate::Describe::units) in the units of the table.
//!
//! Rows may belong to groups, as pupils to schools: every group then has an intercept of its own, and
//! slopes if asked for, about those of all. They are shown where the features of the slopes have their
//! means.

mod bernoulli;
mod design;
mod elementary;
mod family;
mod fitted;
mod groups;
mod horseshoe;
mod listed;
mod mixture;
mod multinomial;
mod negative_binomial;
mod normal;
mod ordinal;
mod poisson;
mod posterior;
mod predictor;
mod prior;
pub(crate) mod process;
mod student_t;
mod weibull;

pub use bernoulli::{Bernoulli, LogisticRegression};
pub use design::Design;
pub use family::Family;
pub(crate) use family::digamma;
pub use fitted::{Fitted, RowPrediction};
pub(crate) use listed::entry;
pub use mixture::{DEFAULT_COMPONENTS, Mixture};
pub use multinomial::Multinomial;
pub(crate) use multinomial::draw_class;
pub use negative_binomial::NegativeBinomial;
pub use normal::{LinearRegression, Normal};
pub use ordinal::Ordinal;
pub use poisson::Poisson;
pub use posterior::Regression;
use prior::Prior;
pub use process::{GaussianProcess, Process};
pub use student_t::StudentT;
pub use weibull::Weibull;

/// The prior standard deviation s of every coefficient unless the user says otherwise.
pub const DEFAULT_PRIOR_SD: f64 = 2.5;

/// Particles start this close to 0, where no feature matters.
const START_SD: f64 = 0.1;

/// The options of every regression, and further ones.
macro_rules! with_options {
    ($($further:literal),*) => {
        crate::catalogue::table_options!("prior_sd" $(, $further)*)
    };
}
use with_options;
