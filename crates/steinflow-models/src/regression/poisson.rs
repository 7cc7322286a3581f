//! Poisson regression: counts y with the rate e^η, η = Xβ + o.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson as Draws};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, exp, sums_over_rows};
use super::family::Family;
use super::listed::{Listed, Observed};
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// Counts whose variance is their mean.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Poisson;

impl Listed for Poisson {
    const NAME: &'static str = "poisson-regression";
    const TITLE: &'static str = "Bayesian regression of counts";
    const FORMULA: &'static str = "y ~ Poisson(exp(Xβ + offset)), β ~ N(0, s²) for standardised features, s = prior-sd, the \
              intercept about the mean rate";
    const OPTIONS: &'static [&'static str] = with_options!("prior", "offset", "groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let (target, base) = design.counts()?;
        Ok(Observed { family: Self, design, target, base })
    }
}

impl Family for Poisson {
    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        _extras: &[f64],
        _slopes: &mut [f64],
    ) -> f64 {
        let mut sum = 0.0;
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let rates = &mut [T::zero(); CHUNK][..y.len()];
            rates.copy_from_slice(eta);
            exp(rates);
            let [terms] = sums_over_rows(
                eta,
                y,
                rates,
                #[inline(always)]
                |eta, y, rate| {
                    let term = y * *eta - *rate;
                    *eta = y - *rate;
                    [term]
                },
            );
            sum += terms;
        }
        sum
    }

    fn moments(&self, eta: &[f64], _extras: &[f64]) -> (f64, f64) {
        (eta[0].exp(), eta[0].exp())
    }

    fn draw(&self, eta: &[f64], _extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        draw(eta[0].exp(), random)
    }

    fn log_density(&self, eta: &[f64], _extras: &[f64], y: f64) -> f64 {
        y * eta[0] - eta[0].exp() - libm::lgamma(y + 1.0)
    }
}

/// One draw at a rate; no rate is no count.
pub(super) fn draw(rate: f64, random: &mut ChaCha8Rng) -> f64 {
    Draws::new(rate).map_or(if rate == 0.0 { 0.0 } else { f64::NAN }, |draws| draws.sample(random))
}
