//! Negative-binomial regression: counts with the mean μ = e^η, η = Xβ + o, and the variance μ + αμ²; the
//! overdispersion α is learned under Exponential(1).

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, log_of_one_plus, sums_over_rows, write_decays};
use super::family::{Family, digamma, log_exponential};
use super::listed::{Listed, Observed};
use super::{Design, poisson, with_options};
use crate::{ModelSpec, Result};

/// Counts with ψ = log α.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct NegativeBinomial;

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
        let (log_alpha, r) = (T::of(extras[0]), T::of((-extras[0]).exp()));
        let mut sum = 0.0;
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let decays = &mut [T::zero(); CHUNK][..y.len()];
            write_decays(
                eta,
                decays,
                #[inline(always)]
                |eta| eta + log_alpha,
            );
            let [terms, of_eta, logs] = sums_over_rows(
                eta,
                y,
                decays,
                #[inline(always)]
                |eta, y, decay| {
                    // log(1 + μα) and μα/(1 + μα), without overflow.
                    let ratio = *eta + log_alpha;
                    let (low, high, own) = if ratio < T::zero() {
                        (ratio, T::zero(), *decay)
                    } else {
                        (T::zero(), ratio, T::one())
                    };
                    let log = log_of_one_plus(*decay);
                    let log_total = high + log;
                    let term = y * (low - log) - r * log_total;
                    *eta = y - (y + r) * (own / (T::one() + *decay));
                    [term, *eta, log_total]
                },
            );
            sum += terms;
            slopes[0] += of_eta + r.as_f64() * logs;
        }
        sum
    }

    fn looks_at_targets(&self) -> bool {
        true
    }

    /// log Γ(y + r) − log Γ(r), and by r.
    fn of_targets(&self, counted: &[(f64, f64)], extras: &[f64], slopes: &mut [f64]) -> f64 {
        /// From one target to the next by the recurrence of Γ, unless that takes longer.
        const MOST_STEPS: f64 = 16.0;
        let r = (-extras[0]).exp();
        let (mut sum, mut of_r) = (0.0, 0.0);
        let (mut at, mut log, mut slope) = (0.0, 0.0, 0.0);
        for &(y, count) in counted {
            if y - at > MOST_STEPS {
                log = libm::lgamma(y + r) - libm::lgamma(r);
                slope = digamma(y + r) - digamma(r);
                at = y;
            }
            while at < y {
                log += (at + r).ln();
                slope += 1.0 / (at + r);
                at += 1.0;
            }
            sum += count * log;
            of_r += count * slope;
        }
        slopes[0] -= r * of_r;
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
        let (r, ratio) = ((-extras[0]).exp(), eta[0] + extras[0]);
        // log(1 + μα), without overflow.
        let log_total = ratio.max(0.0) + (-ratio.abs()).exp().ln_1p();
        let constant = libm::lgamma(y + r) - libm::lgamma(r) - libm::lgamma(y + 1.0);
        constant + y * (ratio - log_total) - r * log_total
    }
}
