//! Weeding: particles in regions that hold next to no mass become copies of others.
//!
//! A particle's own track tells the mass of its region: M = mean log density + Σⱼ log sd(uⱼ).

use super::cloud::Cloud;
use super::dice::{Event, index};
use crate::quantiles::{median, quantile};

/// Log masses of all particles' regions.
pub(super) fn log_mass(mean_log_density: f64, variances: &[f64]) -> f64 {
    mean_log_density + variances.iter().map(|v| 0.5 * v.ln()).sum::<f64>()
}

/// Replaces, position and step size, the particles whose log mass is below the quantile at `level` by more
/// than `slack(q75 − q50)`. Returns how many.
pub(super) fn weed(
    cloud: &mut Cloud,
    steps: &mut [f64],
    masses: &[f64],
    level: f64,
    slack: impl Fn(f64) -> f64,
    event: Event,
) -> usize {
    let known: Vec<f64> = masses.iter().copied().filter(|m| m.is_finite()).collect();
    let spread = quantile(&known, 0.75) - quantile(&known, 0.5);
    // Not a number where no particle has moved: then only those at a wall are lost.
    let least = quantile(&known, level) - slack(spread);
    let middle = median(cloud.white_log_density.clone());
    let lost = |i: usize| {
        let (mass, level) = (masses[i], cloud.white_log_density[i]);
        // A particle that never moved stays where the density is high: its region may be narrow.
        let never_moved_but_high = !mass.is_finite() && level >= middle;
        !level.is_finite() || (!never_moved_but_high && !(mass >= least) && !least.is_nan())
    };
    let (weeds, others): (Vec<usize>, Vec<usize>) = (0..cloud.count()).partition(|&i| lost(i));
    if others.is_empty() {
        return 0;
    }
    let before = cloud.clone();
    for &i in &weeds {
        let j = others[index(&mut event.of(i), others.len())];
        cloud.take(i, &before, j);
        steps[i] = steps[j];
    }
    weeds.len()
}
