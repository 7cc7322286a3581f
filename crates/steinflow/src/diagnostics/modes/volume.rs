//! How much probability there is somewhere: ∫ π = E π/q with draws from a density q that is known.
//!
//! q is a mixture of Gaussians of several widths, so that no width needs to be the right one. Volumes are those
//! of coordinates in which the particles have mean 0 and variance 1.

use std::f64::consts::TAU;

use super::known::Mode;
use super::{View, distance};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Matrix, Result};

/// Widths around a mode that was found.
const NEAR: [f64; 3] = [0.3, 1.0, 3.0];
/// Widths around all particles.
const FAR: [f64; 4] = [2.0, 5.0, 12.0, 30.0];
/// Draws of each width.
const DRAWS: usize = 24;

/// What lies further out than all particles.
pub(super) struct Beyond {
    pub(super) mass: f64,
    pub(super) variance: f64,
    /// Where most of it was met.
    pub(super) place: Vec<f64>,
}

/// log ∫ π of particles of variance 1, from their log densities: E log π + H with the entropy H of a Gaussian.
pub(super) fn log_mass(log_density: &[f64], dim: usize) -> f64 {
    let mean = log_density.iter().sum::<f64>() / log_density.len() as f64;
    mean + 0.5 * dim as f64 * (TAU.ln() + 1.0)
}

/// log ∫ π around a mode, of what is nearer to it than to all others.
pub(super) fn around(view: &View<'_>, modes: &[Mode], m: usize, seed: u64) -> Result<f64> {
    let mixture = Mixture { centre: &modes[m].top, widths: &NEAR };
    let draws = mixture.draws(seed, 1);
    let (log_density, _) = view.at(&draws)?;
    let is_here = |&k: &usize| {
        let to = |mode: &Mode| distance(draws.row(k), &mode.top);
        modes.iter().all(|mode| to(mode) >= to(&modes[m]))
    };
    let terms: Vec<f64> = (0..draws.rows())
        .filter(is_here)
        .map(|k| log_density[k] - mixture.log_density(draws.row(k)))
        .collect();
    Ok(log_sum(terms.iter().copied()) - (draws.rows() as f64).ln())
}

/// log Σ exp.
pub(super) fn log_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + terms.map(|term| (term - top).exp()).sum::<f64>().ln()
}

/// Mass and variance beyond the outermost particle, relative to the particles' own; two standard errors less
/// than was found.
pub(super) fn beyond(view: &View<'_>, log_mass: f64, seed: u64) -> Result<Beyond> {
    let dim = view.own.cols();
    let origin = vec![0.0; dim];
    let mixture = Mixture { centre: &origin, widths: &FAR };
    let draws = mixture.draws(seed, 2);
    let radius = |row: &[f64]| distance(row, &origin);
    let outermost = (0..view.own.rows()).map(|i| radius(view.own.row(i))).fold(0.0, f64::max);
    let (log_density, _) = view.at(&draws)?;
    let weight = |k: usize| {
        let is_out = radius(draws.row(k)) > outermost;
        let log_ratio = log_density[k] - mixture.log_density(draws.row(k)) - log_mass;
        if is_out { log_ratio.min(600.0).exp() } else { 0.0 }
    };
    let weights: Vec<f64> = (0..draws.rows()).map(weight).collect();
    let certain = |of: &dyn Fn(usize) -> f64| {
        let n = weights.len() as f64;
        let mean = (0..weights.len()).map(of).sum::<f64>() / n;
        let square = (0..weights.len()).map(|k| (of(k) - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean - 2.0 * (square / n).sqrt()).max(0.0)
    };
    let mass = certain(&|k| weights[k]);
    let heaviest = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    Ok(Beyond {
        mass: mass / (1.0 + mass),
        place: heaviest.map_or(origin.clone(), |k| draws.row(k).to_vec()),
        variance: certain(&|k| weights[k] * radius(draws.row(k)).powi(2) / dim as f64),
    })
}

struct Mixture<'a> {
    centre: &'a [f64],
    widths: &'a [f64],
}

impl Mixture<'_> {
    fn draws(&self, seed: u64, step: u64) -> Matrix<f64> {
        let dim = self.centre.len();
        let mut draws = Matrix::zeros(self.widths.len() * DRAWS, dim);
        for k in 0..draws.rows() {
            let row = draws.row_mut(k);
            fill_standard_normal(&mut stream(seed, Purpose::Probe, step, k as u64), row);
            let width = self.widths[k % self.widths.len()];
            row.iter_mut().zip(self.centre).for_each(|(x, c)| *x = c + width * *x);
        }
        draws
    }

    fn log_density(&self, point: &[f64]) -> f64 {
        let (dim, square) = (point.len() as f64, distance(point, self.centre).powi(2));
        let of =
            |width: &f64| -0.5 * square / (width * width) - dim * (0.5 * TAU.ln() + width.ln());
        log_sum(self.widths.iter().map(of)) - (self.widths.len() as f64).ln()
    }
}
