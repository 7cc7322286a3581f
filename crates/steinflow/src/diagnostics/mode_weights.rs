//! How much each mode weighs, against how many particles it has.
//!
//! The score does not see the weights of modes that are far apart, but the log density does: for draws of
//! a mode, log Z = E log π + H with their entropy H, which the distances to nearest neighbours tell
//! (Kozachenko and Leonenko 1987). A particle belongs to the mode that it climbs to.

use super::counted::Counted;
use super::modes::{View, distance, modes_of};
use crate::{LogDensity, MatRef, Matrix, Real, Result};

/// More particles than this are thinned.
const MOST_PARTICLES: usize = 300;
/// So many tell whether there is more than one mode.
const FIRST: usize = 40;
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

/// Finds the modes that particles, one a row, are in, and weighs them.
pub fn weigh_modes<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    particles: MatRef<'_, T>,
) -> Result<Modes> {
    let target = Counted::new(target);
    let all = particles.rows();
    let theta = Matrix::from_fn(all, particles.cols(), |i, j| particles.row(i)[j].as_f64());
    let (log_density, score) = target.at(&theta)?;
    weigh(&View::new(&target, &theta, &score), &log_density)
}

/// The same where log densities are known.
pub(super) fn weigh(view: &View<'_>, log_density: &[f64]) -> Result<Modes> {
    let places = &view.own;
    let all = places.rows();
    let of_every = |most: usize| -> Vec<usize> {
        let count = all.min(most);
        (0..count).map(|i| i * all / count).collect()
    };
    let climbed = |chosen: &[usize]| {
        let own = Matrix::from_fn(chosen.len(), places.cols(), |i, j| places.row(chosen[i])[j]);
        modes_of(view, &own)
    };
    let first = climbed(&of_every(FIRST))?;
    let chosen = of_every(MOST_PARTICLES);
    let modes = if first.iter().any(|&mode| mode != first[0]) {
        climbed(&chosen)?
    } else {
        vec![0; chosen.len()]
    };
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); all];
    chosen.iter().zip(&modes).for_each(|(&i, &mode)| members[mode].push(i));
    members.retain(|members| members.len() > ENTROPY_NEIGHBOUR);
    if members.is_empty() {
        // So few particles, or so scattered, that none has the neighbours to weigh it by.
        return Ok(Modes { weights: Vec::new(), mode_of: vec![0; all] });
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
    Ok(Modes { weights: weights.collect(), mode_of })
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
