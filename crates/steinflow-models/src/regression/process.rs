//! Gaussian-process regression: y ~ N(0, K), Kᵢⱼ = a² exp(−½ Σ_d (xᵢ_d − xⱼ_d)²/ℓ_d²) + σ²[i = j] in standard units, with
//! the signal a, a length ℓ for every feature and the noise σ learned:
//! log π = −½ yᵀα − ½ log |K| + log p, ∂/∂p = ½ tr((ααᵀ − K⁻¹) ∂K/∂p), α = K⁻¹y. Exact, by a Cholesky factor of K for every
//! particle: O(n³).
//!
//! Given the parameters, a new row is N(k·α, a² + σ² − k·K⁻¹k), and a row of the data, without itself,
//! N(yᵢ − αᵢ/K⁻¹ᵢᵢ, 1/K⁻¹ᵢᵢ) (Rasmussen and Williams 2006, sections 2.2 and 5.4.2).

use std::f64::consts::TAU;

use faer::linalg::solvers::{DenseSolveCore as _, Solve as _};
use faer::{Mat, Side};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use super::family::{Family, log_exponential};
use super::{Design, Fitted, START_SD};
use crate::catalogue::table_options;
use crate::data::Scaling;
use crate::one_particle::evaluate_in_f64;
use crate::{Describe, Model, ModelInfo, ModelSpec, Result, Start, Units};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "gaussian-process",
    title: "Gaussian-process regression, exact, for up to 3000 rows",
    formula: "y ~ N(0, K), K = a² exp(−½ Σ (x − x′)²/ℓ²) + σ²I for standardised features and target, log a and log ℓ ~ \
              N(0, 1), σ ~ Exponential(1)",
    reference: "Rasmussen and Williams (2006), Gaussian Processes for Machine Learning",
    // It has no coefficients, and so no prior-sd.
    options: table_options!(),
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(GaussianProcess::new(Design::of(spec, true)?)?))
}

/// More rows take minutes for every step of all particles.
const MOST_ROWS: usize = 3000;

/// Draws of the parameters that predict: each takes a factor of its own.
const MOST_DRAWS: usize = 100;

/// What is added to the diagonal, in units of a²: rows that are the same leave K without an inverse.
const JITTER: f64 = 1e-10;

/// The posterior of a Gaussian process's parameters (log a, log ℓ, log σ).
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianProcess {
    design: Design,
    process: Process,
}

/// The rows that a process was fitted to, in standard units.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Process {
    inputs: Vec<Vec<f64>>,
    targets: Vec<f64>,
    /// Mean and standard deviation of every feature.
    scalings: Vec<(f64, f64)>,
    /// The same of the target.
    units: (f64, f64),
}

/// a, ℓ and σ.
struct Parameters {
    signal: f64,
    lengths: Vec<f64>,
    noise: f64,
}

impl Parameters {
    fn of(logarithms: &[f64]) -> Self {
        let numbers: Vec<f64> = logarithms.iter().map(|x| x.exp()).collect();
        let last = numbers.len() - 1;
        Self { signal: numbers[0], lengths: numbers[1..last].to_vec(), noise: numbers[last] }
    }

    /// a² exp(−½ Σ (x − x′)²/ℓ²).
    fn covariance(&self, a: &[f64], b: &[f64]) -> f64 {
        let pairs = a.iter().zip(b).zip(&self.lengths);
        let square: f64 = pairs.map(|((a, b), length)| ((a - b) / length).powi(2)).sum();
        self.signal * self.signal * (-0.5 * square).exp()
    }
}

/// K and what follows from it; nothing where it has no factor.
struct Solved {
    factor: faer::linalg::solvers::Llt<f64>,
    /// Without the noise.
    kernel: Mat<f64>,
    alpha: Vec<f64>,
    log_determinant: f64,
}

impl Process {
    fn solve(&self, at: &Parameters) -> Option<Solved> {
        let count = self.targets.len();
        let mut kernel = Mat::zeros(count, count);
        for j in 0..count {
            for i in j..count {
                kernel[(i, j)] = at.covariance(&self.inputs[i], &self.inputs[j]);
            }
        }
        let nugget = at.noise.powi(2) + JITTER * at.signal.powi(2);
        let shifted = Mat::from_fn(count, count, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Greater => kernel[(i, j)],
            std::cmp::Ordering::Equal => kernel[(i, j)] + nugget,
            std::cmp::Ordering::Less => 0.0,
        });
        let factor = shifted.llt(Side::Lower).ok()?;
        let alpha = factor.solve(Mat::from_fn(count, 1, |i, _| self.targets[i]));
        let diagonal = (0..count).map(|i| factor.L()[(i, i)].ln()).sum::<f64>();
        Some(Solved {
            alpha: (0..count).map(|i| alpha[(i, 0)]).collect(),
            log_determinant: 2.0 * diagonal,
            factor,
            kernel,
        })
    }

    /// log π and its score.
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64 {
        let at = Parameters::of(theta);
        let Some(solved) = self.solve(&at) else {
            score.fill(f64::NAN);
            return f64::NAN;
        };
        let (count, features) = (self.targets.len(), at.lengths.len());
        let inverse = solved.factor.inverse();
        let Solved { kernel, alpha, log_determinant, .. } = solved;
        score.fill(0.0);
        let mut of_diagonal = 0.0;
        for j in 0..count {
            of_diagonal += alpha[j] * alpha[j] - inverse[(j, j)];
            for i in j + 1..count {
                // Both halves of a symmetric matrix.
                let weight = (alpha[i] * alpha[j] - inverse[(i, j)]) * kernel[(i, j)];
                score[0] += 2.0 * weight;
                let (a, b) = (&self.inputs[i], &self.inputs[j]);
                for d in 0..features {
                    score[1 + d] += weight * ((a[d] - b[d]) / at.lengths[d]).powi(2);
                }
            }
        }
        let square = at.signal * at.signal;
        score[0] += square * (1.0 + JITTER) * of_diagonal;
        score[features + 1] = at.noise.powi(2) * of_diagonal;
        let fit: f64 = self.targets.iter().zip(&alpha).map(|(y, a)| y * a).sum();
        let mut value = -0.5 * (fit + log_determinant + count as f64 * TAU.ln());
        for (x, score) in theta[..=features].iter().zip(&mut *score) {
            value -= 0.5 * x * x;
            *score -= x;
        }
        let (density, slope) = log_exponential(theta[features + 1]);
        score[features + 1] += slope;
        value + density
    }

    /// From logarithms in standard units to the units of the table, in place.
    fn show(&self, theta: &mut [f64]) {
        let units = self.unit_of_each();
        theta.iter_mut().zip(units).for_each(|(x, unit)| *x = unit * x.exp());
    }

    /// The way back.
    fn hide(&self, shown: &mut [f64]) {
        let units = self.unit_of_each();
        shown.iter_mut().zip(units).for_each(|(x, unit)| *x = (*x / unit).ln());
    }

    fn unit_of_each(&self) -> impl Iterator<Item = f64> {
        let lengths = self.scalings.iter().map(|scaling| scaling.1);
        [self.units.1].into_iter().chain(lengths).chain([self.units.1])
    }

    /// Mean and standard deviation of every row, in the target's own units, by one draw of the parameters as they are
    /// shown: of new rows of features, or without themselves of those that it was fitted to.
    fn conditional(&self, shown: &[f64], new: Option<&[Vec<f64>]>) -> Option<Vec<[f64; 2]>> {
        let mut theta = shown.to_vec();
        self.hide(&mut theta);
        let at = Parameters::of(&theta);
        let solved = self.solve(&at)?;
        let in_units = |mean: f64, variance: f64| {
            [self.units.0 + self.units.1 * mean, self.units.1 * variance.max(1e-300).sqrt()]
        };
        let count = self.targets.len();
        let Some(new) = new else {
            let inverse = solved.factor.inverse();
            let row = |i: usize| {
                let variance = 1.0 / inverse[(i, i)];
                in_units(self.targets[i] - solved.alpha[i] * variance, variance)
            };
            return Some((0..count).map(row).collect());
        };
        let cross = Mat::from_fn(count, new.len(), |i, j| at.covariance(&self.inputs[i], &new[j]));
        let halves = solved.factor.solve(&cross);
        let row = |j: usize| {
            let products = |of: &dyn Fn(usize) -> f64| (0..count).map(of).sum::<f64>();
            let mean = products(&|i| cross[(i, j)] * solved.alpha[i]);
            let known = products(&|i| cross[(i, j)] * halves[(i, j)]);
            let prior = at.signal.powi(2) + at.noise.powi(2);
            // Rounding may take a little more than there is.
            in_units(mean, (prior - known).max(at.noise.powi(2)))
        };
        Some((0..new.len()).map(row).collect())
    }
}

impl GaussianProcess {
    fn new(design: Design) -> Result<Self> {
        let (rows, scaling) = (design.rows(), design.target_scaling()?);
        if rows.rows() > MOST_ROWS {
            let remedy = format!(
                "a Gaussian process takes {MOST_ROWS} at most; take some of the rows, or the model bnn"
            );
            return Err(Error::setting("rows of the data", rows.rows(), remedy).into());
        }
        let pair = |scaling: &Scaling| (scaling.mean, scaling.sd);
        let process = Process {
            // Without the intercept.
            inputs: (0..rows.rows()).map(|i| rows.row(i)[1..].to_vec()).collect(),
            targets: design.target().iter().map(|&y| scaling.standardise(y)).collect(),
            scalings: design.scalings().iter().map(pair).collect(),
            units: pair(&scaling),
        };
        Ok(Self { design, process })
    }

    fn coordinates(&self) -> usize {
        self.process.scalings.len() + 2
    }
}

impl<T: Real> LogDensity<T> for GaussianProcess {
    fn dim(&self) -> usize {
        self.coordinates()
    }

    fn data_rows(&self) -> usize {
        self.process.targets.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        if let Some(batch) = rows {
            let remedy = "rows of a Gaussian process depend on each other; leave it out";
            return Err(Error::setting("batch-size", batch.indices.len(), remedy));
        }
        evaluate_in_f64(self.coordinates(), theta, log_density, score, |theta, score| {
            self.process.log_density_and_score(theta, score)
        })
    }
}

impl Describe for GaussianProcess {
    fn parameter_names(&self) -> Vec<String> {
        let lengths = self.design.features().iter().map(|name| format!("length[{name}]"));
        ["signal".to_owned()].into_iter().chain(lengths).chain(["noise".to_owned()]).collect()
    }

    fn start(&self) -> Start {
        let mut mean = vec![0.0; self.coordinates()];
        mean[self.coordinates() - 1] = 0.3_f64.ln();
        Start { mean, sd: START_SD }
    }

    fn units(&self) -> Option<Units> {
        let (to, from) = (self.process.clone(), self.process.clone());
        let dim = self.coordinates();
        Some(Units::new(dim, false, move |x| to.show(x), move |x| from.hide(x)))
    }

    fn notes(&self) -> Vec<String> {
        self.design.notes().to_vec()
    }

    fn fitted(&self) -> Option<Fitted> {
        let fitted = Fitted::from((self.design.clone(), self.process.clone()));
        Some(fitted.with_parameters(self.parameter_names()))
    }
}

/// y ~ N(η₁, η₂²), with both by all rows that the process was fitted to.
impl Family for Process {
    fn predictors(&self) -> usize {
        2
    }

    fn most_draws(&self) -> Option<usize> {
        Some(MOST_DRAWS)
    }

    fn conditionals(
        &self,
        parameters: &Matrix<f64>,
        rows: &[Vec<f64>],
        without_the_row: bool,
    ) -> Option<Result<Vec<Vec<[f64; 2]>>>> {
        let standard: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                let pairs = row.iter().zip(&self.scalings);
                pairs.map(|(x, (mean, sd))| (x - mean) / sd).collect()
            })
            .collect();
        let new = (!without_the_row).then_some(standard.as_slice());
        if without_the_row && rows.len() != self.targets.len() {
            let remedy = format!("give the {} rows that it was fitted to", self.targets.len());
            return Some(Err(Error::setting("rows", rows.len(), remedy).into()));
        }
        let draw = |i: usize| {
            self.conditional(parameters.row(i), new).ok_or_else(|| {
                let remedy = "its covariance has no factor; leave this draw out";
                Error::setting("draw of a Gaussian process", i, remedy).into()
            })
        };
        Some((0..parameters.rows()).into_par_iter().map(draw).collect())
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        _extras: &[f64],
        _slopes: &mut [f64],
    ) -> f64 {
        let (means, sds) = eta.split_at_mut(y.len());
        let mut sum = 0.0;
        for ((mean, sd), &y) in means.iter_mut().zip(sds).zip(y) {
            let z = (y - *mean) / *sd;
            sum -= (sd.ln() + T::of(0.5) * z * z).as_f64();
            (*mean, *sd) = (z / *sd, (z * z - T::one()) / *sd);
        }
        sum
    }

    fn moments(&self, eta: &[f64], _extras: &[f64]) -> (f64, f64) {
        (eta[0], eta[1] * eta[1])
    }

    fn draw(&self, eta: &[f64], _extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(random);
        eta[0] + eta[1] * normal
    }

    fn log_density(&self, eta: &[f64], _extras: &[f64], y: f64) -> f64 {
        let z = (y - eta[0]) / eta[1];
        -0.5 * z * z - eta[1].ln() - 0.5 * TAU.ln()
    }
}
