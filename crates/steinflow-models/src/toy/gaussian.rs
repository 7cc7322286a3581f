//! The multivariate normal: log π(θ) = −½(θ − μ)ᵀ Σ⁻¹ (θ − μ), without the normalising constant.

use rand_chacha::ChaCha8Rng;
use steinflow::target::DeviceSource;
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use super::{device_source, plane_names, sample_rows, standard_normal};
use crate::cholesky::Cholesky;
use crate::memory::check_dense;
use crate::one_particle::evaluate_each;
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// The correlation of neighbours in a chosen dimension.
const NEIGHBOUR_CORRELATION: f64 = 0.8;

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "gaussian",
    title: "correlated Gaussian",
    formula: "N(0, Σ): by default in the plane with standard deviations 1 and 2 and correlation \
              0.8; with dim, Σᵢⱼ = 0.8^|i − j|; with dim and condition κ, variances from 1 to 1/κ along cosine waves",
    reference: "textbook",
    options: &["dim", "condition"],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(match (spec.dim, spec.condition) {
        (Some(dim), Some(condition)) => Gaussian::ill_conditioned(dim, condition)?,
        (Some(dim), None) => Gaussian::autoregressive(dim, NEIGHBOUR_CORRELATION)?,
        (None, Some(condition)) => {
            let remedy = "it needs a dim; give one, or leave it out";
            return Err(spec.not_taken("condition", condition, remedy));
        }
        (None, None) => Gaussian::correlated(),
    }))
}

/// A Gaussian with any covariance, in any dimension.
///
/// ```
/// use steinflow::Matrix;
/// use steinflow_models::toy::Gaussian;
///
/// let covariance = |c: f64| Matrix::from_fn(2, 2, |i, j| if i == j { 1.0 } else { c });
/// assert!(Gaussian::new(vec![0.0, 1.0], covariance(0.9)).is_ok());
/// let error = Gaussian::new(vec![0.0, 1.0], covariance(1.1)).unwrap_err();
/// assert!(error.to_string().contains("not positive definite"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    pub(super) mean: Vec<f64>,
    pub(super) covariance: Matrix<f64>,
    precision: Matrix<f64>,
    factor: Cholesky,
}

impl Gaussian {
    /// N(mean, covariance).
    pub fn new(mean: Vec<f64>, covariance: Matrix<f64>) -> Result<Self> {
        require_matching(&mean, &covariance, "covariance")?;
        let factor = Cholesky::new(&covariance, "covariance")?;
        let precision = factor.inverse();
        Ok(Self { mean, covariance, precision, factor })
    }

    /// N(mean, precision⁻¹).
    pub fn from_precision(mean: Vec<f64>, precision: Matrix<f64>) -> Result<Self> {
        require_matching(&mean, &precision, "precision")?;
        let covariance = Cholesky::new(&precision, "precision")?.inverse();
        let factor = Cholesky::new(&covariance, "covariance")?;
        Ok(Self { mean, covariance, precision, factor })
    }

    /// N(0, I).
    pub fn standard(dim: usize) -> Result<Self> {
        Self::autoregressive(dim, 0.0)
    }

    /// Mean 0 and Σᵢⱼ = correlation^|i − j|: each coordinate leans on the one before it.
    pub fn autoregressive(dim: usize, correlation: f64) -> Result<Self> {
        if !(correlation.abs() < 1.0) {
            return Err(steinflow::Error::setting(
                "correlation",
                correlation,
                "give a number between -1 and 1",
            )
            .into());
        }
        check_dense(dim)?;
        let covariance = Matrix::from_fn(dim, dim, |i, j| correlation.powf(i.abs_diff(j) as f64));
        Self::new(vec![0.0; dim], covariance)
    }

    /// Mean 0 and Σ = QΛQᵀ: variances λⱼ evenly spaced in the logarithm from 1 down to 1/condition, along
    /// the cosine waves Qᵢⱼ ∝ cos(π(i + ½)j/dim), so that no coordinate is on its own.
    pub fn ill_conditioned(dim: usize, condition: f64) -> Result<Self> {
        if !(1.0..=1e12).contains(&condition) {
            let remedy = "give a ratio of variances from 1 to 1e12";
            return Err(steinflow::Error::setting("condition", condition, remedy).into());
        }
        if dim < 2 && condition > 1.0 {
            let remedy = "a ratio of variances needs 2 coordinates or more; give a larger dim";
            return Err(steinflow::Error::setting("dim", dim, remedy).into());
        }
        check_dense(dim)?;
        let variance = |j: usize| condition.powf(-(j as f64) / (dim - 1).max(1) as f64);
        // 2 cos a cos b = cos(a + b) + cos(a − b): an entry depends on i + k and i − k alone.
        let waves: Vec<f64> = (0..2 * dim)
            .map(|shift| {
                let angle = std::f64::consts::PI * shift as f64 / dim as f64;
                let sum: f64 = (1..dim).map(|j| variance(j) * (angle * j as f64).cos()).sum();
                sum / dim as f64
            })
            .collect();
        let entry = |i: usize, k: usize| 1.0 / dim as f64 + waves[i + k + 1] + waves[i.abs_diff(k)];
        Self::new(vec![0.0; dim], Matrix::from_fn(dim, dim, entry))
    }

    /// The default in the plane: mean 0, standard deviations 1 and 2, correlation 0.8.
    pub fn correlated() -> Self {
        let covariance = Matrix::from_fn(2, 2, |i, j| [[1.0, 1.6], [1.6, 4.0]][i][j]);
        Self::new(vec![0.0; 2], covariance).expect("1 · 4 > 1.6², so it is positive definite")
    }

    /// log det Σ, for densities that need the normalising constant.
    pub(super) fn log_determinant(&self) -> f64 {
        self.factor.log_determinant()
    }

    /// The matrices in the particles' precision, to be made once per batch.
    pub(super) fn rounded<T: Real>(&self) -> Rounded<T> {
        Rounded {
            mean: self.mean.iter().map(|&m| T::of(m)).collect(),
            precision: self.precision.cast(),
        }
    }

    /// Fills `point` with one draw.
    pub(super) fn draw(&self, generator: &mut ChaCha8Rng, point: &mut [f64]) {
        let normals: Vec<f64> = self.mean.iter().map(|_| standard_normal(generator)).collect();
        for ((x, mean), deviation) in
            point.iter_mut().zip(&self.mean).zip(self.factor.times(&normals))
        {
            *x = mean + deviation;
        }
    }
}

/// μ and Σ⁻¹ in one precision.
pub(super) struct Rounded<T> {
    mean: Vec<T>,
    precision: Matrix<T>,
}

impl<T: Real> Rounded<T> {
    /// Writes −Σ⁻¹(θ − μ) and returns −½(θ − μ)ᵀ Σ⁻¹ (θ − μ).
    pub(super) fn log_density_and_score(&self, theta: &[T], score: &mut [T]) -> T {
        let mut quadratic = T::zero();
        for (i, s) in score.iter_mut().enumerate() {
            let row = self.precision.row(i);
            let pull: T =
                row.iter().zip(theta).zip(&self.mean).map(|((&p, &x), &m)| p * (x - m)).sum();
            *s = -pull;
            quadratic += pull * (theta[i] - self.mean[i]);
        }
        -quadratic / T::of(2.0)
    }
}

fn require_matching(mean: &[f64], matrix: &Matrix<f64>, what: &'static str) -> Result<()> {
    let dim = mean.len();
    if dim == 0 {
        return Err(steinflow::Error::setting("dim", 0, "give at least 1 coordinate").into());
    }
    if (matrix.rows(), matrix.cols()) != (dim, dim) {
        return Err(steinflow::Error::Shape {
            what,
            found: format!("{} × {} entries", matrix.rows(), matrix.cols()),
            expected: format!("{dim} × {dim}, to match the mean"),
        }
        .into());
    }
    match mean.iter().find(|m| !m.is_finite()) {
        Some(m) => Err(steinflow::Error::setting("mean", m, "give finite numbers").into()),
        None => Ok(()),
    }
}

impl<T: Real> LogDensity<T> for Gaussian {
    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let rounded = self.rounded::<T>();
        evaluate_each(self.mean.len(), theta, log_density, score, |theta, score| {
            rounded.log_density_and_score(theta, score)
        })
    }

    fn device_source(&self) -> Option<DeviceSource> {
        let body = "real quadratic = 0;
            for (int i = LANE; i < DIMENSION; i += LANES) {
                real pull = 0;
                // By columns: neighbours read neighbours.
                for (int j = 0; j < DIMENSION; j++)
                    pull += data[(j + 1) * DIMENSION + i] * (theta[j] - data[j]);
                score[i] = -pull;
                quadratic += pull * (theta[i] - data[i]);
            }
            return -total(quadratic) / 2;";
        let data = self.mean.iter().chain(self.precision.as_slice()).copied().collect();
        Some(device_source(body, data))
    }
}

impl Describe for Gaussian {
    fn parameter_names(&self) -> Vec<String> {
        match self.mean.len() {
            2 => plane_names(),
            dim => (0..dim).map(|i| format!("theta_{i}")).collect(),
        }
    }

    fn start(&self) -> Start {
        Start::around_zero(self.mean.len(), 1.0)
    }

    fn exact_moments(&self) -> Option<Moments> {
        Some(Moments { mean: self.mean.clone(), covariance: self.covariance.clone() })
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, self.mean.len(), seed, |generator, point| {
            self.draw(generator, point);
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        let &[x, y] = self.mean.as_slice() else { return None };
        let reach = [0, 1].map(|i| 4.0 * self.covariance.row(i)[i].sqrt());
        Some([[x - reach[0], x + reach[0]], [y - reach[1], y + reach[1]]])
    }
}
