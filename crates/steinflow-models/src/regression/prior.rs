//! The prior of the coefficients β of standardised features, and the parameters that carry it.
//!
//! - `normal`: βⱼ ~ N(0, s²), and the parameters are β itself.
//! - `horseshoe`: βⱼ = zⱼ g(τλⱼ) with g(t) = t/√(1 + t²/s²), z ~ N(0, 1), λⱼ ~ C⁺(0, 1), τ ~ C⁺(0, τ₀);
//!   most coefficients are near 0, and few are as large as s lets them be (Piironen and Vehtari 2017,
//!   arXiv:1707.01694). The parameters are the intercept, z, log λ and log τ; the intercept is N(0, s²).

use steinflow::Real;

use super::DEFAULT_PRIOR_SD;
use crate::checks::require_scale;
use crate::prior::add_gaussian;
use crate::{ModelSpec, Result};

/// τ₀: a coefficient is small unless the data says otherwise.
const GLOBAL_SCALE: f64 = 0.1;

/// What is believed of coefficients before any data.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prior {
    /// s.
    pub(super) sd: f64,
    /// Of all predictors together, intercepts included.
    pub(super) coefficients: usize,
    pub(super) is_horseshoe: bool,
}

impl Prior {
    pub(super) fn normal(sd: f64, coefficients: usize) -> Result<Self> {
        require_scale("prior-sd", sd)?;
        Ok(Self { sd, coefficients, is_horseshoe: false })
    }

    /// By the options of a model.
    pub(super) fn of(spec: &ModelSpec, coefficients: usize) -> Result<Self> {
        let normal = Self::normal(spec.prior_sd.unwrap_or(DEFAULT_PRIOR_SD), coefficients)?;
        match spec.prior.as_deref() {
            None | Some("normal") => Ok(normal),
            Some("horseshoe") => Ok(Self { is_horseshoe: true, ..normal }),
            Some(other) => {
                let known = ["normal", "horseshoe"];
                Err(steinflow::Error::unknown("prior", other, known).into())
            }
        }
    }

    /// Coefficients that a horseshoe shrinks: all but the intercept, which stands first.
    fn shrunk(&self) -> usize {
        self.coefficients - 1
    }

    /// Parameters that carry the coefficients.
    pub(super) fn dim(&self) -> usize {
        self.coefficients + if self.is_horseshoe { self.shrunk() + 1 } else { 0 }
    }

    /// Appends β.
    pub(super) fn coefficients<T: Real>(&self, theta: &[T], out: &mut Vec<T>) {
        if !self.is_horseshoe {
            out.extend_from_slice(theta);
            return;
        }
        out.push(theta[0]);
        for j in 1..self.coefficients {
            let (width, _) = self.width(theta, j);
            out.push(T::of(theta[j].as_f64() * width));
        }
    }

    /// g(τλⱼ) and its derivative by log τ or log λⱼ.
    fn width<T: Real>(&self, theta: &[T], j: usize) -> (f64, f64) {
        let (local, global) = (theta[self.shrunk() + j], theta[self.dim() - 1]);
        let product = (local.as_f64() + global.as_f64()).exp();
        let damping = 1.0 / (1.0 + (product / self.sd).powi(2));
        // For products beyond all numbers the width is s.
        let width = if product.is_finite() { product * damping.sqrt() } else { self.sd };
        (width, width * damping)
    }

    /// score ← scale · ∂Σℓ/∂θ + ∂log p/∂θ, from ∂Σℓ/∂β; returns log p(θ).
    pub(super) fn add<T: Real>(
        &self,
        scale: f64,
        theta: &[T],
        slopes: &[T],
        score: &mut [T],
    ) -> f64 {
        let precision = 1.0 / (self.sd * self.sd);
        if !self.is_horseshoe {
            score.copy_from_slice(slopes);
            let squares = add_gaussian(T::of(scale), T::of(precision), theta, score).as_f64();
            return -precision * squares / 2.0;
        }
        let intercept = theta[0].as_f64();
        score[0] = T::of(scale * slopes[0].as_f64() - precision * intercept);
        let mut value = -precision * intercept * intercept / 2.0;
        let global = theta[self.dim() - 1].as_f64() - GLOBAL_SCALE.ln();
        let (half_cauchy, mut of_global) = log_half_cauchy(global);
        value += half_cauchy;
        for j in 1..self.coefficients {
            let (z, slope) = (theta[j].as_f64(), scale * slopes[j].as_f64());
            let (width, change) = self.width(theta, j);
            let (half_cauchy, derivative) = log_half_cauchy(theta[self.shrunk() + j].as_f64());
            value += half_cauchy - z * z / 2.0;
            score[j] = T::of(slope * width - z);
            score[self.shrunk() + j] = T::of(slope * z * change + derivative);
            of_global += slope * z * change;
        }
        score[self.dim() - 1] = T::of(of_global);
        value
    }

    /// The names of what carries the coefficients beside them.
    pub(super) fn further_names(&self, names: &[String]) -> Vec<String> {
        if !self.is_horseshoe {
            return Vec::new();
        }
        let local = names.iter().skip(1).map(|name| format!("local_scale[{name}]"));
        local.chain(["global_scale".to_owned()]).collect()
    }

    /// Replaces the parameters by coefficients and scales.
    pub(super) fn show(&self, theta: &mut [f64]) {
        if self.is_horseshoe {
            let mut coefficients = Vec::with_capacity(self.coefficients);
            self.coefficients(theta, &mut coefficients);
            theta[..self.coefficients].copy_from_slice(&coefficients);
            for x in &mut theta[self.coefficients..] {
                *x = x.exp();
            }
        }
    }

    /// The way back.
    pub(super) fn hide(&self, theta: &mut [f64]) {
        if self.is_horseshoe {
            for x in &mut theta[self.coefficients..] {
                *x = x.ln();
            }
            for j in 1..self.coefficients {
                theta[j] /= self.width(theta, j).0;
            }
        }
    }
}

/// Of a logarithm x of a number that is half-Cauchy: x − log(1 + e²ˣ), and its derivative.
fn log_half_cauchy(x: f64) -> (f64, f64) {
    // Both tails without overflow: −|x| − log(1 + e^(−2|x|)).
    (-x.abs() - (-2.0 * x.abs()).exp().ln_1p(), -x.tanh())
}
