//! Bayesian linear regression with known noise: y ~ N(Xθ, σ² I), θ ~ N(0, s² I), whose posterior is
//! N(Λ⁻¹Xᵀy/σ², Λ⁻¹) with Λ = XᵀX/σ² + I/s².

use steinflow::engine::Gemm;
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use super::predictor::Predictor;
use super::{DEFAULT_NOISE_SD, DEFAULT_PRIOR_SD, Design, START_SD};
use crate::checks::require_scale;
use crate::cholesky::Cholesky;
use crate::data::{Scaling, Table};
use crate::memory::check_dense;
use crate::toy::Gaussian;
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "linear-regression",
    title: "Bayesian linear regression with known noise, posterior known exactly",
    formula: "y ~ N(Xθ, σ²), θ ~ N(0, s² I), σ = noise-sd, s = prior-sd; X has an intercept; features \
              and y are standardised, so coefficients are on the standardised scale",
    reference: "textbook",
    options: &[
        "data",
        "data_dir",
        "target",
        "features",
        "drop",
        "categorical",
        "missing",
        "prior_sd",
        "noise_sd",
    ],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    let noise_sd = spec.noise_sd.unwrap_or(DEFAULT_NOISE_SD);
    let prior_sd = spec.prior_sd.unwrap_or(DEFAULT_PRIOR_SD);
    let (table, _) = spec.read_table(None)?;
    Ok(Box::new(LinearRegression::new(&table, spec.target.as_deref(), prior_sd, noise_sd)?))
}

/// The posterior of the coefficients of a linear regression, with its exact answer.
///
/// The target column is standardised too, so `noise_sd` is in units of its standard deviation: 1,
/// [the default](super::DEFAULT_NOISE_SD), says that the features may explain nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRegression<T> {
    predictor: Predictor<T>,
    noise_sd: f64,
    design: Design,
    target_scaling: Scaling,
    posterior: Gaussian,
}

impl<T: Real> LinearRegression<T> {
    /// Predicts column `target` of `table` (the last one when `None`) from all others.
    pub fn new(table: &Table, target: Option<&str>, prior_sd: f64, noise_sd: f64) -> Result<Self> {
        require_scale("prior-sd", prior_sd)?;
        require_scale("noise-sd", noise_sd)?;
        let design = Design::new(table, target)?;
        let target_scaling = table.scaling(table.position(target)?)?;
        let y: Vec<f64> = design.target().iter().map(|&y| target_scaling.standardise(y)).collect();
        let posterior = posterior(design.rows(), &y, prior_sd, noise_sd)?;
        let predictor = Predictor::new(design.rows(), &y, prior_sd);
        Ok(Self { predictor, noise_sd, design, target_scaling, posterior })
    }

    /// The data as the model sees it.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// How the target was standardised.
    pub fn target_scaling(&self) -> Scaling {
        self.target_scaling
    }
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

impl<T: Real> LogDensity<T> for LinearRegression<T> {
    fn dim(&self) -> usize {
        self.predictor.dim()
    }

    fn data_rows(&self) -> usize {
        self.predictor.data_rows()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let noise_precision = T::of(1.0 / (self.noise_sd * self.noise_sd));
        let half = T::of(0.5);
        self.predictor.evaluate(theta, rows, log_density, score, |eta, y| {
            let mut sum = 0.0;
            for (eta, &y) in eta.iter_mut().zip(y) {
                let residual = y - *eta;
                *eta = noise_precision * residual;
                sum -= (half * *eta * residual).as_f64();
            }
            sum
        })
    }
}

impl<T: Real> Describe for LinearRegression<T> {
    fn parameter_names(&self) -> Vec<String> {
        self.design.parameter_names().to_vec()
    }

    fn notes(&self) -> Vec<String> {
        self.design.notes().to_vec()
    }

    fn start(&self) -> Start {
        Start::around_zero(self.predictor.dim(), START_SD)
    }

    fn exact_moments(&self) -> Option<Moments> {
        self.posterior.exact_moments()
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        self.posterior.exact_sample(count, seed)
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        self.posterior.window()
    }
}
