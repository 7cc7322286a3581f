//! Weibull regression of times until an event, of which some are only known to be longer than what was seen: log t = η
//! + σ ε, P(ε > x) = exp(−eˣ), with the shape 1/σ learned; coefficients are what a time is longer by, as a logarithm.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, exp, sums_over_rows, vectorised};
use super::family::{Family, log_exponential};
use super::listed::{Listed, Observed};
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// Times with ψ = log σ. While it is fitted, log t is taken from η beforehand and y says whether the event was seen;
/// otherwise y is the time, with a minus sign where the event came later.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Weibull;

impl Listed for Weibull {
    const NAME: &'static str = "weibull-regression";
    const TITLE: &'static str = "Bayesian regression of times until an event, seen or not";
    const FORMULA: &'static str = "P(y > t) = exp(−(t/exp(Xβ))^k), k = 1/σ, σ ~ Exponential(1), β ~ N(0, s²) for \
              standardised features, s = prior-sd, the intercept about the mean of log y; where event is 0, y > t is all \
              that is known";
    const OPTIONS: &'static [&'static str] = with_options!("prior", "event", "groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let (design, target, base) = design.times()?;
        Ok(Observed { family: Self, design, target, base })
    }
}

impl Family for Weibull {
    fn extra_names(&self) -> Vec<String> {
        vec!["shape".to_owned()]
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let rate = T::of((-extras[0]).exp());
        let (mut sum, mut events) = (0.0, 0.0);
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let powers = &mut [T::zero(); CHUNK][..y.len()];
            vectorised(
                #[inline(always)]
                || {
                    for (power, eta) in powers.iter_mut().zip(&mut *eta) {
                        *eta = -*eta * rate;
                        *power = *eta;
                    }
                },
            );
            exp(powers);
            let [terms, of_noise, seen] = sums_over_rows(
                eta,
                y,
                powers,
                #[inline(always)]
                |eta, y, power| {
                    let (u, excess) = (*eta, y - *power);
                    *eta = -rate * excess;
                    [y * u - *power, -u * excess - y, y]
                },
            );
            sum += terms;
            slopes[0] += of_noise;
            events += seen;
        }
        sum - events * extras[0]
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let (value, slope) = log_exponential(extras[0]);
        slopes[0] += slope;
        value
    }

    fn show(&self, extras: &mut [f64], _shift: f64) {
        extras[0] = (-extras[0]).exp();
    }

    fn hide(&self, extras: &mut [f64], _shift: f64) {
        extras[0] = -extras[0].ln();
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        let moment =
            |power: f64| (power * eta[0] + libm::lgamma(1.0 + power * extras[0].exp())).exp();
        let mean = moment(1.0);
        (mean, moment(2.0) - mean * mean)
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let one: f64 = Exp1.sample(random);
        eta[0].exp() * one.powf(extras[0].exp())
    }

    fn complete(&self, eta: &[f64], extras: &[f64], y: f64, random: &mut ChaCha8Rng) -> f64 {
        if y > 0.0 {
            return y;
        }
        // What is left of the hazard that a time has to use up does not depend on how much of it is.
        let noise = extras[0].exp();
        let used = ((y.abs().ln() - eta[0]) / noise).exp();
        let one: f64 = Exp1.sample(random);
        eta[0].exp() * (used + one).powf(noise)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let u = (y.abs().ln() - eta[0]) / extras[0].exp();
        let of_event = if y > 0.0 { u - extras[0] - y.ln() } else { 0.0 };
        of_event - u.exp()
    }
}
