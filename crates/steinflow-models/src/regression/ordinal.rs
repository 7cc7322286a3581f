//! Ordinal regression: classes in an order, P(y ≤ k) = 1/(1 + e^(η − cₖ)), between cutpoints c₁ < c₂ < …
//!
//! They are carried as c₁ ~ N(0, 5²) and the logarithms of the gaps, which are Exponential(1).

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, count_equal, sum_of_logs, sums_over_rows, write_decays};
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

/// Of rows of one class: Σ log F(b − η) F(η − a) for the cutpoints a and b around it, and its derivatives by them, the
/// first with its sign turned; η becomes its derivative.
///
/// Only the nearer cutpoint needs an exponential. By how much η is beyond it is n, negative where η is between both,
/// and from there it is −n − (b − a) to the other: F(b − η) F(η − a) = 1/(1 + eⁿ)(1 + x) with x = e^(−n − (b − a)),
/// which is e^(a − b) times e^(−|n|) or divided by it.
fn within<T: Real>(cutpoints: [f64; 2], eta: &mut [T], y: &[T]) -> [f64; 3] {
    let ([below, above], ratio) =
        (cutpoints.map(T::of), T::of((cutpoints[0] - cutpoints[1]).exp()));
    let decays = &mut [T::zero(); CHUNK][..y.len()];
    write_decays(
        eta,
        decays,
        #[inline(always)]
        |eta| {
            let (over, under) = (eta - above, below - eta);
            if over > under { over } else { under }
        },
    );
    let [margins, of_below, of_above] = sums_over_rows(
        eta,
        y,
        decays,
        #[inline(always)]
        |eta, _, decay| {
            let (one, zero, least) = (T::one(), T::zero(), T::min_positive_value());
            let (over, under, own) = (*eta - above, below - *eta, *decay);
            let is_over = over > under;
            let beyond = if is_over { over } else { under };
            // Where the divisor is 0, so is the ratio. Both are computed: of a choice with a division, the compiler makes
            // a branch.
            let inside = ratio / if own < least { least } else { own };
            let x = if beyond > zero { ratio * own } else { inside };
            let (near, far) = (one + own, one + x);
            *decay = near * far;
            let part = one / *decay;
            let of_near = if beyond > zero { one } else { own } * far * part;
            let of_far = x * near * part;
            let of_above = if is_over { of_near } else { of_far };
            let of_below = if is_over { of_far } else { of_near };
            *eta = of_below - of_above;
            [if beyond > zero { beyond } else { zero }, of_below, of_above]
        },
    );
    [-margins - sum_of_logs(decays), of_below, of_above]
}

/// Adds derivatives by −∞, c₁, …, ∞ as those by the first cutpoint and by the logarithms of the gaps.
fn add_slopes(of_cutpoints: &[f64], extras: &[f64], slopes: &mut [f64]) {
    // A gap moves all cutpoints after it.
    let mut after = 0.0;
    for k in (0..extras.len()).rev() {
        after += of_cutpoints[k + 1];
        slopes[k] += if k == 0 { after } else { after * extras[k].exp() };
    }
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
        let (mut sum, mut of_cutpoints) = (0.0, vec![0.0; cutpoints.len()]);
        let mut first = 0;
        while first < y.len() {
            let (class, end) = (y[first].as_f64() as usize, y.len().min(first + CHUNK));
            let own = first..first + count_equal(&y[first..end]);
            let around = [cutpoints[class], cutpoints[class + 1]];
            let [value, below, above] = within(around, &mut eta[own.clone()], &y[own.clone()]);
            sum += value;
            of_cutpoints[class] -= below;
            of_cutpoints[class + 1] += above;
            first = own.end;
        }
        add_slopes(&of_cutpoints, extras, slopes);
        sum
    }

    fn looks_at_targets(&self) -> bool {
        true
    }

    /// Σ log(1 − e^(a − b)), as F(b) − F(a) = F(b) F(−a) (1 − e^(a − b)).
    fn of_targets(&self, counted: &[(f64, f64)], extras: &[f64], slopes: &mut [f64]) -> f64 {
        let cutpoints = Self::cutpoints(extras);
        let (mut sum, mut of_cutpoints) = (0.0, vec![0.0; cutpoints.len()]);
        for &(class, count) in counted {
            let class = class as usize;
            let gap = cutpoints[class + 1] - cutpoints[class];
            sum += count * (-(-gap).exp_m1()).ln();
            of_cutpoints[class] -= count / gap.exp_m1();
            of_cutpoints[class + 1] += count / gap.exp_m1();
        }
        add_slopes(&of_cutpoints, extras, slopes);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Cutpoints that are close, far apart and farther than any exponential goes, with η beyond and between them.
    #[test]
    fn rows_of_a_class_are_sums_of_their_logistic_functions() {
        fn check<T: Real>(tolerance: f64) {
            let infinity = f64::INFINITY;
            let pairs =
                [[-infinity, 0.5], [-1.0, -0.9], [-1.0, 3.0], [-500.0, 500.0], [0.5, infinity]];
            for around in pairs {
                for eta in [-700.0, -499.0, -3.0, -0.95, 0.0, 0.5, 2.5, 40.0, 501.0, 1e4] {
                    let mut slope = [T::of(eta)];
                    let eta = slope[0].as_f64();
                    let found = within(around, &mut slope, &[T::zero()]);
                    let [below, above] = around.map(|cutpoint| T::of(cutpoint).as_f64() - eta);
                    let value = log_logistic(above) + log_logistic(-below);
                    let (of_below, of_above) =
                        (log_logistic(below).exp(), log_logistic(-above).exp());
                    let expected = [value, of_below, of_above, of_below - of_above];
                    let found = [found[0], found[1], found[2], slope[0].as_f64()];
                    for (found, expected) in found.into_iter().zip(expected) {
                        let error = (found - expected).abs();
                        assert!(
                            error <= tolerance * expected.abs().max(1.0),
                            "{around:?}, {eta}: {found}"
                        );
                    }
                }
            }
        }
        check::<f64>(1e-13);
        check::<f32>(1e-6);
    }
}
