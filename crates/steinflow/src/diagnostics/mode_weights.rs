//! How much each mode weighs, against how many particles it has.
//!
//! The score does not see the weights of modes that are far apart, but the log density does: for draws of
//! a mode, log Z = E log π + H with their entropy H, which the distances to nearest neighbours tell
//! (Kozachenko and Leonenko 1987). A particle belongs to the mode that it climbs to.

use super::modes::{View, distance};
use crate::Matrix;

/// Entropies are taken from the distance to this neighbour.
const ENTROPY_NEIGHBOUR: usize = 3;

/// One mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModeWeight {
    /// Its share of the particles.
    pub share: f64,
    /// Its share of the probability of all modes that have particles, by the target.
    pub weight: f64,
    /// How uncertain the logarithm of that is.
    pub log_error: f64,
}

/// The modes that particles are in.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Each of them, those with most particles first. Those of three particles or fewer are counted with the
    /// mode next to them. None where there are no others.
    pub weights: Vec<ModeWeight>,
    /// The mode of every particle.
    pub mode_of: Vec<usize>,
}

/// Weighs them by the particles that have climbed, as rows of the view, and the modes that those lead to.
pub(super) fn weigh(
    view: &View<'_>,
    log_density: &[f64],
    climbed: &[usize],
    modes: &[usize],
) -> Modes {
    let places = &view.own;
    let all = places.rows();
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); modes.iter().max().map_or(0, |m| m + 1)];
    climbed.iter().zip(modes).for_each(|(&i, &mode)| members[mode].push(i));
    members.retain(|members| members.len() > ENTROPY_NEIGHBOUR);
    if members.is_empty() {
        // So few particles, or so scattered, that none has the neighbours to weigh it by.
        return Modes { weights: Vec::new(), mode_of: vec![0; all] };
    }
    members.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let known: Vec<(usize, usize)> = members
        .iter()
        .enumerate()
        .flat_map(|(mode, all)| all.iter().map(move |&i| (i, mode)))
        .collect();
    let mode_next_to = |i: usize| {
        let away = |&&(k, _): &&(usize, usize)| distance(places.row(i), places.row(k));
        let next = known.iter().min_by(|a, b| away(a).total_cmp(&away(b)));
        next.map_or(0, |&(_, mode)| mode)
    };
    let mode_of: Vec<usize> = (0..all).map(mode_next_to).collect();
    let masses: Vec<(f64, f64)> =
        members.iter().map(|members| log_mass(members, places, log_density)).collect();
    let highest = masses.iter().map(|mass| mass.0).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = masses.iter().map(|mass| (mass.0 - highest).exp()).sum();
    let share = |mode: usize| mode_of.iter().filter(|&&of| of == mode).count() as f64 / all as f64;
    let weights = masses.iter().enumerate().map(|(mode, &(mass, log_error))| ModeWeight {
        share: share(mode),
        weight: (mass - highest).exp() / total,
        log_error,
    });
    Modes { weights: weights.collect(), mode_of }
}

/// log Z of a mode up to a constant that all modes share, and its error.
fn log_mass(members: &[usize], places: &Matrix<f64>, log_density: &[f64]) -> (f64, f64) {
    let (n, dim) = (members.len() as f64, places.cols() as f64);
    let terms: Vec<f64> = members
        .iter()
        .map(|&i| {
            let mut distances: Vec<f64> = members
                .iter()
                .filter(|&&j| j != i)
                .map(|&j| distance(places.row(i), places.row(j)))
                .collect();
            distances.sort_by(f64::total_cmp);
            // Particles at one place have no entropy to speak of.
            let nearest = distances[ENTROPY_NEIGHBOUR - 1].max(1e-12);
            log_density[i] + dim * nearest.ln()
        })
        .collect();
    let mean = terms.iter().sum::<f64>() / n;
    let square = terms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // ψ(n) ≈ log n − 1/(2n); ψ(k), the volume of the unit ball and the scales are the same for all.
    (mean + n.ln() - 0.5 / n, (square / n).sqrt())
}
