//! Logistic regression: P(yᵢ = 1) = 1/(1 + e^(−ηᵢ)).

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, sum_of_logs, sums_over_rows, write_decays};
use super::family::Family;
use super::listed::{Listed, Observed};
use super::multinomial::draw_class;
use super::{Design, Regression, with_options};
use crate::data::Table;
use crate::{ModelSpec, Result};

/// The posterior of the coefficients of a logistic regression. It has no closed form.
pub type LogisticRegression<T> = Regression<T, Bernoulli>;

impl<T: Real> LogisticRegression<T> {
    /// Predicts column `target` of `table` (the last one when `None`), which holds 0 and 1, from all
    /// others.
    pub fn new(table: &Table, target: Option<&str>, prior_sd: f64) -> Result<Self> {
        let spec = ModelSpec { prior_sd: Some(prior_sd), ..ModelSpec::default() };
        Self::of(Design::new(table, target)?, &spec)
    }
}

/// One of two classes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Bernoulli {
    /// The names of 0 and 1.
    pub(super) classes: [String; 2],
}

/// Replaces η by ∂ℓ/∂η = ±1/(1 + e^m) and returns Σℓ with ℓ = −log(1 + e^(−m)), where the margin m = ±η
/// is positive on the side of the class that was seen. All of it by e^(−|m|) ≤ 1: nothing overflows.
fn log_likelihood<T: Real>(eta: &mut [T], y: &[T]) -> f64 {
    let mut total = 0.0;
    for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
        let decays = &mut [T::zero(); CHUNK][..y.len()];
        write_decays(eta, decays, |eta| eta);
        let [margins] = sums_over_rows(
            eta,
            y,
            decays,
            #[inline(always)]
            |eta, y, decay| {
                let (one, zero) = (T::one(), T::zero());
                let sign = if y > T::of(0.5) { one } else { -one };
                // Copied first: a choice between places, and not between numbers, would be a branch.
                let (margin, own) = (sign * *eta, *decay);
                *decay = one + own;
                *eta = sign * if margin >= zero { own } else { one } / *decay;
                [if margin < zero { margin } else { zero }]
            },
        );
        total += margins - sum_of_logs(decays);
    }
    total
}

impl Listed for Bernoulli {
    const NAME: &'static str = "logistic-regression";
    const TITLE: &'static str = "Bayesian logistic regression";
    const FORMULA: &'static str =
        "P(y = 1) = 1/(1 + exp(−Xβ)), β ~ N(0, s²) for standardised features, s = prior-sd";
    const OPTIONS: &'static [&'static str] = with_options!("prior", "groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let (classes, target) = design.two_classes()?;
        Ok(Observed { family: Self { classes }, design, target, base: 0.0 })
    }
}

impl Family for Bernoulli {
    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        _extras: &[f64],
        _slopes: &mut [f64],
    ) -> f64 {
        log_likelihood(eta, y)
    }

    fn device_code(&self) -> Option<String> {
        let code = "real likelihood(real eta, real y, real *slope) {
                const real sign = y > real(0.5) ? 1 : -1, margin = sign * eta, decay = exp(-abs(margin));
                *slope = sign * (margin >= 0 ? decay : real(1)) / (1 + decay);
                return (margin < 0 ? margin : real(0)) - log1p(decay);
            }";
        Some(code.to_owned())
    }

    fn moments(&self, eta: &[f64], _extras: &[f64]) -> (f64, f64) {
        let probability = 1.0 / (1.0 + (-eta[0]).exp());
        (probability, probability * (1.0 - probability))
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        draw_class(&self.probabilities(eta, extras).unwrap_or_default(), random)
    }

    fn log_density(&self, eta: &[f64], _extras: &[f64], y: f64) -> f64 {
        log_likelihood(&mut [eta[0]], &[y])
    }

    fn probabilities(&self, eta: &[f64], extras: &[f64]) -> Option<Vec<f64>> {
        let probability = self.moments(eta, extras).0;
        Some(vec![1.0 - probability, probability])
    }
}

#[cfg(test)]
mod tests {
    use super::Real;

    /// ℓ and ∂ℓ/∂η of one row.
    fn log_likelihood<T: Real>(eta: T, y: T) -> (f64, T) {
        let mut eta = [eta];
        let value = super::log_likelihood(&mut eta, &[y]);
        (value, eta[0])
    }

    #[test]
    fn many_rows_are_the_sum_of_single_ones() {
        let etas: Vec<f64> = (0..1000).map(|i| 40.0 * (f64::from(i) * 0.37).sin()).collect();
        let ys: Vec<f64> = (0..1000).map(|i| f64::from(u8::from(i % 3 == 0))).collect();
        let mut derivatives = etas.clone();
        let sum = super::log_likelihood(&mut derivatives, &ys);
        let singles: Vec<(f64, f64)> =
            etas.iter().zip(&ys).map(|(&eta, &y)| log_likelihood(eta, y)).collect();
        let expected: f64 = singles.iter().map(|single| single.0).sum();
        assert!((sum / expected - 1.0).abs() < 1e-13);
        assert!(derivatives.iter().zip(&singles).all(|(a, (_, b))| a == b));
    }

    #[test]
    fn the_likelihood_is_stable_at_both_ends() {
        assert_eq!(log_likelihood(1000.0_f64, 0.0), (-1000.0, -1.0));
        assert_eq!(log_likelihood(-1000.0_f64, 1.0), (-1000.0, 1.0));
        assert_eq!(log_likelihood(1000.0_f32, 1.0), (0.0, 0.0));
        // e⁻⁴⁰ would be lost beside 40; beside 1, in the value, it may be.
        let (value, derivative) = log_likelihood(-40.0_f64, 0.0);
        assert!(value.abs() < 1e-15);
        assert!((derivative / -(-40.0_f64).exp() - 1.0).abs() < 1e-14);
        let (value, derivative) = log_likelihood(40.0_f64, 1.0);
        assert!(value.abs() < 1e-15);
        assert!((derivative / (-40.0_f64).exp() - 1.0).abs() < 1e-14);
        let (value, derivative) = log_likelihood(f64::NAN, 1.0);
        assert!(value.is_nan() && derivative.is_nan());
    }
}
