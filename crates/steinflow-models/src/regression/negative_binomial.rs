//! Negative-binomial regression: counts with the mean μ = e^η, η = Xβ + o, and the variance μ + αμ²; the
//! overdispersion α is learned under Exponential(1).

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::family::{Family, digamma, log_exponential};
use super::listed::{Listed, Observed};
use super::{Design, poisson, with_options};
use crate::{ModelSpec, Result};

/// Counts with ψ = log α.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct NegativeBinomial;

/// log p(y) without the factor 1/y!, its derivative by η and by log α, with r = 1/α.
fn terms(eta: f64, log_alpha: f64, y: f64) -> (f64, f64, f64) {
    let r = (-log_alpha).exp();
    let ratio = eta + log_alpha;
    // log(1 + μα), without overflow.
    let log_total = if ratio > 0.0 { ratio + (-ratio).exp().ln_1p() } else { ratio.exp().ln_1p() };
    let value = libm::lgamma(y + r) - libm::lgamma(r) + y * ratio - (y + r) * log_total;
    // μα/(1 + μα).
    let share = 1.0 / (1.0 + (-ratio).exp());
    let of_eta = y - (y + r) * share;
    let of_alpha = of_eta - r * (digamma(y + r) - digamma(r) - log_total);
    (value, of_eta, of_alpha)
}

impl Listed for NegativeBinomial {
    const NAME: &'static str = "negative-binomial-regression";
    const TITLE: &'static str = "Bayesian regression of counts that vary more than Poisson's";
    const FORMULA: &'static str = "E y = μ = exp(Xβ + offset), Var y = μ + αμ², β ~ N(0, s²) for standardised features, s = \
              prior-sd, the intercept about the mean rate, α ~ Exponential(1)";
    const OPTIONS: &'static [&'static str] = with_options!("prior", "offset", "groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let (target, base) = design.counts()?;
        Ok(Observed { family: Self, design, target, base })
    }
}

impl Family for NegativeBinomial {
    fn extra_names(&self) -> Vec<String> {
        vec!["overdispersion".to_owned()]
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let mut sum = 0.0;
        for (eta, &y) in eta.iter_mut().zip(y) {
            let (value, of_eta, of_alpha) = terms(eta.as_f64(), extras[0], y.as_f64());
            sum += value;
            slopes[0] += of_alpha;
            *eta = T::of(of_eta);
        }
        sum
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let (value, slope) = log_exponential(extras[0]);
        slopes[0] += slope;
        value
    }

    fn show(&self, extras: &mut [f64], _shift: f64) {
        extras[0] = extras[0].exp();
    }

    fn hide(&self, extras: &mut [f64], _shift: f64) {
        extras[0] = extras[0].ln();
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        let mean = eta[0].exp();
        (mean, mean + extras[0].exp() * mean * mean)
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let (shape, scale) = ((-extras[0]).exp(), (eta[0] + extras[0]).exp());
        let rate = Gamma::new(shape, scale).map_or(f64::NAN, |rates| rates.sample(random));
        poisson::draw(rate, random)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        terms(eta[0], extras[0], y).0 - libm::lgamma(y + 1.0)
    }
}
