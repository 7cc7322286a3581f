//! Whether particles can be believed: how far they are from what they should be.

mod autocorrelation;
mod auxiliary;
mod diagnosis;
mod energy_distance;
mod identities;
mod judge;
mod mean_discrepancy;
mod mode_weights;
mod modes;
mod normal;
mod sliced;
mod spectrum;
mod stein_kernel;

pub use autocorrelation::{ChainSummary, summarise_chains};
pub use auxiliary::{AuxiliaryMarginal, auxiliary_marginals};
pub use diagnosis::{Diagnosis, Evidence, Subject, Verdict};
pub use energy_distance::EnergyDistance;
pub use identities::{Estimate, SteinIdentities, Unevenness};
pub use judge::Judged;
pub use mean_discrepancy::{pooled_bandwidth, squared_mean_discrepancy};
pub use mode_weights::{ModeWeight, Modes, weigh_modes};
pub use modes::{ModeSearch, search_modes};
pub use sliced::sliced_wasserstein;
pub use spectrum::{DirectionsSpanned, directions_spanned};
pub use stein_kernel::{Statistic, SteinKernel, SteinTest, squared_stein_discrepancy};

use crate::{Error, MatRef, Result};

fn require_bandwidth(bandwidth: f64) -> Result<()> {
    if !(bandwidth > 0.0) || !bandwidth.is_finite() {
        return Err(Error::setting("bandwidth", bandwidth, "it must be positive and finite"));
    }
    Ok(())
}

fn require_same_dimension<T: Copy>(x: MatRef<'_, T>, y: MatRef<'_, T>) -> Result<()> {
    if x.cols() != y.cols() {
        return Err(Error::Shape {
            what: "the points",
            found: format!("{} coordinates", x.cols()),
            expected: format!("{}, as the points to compare with", y.cols()),
        });
    }
    Ok(())
}
