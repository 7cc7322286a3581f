//! Logistic regression: P(yᵢ = 1) = 1/(1 + e^(−ηᵢ)).

use pulp::{Arch, Simd, WithSimd};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use steinflow::Real;

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
    // The product of this many 1 + e^(−|m|) ≤ 2 is far from the largest number, and needs one logarithm.
    const CHUNK: usize = 256;
    let mut sum = 0.0;
    for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
        let mut decay = [T::zero(); CHUNK];
        let decay = &mut decay[..eta.len()];
        for (decay, eta) in decay.iter_mut().zip(&*eta) {
            *decay = eta.abs();
        }
        T::exp_of_negated(decay, T::one());
        sum += Arch::new().dispatch(FromDecay { eta, y, decay });
    }
    sum
}

struct FromDecay<'a, T> {
    eta: &'a mut [T],
    y: &'a [T],
    /// e^(−|m|).
    decay: &'a [T],
}

impl<T: Real> WithSimd for FromDecay<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> f64 {
        const LANES: usize = 32;
        let (mut margins, mut products) = ([T::zero(); LANES], [T::one(); LANES]);
        let row = |eta: &mut T, y: T, decay: T, margins: &mut T, product: &mut T| {
            let sign = if y > T::of(0.5) { T::one() } else { -T::one() };
            let margin = sign * *eta;
            let total = T::one() + decay;
            let surprise = if margin >= T::zero() { decay } else { T::one() } / total;
            *margins += if margin < T::zero() { margin } else { T::zero() };
            *product *= total;
            *eta = sign * surprise;
        };
        let (etas, last_etas) = self.eta.as_chunks_mut::<LANES>();
        let (ys, last_ys) = self.y.as_chunks::<LANES>();
        let (decays, last_decays) = self.decay.as_chunks::<LANES>();
        for ((eta, y), decay) in etas.iter_mut().zip(ys).zip(decays) {
            for lane in 0..LANES {
                let (margins, product) = (&mut margins[lane], &mut products[lane]);
                row(&mut eta[lane], y[lane], decay[lane], margins, product);
            }
        }
        let last = last_etas.iter_mut().zip(last_ys).zip(last_decays).enumerate();
        for (lane, ((eta, &y), &decay)) in last {
            row(eta, y, decay, &mut margins[lane], &mut products[lane]);
        }
        let margins: f64 = margins.into_iter().map(Real::as_f64).sum();
        margins - products.into_iter().map(Real::as_f64).product::<f64>().ln()
    }
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
