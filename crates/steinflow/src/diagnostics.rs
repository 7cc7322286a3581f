//! Whether particles can be believed: how far they are from what they should be.

mod autocorrelation;
mod auxiliary;
mod comparison;
mod counted;
mod diagnosis;
mod energy_distance;
mod gradient;
mod identities;
mod judge;
mod mean_discrepancy;
mod mode_weights;
mod modes;
mod moved;
mod normal;
mod outlying;
mod sliced;
mod spectrum;
mod stein_kernel;

pub use autocorrelation::{ChainSummary, summarise_chains, summarise_ensemble};
pub use auxiliary::{AuxiliaryMarginal, auxiliary_marginals};
pub use comparison::{Comparison, With};
pub(crate) use counted::Counted;
pub use diagnosis::{Diagnosis, Evidence, Subject, Verdict};
pub use energy_distance::EnergyDistance;
pub(crate) use gradient::require_gradient;
pub use gradient::{WrongGradient, find_wrong_gradient};
pub use identities::{Estimate, SteinIdentities, Unevenness};
pub use judge::{ALWAYS_ALLOWED, Course, Judged, StopRule};
pub use mean_discrepancy::{pooled_bandwidth, squared_mean_discrepancy};
pub use mode_weights::{ModeWeight, Modes};
pub use modes::{ModeSearch, search_modes, weigh_modes};
pub use outlying::Outlying;
pub use sliced::sliced_wasserstein;
pub use spectrum::{DirectionsSpanned, directions_spanned};
pub use stein_kernel::{Statistic, SteinKernel, SteinTest, squared_stein_discrepancy};

use rayon::prelude::*;

use crate::{Error, MatRef, Real, Result};

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

fn require_score<T: Copy>(particles: MatRef<'_, T>, score: MatRef<'_, T>) -> Result<()> {
    let (count, dim) = (particles.rows(), particles.cols());
    if (score.rows(), score.cols()) != (count, dim) {
        return Err(Error::Shape {
            what: "the score",
            found: format!("shape {} × {}", score.rows(), score.cols()),
            expected: format!("{count} × {dim}, as the particles"),
        });
    }
    Ok(())
}

/// Rows that one task sums over; the sums of the tasks are added in order, so that bits do not depend
/// on threads.
const TILE: usize = 64;

fn sum_by_rows(rows: usize, of_row: impl Fn(usize) -> f64 + Sync) -> f64 {
    let tiles: Vec<f64> = (0..rows.div_ceil(TILE))
        .into_par_iter()
        .map(|tile| (tile * TILE..rows.min((tile + 1) * TILE)).map(&of_row).sum())
        .collect();
    tiles.iter().sum()
}

/// Means and standard deviations of the columns; 1 where there is no spread.
fn moments<T: Real>(particles: MatRef<'_, T>) -> (Vec<f64>, Vec<f64>) {
    let n = particles.rows() as f64;
    let of = |j: usize| {
        let values = || (0..particles.rows()).map(|i| particles.row(i)[j].as_f64());
        let mean = values().sum::<f64>() / n;
        let sd = (values().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        (mean, if sd > 0.0 { sd } else { 1.0 })
    };
    (0..particles.cols()).map(of).unzip()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
