//! A search for mass without particles, which no test that looks at the particles alone can see.
//!
//! Probes start widely around the particles and climb, and so do the particles themselves. A probe's end that
//! valleys separate from every top that particles climb to, also on a way that bends, is a mode that they miss.
//! Depths are measured from
//! the tops, not from where particles happen to stand. What was found is weighed by volume, by importance
//! sampling around it; so is all that lies further out than any particle, which needs no mode of its own.
//! Finding nothing proves nothing, least of all in many dimensions.

mod climb;
mod path;
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
/// Modes, and particles, next to a top that are asked whether a valley lies between.
const NEIGHBOURS: usize = 5;
/// Points on the way to each of those.
const POINTS: usize = 9;
/// A valley is this deep below the lower of two tops, in nats.
const VALLEY: f64 = 1.0;
/// First steps uphill, of particles, which are to stay in their modes, and of probes.
const SHORT: f64 = 0.2;
const LONG: f64 = 1.0;
/// Ends that are this near, in standard deviations, are one.
const SAME: f64 = 0.2;
/// So many modes without particles are looked at, the highest first.
const MOST_UNVISITED: usize = 16;
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
/// Probability further out than all of many particles that does not matter, …
const LARGEST_MASS_BEYOND: f64 = 0.05;
/// … unless it would add this part to the variance.
const LARGEST_VARIANCE_BEYOND: f64 = 0.5;

/// Probability further out than all of so many particles that does not matter.
pub(super) fn largest_mass_beyond(count: usize) -> f64 {
    LARGEST_MASS_BEYOND + 3.0 / count as f64
}

/// A top that particles or probes climb to, and all that no valley separates from it.
pub(super) struct Mode {
    top: Vec<f64>,
    log_density: f64,
    /// Of the particles, how many climb there.
    share: f64,
    /// How many probes do.
    probes: usize,
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
    /// A place out there, where those two are too much to be left out.
    pub beyond: Option<Vec<f64>>,
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
    let (own_density, _) = view.at(&own)?;
    let tops = climb(&view, own.clone(), SHORT)?;
    let ends = climb(&view, probes, LONG)?;

    let mut known =
        Known { modes: Vec::new(), own: &own, own_density: &own_density, leads_to: Vec::new() };
    known.add_tops(&view, &tops)?;
    for k in ends.highest_first() {
        known.add_end(&view, ends.points.row(k), ends.log_density[k])?;
    }
    let modes = known.modes;
    let masses: Vec<f64> =
        (0..modes.len()).map(|m| volume::around(&view, &modes, m, seed)).collect::<Result<_>>()?;
    let log_mass = volume::log_mass(&own_density, dim);
    let total = log_mass.max(volume::log_sum(masses.iter().copied()));
    let highest = tops.log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weight = |m: usize| (masses[m] - total).exp();
    let is_heavy = |&m: &usize| match modes[m].share {
        0.0 if modes[m].log_density > highest - WORTHY_DEPTH => weight(m) > HIGH_WORTH,
        0.0 => weight(m) > WORTH,
        share => weight(m) > FAIR_EXCESS + FAIR_RATIO * share,
    };
    let mut missed = Vec::new();
    for m in (0..modes.len()).filter(is_heavy) {
        if joined_by_a_bend(&view, &modes, &modes[m])?.is_none() {
            missed.push(m);
        }
    }
    let best = missed.iter().copied().max_by(|&a, &b| masses[a].total_cmp(&masses[b]));
    let beyond = volume::beyond(&view, log_mass, seed)?;
    let is_missed =
        beyond.mass > largest_mass_beyond(count) || beyond.variance > LARGEST_VARIANCE_BEYOND;
    Ok(ModeSearch {
        unvisited: best.map(|m| view.theta(&modes[m].top)),
        share: missed.iter().map(|&m| modes[m].probes).sum::<usize>() as f64 / PROBES as f64,
        weight: best.map_or(0.0, weight),
        mass_beyond: beyond.mass,
        variance_beyond: beyond.variance,
        beyond: is_missed.then(|| view.theta(&beyond.place)),
        evaluations: target.points() - before,
    })
}

/// The mode of each of these particles: tops that a way without a valley joins, also one that bends, are one.
pub(super) fn modes_of(view: &View<'_>, own: &Matrix<f64>) -> Result<Vec<usize>> {
    let (own_density, _) = view.at(own)?;
    let tops = climb(view, own.clone(), SHORT)?;
    let mut known =
        Known { modes: Vec::new(), own, own_density: &own_density, leads_to: Vec::new() };
    known.add_tops(view, &tops)?;
    // Into which of those before it each mode goes.
    let mut into: Vec<usize> = (0..known.modes.len()).collect();
    for m in 1..known.modes.len() {
        if let Some(other) = joined_by_a_bend(view, &known.modes[..m], &known.modes[m])? {
            into[m] = into[other];
        }
    }
    Ok(known.leads_to.into_iter().map(|m| into[m]).collect())
}

/// The target in coordinates in which the particles have mean 0 and variance 1.
pub(super) struct View<'a> {
    target: &'a Counted<'a>,
    linear: Linear,
    middle: Vec<f64>,
    spread: Vec<f64>,
    /// The particles.
    pub(super) own: Matrix<f64>,
}

impl<'a> View<'a> {
    pub(super) fn new(target: &'a Counted<'a>, theta: &Matrix<f64>, score: &Matrix<f64>) -> Self {
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
    /// Those that are somewhere.
    fn highest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.points.rows()).filter(|&k| self.log_density[k].is_finite()).collect();
        order.sort_by(|&a, &b| self.log_density[b].total_cmp(&self.log_density[a]));
        order
    }
}

/// Modes that have been found, and the particles, which climb to some of them.
struct Known<'a> {
    modes: Vec<Mode>,
    own: &'a Matrix<f64>,
    own_density: &'a [f64],
    /// The mode that each particle climbs to.
    leads_to: Vec<usize>,
}

impl Known<'_> {
    /// The modes of the particles.
    fn add_tops(&mut self, view: &View<'_>, tops: &Ends) -> Result<()> {
        let mut leads_to = vec![0; tops.points.rows()];
        for k in tops.highest_first() {
            leads_to[k] = self.add(view, tops.points.row(k), tops.log_density[k])?;
            self.modes[leads_to[k]].share += 1.0 / tops.points.rows() as f64;
        }
        self.leads_to = leads_to;
        Ok(())
    }

    /// The mode of a probe that has climbed, unless there are too many.
    fn add_end(&mut self, view: &View<'_>, end: &[f64], log_density: f64) -> Result<()> {
        let visited = self.modes.iter().filter(|mode| mode.share > 0.0).count();
        if self.modes.len() < visited + MOST_UNVISITED {
            let mode = self.add(view, end, log_density)?;
            self.modes[mode].probes += 1;
        }
        Ok(())
    }

    /// The mode of a top: one that is near, or that a straight way leads to without a valley, or a new one. The
    /// way may also lead to a particle, from where it goes up without a valley.
    fn add(&mut self, view: &View<'_>, top: &[f64], log_density: f64) -> Result<usize> {
        let distance_to = |mode: &Mode| distance(&mode.top, top);
        if let Some(near) = self.modes.iter().position(|mode| distance_to(mode) < SAME) {
            return Ok(near);
        }
        let near_modes = nearest(self.modes.len(), |m| distance_to(&self.modes[m]));
        let near_own = nearest(self.leads_to.len(), |i| distance(self.own.row(i), top));
        let from: Vec<(&[f64], f64, usize)> = near_modes
            .iter()
            .map(|&m| (&*self.modes[m].top, self.modes[m].log_density, m))
            .chain(
                near_own.iter().map(|&i| (self.own.row(i), self.own_density[i], self.leads_to[i])),
            )
            .collect();
        let on_the_way = Matrix::from_fn(from.len() * POINTS, top.len(), |row, j| {
            let (start, part) = (from[row / POINTS].0[j], (row % POINTS + 1) as f64);
            start + (top[j] - start) * part / (POINTS + 1) as f64
        });
        let (between, _) = view.at(&on_the_way)?;
        let joined =
            from.iter().zip(between.chunks_exact(POINTS)).find(|&(&(_, first, m), way)| {
                let lowest = way.iter().copied().fold(first, f64::min);
                lowest > self.modes[m].log_density.min(log_density) - VALLEY
            });
        if let Some((&(_, _, mode), _)) = joined {
            return Ok(mode);
        }
        self.modes.push(Mode { top: top.to_vec(), log_density, share: 0.0, probes: 0 });
        Ok(self.modes.len() - 1)
    }
}

/// The nearest of these modes with particles, if a way that bends leads there: ends of a curved ridge are no
/// modes.
fn joined_by_a_bend(view: &View<'_>, others: &[Mode], mode: &Mode) -> Result<Option<usize>> {
    let to = |m: &usize| distance(&others[*m].top, &mode.top);
    let visited = (0..others.len()).filter(|&m| others[m].share > 0.0 && to(&m) > 0.0);
    let Some(next) = visited.min_by(|a, b| to(a).total_cmp(&to(b))) else { return Ok(None) };
    let level = others[next].log_density.min(mode.log_density) - VALLEY;
    Ok(path::stays_above(view, &others[next].top, &mode.top, level)?.then_some(next))
}

/// The nearest few of so many, nearest first.
fn nearest(count: usize, distance: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    order.truncate(NEIGHBOURS);
    order
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
