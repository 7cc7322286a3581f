//! The prior of the coefficients β of standardised features, and the parameters that carry it.
//!
//! - `normal`: βⱼ ~ N(0, s²), and the parameters are β itself.
//! - `horseshoe`: βⱼ = zⱼ g(τλⱼ) with g(t) = t/√(1 + t²/s²), z ~ N(0, 1), λⱼ ~ C⁺(0, 1), τ ~ C⁺(0, τ₀);
//!   most coefficients are near 0, and few are as large as s lets them be (Piironen and Vehtari 2017,
//!   arXiv:1707.01694). The parameters are the intercept, z, log λ and log τ; the intercept is N(0, s²). A coefficient
//!   that the data leaves no doubt about is carried itself: the data says what z g(τλ) is, and as z and λ it would be a
//!   narrow ridge.

use steinflow::{Matrix, Real};

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
    /// Of a horseshoe: which coefficients the data knows so well that they are carried themselves, and not as z.
    pub(super) known: Vec<bool>,
}

impl Prior {
    pub(super) fn normal(sd: f64, coefficients: usize) -> Result<Self> {
        require_scale("prior-sd", sd)?;
        Ok(Self { sd, coefficients, is_horseshoe: false, known: vec![false; coefficients] })
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

    /// Looks at what the data says of each coefficient alone, by ∂ℓ/∂η where no feature matters: one that stands out
    /// from chance as far as this is known.
    pub(super) fn look_at(&mut self, rows: &Matrix<f64>, slopes: &[f64]) {
        const STANDARD_ERRORS: f64 = 4.0;
        if !self.is_horseshoe {
            return;
        }
        for j in 1..self.coefficients {
            let products = || slopes.iter().enumerate().map(|(i, slope)| slope * rows.row(i)[j]);
            let spread = products().map(|x| x * x).sum::<f64>().sqrt();
            self.known[j] = products().sum::<f64>().abs() > STANDARD_ERRORS * spread;
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
            let width = if self.known[j] { 1.0 } else { self.width(theta, j).0 };
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
            let (own, slope) = (theta[j].as_f64(), scale * slopes[j].as_f64());
            let (width, change) = self.width(theta, j);
            let (half_cauchy, derivative) = log_half_cauchy(theta[self.shrunk() + j].as_f64());
            // By the coefficient, or by z; and by the logarithm of either scale.
            let (of_own, of_scale) = if self.known[j] {
                let z = own / width;
                value -= z * z / 2.0 + width.ln();
                (slope - z / width, (z * z - 1.0) * change / width)
            } else {
                value -= own * own / 2.0;
                (slope * width - own, slope * own * change)
            };
            value += half_cauchy;
            score[j] = T::of(of_own);
            score[self.shrunk() + j] = T::of(of_scale + derivative);
            of_global += of_scale;
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
            for j in (1..self.coefficients).filter(|&j| !self.known[j]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Carried either way, a coefficient has the same density but for the width that z is multiplied by.
    #[test]
    fn known_coefficients_have_the_density_of_the_others() {
        let plain = Prior { is_horseshoe: true, ..Prior::normal(2.5, 4).unwrap() };
        let known = Prior { known: vec![false, true, false, true], ..plain.clone() };
        let shown = [0.3, 1.7, -0.02, -0.6, 2.0, 0.4, 0.9, 0.2];
        let value = |prior: &Prior| {
            let mut theta = shown;
            prior.hide(&mut theta);
            let value = prior.add(1.0, &theta, &[0.0; 4], &mut [0.0; 8]);
            let widths = [1, 3].map(|j| prior.width(&theta, j).0.ln());
            prior.show(&mut theta);
            assert!(theta.iter().zip(shown).all(|(a, b)| (a - b).abs() < 1e-12), "{theta:?}");
            (value, widths[0] + widths[1])
        };
        let ((plain, _), (known, widths)) = (value(&plain), value(&known));
        assert!((plain - widths - known).abs() < 1e-12, "{plain} {known} {widths}");
    }

    #[test]
    fn what_stands_out_is_known() {
        let mut prior = Prior { is_horseshoe: true, ..Prior::normal(2.5, 3).unwrap() };
        let wave = |i: usize, k: f64| (i as f64 * k).sin();
        let rows = Matrix::from_fn(100, 3, |i, j| [1.0, wave(i, 1.3), wave(i, 2.1)][j]);
        let slopes: Vec<f64> = (0..100).map(|i| 2.0 * wave(i, 1.3) + wave(i, 77.7)).collect();
        prior.look_at(&rows, &slopes);
        assert_eq!(prior.known, [false, true, false]);
    }
}
