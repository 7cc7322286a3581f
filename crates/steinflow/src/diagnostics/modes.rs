//! A search for mass without particles, which no test that looks at the particles alone can see.
//!
//! Probes start widely around the particles and climb, and so do the particles themselves. A probe's end that
//! valleys separate from every top that particles climb to is a mode that they miss. Depths are measured from
//! the tops, not from where particles happen to stand. What was found is weighed by volume, by importance
//! sampling around it; so is all that lies further out than any particle, which needs no mode of its own.
//! Finding nothing proves nothing, least of all in many dimensions.

mod climb;
mod volume;

use super::counted::Counted;
use crate::coordinates::Linear;
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};
use climb::climb;

/// Probes, half of them at each of two widths.
const PROBES: usize = 48;
/// Where they start, in standard deviations of the particles.
const WIDTHS: [f64; 2] = [3.0, 10.0];
/// More particles than this are thinned.
const MOST_PARTICLES: usize = 40;
/// Tops, and particles, next to a probe's end that are asked whether a valley lies between.
const NEIGHBOURS: usize = 5;
/// Points on the way to each of those.
const POINTS: usize = 9;
/// A valley is this deep below the lower of two tops, in nats.
const VALLEY: f64 = 1.0;
/// Ends that are this near, in standard deviations, are one.
const SAME: f64 = 0.2;
/// So many different ends are looked at, the highest first.
const MOST_ENDS: usize = 16;
/// A mode is worth a word when it weighs this much …
const WORTH: f64 = 0.02;
/// … or this much, where it is no lower than so many nats below the particles' own: in many dimensions weights
/// come out too small.
const HIGH_WORTH: f64 = 0.002;
const WORTHY_DEPTH: f64 = 3.0;
/// A mode that a share of the particles climbs to weighs no more than this, and so much more: shares and
/// weights are rough.
const FAIR_RATIO: f64 = 1.5;
const FAIR_EXCESS: f64 = 0.15;

/// Where probes have ended that is a mode of its own, with or without particles.
struct Place {
    end: usize,
    probes: usize,
    /// Of the particles, how many climb there.
    share: f64,
    log_mass: f64,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSearch {
    /// A point of the heaviest mode without particles, or with far too few; none if no probe has found one.
    pub unvisited: Option<Vec<f64>>,
    /// How many of the probes ended there or in another such mode.
    pub share: f64,
    /// Its part of the probability, roughly.
    pub weight: f64,
    /// The part of the probability that lies further out than all particles, as far as it is certain.
    pub mass_beyond: f64,
    /// What that adds to the particles' variance, as a part of it, as far as it is certain.
    pub variance_beyond: f64,
    /// Points that the target was evaluated at.
    pub evaluations: u64,
}

/// Searches around the particles, one a row.
pub fn search_modes<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    particles: MatRef<'_, T>,
    seed: u64,
) -> Result<ModeSearch> {
    let theta =
        Matrix::from_fn(particles.rows(), particles.cols(), |i, j| particles.row(i)[j].as_f64());
    let target = Counted::new(target);
    let (_, score) = target.at(&theta)?;
    let found = search(&target, &theta, &score, seed)?;
    Ok(ModeSearch { evaluations: target.points(), ..found })
}

/// The same at particles whose scores are known.
pub(super) fn search(
    target: &Counted<'_>,
    theta: &Matrix<f64>,
    score: &Matrix<f64>,
    seed: u64,
) -> Result<ModeSearch> {
    let (count, dim) = (theta.rows(), theta.cols());
    if count < 2 {
        return Err(Error::setting("number of particles", count, "a search needs 2 or more"));
    }
    let before = target.points();
    let view = View::new(target, theta, score);
    let kept = count.min(MOST_PARTICLES);
    let own = Matrix::from_fn(kept, dim, |i, j| view.own.row(i * count / kept)[j]);
    let mut z = vec![0.0; dim];
    let probes = Matrix::from_fn(PROBES, dim, |k, j| {
        if j == 0 {
            fill_standard_normal(&mut stream(seed, Purpose::Probe, 0, k as u64), &mut z);
        }
        WIDTHS[k % WIDTHS.len()] * z[j]
    });
    let tops = climb(&view, own.clone())?;
    let ends = climb(&view, probes)?;
    let (own_density, _) = view.at(&own)?;
    let known = Known { own: &own, own_density: &own_density, tops: &tops };

    let mut order: Vec<usize> = (0..PROBES).filter(|&k| ends.log_density[k].is_finite()).collect();
    order.sort_by(|&a, &b| ends.log_density[b].total_cmp(&ends.log_density[a]));
    let mut places: Vec<Place> = Vec::new();
    for k in order {
        let end = ends.points.row(k);
        let same = |place: &&mut Place| distance(end, ends.points.row(place.end)) < SAME;
        if let Some(place) = places.iter_mut().find(same) {
            place.probes += 1;
        } else if places.len() < MOST_ENDS {
            let share = tops.share_near(end);
            if share > 0.0 || known.is_cut_off(&view, end, ends.log_density[k])? {
                let log_mass = volume::around(&view, end, &tops.points, seed)?;
                places.push(Place { end: k, probes: 1, share, log_mass });
            }
        }
    }
    let log_mass = volume::log_mass(&own_density, dim);
    let found = volume::log_sum(places.iter().map(|place| place.log_mass));
    let total = log_mass.max(found);
    let highest = tops.log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weight = |place: &Place| (place.log_mass - total).exp();
    let is_missed = |place: &&Place| {
        let is_high = ends.log_density[place.end] > highest - WORTHY_DEPTH;
        match place.share {
            0.0 => weight(place) > if is_high { HIGH_WORTH } else { WORTH },
            share => weight(place) > FAIR_EXCESS + FAIR_RATIO * share,
        }
    };
    let missed: Vec<&Place> = places.iter().filter(is_missed).collect();
    let best = missed.iter().max_by(|a, b| a.log_mass.total_cmp(&b.log_mass));
    let beyond = volume::beyond(&view, log_mass, seed)?;
    Ok(ModeSearch {
        unvisited: best.map(|place| view.theta(ends.points.row(place.end))),
        share: missed.iter().map(|place| place.probes).sum::<usize>() as f64 / PROBES as f64,
        weight: best.map_or(0.0, |place| weight(place)),
        mass_beyond: beyond.mass,
        variance_beyond: beyond.variance,
        evaluations: target.points() - before,
    })
}

/// The target in coordinates in which the particles have mean 0 and variance 1.
struct View<'a> {
    target: &'a Counted<'a>,
    linear: Linear,
    middle: Vec<f64>,
    spread: Vec<f64>,
    /// The particles.
    own: Matrix<f64>,
}

impl<'a> View<'a> {
    fn new(target: &'a Counted<'a>, theta: &Matrix<f64>, score: &Matrix<f64>) -> Self {
        let linear = Linear::fit(theta.as_ref(), score.as_ref());
        let mut white = Matrix::zeros(theta.rows(), theta.cols());
        linear.from_position(theta.as_slice(), white.as_mut_slice());
        let (middle, spread) = super::moments(white.as_ref());
        let own = Matrix::from_fn(theta.rows(), theta.cols(), |i, j| {
            (white.row(i)[j] - middle[j]) / spread[j]
        });
        Self { target, linear, middle, spread, own }
    }

    fn positions(&self, points: &Matrix<f64>) -> Matrix<f64> {
        let white = Matrix::from_fn(points.rows(), points.cols(), |i, j| {
            self.middle[j] + self.spread[j] * points.row(i)[j]
        });
        let mut theta = Matrix::zeros(points.rows(), points.cols());
        self.linear.to_position(white.as_slice(), theta.as_mut_slice());
        theta
    }

    fn theta(&self, point: &[f64]) -> Vec<f64> {
        let point = Matrix::from_fn(1, point.len(), |_, j| point[j]);
        self.positions(&point).into_vec()
    }

    /// Log density and score, both as functions of these coordinates; the volume that they change is the
    /// same everywhere, and left out.
    fn at(&self, points: &Matrix<f64>) -> Result<(Vec<f64>, Matrix<f64>)> {
        let (log_density, score) = self.target.at(&self.positions(points))?;
        let mut pulled = Matrix::zeros(points.rows(), points.cols());
        self.linear.down(score.as_slice(), pulled.as_mut_slice());
        for i in 0..points.rows() {
            pulled.row_mut(i).iter_mut().zip(&self.spread).for_each(|(s, spread)| *s *= spread);
        }
        Ok((log_density, pulled))
    }
}

/// Where points have climbed to.
struct Ends {
    points: Matrix<f64>,
    log_density: Vec<f64>,
}

impl Ends {
    /// The share of them that is here.
    fn share_near(&self, point: &[f64]) -> f64 {
        let near = (0..self.points.rows()).filter(|&i| distance(self.points.row(i), point) < SAME);
        near.count() as f64 / self.points.rows() as f64
    }
}

/// Particles, and the tops that they climb to.
struct Known<'a> {
    own: &'a Matrix<f64>,
    own_density: &'a [f64],
    tops: &'a Ends,
}

impl Known<'_> {
    /// Whether valleys lie between a probe's end and all that particles climb to. A way may lead to a top, or
    /// to a particle, from where it goes up to its top without a valley.
    fn is_cut_off(&self, view: &View<'_>, end: &[f64], density: f64) -> Result<bool> {
        let near_tops = nearest(&self.tops.points, end);
        let near_own = nearest(self.own, end);
        let from: Vec<(&[f64], f64, usize)> = near_tops
            .iter()
            .map(|&i| (self.tops.points.row(i), self.tops.log_density[i], i))
            .chain(near_own.iter().map(|&i| (self.own.row(i), self.own_density[i], i)))
            .collect();
        let on_the_way = Matrix::from_fn(from.len() * POINTS, end.len(), |row, j| {
            let (start, part) = (from[row / POINTS].0[j], (row % POINTS + 1) as f64);
            start + (end[j] - start) * part / (POINTS + 1) as f64
        });
        let (between, _) = view.at(&on_the_way)?;
        Ok(from.iter().zip(between.chunks_exact(POINTS)).all(|(&(_, first, i), way)| {
            let lowest = way.iter().copied().fold(first, f64::min);
            lowest < self.tops.log_density[i].min(density) - VALLEY
        }))
    }
}

/// The rows that are nearest to a point, nearest first.
fn nearest(rows: &Matrix<f64>, point: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by(|&a, &b| distance(rows.row(a), point).total_cmp(&distance(rows.row(b), point)));
    order.truncate(NEIGHBOURS);
    order
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
