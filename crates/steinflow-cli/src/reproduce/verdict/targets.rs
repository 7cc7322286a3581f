//! Targets of the calibration: models and posteriors that ship, and shapes that verdicts have been fooled by.

use serde::Deserialize;
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::target::PerParticle;
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch};
use steinflow_config::{Begin, Config, Facts, Settings};
use steinflow_models::{Describe, Model, ModelSpec};

use crate::error::Result;

/// One of them, as the settings name it.
#[derive(Clone, Deserialize)]
pub struct Target {
    /// A model or posterior by name, or `two-modes`, `broad` or `student`.
    pub model: String,
    pub dim: Option<usize>,
    condition: Option<f64>,
    /// Of two modes, in standard deviations.
    apart: Option<f64>,
    /// Of the mode that particles do not start in, or of the broad part.
    weight: Option<f64>,
    /// Of the broad part, in standard deviations of the narrow one.
    width: Option<f64>,
    /// Of Student's t.
    degrees: Option<f64>,
}

impl Target {
    pub fn label(&self) -> String {
        let numbers = [self.dim.map(|dim| dim as f64), self.condition, self.apart, self.weight];
        let others = [self.width, self.degrees];
        let parts = numbers.into_iter().chain(others).flatten().map(|x| format!("-{x}"));
        format!("{}{}", self.model, parts.collect::<String>())
    }

    /// The target, and the settings with everything filled in.
    pub fn prepare(&self, settings: Settings) -> Result<(Box<dyn Model<f64>>, Config)> {
        let dim = self.dim.unwrap_or(2);
        let own: Option<Box<dyn Model<f64>>> = match self.model.as_str() {
            "two-modes" => {
                let (half, weight) = (0.5 * self.apart.unwrap_or(6.0), self.weight.unwrap_or(0.5));
                let parts = vec![(1.0 - weight, -half, 1.0), (weight, half, 1.0)];
                Some(Box::new(Mixture { dim, parts }))
            }
            "broad" => {
                let (width, weight) = (self.width.unwrap_or(10.0), self.weight.unwrap_or(0.5));
                let parts = vec![(1.0 - weight, 0.0, 1.0), (weight, 0.0, width)];
                Some(Box::new(Mixture { dim, parts }))
            }
            "student" => Some(Box::new(Student { dim, degrees: self.degrees.unwrap_or(5.0) })),
            _ => None,
        };
        let Some(model) = own else {
            let named = ModelSpec::named(&self.model);
            let spec = ModelSpec { dim: self.dim, condition: self.condition, ..named };
            let config = Config::resolve(Settings { spec, ..settings })?;
            return Ok((steinflow_models::build::<f64>(config.spec())?, config));
        };
        let facts = Facts {
            target: &*model,
            is_posterior: false,
            start: Begin::Normal(model.start()),
            start_is_good: true,
            own_dynamics: None,
        };
        let config = Config::resolve_on(settings, &facts)?;
        Ok((model, config))
    }
}

/// Σₖ wₖ N(cₖ e₁, sₖ² I); particles start in the first.
struct Mixture {
    dim: usize,
    /// w, c, s.
    parts: Vec<(f64, f64, f64)>,
}

impl LogDensity<f64> for Mixture {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        score: MatMut<'_, f64>,
    ) -> steinflow::Result<()> {
        PerParticle::new(self.dim, |theta: &[f64], score: &mut [f64]| {
            let away = |centre: f64, j: usize| theta[j] - if j == 0 { centre } else { 0.0 };
            let height = |&(weight, centre, sd): &(f64, f64, f64)| {
                let square: f64 = (0..self.dim).map(|j| away(centre, j).powi(2)).sum();
                weight.ln() - self.dim as f64 * sd.ln() - 0.5 * square / (sd * sd)
            };
            let heights: Vec<f64> = self.parts.iter().map(height).collect();
            let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = heights.iter().map(|height| (height - top).exp()).sum();
            score.fill(0.0);
            for (&(_, centre, sd), height) in self.parts.iter().zip(&heights) {
                let share = (height - top).exp() / total;
                for (j, score) in score.iter_mut().enumerate() {
                    *score -= share * away(centre, j) / (sd * sd);
                }
            }
            top + total.ln()
        })
        .evaluate(theta, rows, log_density, score)
    }
}

impl Describe for Mixture {
    fn parameter_names(&self) -> Vec<String> {
        names(self.dim)
    }

    fn start(&self) -> steinflow_models::Start {
        let mut mean = vec![0.0; self.dim];
        mean[0] = self.parts[0].1;
        steinflow_models::Start { mean, sd: 0.5 }
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let mut draws = Matrix::zeros(count, self.dim);
        for i in 0..count {
            let mut generator = stream(seed, Purpose::Exact, 0, i as u64);
            let mut pair = [0.0; 2];
            fill_standard_normal(&mut generator, &mut pair);
            // Uniform in (0, 1).
            let mut left = (-0.5 * pair.iter().map(|z: &f64| z * z).sum::<f64>()).exp();
            let chosen = self.parts.iter().find(|(weight, ..)| {
                left -= weight;
                left <= 0.0
            });
            let &(_, centre, sd) = chosen.unwrap_or(&self.parts[0]);
            fill_standard_normal(&mut generator, draws.row_mut(i));
            draws.row_mut(i).iter_mut().for_each(|x| *x *= sd);
            draws.row_mut(i)[0] += centre;
        }
        Some(draws)
    }
}

/// Independent Student-t coordinates: log π = −(ν + 1)/2 Σ log(1 + θ²/ν).
struct Student {
    dim: usize,
    degrees: f64,
}

impl LogDensity<f64> for Student {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        score: MatMut<'_, f64>,
    ) -> steinflow::Result<()> {
        let (nu, power) = (self.degrees, self.degrees + 1.0);
        PerParticle::new(self.dim, |theta: &[f64], score: &mut [f64]| {
            for (score, &x) in score.iter_mut().zip(theta) {
                *score = -power * x / (nu + x * x);
            }
            -0.5 * power * theta.iter().map(|x| (x * x / nu).ln_1p()).sum::<f64>()
        })
        .evaluate(theta, rows, log_density, score)
    }
}

impl Describe for Student {
    fn parameter_names(&self) -> Vec<String> {
        names(self.dim)
    }

    fn start(&self) -> steinflow_models::Start {
        steinflow_models::Start { mean: vec![0.0; self.dim], sd: 1.0 }
    }

    /// A normal over the root of a mean of `degrees` squared ones.
    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let mut draws = Matrix::zeros(count, self.dim);
        let mut squared = vec![0.0; self.degrees as usize];
        for i in 0..count {
            let mut generator = stream(seed, Purpose::Exact, 0, i as u64);
            fill_standard_normal(&mut generator, draws.row_mut(i));
            for x in draws.row_mut(i) {
                fill_standard_normal(&mut generator, &mut squared);
                let mean = squared.iter().map(|z: &f64| z * z).sum::<f64>() / self.degrees;
                *x /= mean.sqrt();
            }
        }
        Some(draws)
    }
}

fn names(dim: usize) -> Vec<String> {
    (0..dim).map(|j| format!("x{j}")).collect()
}
