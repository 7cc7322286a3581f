//! Ordinal regression: classes in an order, P(y ≤ k) = 1/(1 + e^(η − cₖ)), between cutpoints c₁ < c₂ < …
//!
//! They are carried as c₁ ~ N(0, 5²) and the logarithms of the gaps, which are Exponential(1).

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, sum, sum_of_logs, sums_over_rows, vectorised};
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

/// log P(y = k) between the cutpoints below and above, less η.
fn log_probability(below: f64, above: f64) -> f64 {
    // F(b) − F(a) = F(b) F(−a) (1 − e^(a − b)).
    log_logistic(above) + log_logistic(-below) + (-(below - above).exp_m1()).ln()
}

/// Of a chunk of rows: Σ log F(b) F(−a), for the cutpoints a and b around each; η becomes its derivative. Adds those by
/// the cutpoints, −F(a) and F(−b), and the number of rows to the sums of each class, the first with its sign turned.
fn between<T: Real>(cutpoints: &[f64], eta: &mut [T], y: &[T], sums: &mut [[f64; 3]]) -> f64 {
    let (mut below, mut above) = ([T::zero(); CHUNK], [T::zero(); CHUNK]);
    let (below, above) = (&mut below[..y.len()], &mut above[..y.len()]);
    for (k, pair) in cutpoints.windows(2).enumerate() {
        let (class, low, high) = (T::of(k as f64), T::of(pair[0]), T::of(pair[1]));
        let rows = below.iter_mut().zip(&mut *above).zip(&*eta).zip(y);
        vectorised(
            #[inline(always)]
            || {
                for (((below, above), &eta), &y) in rows {
                    *below = if y == class { low - eta } else { *below };
                    *above = if y == class { high - eta } else { *above };
                }
            },
        );
    }
    let (mut of_below, mut of_above) = ([T::zero(); CHUNK], [T::zero(); CHUNK]);
    let (of_below, of_above) = (&mut of_below[..y.len()], &mut of_above[..y.len()]);
    for (decays, from) in [(&mut *of_below, &*below), (&mut *of_above, &*above)] {
        decays.iter_mut().zip(from).for_each(|(decay, x)| *decay = x.abs());
        T::exp_of_negated(decays, T::one());
    }
    let (one, zero) = (T::one(), T::zero());
    let mut totals = [T::one(); CHUNK];
    let totals = &mut totals[..y.len()];
    let mut logs = [T::zero(); CHUNK];
    let logs = &mut logs[..y.len()];
    let rows = below.iter().zip(&*above).zip(&mut *of_below).zip(&mut *of_above);
    let rows = rows.zip(&mut *eta).zip(&mut *totals).zip(&mut *logs);
    vectorised(
        #[inline(always)]
        || {
            for ((((((&below, &above), of_below), of_above), eta), total), log) in rows {
                // Copied first: a choice between places, and not between numbers, would be a branch.
                let (decay_below, decay_above) = (*of_below, *of_above);
                let (a, b) = (one + decay_below, one + decay_above);
                *log = if below > zero { -below } else { zero };
                *log += if above < zero { above } else { zero };
                *total = a * b;
                let (from_below, from_above) = (
                    if below > zero { one } else { decay_below } / a,
                    if above < zero { one } else { decay_above } / b,
                );
                (*of_below, *of_above, *eta) = (from_below, from_above, from_below - from_above);
            }
        },
    );
    for (k, sums) in sums.iter_mut().enumerate() {
        let class = T::of(k as f64);
        let of_class = sums_over_rows(
            of_below,
            y,
            of_above,
            #[inline(always)]
            |below, y, above| {
                // A factor is one choice for all three, and loops with one are vectorised well.
                let own = if y == class { one } else { zero };
                [*below * own, *above * own, own]
            },
        );
        sums.iter_mut().zip(of_class).for_each(|(sum, own)| *sum += own);
    }
    sum(logs) - sum_of_logs(totals)
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
              N(0, 5²), gaps between cutpoints ~ Exponential(1); the order of the classes is `order`, or \
              that of numbers or the alphabet";
    const REFERENCE: &'static str =
        "McCullagh (1980), Journal of the Royal Statistical Society B 42";
    const OPTIONS: &'static [&'static str] = with_options!("groups", "slopes");

    fn observe(design: Design, spec: &ModelSpec) -> Result<Observed<Self>> {
        // The cutpoints are its intercepts.
        let mut design = design.without_intercept()?;
        let (classes, target) = design.classes()?;
        let are_words = classes.iter().any(|class| class.parse::<f64>().is_err());
        if are_words && spec.order.is_none() && classes.len() > 2 {
            let (name, classes) = (design.target_name().to_owned(), classes.join(","));
            design = design.noting(format!(
                "{name}: in the order of the alphabet; give another by --order {classes}"
            ));
        }
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
        // Of the classes, by the cutpoints below and above, and how many rows there are.
        let mut sums = vec![[0.0; 3]; self.classes.len()];
        let mut sum = 0.0;
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            sum += between(&cutpoints, eta, y, &mut sums);
        }
        let mut of_cutpoints = vec![0.0; cutpoints.len()];
        for (k, [below, above, count]) in sums.into_iter().enumerate() {
            // F(b) − F(a) = F(b) F(−a) (1 − e^(a − b)): the last factor is that of the class.
            let gap = cutpoints[k + 1] - cutpoints[k];
            let of_gap = count / gap.exp_m1();
            sum += if count > 0.0 { count * (-(-gap).exp_m1()).ln() } else { 0.0 };
            of_cutpoints[k] -= below + of_gap;
            of_cutpoints[k + 1] += above + of_gap;
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
            (Some(below), Some(above)) => log_probability(below - eta[0], above - eta[0]),
            _ => f64::NEG_INFINITY,
        }
    }

    fn probabilities(&self, eta: &[f64], extras: &[f64]) -> Option<Vec<f64>> {
        let cutpoints = Self::cutpoints(extras);
        let pairs = cutpoints.windows(2);
        Some(pairs.map(|pair| log_probability(pair[0] - eta[0], pair[1] - eta[0]).exp()).collect())
    }
}
