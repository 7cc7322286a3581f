//! The predictive distribution of one row, 1/N Σᵢ N(μᵢ, σᵢ²): density, distribution function, quantiles.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::crps;

/// Gaussians of equal weight. What a [`Predictive`](super::Predictive) holds for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture<'a> {
    pub(super) means: &'a [f64],
    pub(super) sds: &'a [f64],
}

/// The standard normal distribution function, accurate in both tails.
pub(super) fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

impl Mixture<'_> {
    pub(super) fn components(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        self.means.iter().copied().zip(self.sds.iter().copied())
    }

    fn average(&self, term: impl Fn(f64, f64) -> f64) -> f64 {
        self.components().map(|(mean, sd)| term(mean, sd)).sum::<f64>() / self.means.len() as f64
    }

    /// E y.
    pub fn mean(&self) -> f64 {
        self.average(|mean, _| mean)
    }

    /// The standard deviation: √(mean of σᵢ² + variance of μᵢ).
    pub fn sd(&self) -> f64 {
        let centre = self.mean();
        self.average(|mean, sd| sd * sd + (mean - centre) * (mean - centre)).sqrt()
    }

    /// log p(y), by the logarithm of a sum of exponentials, so that no distance underflows.
    pub fn log_density(&self, y: f64) -> f64 {
        let terms = self.components().map(|(mean, sd)| {
            let z = (y - mean) / sd;
            -0.5 * z * z - sd.ln()
        });
        let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return largest;
        }
        let sum: f64 = terms.map(|term| (term - largest).exp()).sum();
        largest + (sum / self.means.len() as f64).ln() - 0.5 * TAU.ln()
    }

    /// P(Y ≤ x).
    pub fn cdf(&self, x: f64) -> f64 {
        self.average(|mean, sd| normal_cdf((x - mean) / sd))
    }

    fn density(&self, x: f64) -> f64 {
        self.average(|mean, sd| {
            let z = (x - mean) / sd;
            (-0.5 * z * z).exp() / (sd * TAU.sqrt())
        })
    }

    /// The x with P(Y ≤ x) = `level`: Newton's steps inside a bracket that is halved whenever they
    /// leave it or converge slowly. NaN for a level outside (0, 1).
    pub fn quantile(&self, level: f64) -> f64 {
        /// P(Z < −39) is below the smallest positive number.
        const FARTHEST: f64 = 39.0;
        if !(level > 0.0 && level < 1.0) {
            return f64::NAN;
        }
        let ends = |sign: f64| self.components().map(move |(mean, sd)| mean + sign * FARTHEST * sd);
        let (mut low, mut high) =
            (ends(-1.0).fold(f64::INFINITY, f64::min), ends(1.0).fold(f64::NEG_INFINITY, f64::max));
        let narrowest = self.sds.iter().copied().fold(f64::INFINITY, f64::min);
        let mut x = self.mean();
        let mut step_before = f64::INFINITY;
        // Halving alone would need about 60.
        for _ in 0..200 {
            let excess = self.cdf(x) - level;
            if excess == 0.0 {
                break;
            }
            if excess < 0.0 {
                low = x;
            } else {
                high = x;
            }
            let newton = x - excess / self.density(x);
            let is_fast = (newton - x).abs() < 0.5 * step_before;
            let is_inside = low < newton && newton < high;
            let next = if is_inside && is_fast { newton } else { low + 0.5 * (high - low) };
            step_before = (next - x).abs();
            x = next;
            if step_before <= 2.0 * f64::EPSILON * (x.abs() + narrowest) {
                break;
            }
        }
        x
    }

    /// ∫ (F(x) − 1{x ≥ y})² dx = E|Y − y| − ½ E|Y − Y′|.
    ///
    /// In closed form up to 128 components (Grimit et al. 2006), whose pairs cost N²/2. Above that the
    /// second term is integrated numerically at about 40 N evaluations, with a relative error near
    /// rounding unless the smallest σᵢ is thousands of times smaller than the spread.
    pub fn crps(&self, y: f64) -> f64 {
        let error = self.average(|mean, sd| crps::mean_magnitude(y - mean, sd));
        error - 0.5 * crps::mean_distance(*self)
    }
}
