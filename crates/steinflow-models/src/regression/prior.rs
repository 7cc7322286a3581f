//! The prior of the coefficients β of standardised features, and the parameters that carry it.
//!
//! - `normal`: βⱼ ~ N(0, s²), and the parameters are β itself.
//! - `horseshoe`: βⱼ = zⱼλⱼτ with z ~ N(0, 1), λⱼ ~ C⁺(0, 1), τ ~ C⁺(0, τ₀), times N(βⱼ | 0, s²); most coefficients
//!   are near 0, and few are as large as s lets them be (Carvalho, Polson and Scott 2010, Biometrika 97; Piironen and
//!   Vehtari 2017, arXiv:1707.01694). The parameters are the intercept, which is N(0, s²), a [normal variable](horseshoe)
//!   for every coefficient, and log τ. A coefficient that the data leaves no doubt about is carried itself: the data
//!   says what it is whatever τ may be.

use steinflow::{Matrix, Real};

use super::{DEFAULT_PRIOR_SD, horseshoe};
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

    /// Looks for coefficients that stand out from chance, by ∂ℓ/∂η where no feature matters: the one that explains most
    /// of it, then what explains most of the rest.
    pub(super) fn look_at(&mut self, rows: &Matrix<f64>, slopes: &[f64]) {
        const STANDARD_ERRORS: f64 = 4.0;
        if !self.is_horseshoe {
            return;
        }
        let column = |j: usize| (0..rows.rows()).map(|i| rows.row(i)[j]).collect::<Vec<f64>>();
        let mut columns: Vec<Vec<f64>> = (1..self.coefficients).map(column).collect();
        let mut rest = slopes.to_vec();
        project_out(&column(0), &mut rest);
        for found in 1..self.coefficients.min(rows.rows() / 4 + 1) {
            let whole = dot(&rest, &rest);
            let share = |j: usize| dot(&columns[j], &rest).powi(2) / dot(&columns[j], &columns[j]);
            let open = (0..columns.len()).filter(|&j| !self.known[j + 1]);
            // What others explain all of has nothing left of itself.
            let left = open.filter(|&j| dot(&columns[j], &columns[j]) > 1e-6 * rest.len() as f64);
            let best = left.max_by(|&i, &j| share(i).total_cmp(&share(j)));
            let Some(best) = best else { break };
            let variance = (whole - share(best)).max(0.0) / (rest.len() - found).max(1) as f64;
            if share(best) <= STANDARD_ERRORS.powi(2) * variance {
                break;
            }
            self.known[best + 1] = true;
            let direction = columns[best].clone();
            project_out(&direction, &mut rest);
            for column in &mut columns {
                project_out(&direction, column);
            }
        }
    }

    /// Parameters that carry the coefficients.
    pub(super) fn dim(&self) -> usize {
        self.coefficients + usize::from(self.is_horseshoe)
    }

    /// Appends β.
    pub(super) fn coefficients<T: Real>(&self, theta: &[T], out: &mut Vec<T>) {
        out.extend_from_slice(&theta[..self.coefficients]);
        if self.is_horseshoe {
            let first = out.len() - self.coefficients;
            let tau = theta[self.coefficients].as_f64().exp();
            for j in (1..self.coefficients).filter(|&j| !self.known[j]) {
                out[first + j] = T::of(tau * horseshoe::quantile(theta[j].as_f64()).0);
            }
        }
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
        let log_tau = theta[self.coefficients].as_f64();
        let tau = log_tau.exp();
        let shrunk = (self.coefficients - 1) as f64;
        let (half_cauchy, mut of_tau) = log_half_cauchy(log_tau - GLOBAL_SCALE.ln());
        let (normaliser, of_normaliser) = horseshoe::log_normaliser(tau / self.sd);
        let mut value = half_cauchy - precision * intercept * intercept / 2.0 - shrunk * normaliser;
        of_tau -= shrunk * of_normaliser;
        for j in 1..self.coefficients {
            let (own, slope) = (theta[j].as_f64(), scale * slopes[j].as_f64());
            if self.known[j] {
                let t = own / tau;
                let of_log = horseshoe::log_density_slope(t);
                value += horseshoe::log_density(t) - log_tau - precision * own * own / 2.0;
                score[j] = T::of(slope - precision * own + of_log / own);
                of_tau -= of_log + 1.0;
            } else {
                let (t, derivative) = horseshoe::quantile(own);
                let coefficient = tau * t;
                let pull = slope - precision * coefficient;
                value -= 0.5 * (own * own + std::f64::consts::TAU.ln());
                value -= precision * coefficient * coefficient / 2.0;
                score[j] = T::of(pull * tau * derivative - own);
                of_tau += pull * coefficient;
            }
        }
        score[self.coefficients] = T::of(of_tau);
        value
    }

    /// The names of what carries the coefficients beside them.
    pub(super) fn further_names(&self) -> Vec<String> {
        if self.is_horseshoe { vec!["global_scale".to_owned()] } else { Vec::new() }
    }

    /// Replaces the parameters by coefficients and their scale.
    pub(super) fn show(&self, theta: &mut [f64]) {
        if self.is_horseshoe {
            let mut coefficients = Vec::with_capacity(self.coefficients);
            self.coefficients(theta, &mut coefficients);
            theta[..self.coefficients].copy_from_slice(&coefficients);
            theta[self.coefficients] = theta[self.coefficients].exp();
        }
    }

    /// The way back.
    pub(super) fn hide(&self, theta: &mut [f64]) {
        if self.is_horseshoe {
            let tau = theta[self.coefficients];
            for j in (1..self.coefficients).filter(|&j| !self.known[j]) {
                theta[j] = horseshoe::normal_of(theta[j] / tau);
            }
            theta[self.coefficients] = tau.ln();
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// What is left of a vector without its part along a direction.
fn project_out(direction: &[f64], from: &mut [f64]) {
    let share = dot(direction, from) / dot(direction, direction);
    from.iter_mut().zip(direction).for_each(|(x, d)| *x -= share * d);
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
        let shown: [f64; 5] = [0.3, 1.7, -0.02, -0.6, 0.2];
        let value = |prior: &Prior| {
            let mut theta = shown;
            prior.hide(&mut theta);
            let value = prior.add(1.0, &theta, &[0.0; 4], &mut [0.0; 5]);
            prior.show(&mut theta);
            assert!(theta.iter().zip(shown).all(|(a, b)| (a - b).abs() < 1e-9), "{theta:?}");
            value
        };
        let width = |j: usize| {
            let tau = shown[4];
            (tau * horseshoe::quantile(horseshoe::normal_of(shown[j] / tau)).1).ln()
        };
        let (plain, known) = (value(&plain), value(&known));
        assert!((plain - width(1) - width(3) - known).abs() < 1e-5, "{plain} {known}");
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
