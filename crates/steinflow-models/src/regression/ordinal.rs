//! Ordinal regression: classes in an order, P(y ≤ k) = 1/(1 + e^(η − cₖ)), between cutpoints c₁ < c₂ < …
//!
//! They are carried as c₁ ~ N(0, 5²) and the logarithms of the gaps, which are Exponential(1).

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::family::{Family, log_exponential};
use super::listed::{Listed, Observed};
use super::multinomial::{draw_class, moments_of};
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// The standard deviation of the first cutpoint.
const FIRST_SD: f64 = 5.0;

/// Classes in an order, with ψ = (c₁, log(c₂ − c₁), …).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Ordinal {
    /// By name, in their order.
    pub(super) classes: Vec<String>,
}

/// log(1/(1 + e^(−x))), without overflow.
fn log_logistic(x: f64) -> f64 {
    if x > 0.0 { -(-x).exp().ln_1p() } else { x - x.exp().ln_1p() }
}

fn logistic(x: f64) -> f64 {
    log_logistic(x).exp()
}

/// log P(y = k) between the cutpoints below and above, and its derivatives by both less η.
fn terms(below: f64, above: f64) -> (f64, f64, f64) {
    if below == f64::NEG_INFINITY {
        return (log_logistic(above), 0.0, logistic(-above));
    }
    if above == f64::INFINITY {
        return (log_logistic(-below), -logistic(below), 0.0);
    }
    // F(b) − F(a) = F(b) F(−a) (1 − e^(a − b)).
    let gap = above - below;
    let value = log_logistic(above) + log_logistic(-below) + (-(-gap).exp_m1()).ln();
    let of_gap = 1.0 / gap.exp_m1();
    (value, -logistic(below) - of_gap, logistic(-above) + of_gap)
}

impl Ordinal {
    /// −∞, c₁, …, ∞.
    fn cutpoints(extras: &[f64]) -> Vec<f64> {
        let mut cutpoints = vec![f64::NEG_INFINITY, extras[0]];
        for (k, gap) in extras[1..].iter().enumerate() {
            cutpoints.push(cutpoints[k + 1] + gap.exp());
        }
        cutpoints.push(f64::INFINITY);
        cutpoints
    }
}

impl Listed for Ordinal {
    const NAME: &'static str = "ordinal-regression";
    const TITLE: &'static str = "Bayesian regression of classes in an order";
    const FORMULA: &'static str = "P(y ≤ k) = 1/(1 + exp(Xβ − cₖ)), β ~ N(0, s²) for standardised features, s = prior-sd; c₁ ~ \
              N(0, 5²), gaps between cutpoints ~ Exponential(1); the order is that of numbers, or of the \
              alphabet";
    const REFERENCE: &'static str =
        "McCullagh (1980), Journal of the Royal Statistical Society B 42";
    const OPTIONS: &'static [&'static str] = with_options!("groups", "slopes");

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        // The cutpoints are its intercepts.
        let design = design.without_intercept()?;
        let (classes, target) = design.classes()?;
        Ok(Observed { family: Self { classes }, design, target, base: 0.0 })
    }
}

impl Family for Ordinal {
    fn extra_names(&self) -> Vec<String> {
        let pairs = self.classes.windows(2);
        pairs.map(|pair| format!("cut[{}|{}]", pair[0], pair[1])).collect()
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let cutpoints = Self::cutpoints(extras);
        let mut of_cutpoints = vec![0.0; cutpoints.len()];
        let mut sum = 0.0;
        for (eta, y) in eta.iter_mut().zip(y) {
            let (class, place) = (y.as_f64() as usize, eta.as_f64());
            let (value, of_below, of_above) =
                terms(cutpoints[class] - place, cutpoints[class + 1] - place);
            sum += value;
            of_cutpoints[class] += of_below;
            of_cutpoints[class + 1] += of_above;
            *eta = T::of(-of_below - of_above);
        }
        // A gap moves all cutpoints after it.
        let mut after = 0.0;
        for k in (0..extras.len()).rev() {
            after += of_cutpoints[k + 1];
            slopes[k] += if k == 0 { after } else { after * extras[k].exp() };
        }
        sum
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let precision = 1.0 / (FIRST_SD * FIRST_SD);
        slopes[0] -= precision * extras[0];
        let mut sum = -precision * extras[0] * extras[0] / 2.0;
        for (gap, slope) in extras.iter().zip(slopes).skip(1) {
            let (value, of_gap) = log_exponential(*gap);
            *slope += of_gap;
            sum += value;
        }
        sum
    }

    fn start(&self) -> Vec<f64> {
        let mut start = vec![0.0; self.classes.len() - 1];
        // Cutpoints on both sides of 0.
        start[0] = -(self.classes.len() as f64 - 2.0) / 2.0;
        start
    }

    fn show(&self, extras: &mut [f64], shift: f64) {
        let cutpoints = Self::cutpoints(extras);
        for (extra, cutpoint) in extras.iter_mut().zip(&cutpoints[1..]) {
            *extra = cutpoint + shift;
        }
    }

    fn hide(&self, extras: &mut [f64], shift: f64) {
        for k in (1..extras.len()).rev() {
            extras[k] = (extras[k] - extras[k - 1]).ln();
        }
        extras[0] -= shift;
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        moments_of(&self.probabilities(eta, extras).unwrap_or_default())
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        draw_class(&self.probabilities(eta, extras).unwrap_or_default(), random)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let (cutpoints, class) = (Self::cutpoints(extras), y as usize);
        match (cutpoints.get(class), cutpoints.get(class + 1)) {
            (Some(below), Some(above)) => terms(below - eta[0], above - eta[0]).0,
            _ => f64::NEG_INFINITY,
        }
    }

    fn probabilities(&self, eta: &[f64], extras: &[f64]) -> Option<Vec<f64>> {
        let cutpoints = Self::cutpoints(extras);
        let pairs = cutpoints.windows(2);
        Some(pairs.map(|pair| terms(pair[0] - eta[0], pair[1] - eta[0]).0.exp()).collect())
    }
}
