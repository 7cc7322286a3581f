//! Linear regression that outliers do not lead astray: (y − η)/σ ~ t with ν degrees of freedom, both
//! learned, σ under Exponential(1) in standard deviations of the target and ν under Gamma(2, 0.1)
//! (Juárez and Steel 2010).

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StudentT as Draws};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, sum_of_logs, sums_over_rows};
use super::family::{Family, digamma, log_exponential};
use super::listed::{Listed, Observed};
use super::normal::standardised;
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// Errors with ψ = (log σ, log ν).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StudentT {
    /// Mean and standard deviation of the target.
    pub(super) units: (f64, f64),
}

/// What the density of t(ν) is scaled by, and the derivative of its logarithm by log ν.
fn normaliser(degrees: f64) -> (f64, f64) {
    let log = libm::lgamma(f64::midpoint(degrees, 1.0))
        - libm::lgamma(degrees / 2.0)
        - 0.5 * (std::f64::consts::PI * degrees).ln();
    let slope =
        0.5 * degrees * (digamma(f64::midpoint(degrees, 1.0)) - digamma(degrees / 2.0)) - 0.5;
    (log, slope)
}

impl Listed for StudentT {
    const NAME: &'static str = "student-t-regression";
    const TITLE: &'static str = "Bayesian linear regression with heavy-tailed errors";
    const FORMULA: &'static str = "(y − Xβ)/σ ~ t(ν), β ~ N(0, s²) for standardised features and target, s = prior-sd, σ ~ \
              Exponential(1) in standard deviations of the target, ν ~ Gamma(2, 0.1)";
    const REFERENCE: &'static str =
        "Juárez and Steel (2010), Journal of Business & Economic Statistics 28";
    const OPTIONS: &'static [&'static str] = with_options!("prior", "groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let scaling = design.target_scaling()?;
        let target = standardised(&design, scaling);
        let family = Self { units: (scaling.mean, scaling.sd) };
        Ok(Observed { family, design, target, base: 0.0 })
    }
}

impl Family for StudentT {
    fn extra_names(&self) -> Vec<String> {
        vec!["noise".to_owned(), "degrees".to_owned()]
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let (noise, degrees) = (extras[0].exp(), extras[1].exp());
        let (log, slope) = normaliser(degrees);
        let (mut tails, mut of_noise) = (0.0, 0.0);
        let (rate, share) = (T::of(1.0 / noise), T::of(1.0 / degrees));
        let most = T::of((degrees + 1.0) / degrees);
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let totals = &mut [T::zero(); CHUNK][..y.len()];
            let [squares] = sums_over_rows(
                eta,
                y,
                totals,
                #[inline(always)]
                |eta, y, total| {
                    let z = (y - *eta) * rate;
                    *total = T::one() + z * z * share;
                    let weighted = most / *total * z;
                    *eta = weighted * rate;
                    [weighted * z]
                },
            );
            of_noise += squares;
            tails += sum_of_logs(totals);
        }
        let count = y.len() as f64;
        slopes[0] += of_noise - count;
        slopes[1] += (of_noise - degrees * tails) / 2.0 + count * slope;
        count * (log - extras[0]) - f64::midpoint(degrees, 1.0) * tails
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        const RATE: f64 = 0.1;
        let (of_noise, slope) = log_exponential(extras[0]);
        slopes[0] += slope;
        let degrees = extras[1].exp();
        slopes[1] += 2.0 - RATE * degrees;
        of_noise + 2.0 * extras[1] - RATE * degrees
    }

    fn start(&self) -> Vec<f64> {
        vec![0.0, 2.0]
    }

    fn show(&self, extras: &mut [f64], _shift: f64) {
        for x in extras.iter_mut() {
            *x = x.exp();
        }
        extras[0] *= self.units.1;
    }

    fn hide(&self, extras: &mut [f64], _shift: f64) {
        extras[0] /= self.units.1;
        for x in extras.iter_mut() {
            *x = x.ln();
        }
    }

    fn units(&self) -> (f64, f64) {
        self.units
    }

    fn in_own_units(&self) -> Self {
        Self { units: (0.0, 1.0) }
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        let (mean, sd) = self.units;
        let degrees = extras[1].exp();
        // Below 2 there is no variance.
        let inflation = if degrees > 2.0 { degrees / (degrees - 2.0) } else { f64::INFINITY };
        (mean + sd * eta[0], (sd * extras[0].exp()).powi(2) * inflation)
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let draw = Draws::new(extras[1].exp()).map_or(f64::NAN, |draws| draws.sample(random));
        self.units.0 + self.units.1 * (eta[0] + extras[0].exp() * draw)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let (noise, degrees) = (extras[0].exp(), extras[1].exp());
        let z = ((y - self.units.0) / self.units.1 - eta[0]) / noise;
        normaliser(degrees).0
            - f64::midpoint(degrees, 1.0) * (z * z / degrees).ln_1p()
            - (noise * self.units.1).ln()
    }
}
