//! A search for mass without particles, which no test that looks at the particles alone can see.
//!
//! Probes start widely around the particles and climb, and so do the particles themselves. A probe's end that
//! valleys separate from every top that particles climb to, also on a way that bends, is a mode that they miss.
//! Depths are measured from the tops, not from where particles happen to stand. What was found is weighed by
//! volume, by importance sampling around it; so is all that lies further out than any particle, which needs no
//! mode of its own. Where evaluations run out, what they did not suffice for counts as not joined, and as heavy.
//! Finding nothing proves nothing, least of all in many dimensions.

mod climb;
mod known;
mod path;
mod view;
mod volume;

use super::counted::{Counted, unless_spent};
use super::mode_weights::{Modes, weigh};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};
use climb::{Ends, climb};
use known::Known;
pub(super) use view::View;

/// Probes, half of them at each of two widths.
pub(super) const PROBES: usize = 48;
/// Where they start, in standard deviations of the particles.
const WIDTHS: [f64; 2] = [3.0, 10.0];
/// So many of them climb at a time: where evaluations run out, the search ends with those before.
const AT_A_TIME: usize = 8;
/// The first step uphill of probes.
const LONG: f64 = 1.0;
/// So many of the particles climb, or as many as have this many evaluations each.
const MOST_PARTICLES: usize = 40;
const FOR_EACH: u64 = 64;
/// More than this never do.
const MOST_CLIMBERS: usize = 300;
/// Parts of the evaluations after which climbs end, the search for valleys around their ends, and the weighing of
/// modes, so that something is left for what comes next.
const CLIMBED: f64 = 0.6;
const JOINED: f64 = 0.75;
const WEIGHED: f64 = 0.9;
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

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSearch {
    /// A point of the heaviest mode without particles, or with far too few; none if no probe has found one.
    pub unvisited: Option<Vec<f64>>,
    /// How many probes there were: fewer than 48 where evaluations ran out.
    pub probes: usize,
    /// How many of them ended there or in another such mode.
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
    if particles.rows() < 2 {
        let count = particles.rows();
        return Err(Error::setting("number of particles", count, "a search needs 2 or more"));
    }
    let target = Counted::new(target);
    let (theta, log_density, score) = around(&target, particles)?;
    let view = View::new(&target, &theta, &score);
    let found = survey(&view, &log_density, Some(seed), false)?.search;
    let found = found.ok_or_else(|| nowhere("too far out"))?;
    Ok(ModeSearch { evaluations: target.points(), ..found })
}

/// Finds the modes that particles, one a row, are in, and weighs them.
pub fn weigh_modes<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    particles: MatRef<'_, T>,
) -> Result<Modes> {
    let target = Counted::new(target);
    let (theta, log_density, score) = around(&target, particles)?;
    let found = survey(&View::new(&target, &theta, &score), &log_density, None, true)?.modes;
    found.ok_or_else(|| nowhere("too far out"))
}

fn around<T: Real>(
    target: &Counted<'_>,
    particles: MatRef<'_, T>,
) -> Result<(Matrix<f64>, Vec<f64>, Matrix<f64>)> {
    let theta =
        Matrix::from_fn(particles.rows(), particles.cols(), |i, j| particles.row(i)[j].as_f64());
    let (log_density, score) = target.at(&theta)?;
    match log_density.iter().chain(score.as_slice()).find(|x| !x.is_finite()) {
        Some(bad) => Err(nowhere(bad)),
        None => Ok((theta, log_density, score)),
    }
}

/// As many evaluations as it takes are allowed, so that nothing else keeps particles from climbing.
fn nowhere(found: impl std::fmt::Display) -> Error {
    let remedy = "modes are looked for from where both are finite";
    Error::setting("a log density or score of the particles", found, remedy)
}

/// What was found around particles; none of what was not asked for, or of what there were too few evaluations for.
pub(super) struct Survey {
    pub(super) search: Option<ModeSearch>,
    pub(super) modes: Option<Modes>,
}

/// Climbs from particles and, with a seed, from probes around them: for modes without particles, and to weigh those
/// that have some. Takes no more evaluations than the target allows.
pub(super) fn survey(
    view: &View<'_>,
    log_density: &[f64],
    seed: Option<u64>,
    weighs: bool,
) -> Result<Survey> {
    let mut found = Survey { search: None, modes: None };
    let mut ledger =
        Ledger { target: view.target, begun: view.target.points(), all: view.target.left() };
    let count = view.own.rows();
    let few = usize::try_from(ledger.all / FOR_EACH).unwrap_or(usize::MAX).max(2);
    let rows = evenly(count, MOST_PARTICLES.min(few));
    let mut known = Known::default();
    ledger.until(CLIMBED);
    let tops = unless_spent(known.add_particles(view, &rows))?;
    // Where particles have run away so far that rounding takes them out of all numbers, none is anywhere.
    if let Some(tops) = tops.filter(|_| !known.modes.is_empty()) {
        if let Some(seed) = seed {
            found.search = search(view, &mut known, &tops, seed, &mut ledger)?;
        }
        ledger.until(1.0);
        if weighs {
            let modes = climb_all(view, &mut known)?;
            found.modes = Some(weigh(view, log_density, &known.climbed, &modes));
        }
    }
    ledger.until(1.0);
    Ok(found)
}

/// Evaluations that a survey may take, part by part.
struct Ledger<'a> {
    target: &'a Counted<'a>,
    begun: u64,
    all: u64,
}

impl Ledger<'_> {
    /// Allows them up to this part of all.
    fn until(&mut self, part: f64) {
        let used = self.target.points() - self.begun;
        let part = if part < 1.0 { (part * self.all as f64) as u64 } else { self.all };
        self.target.allow(part.saturating_sub(used));
    }
}

/// Looks for modes without particles, or with far too few; none where there were not even evaluations for one
/// probe, or for what lies beyond.
fn search(
    view: &View<'_>,
    known: &mut Known,
    tops: &Ends,
    seed: u64,
    ledger: &mut Ledger<'_>,
) -> Result<Option<ModeSearch>> {
    let (before, count, dim) = (ledger.begun, view.own.rows(), view.own.cols());
    let log_mass = volume::log_mass(&known.own_density, dim);
    let mut z = vec![0.0; dim];
    let probes = Matrix::from_fn(PROBES, dim, |k, j| {
        if j == 0 {
            fill_standard_normal(&mut stream(seed, Purpose::Probe, 0, k as u64), &mut z);
        }
        WIDTHS[k % WIDTHS.len()] * z[j]
    });
    let mut ends: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut climbed = 0;
    for first in (0..PROBES).step_by(AT_A_TIME) {
        let some = Matrix::from_fn(AT_A_TIME, dim, |i, j| probes.row(first + i)[j]);
        let Some(found) = unless_spent(climb(view, some, LONG))? else { break };
        climbed += AT_A_TIME;
        ends.extend((0..AT_A_TIME).map(|k| (found.points.row(k).to_vec(), found.log_density[k])));
    }
    ends.retain(|(_, log_density)| log_density.is_finite());
    ends.sort_by(|a, b| b.1.total_cmp(&a.1));
    ledger.until(JOINED);
    for (end, log_density) in &ends {
        if unless_spent(known.add_end(view, end, *log_density))?.is_none() {
            break;
        }
    }
    ledger.until(1.0);
    let Some(beyond) = unless_spent(volume::beyond(view, log_mass, seed))? else { return Ok(None) };
    if climbed == 0 {
        return Ok(None);
    }
    ledger.until(WEIGHED);
    let modes = &known.modes;
    // None where evaluations ran out: then it may be heavy.
    let masses: Vec<Option<f64>> = (0..modes.len())
        .map(|m| unless_spent(volume::around(view, modes, m, seed)))
        .collect::<Result<_>>()?;
    let total = log_mass.max(volume::log_sum(masses.iter().copied().flatten()));
    let highest = tops.log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weight = |m: usize| masses[m].map(|mass| (mass - total).exp());
    let is_heavy = |&m: &usize| match (weight(m), known.share(&modes[m])) {
        (None, share) => share == 0.0,
        (Some(weight), 0.0) if modes[m].log_density > highest - WORTHY_DEPTH => weight > HIGH_WORTH,
        (Some(weight), 0.0) => weight > WORTH,
        (Some(weight), share) => weight > FAIR_EXCESS + FAIR_RATIO * share,
    };
    ledger.until(1.0);
    let mut missed = Vec::new();
    for m in (0..modes.len()).filter(is_heavy) {
        // A way that was not found for want of evaluations is none.
        if unless_spent(known.joined_by_a_bend(view, modes.len(), m))?.flatten().is_none() {
            missed.push(m);
        }
    }
    let rank = |m: usize| masses[m].unwrap_or(f64::NEG_INFINITY);
    let best = missed.iter().copied().max_by(|&a, &b| rank(a).total_cmp(&rank(b)));
    let is_missed =
        beyond.mass > largest_mass_beyond(count) || beyond.variance > LARGEST_VARIANCE_BEYOND;
    Ok(Some(ModeSearch {
        unvisited: best.map(|m| view.theta(&modes[m].top)),
        probes: climbed,
        share: missed.iter().map(|&m| modes[m].probes).sum::<usize>() as f64 / climbed as f64,
        weight: best.and_then(weight).unwrap_or(0.0),
        mass_beyond: beyond.mass,
        variance_beyond: beyond.variance,
        beyond: is_missed.then(|| view.theta(&beyond.place)),
        evaluations: view.target.points() - before,
    }))
}

/// The modes of the particles that have climbed: tops that a way without a valley joins, also one that bends, are
/// one. Where there are several, more particles climb, for as long as evaluations last.
fn climb_all(view: &View<'_>, known: &mut Known) -> Result<Vec<usize>> {
    let mut into: Vec<usize> = Vec::new();
    let mut merge = |known: &Known| -> Result<Vec<usize>> {
        for m in into.len()..known.modes.len() {
            let is_visited = known.modes[m].climbers > 0;
            let joined = if is_visited && m > 0 {
                unless_spent(known.joined_by_a_bend(view, m, m))?.flatten()
            } else {
                None
            };
            into.push(joined.map_or(m, |other| into[other]));
        }
        Ok(known.leads_to.iter().map(|&m| into[m]).collect())
    };
    let first = merge(known)?;
    if first.iter().all(|&mode| mode == first[0]) {
        return Ok(first);
    }
    let mut others = evenly(view.own.rows(), MOST_CLIMBERS);
    others.retain(|row| !known.climbed.contains(row));
    let parts = others.len().div_ceil(MOST_PARTICLES);
    for part in 0..parts {
        // Every so many, so that those of a part are spread over all.
        let rows: Vec<usize> = others.iter().copied().skip(part).step_by(parts).collect();
        if unless_spent(known.add_particles(view, &rows))?.is_none() {
            break;
        }
    }
    merge(known)
}

/// At most so many of so many, evenly.
fn evenly(all: usize, most: usize) -> Vec<usize> {
    let kept = all.min(most);
    (0..kept).map(|i| i * all / kept).collect()
}

pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
