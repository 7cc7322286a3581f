//! The two expectations of the continuous ranked probability score,
//! E|N(μ, σ²)| = 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1) and E|Y − Y′| = 2 ∫ F(1 − F) dx.
//!
//! Grimit, Gneiting, Berrocal and Johnson (2006), Quarterly Journal of the Royal Meteorological
//! Society 132.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::Mixture;
use super::mixture::normal_cdf;

/// Pairs up to here cost less than the grid.
const MOST_COMPONENTS_IN_PAIRS: usize = 128;

/// Where the tail of a component is taken for 0: Φ(−9) ≈ 10⁻¹⁹.
const TAIL: f64 = 9.0;

/// Bounds the memory and time of a row whose components are very unlike.
const MOST_NODES: usize = 1 << 16;

/// E|X| for X ~ N(mean, sd²).
pub(super) fn mean_magnitude(mean: f64, sd: f64) -> f64 {
    let z = mean / sd;
    2.0 * sd * (-0.5 * z * z).exp() / TAU.sqrt() + mean * libm::erf(z * FRAC_1_SQRT_2)
}

/// E|Y − Y′| for two independent draws from the mixture.
pub(super) fn mean_distance(mixture: Mixture<'_>) -> f64 {
    if mixture.means.len() <= MOST_COMPONENTS_IN_PAIRS {
        mean_distance_by_pairs(mixture)
    } else {
        mean_distance_on_grid(mixture)
    }
}

fn mean_distance_by_pairs(Mixture { means, sds }: Mixture<'_>) -> f64 {
    let mut sum = 0.0;
    for i in 0..means.len() {
        sum += mean_magnitude(0.0, 2.0_f64.sqrt() * sds[i]);
        for j in 0..i {
            sum += 2.0 * mean_magnitude(means[i] - means[j], sds[i].hypot(sds[j]));
        }
    }
    sum / (means.len() * means.len()) as f64
}

/// The trapezoidal rule, whose error for a sum of Gaussians smoothed at σ falls like exp(−π²σ²/h²):
/// 10⁻¹⁷ at a spacing h of half the smallest σ. A component is evaluated where it is neither 0 nor 1
/// and counted elsewhere.
fn mean_distance_on_grid(mixture: Mixture<'_>) -> f64 {
    let smallest = mixture.sds.iter().copied().fold(f64::INFINITY, f64::min);
    let ends = |sign: f64| mixture.components().map(move |(mean, sd)| mean + sign * TAIL * sd);
    let low = ends(-1.0).fold(f64::INFINITY, f64::min);
    let high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
    let spacing = (smallest / 2.0).max((high - low) / (MOST_NODES - 1) as f64);
    let nodes = ((high - low) / spacing).ceil() as usize + 1;
    // Σᵢ Fᵢ at every node, and how many components have reached 1 there.
    let (mut sums, mut complete) = (vec![0.0; nodes], vec![0_usize; nodes + 1]);
    for (mean, sd) in mixture.components() {
        let node = |x: f64| (((x - low) / spacing).ceil().max(0.0) as usize).min(nodes);
        let (first, last) = (node(mean - TAIL * sd), node(mean + TAIL * sd));
        for (k, sum) in sums[first..last].iter_mut().enumerate() {
            *sum += normal_cdf((low + (first + k) as f64 * spacing - mean) / sd);
        }
        complete[last] += 1;
    }
    let count = mixture.means.len() as f64;
    let (mut reached, mut integral) = (0, 0.0);
    for (sum, complete) in sums.iter().zip(&complete) {
        reached += complete;
        let cdf = (sum + reached as f64) / count;
        integral += cdf * (1.0 - cdf);
    }
    2.0 * spacing * integral
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_agrees_with_the_pairs() {
        let means: Vec<f64> = (0..50_u8).map(|i| (f64::from(i) * 1.7).sin() * 3.0).collect();
        for spread in [0.0, 0.5, 5.0] {
            let sds: Vec<f64> = (0..50_u8).map(|i| 0.1 + spread * f64::from(i % 7) / 7.0).collect();
            let mixture = Mixture { means: &means, sds: &sds };
            let (pairs, grid) = (mean_distance_by_pairs(mixture), mean_distance_on_grid(mixture));
            assert!((pairs - grid).abs() < 1e-12 * pairs, "{pairs} and {grid}");
        }
    }

    #[test]
    fn very_unlike_components_cost_accuracy_not_memory() {
        let (means, sds) = ([0.0, 1.0, 5.0], [1e-9, 1.0, 3.0]);
        let mixture = Mixture { means: &means, sds: &sds };
        let (pairs, grid) = (mean_distance_by_pairs(mixture), mean_distance_on_grid(mixture));
        assert!((pairs - grid).abs() < 1e-3 * pairs, "{pairs} and {grid}");
    }
}
