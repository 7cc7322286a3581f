//! Linear regression: y ~ N(η, σ²), with σ learned under Exponential(1) in standard deviations of the
//! target, or known; then the posterior is N(Λ⁻¹Xᵀy/σ², Λ⁻¹) with Λ = XᵀX/σ² + I/s².

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use steinflow::engine::Gemm;
use steinflow::{Matrix, Real};

use super::elementary::{CHUNK, sums_over_rows};
use super::family::{Family, log_exponential};
use super::listed::{Listed, Observed};
use super::{Design, Regression, with_options};
use crate::checks::require_scale;
use crate::cholesky::Cholesky;
use crate::data::{Scaling, Table};
use crate::memory::check_dense;
use crate::toy::Gaussian;
use crate::{ModelSpec, Result};

/// Gaussian errors.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Normal {
    /// σ in standard units of the target, where it is known.
    pub(super) known: Option<f64>,
    /// Mean and standard deviation of the target.
    pub(super) units: (f64, f64),
}

/// The posterior of a linear regression.
pub type LinearRegression<T> = Regression<T, Normal>;

impl<T: Real> LinearRegression<T> {
    /// Predicts column `target` of `table` (the last one when `None`) from all others. The noise is
    /// learned, or known in the target's units.
    pub fn new(
        table: &Table,
        target: Option<&str>,
        prior_sd: f64,
        noise_sd: Option<f64>,
    ) -> Result<Self> {
        let spec = ModelSpec { prior_sd: Some(prior_sd), noise_sd, ..ModelSpec::default() };
        Self::of(Design::new(table, target)?, &spec)
    }
}

pub(super) fn standardised(design: &Design, scaling: Scaling) -> Vec<f64> {
    design.target().iter().map(|&y| scaling.standardise(y)).collect()
}

/// Λ by tiles of rows, then the mean by a Cholesky solve.
fn posterior(x: &Matrix<f64>, y: &[f64], prior_sd: f64, noise_sd: f64) -> Result<Gaussian> {
    const ROWS_PER_TILE: usize = 1024;
    let dim = x.cols();
    check_dense(dim)?;
    let noise_precision = 1.0 / (noise_sd * noise_sd);
    let mut precision = Matrix::zeros(dim, dim);
    let mut mean = vec![0.0; dim];
    for (rows, y) in x.as_slice().chunks(ROWS_PER_TILE * dim).zip(y.chunks(ROWS_PER_TILE)) {
        let count = y.len();
        let transposed: Vec<f64> =
            (0..dim * count).map(|at| rows[at % count * dim + at / count]).collect();
        f64::accumulate_product(&transposed, rows, precision.as_mut_slice(), dim, dim, count);
        f64::accumulate_product(&transposed, y, &mut mean, dim, 1, count);
    }
    for i in 0..dim {
        // A product by tiles is symmetric only up to rounding.
        for j in 0..=i {
            let entry = noise_precision * precision.row(i)[j];
            precision.row_mut(i)[j] = entry;
            precision.row_mut(j)[i] = entry;
        }
        precision.row_mut(i)[i] += 1.0 / (prior_sd * prior_sd);
        mean[i] *= noise_precision;
    }
    Cholesky::new(&precision, "precision of the posterior")?.solve(&mut mean);
    Gaussian::from_precision(mean, precision)
}

impl Normal {
    /// σ in standard units; of a row with a noise of its own, that.
    fn noise(&self, extras: &[f64]) -> f64 {
        extras.first().map_or_else(|| self.known.unwrap_or(1.0), |x| x.exp())
    }
}

impl Listed for Normal {
    const NAME: &'static str = "linear-regression";
    const TITLE: &'static str =
        "Bayesian linear regression; with a known noise, the posterior is known exactly";
    const FORMULA: &'static str = "y ~ N(Xβ, σ²), β ~ N(0, s²) for standardised features and target, s = prior-sd, σ ~ \
              Exponential(1) in standard deviations of the target, or noise-sd";
    const OPTIONS: &'static [&'static str] =
        with_options!("prior", "noise_sd", "noise_column", "groups", "slopes");

    fn observe(mut design: Design, spec: &ModelSpec) -> Result<Observed<Self>> {
        let scaling = design.target_scaling()?;
        let mut target = standardised(&design, scaling);
        let weights = design.divide_by_noise(scaling.sd)?;
        if let Some(noise_sd) = spec.noise_sd {
            require_scale("noise-sd", noise_sd)?;
            require_scale("noise-sd in standard deviations of the target", noise_sd / scaling.sd)?;
        }
        let known = match (spec.noise_sd, &weights) {
            (Some(noise_sd), Some(_)) => {
                let remedy = "the noise is that of a column already; leave one of them out";
                return Err(steinflow::Error::setting("noise-sd", noise_sd, remedy).into());
            }
            (None, Some(weights)) => {
                target.iter_mut().zip(weights).for_each(|(y, weight)| *y *= weight);
                Some(1.0)
            }
            (noise_sd, None) => noise_sd.map(|noise_sd| noise_sd / scaling.sd),
        };
        let family = Self { known, units: (scaling.mean, scaling.sd) };
        Ok(Observed { family, design, target, base: 0.0 })
    }

    fn closed_form(
        &self,
        design: &Design,
        target: &[f64],
        prior_sd: f64,
    ) -> Result<Option<Gaussian>> {
        self.known.map(|noise| posterior(design.rows(), target, prior_sd, noise)).transpose()
    }
}

impl Family for Normal {
    fn extra_names(&self) -> Vec<String> {
        if self.known.is_some() { Vec::new() } else { vec!["noise".to_owned()] }
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let noise = self.noise(extras);
        let (precision, half) = (T::of(1.0 / (noise * noise)), T::of(0.5));
        let mut sum = 0.0;
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let [squares] = sums_over_rows(
                eta,
                y,
                &mut [T::zero(); CHUNK][..y.len()],
                #[inline(always)]
                |eta, y, _| {
                    let residual = y - *eta;
                    *eta = precision * residual;
                    [half * *eta * residual]
                },
            );
            sum -= squares;
        }
        let count = y.len() as f64;
        if let Some(slope) = slopes.first_mut() {
            *slope += -2.0 * sum - count;
            return sum - count * extras[0];
        }
        sum
    }

    fn device_code(&self) -> Option<String> {
        let noise = self.known?;
        Some(format!(
            "real likelihood(real eta, real y, real *slope) {{
                const real residual = y - eta;
                *slope = real({:?}) * residual;
                return -*slope * residual / 2;
            }}",
            1.0 / (noise * noise)
        ))
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let Some(&x) = extras.first() else { return 0.0 };
        let (value, slope) = log_exponential(x);
        slopes[0] += slope;
        value
    }

    fn show(&self, extras: &mut [f64], _shift: f64) {
        for x in extras.iter_mut() {
            *x = self.units.1 * x.exp();
        }
    }

    fn hide(&self, extras: &mut [f64], _shift: f64) {
        for x in extras.iter_mut() {
            *x = (*x / self.units.1).ln();
        }
    }

    fn units(&self) -> (f64, f64) {
        self.units
    }

    fn in_own_units(&self) -> Self {
        Self { known: self.known.map(|noise| noise * self.units.1), units: (0.0, 1.0) }
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        let (mean, sd) = self.units;
        (mean + sd * eta[0], (sd * self.noise(extras)).powi(2))
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(random);
        self.units.0 + self.units.1 * (eta[0] + self.noise(extras) * normal)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let (mean, variance) = self.moments(eta, extras);
        -0.5 * ((y - mean).powi(2) / variance + (std::f64::consts::TAU * variance).ln())
    }
}
