//! Predictive distributions and their scores: for every row of test data the mixture
//! p(y | x) = 1/N Σᵢ N(y | μᵢ(x), σᵢ(x)²) over particles.
//!
//! Independent of any model: all it takes are the particles' means and standard deviations.

mod check;
mod classes;
mod crps;
mod leave_one_out;
mod mixture;

pub use check::Check;
pub use classes::{ClassPredictive, Reliability, reliability};
pub(crate) use leave_one_out::left_out_weights;
pub use leave_one_out::{LARGEST_SHAPE, LeaveOneOut};
pub use mixture::Mixture;

use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use steinflow::random::{Purpose, stream};
use steinflow::{Error, Matrix};

use crate::Result;
use crate::data::Scaling;

/// A Gaussian mixture for every row of test data.
///
/// ```
/// use steinflow::Matrix;
/// use steinflow_models::prediction::Predictive;
/// use steinflow_models::data::Scaling;
///
/// // Two particles, three rows; the target was standardised by its mean 100 and deviation 10.
/// let means = Matrix::from_vec(vec![-1.0, 0.0, 1.1, -0.8, 0.2, 0.9], 2, 3).expect("2 × 3");
/// let standardised = Predictive::new(&means, &[0.3, 0.4])?;
/// let predictive = standardised.in_units(Scaling { mean: 100.0, sd: 10.0 })?;
///
/// let targets = [92.0, 100.0, 109.0];
/// assert!((predictive.rmse(&targets)? - 1.0).abs() < 1e-12);
/// assert_eq!(predictive.coverage(&targets, 0.9)?, 1.0);
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Predictive {
    /// `rows × particles`, so that the mixture of a row stands together.
    means: Matrix<f64>,
    sds: Matrix<f64>,
}

impl Predictive {
    /// `means` has a row for every particle and a column for every row of test data; `sds` has one
    /// noise standard deviation for every particle.
    pub fn new(means: &Matrix<f64>, sds: &[f64]) -> Result<Self> {
        if means.cols() > 0 {
            require_length("standard deviations", sds.len(), means.rows())?;
        }
        Self::with_noise(means, &Matrix::from_fn(means.rows(), means.cols(), |i, _| sds[i]))
    }

    /// As [`Predictive::new`], with a noise standard deviation for every particle and row.
    pub fn with_noise(means: &Matrix<f64>, sds: &Matrix<f64>) -> Result<Self> {
        if means.rows() == 0 || means.cols() == 0 {
            let value = format!("{} particles and {} rows", means.rows(), means.cols());
            return Err(Error::setting("prediction", value, "give at least 1 of each").into());
        }
        require_length("standard deviations", sds.as_slice().len(), means.as_slice().len())?;
        let remedy = "leave this particle out, or take a smaller step size";
        if let Some(at) = sds.as_slice().iter().position(|&sd| !(sd > 0.0 && sd.is_finite())) {
            let value = format!("{} at particle {}", sds.as_slice()[at], at / means.cols());
            return Err(Error::setting("predicted standard deviation", value, remedy).into());
        }
        if let Some(at) = means.as_slice().iter().position(|mean| !mean.is_finite()) {
            let (particle, row) = (at / means.cols(), at % means.cols());
            let value = format!("{} at particle {particle}, row {row}", means.as_slice()[at]);
            return Err(Error::setting("predicted mean", value, remedy).into());
        }
        let by_row =
            |of: &Matrix<f64>| Matrix::from_fn(of.cols(), of.rows(), |row, i| of.row(i)[row]);
        Ok(Self { means: by_row(means), sds: by_row(sds) })
    }

    /// The same prediction in the target's own units: every score of the result is in those too. In
    /// particular its log-likelihood is lower by the logarithm of the target's standard deviation.
    pub fn in_units(&self, scaling: Scaling) -> Result<Self> {
        let Scaling { mean, sd } = scaling;
        if !(mean.is_finite() && sd > 0.0 && sd.is_finite()) {
            let remedy = "give a finite mean and a positive standard deviation";
            let value = format!("mean {mean} and standard deviation {sd}");
            return Err(Error::setting("scaling", value, remedy).into());
        }
        let mut means = self.means.clone();
        for mean in means.as_mut_slice() {
            *mean = scaling.restore(*mean);
        }
        let mut sds = self.sds.clone();
        sds.as_mut_slice().iter_mut().for_each(|noise| *noise *= sd);
        Ok(Self { means, sds })
    }

    /// N, the components of every mixture.
    pub fn particles(&self) -> usize {
        self.means.cols()
    }

    /// Rows of test data.
    pub fn rows(&self) -> usize {
        self.means.rows()
    }

    /// The mixture of one row.
    pub fn row(&self, row: usize) -> Mixture<'_> {
        Mixture { means: self.means.row(row), sds: self.sds.row(row) }
    }

    /// Mean and standard deviation, over particles and rows, of the standard deviation of the noise.
    pub fn noise(&self) -> (f64, f64) {
        let all = self.sds.as_slice();
        let centre = mean(all);
        let square = all.iter().map(|sd| (sd - centre).powi(2)).sum::<f64>() / all.len() as f64;
        (centre, square.sqrt())
    }

    /// The mixtures of all rows.
    pub fn mixtures(&self) -> impl Iterator<Item = Mixture<'_>> {
        (0..self.rows()).map(|row| self.row(row))
    }

    /// Every row's predictive mean.
    pub fn means(&self) -> Vec<f64> {
        self.mixtures().map(|mixture| mixture.mean()).collect()
    }

    /// Every row's predictive standard deviation: noise and disagreement of the particles together.
    pub fn sds(&self) -> Vec<f64> {
        self.mixtures().map(|mixture| mixture.sd()).collect()
    }

    /// Every row's quantile, for a level between 0 and 1.
    pub fn quantiles(&self, level: f64) -> Result<Vec<f64>> {
        require_level(level)?;
        let rows = (0..self.rows()).into_par_iter();
        Ok(rows.map(|row| self.row(row).quantile(level)).collect())
    }

    /// Every row's log p(y | x).
    pub fn log_likelihoods(&self, targets: &[f64]) -> Result<Vec<f64>> {
        self.for_each(targets, |mixture, y| mixture.log_density(y))
    }

    /// The mean of log p(y | x) over rows.
    pub fn mean_log_likelihood(&self, targets: &[f64]) -> Result<f64> {
        Ok(mean(&self.log_likelihoods(targets)?))
    }

    /// How well each row would be predicted by particles that have not seen it, for rows that they have seen.
    pub fn leave_one_out(&self, targets: &[f64]) -> Result<LeaveOneOut> {
        require_length("targets", targets.len(), self.rows())?;
        Ok(LeaveOneOut::new(self.rows(), |row| {
            let Mixture { means, sds } = self.row(row);
            let density = |(mean, sd): (&f64, &f64)| {
                let z = (targets[row] - mean) / sd;
                -0.5 * z * z - (sd * std::f64::consts::TAU.sqrt()).ln()
            };
            means.iter().zip(sds).map(density).collect()
        }))
    }

    /// Data sets of all rows, drawn from the particles in turn.
    pub fn draws(&self, count: usize, seed: u64) -> Vec<Vec<f64>> {
        let set = |set: usize| {
            let mut random = stream(seed, Purpose::Prediction, 0, set as u64);
            let particle = set % self.particles();
            let row = |row: usize| {
                let normal: f64 = StandardNormal.sample(&mut random);
                self.means.row(row)[particle] + self.sds.row(row)[particle] * normal
            };
            (0..self.rows()).map(row).collect()
        };
        (0..count).into_par_iter().map(set).collect()
    }

    /// Mean squared error of the predictive mean.
    pub fn mse(&self, targets: &[f64]) -> Result<f64> {
        Ok(mean(&self.for_each(targets, |mixture, y| (mixture.mean() - y).powi(2))?))
    }

    /// Root mean squared error of the predictive mean.
    pub fn rmse(&self, targets: &[f64]) -> Result<f64> {
        Ok(self.mse(targets)?.sqrt())
    }

    /// Every row's continuous ranked probability score ∫ (F(x) − 1{x ≥ y})² dx; smaller is better, and
    /// for a single sure answer it is the absolute error. See [`Mixture::crps`] for the cost.
    pub fn crps(&self, targets: &[f64]) -> Result<Vec<f64>> {
        self.for_each(targets, |mixture, y| mixture.crps(y))
    }

    /// The mean of [`Predictive::crps`] over rows.
    pub fn mean_crps(&self, targets: &[f64]) -> Result<f64> {
        Ok(mean(&self.crps(targets)?))
    }

    /// Probability integral transforms F(y): uniform on (0, 1) where the prediction is calibrated.
    pub fn pit(&self, targets: &[f64]) -> Result<Vec<f64>> {
        self.for_each(targets, |mixture, y| mixture.cdf(y))
    }

    /// How many of the [`Predictive::pit`] fall into each of `bins` equal parts of (0, 1).
    pub fn pit_histogram(&self, targets: &[f64], bins: usize) -> Result<Vec<usize>> {
        if bins == 0 || bins > 1_000_000 {
            return Err(Error::setting("bins", bins, "give a number from 1 to 1000000").into());
        }
        let mut counts = vec![0; bins];
        for pit in self.pit(targets)? {
            counts[((pit * bins as f64) as usize).min(bins - 1)] += 1;
        }
        Ok(counts)
    }

    /// The share of targets inside the central interval of probability `level`, which is `level` where
    /// the prediction is calibrated.
    pub fn coverage(&self, targets: &[f64], level: f64) -> Result<f64> {
        require_level(level)?;
        let tail = (1.0 - level) / 2.0;
        let pit = self.pit(targets)?;
        let inside = pit.iter().filter(|&&pit| tail <= pit && pit <= 1.0 - tail).count();
        Ok(inside as f64 / pit.len() as f64)
    }

    fn for_each(
        &self,
        targets: &[f64],
        score: impl Fn(Mixture<'_>, f64) -> f64 + Sync,
    ) -> Result<Vec<f64>> {
        require_length("targets", targets.len(), self.rows())?;
        if let Some(row) = targets.iter().position(|y| !y.is_finite()) {
            let value = format!("{} in row {row}", targets[row]);
            return Err(Error::setting("targets", value, "give finite numbers").into());
        }
        let rows = targets.par_iter().enumerate();
        Ok(rows.map(|(row, &y)| score(self.row(row), y)).collect())
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn require_length(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (format!("{found} entries"), expected.to_string());
    Err(Error::Shape { what, found, expected }.into())
}

fn require_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::setting("level", level, "give a probability between 0 and 1").into())
}
