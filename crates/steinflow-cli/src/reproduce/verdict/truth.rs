//! What particles are really like, which the verdict does not see.

use serde::{Deserialize, Serialize};
use steinflow::diagnostics::EnergyDistance;
use steinflow::{Error as LibraryError, Matrix};
use steinflow_models::Model;

use crate::error::Result;
use crate::reproduce::posteriors::Reference;

/// What the particles are really like.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// Means and spreads off by no more than what does not matter.
    Good,
    /// By more, but no more than as many exact draws may be by chance.
    Fair,
    /// Means are right, spreads or shape are not.
    MeansRight,
    /// Means are wrong.
    Wrong,
}

impl Truth {
    pub const ALL: [Self; 4] = [Self::Good, Self::Fair, Self::MeansRight, Self::Wrong];

    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::MeansRight => "means right",
            Self::Wrong => "wrong",
        }
    }
}

/// The sample against exact draws.
pub struct Measured {
    pub mean_error: f64,
    mean_bound: f64,
    density_error: f64,
    density_bound: f64,
    pub variance: f64,
    variance_error: f64,
    worst_variance: f64,
    worst_error: f64,
    /// The lowest and the highest variance of a coordinate relative to the target's own, for uniform numbers do not
    /// show a tail that is missing.
    raw: (f64, f64),
    /// The same over many sets of exact draws, for no formula tells what chance does where tails are heavy.
    usual_raw: (f64, f64),
    pub distance: f64,
}

/// Standard errors that chance hardly ever exceeds.
pub const ERRORS: f64 = 3.3;
/// Exact draws that samples are compared with.
const REFERENCE: usize = 2000;
/// Exact draws that tell variances where tails are heavy.
const MANY: usize = 20_000;
/// Sets of exact draws that show what distance to expect.
const REPLICATES: u64 = 30;

impl Measured {
    /// Against exact draws.
    pub fn new(
        model: &dyn Model<f64>,
        theta: &Matrix<f64>,
        count: usize,
        exact: impl Fn(usize, u64) -> Result<Matrix<f64>, LibraryError>,
    ) -> Result<Self> {
        let reference = exact(REFERENCE, 0)?;
        let log_densities = |theta: &Matrix<f64>| -> Result<Vec<f64>> {
            let mut log_density = vec![0.0; theta.rows()];
            let mut score = Matrix::zeros(theta.rows(), theta.cols());
            model.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
            Ok(log_density)
        };
        let dim = theta.cols();
        let columns: Vec<Vec<f64>> = (0..dim)
            .map(|j| {
                let mut column: Vec<f64> = (0..REFERENCE).map(|i| reference.row(i)[j]).collect();
                column.sort_by(f64::total_cmp);
                column
            })
            .collect();
        // Uniform where the sample is right, whatever the tails.
        let uniform = |sample: &Matrix<f64>| {
            Matrix::from_fn(sample.rows(), dim, |i, j| {
                let below = columns[j].partition_point(|&x| x < sample.row(i)[j]);
                below as f64 / REFERENCE as f64
            })
        };
        // Draws beyond the reference, which begins the same sequence.
        let thinned = thin(theta, 1000);
        let (sample, n) = (uniform(theta), count as f64);
        let (mut mean_error, mut variances) = (0.0f64, Vec::new());
        for j in 0..dim {
            let values = || (0..sample.rows()).map(|i| sample.row(i)[j]);
            let mean = values().sum::<f64>() / sample.rows() as f64;
            let variance = values().map(|u| (u - mean).powi(2)).sum::<f64>() / sample.rows() as f64;
            mean_error = mean_error.max((mean - 0.5).abs() * 12f64.sqrt());
            variances.push(12.0 * variance);
        }
        // How thin the particles of a ridge are, and how wide particles are along all directions together:
        // variance that is off by a part changes a Gaussian's mean log density by that part of d/2.
        let (known, found) = (log_densities(&reference)?, log_densities(theta)?);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let square = known.iter().map(|x| (x - mean(&known)).powi(2)).sum::<f64>();
        let sd = (square / known.len() as f64).sqrt();
        let density_error = (mean(&found) - mean(&known)).abs() / (0.5 * dim as f64);
        let density_bound = ERRORS * sd / n.sqrt() / (0.5 * dim as f64);
        let distance = EnergyDistance::to(reference.as_ref())?;
        let own = variances_of(&exact(MANY, 1)?);
        let (mut largest, mut usual_raw) = (0.0_f64, (1.0_f64, 1.0_f64));
        for seed in 1..=REPLICATES {
            let usual = exact(count, 5000 + seed)?;
            largest = largest.max(distance.of(usual.as_ref())?);
            let (low, high) = extremes(&usual, &own);
            usual_raw = (usual_raw.0.min(low), usual_raw.1.max(high));
        }
        let off = |v: &f64| (v - 1.0).abs();
        let worst = variances.iter().copied().max_by(|a, b| off(a).total_cmp(&off(b)));
        Ok(Self {
            mean_error,
            density_error,
            density_bound,
            mean_bound: ERRORS / n.sqrt(),
            variance: variances.iter().sum::<f64>() / dim as f64,
            // The variance of a uniform sample's variance is 0.8/N of its square.
            variance_error: ERRORS * (0.8 / (n * dim as f64)).sqrt(),
            worst_variance: worst.unwrap_or(1.0),
            worst_error: ERRORS * (0.8 / n).sqrt(),
            raw: extremes(theta, &own),
            usual_raw,
            distance: distance.of(thinned.as_ref())? / largest,
        })
    }

    /// Against means and standard deviations that long runs of others have found.
    pub fn by_reference(reference: &Reference, theta: &Matrix<f64>, count: usize) -> Self {
        let (rows, n) = (theta.rows() as f64, count as f64);
        let (mut mean_error, mut variances) = (0.0_f64, Vec::new());
        for (j, (_, mean, sd)) in reference.iter().enumerate() {
            let column = || (0..theta.rows()).map(|i| theta.row(i)[j]);
            let own = column().sum::<f64>() / rows;
            let square = column().map(|x| (x - own).powi(2)).sum::<f64>() / rows;
            mean_error = mean_error.max((own - mean).abs() / sd);
            variances.push(square / (sd * sd));
        }
        let off = |v: &f64| (v - 1.0).abs();
        let worst = variances.iter().copied().max_by(|a, b| off(a).total_cmp(&off(b)));
        Self {
            mean_error,
            mean_bound: ERRORS / n.sqrt(),
            density_error: 0.0,
            density_bound: 0.0,
            variance: variances.iter().sum::<f64>() / variances.len() as f64,
            // The variance of a Gaussian sample's variance is 2/N of its square; posteriors are wider.
            variance_error: ERRORS * (3.0 / n).sqrt(),
            worst_variance: worst.unwrap_or(1.0),
            worst_error: ERRORS * (3.0 / n).sqrt(),
            raw: (1.0, 1.0),
            usual_raw: (1.0, 1.0),
            distance: 1.0,
        }
    }

    /// The standard error of [`Self::variance`] in a run that is as good as exact draws.
    pub fn variance_error(&self) -> f64 {
        self.variance_error / ERRORS
    }

    pub fn verdict(&self) -> Truth {
        let spread_is_right = |errors: f64| {
            let usual = if errors > 0.0 { self.usual_raw } else { (1.0, 1.0) };
            (self.variance - 1.0).abs() <= 0.12 + errors * self.variance_error
                && (self.worst_variance - 1.0).abs() <= 0.2 + errors * self.worst_error
                && self.density_error <= 0.3 + errors * self.density_bound
                && self.raw.0 >= 0.75 * usual.0
                && self.raw.1 <= 1.25 * usual.1
        };
        let means_are_right = |errors: f64| self.mean_error <= 0.15 + errors * self.mean_bound;
        if !means_are_right(1.0) {
            Truth::Wrong
        } else if !spread_is_right(1.0) || !(self.distance <= 2.0) {
            Truth::MeansRight
        } else if !means_are_right(0.0) || !spread_is_right(0.0) {
            Truth::Fair
        } else {
            Truth::Good
        }
    }
}

fn variances_of(sample: &Matrix<f64>) -> Vec<f64> {
    let rows = sample.rows() as f64;
    let variance = |j: usize| {
        let column = || (0..sample.rows()).map(|i| sample.row(i)[j]);
        let mean = column().sum::<f64>() / rows;
        column().map(|x| (x - mean).powi(2)).sum::<f64>() / rows
    };
    (0..sample.cols()).map(variance).collect()
}

/// The lowest and the highest variance of a coordinate, relative to the exact ones.
fn extremes(sample: &Matrix<f64>, exact: &[f64]) -> (f64, f64) {
    let ratios = variances_of(sample).into_iter().zip(exact).map(|(own, exact)| own / exact);
    ratios.fold((f64::INFINITY, 0.0), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
}

fn thin(matrix: &Matrix<f64>, most: usize) -> Matrix<f64> {
    let kept = matrix.rows().min(most);
    Matrix::from_fn(kept, matrix.cols(), |i, j| matrix.row(i * matrix.rows() / kept)[j])
}
