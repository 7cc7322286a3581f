//! How much each mode weighs, against how many particles it has.
//!
//! The score does not see the weights of modes that are far apart, but the log density does: for draws of
//! a mode, log Z = E log π + H with their entropy H, which the distances to nearest neighbours tell
//! (Kozachenko and Leonenko 1987). Particles belong to one mode when paths without a valley join them. Who is
//! near is told in coordinates in which the particles are as wide as long: next to a particle of a narrow
//! ridge there would be others across it, beyond the valley, before those along it.

use crate::coordinates::Linear;
use crate::{LogDensity, MatRef, Matrix, Real, Result};

/// More particles than this are thinned.
const MOST_PARTICLES: usize = 300;
/// Neighbours of a particle that a path may lead to.
const NEIGHBOURS: usize = 6;
/// The share of the particles, those of lowest density, that paths do not lead through.
const STRAGGLERS: f64 = 0.3;
/// Points on a path.
const POINTS: usize = 3;
/// A valley is this deep, in nats.
const VALLEY: f64 = 2.0;
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
    /// Each of them, those with most particles first. Particles that no path joins to three others are
    /// counted with the mode next to them. None where no particle is joined to three others.
    pub weights: Vec<ModeWeight>,
    /// The mode of every particle.
    pub mode_of: Vec<usize>,
}

/// Finds the modes that particles, one a row, are in, and weighs them.
pub fn weigh_modes<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    particles: MatRef<'_, T>,
) -> Result<Modes> {
    let (count, dim) = (particles.rows().min(MOST_PARTICLES), particles.cols());
    let theta = Matrix::from_fn(count, dim, |i, j| particles.row(i * particles.rows() / count)[j]);
    let mut log_density = vec![T::zero(); count];
    let mut score = Matrix::zeros(count, dim);
    target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
    let log_density: Vec<f64> = log_density.iter().map(|x| x.as_f64()).collect();

    let white = White::new(&theta, &score);
    let places = white.places(theta.as_ref());
    let nearest = nearest(&places);
    // A straggler in a valley would join the modes on its sides.
    let core = {
        let mut sorted = log_density.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(STRAGGLERS * count as f64) as usize]
    };
    let is_core = |i: usize| log_density[i] >= core;
    let edges: Vec<(usize, usize)> = (0..count)
        .filter(|&i| is_core(i))
        .flat_map(|i| {
            let others = nearest[i].iter().map(|&(j, _)| j).filter(|&j| is_core(j));
            others.take(NEIGHBOURS).map(move |j| (i, j))
        })
        .collect();
    let on_the_way = Matrix::from_fn(edges.len() * POINTS, dim, |row, k| {
        let (i, j) = edges[row / POINTS];
        let (from, to) = (theta.row(i)[k].as_f64(), theta.row(j)[k].as_f64());
        T::of(from + (to - from) * (row % POINTS + 1) as f64 / (POINTS + 1) as f64)
    });
    let mut between = vec![T::zero(); on_the_way.rows()];
    let mut unused = Matrix::zeros(on_the_way.rows(), dim);
    target.evaluate(on_the_way.as_ref(), None, &mut between, unused.as_mut())?;

    let mut parent: Vec<usize> = (0..count).collect();
    for (&(i, j), way) in edges.iter().zip(between.chunks_exact(POINTS)) {
        let lowest = way.iter().map(|x| x.as_f64()).fold(f64::INFINITY, f64::min);
        if lowest >= log_density[i].min(log_density[j]) - VALLEY {
            let (a, b) = (root(&parent, i), root(&parent, j));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for i in (0..count).filter(|&i| is_core(i)) {
        members[root(&parent, i)].push(i);
    }
    members.retain(|members| members.len() > ENTROPY_NEIGHBOUR);
    if members.is_empty() {
        // So few particles, or so scattered, that none has the neighbours to weigh it by.
        return Ok(Modes { weights: Vec::new(), mode_of: vec![0; particles.rows()] });
    }
    members.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let mut known: Vec<(usize, usize)> = Vec::new();
    for (mode, members) in members.iter().enumerate() {
        known.extend(members.iter().map(|&i| (i, mode)));
    }
    let mode_next_to = |place: &[f64]| {
        let away = |k: usize| distance(place, places.row(k));
        let next = known.iter().min_by(|a, b| away(a.0).total_cmp(&away(b.0)));
        next.map_or(0, |&(_, mode)| mode)
    };
    let everywhere = white.places(particles);
    let mode_of: Vec<usize> =
        (0..particles.rows()).map(|i| mode_next_to(everywhere.row(i))).collect();
    let mut members = vec![Vec::new(); members.len()];
    for i in 0..count {
        members[mode_next_to(places.row(i))].push(i);
    }
    let masses: Vec<(f64, f64)> =
        members.iter().map(|members| log_mass(members, &places, &log_density)).collect();
    let highest = masses.iter().map(|mass| mass.0).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = masses.iter().map(|mass| (mass.0 - highest).exp()).sum();
    let share = |mode: usize| {
        mode_of.iter().filter(|&&of| of == mode).count() as f64 / particles.rows() as f64
    };
    let weights = masses.iter().enumerate().map(|(mode, &(mass, log_error))| ModeWeight {
        share: share(mode),
        weight: (mass - highest).exp() / total,
        log_error,
    });
    Ok(Modes { weights: weights.collect(), mode_of })
}

fn root(parent: &[usize], mut i: usize) -> usize {
    while parent[i] != i {
        i = parent[i];
    }
    i
}

/// Coordinates in which the particles have variance 1, fitted to them and their scores.
struct White {
    linear: Linear,
    scales: Vec<f64>,
}

impl White {
    fn new<T: Real>(theta: &Matrix<T>, score: &Matrix<T>) -> Self {
        let linear = Linear::fit(theta.cast().as_ref(), score.cast().as_ref());
        let unscaled = Self { linear, scales: vec![1.0; theta.cols()] };
        let (_, scales) = super::moments(unscaled.places(theta.as_ref()).as_ref());
        Self { scales, ..unscaled }
    }

    fn places<T: Real>(&self, theta: MatRef<'_, T>) -> Matrix<f64> {
        let (rows, dim) = (theta.rows(), theta.cols());
        let theta = Matrix::from_fn(rows, dim, |i, j| theta.row(i)[j].as_f64());
        let mut white = Matrix::zeros(rows, dim);
        self.linear.from_position(theta.as_slice(), white.as_mut_slice());
        Matrix::from_fn(rows, dim, |i, j| white.row(i)[j] / self.scales[j])
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// For every place the others, nearest first, with their distances.
fn nearest(places: &Matrix<f64>) -> Vec<Vec<(usize, f64)>> {
    let of = |i: usize| {
        let others = (0..places.rows()).filter(|&j| j != i);
        let mut others: Vec<(usize, f64)> =
            others.map(|j| (j, distance(places.row(i), places.row(j)))).collect();
        others.sort_by(|a, b| a.1.total_cmp(&b.1));
        others
    };
    (0..places.rows()).map(of).collect()
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
