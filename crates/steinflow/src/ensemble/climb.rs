//! The climb: every particle ascends log π by its own L-BFGS, one batched evaluation at a time.
//!
//! A particle rests once it is among draws, not at a mode: three calm steps in a row, where neither the gain
//! nor the promise g·p of the next step exceeds d.

use rayon::prelude::*;

use super::cloud::{Cloud, evaluate};
use crate::arrays::{Arrays, FOREIGN};
use crate::{LogDensity, Matrix, Result};

/// Pairs that a particle remembers.
const MEMORY: usize = 10;
/// Batched evaluations.
const LONGEST: u64 = 150;
/// The share of g·p that a step must gain.
const ENOUGH: f64 = 1e-4;
/// Failures in a row after which a particle forgets its pairs, and after which it gives up.
const FORGETS: (u32, u32) = (8, 24);
const CALM: u32 = 3;

/// All climbers, and how long they have climbed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Climb {
    climbers: Vec<Climber>,
    evaluations: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Climber {
    /// The newest first.
    pairs: Vec<Pair>,
    direction: Vec<f64>,
    /// The length of a step without pairs.
    gamma: f64,
    step: f64,
    failures: u32,
    calm: u32,
    rests: bool,
}

/// A step s, the change of the score u along it (downwards), and 1/(s·u).
#[derive(Clone, Debug, PartialEq)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    rho: f64,
}

impl Climb {
    pub(super) fn new(cloud: &Cloud) -> Self {
        let climber = |i: usize| {
            let score = cloud.score.row(i);
            let gamma = norm(score).max(1e-150).recip();
            Climber {
                pairs: Vec::new(),
                direction: score.iter().map(|g| g * gamma).collect(),
                gamma,
                step: 1.0,
                failures: 0,
                calm: 0,
                rests: !cloud.log_density[i].is_finite(),
            }
        };
        Self { climbers: (0..cloud.count()).map(climber).collect(), evaluations: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        self.evaluations >= LONGEST || self.climbers.iter().all(|climber| climber.rests)
    }

    /// Whether at least half of the particles have arrived.
    pub(super) fn succeeded(&self) -> bool {
        2 * self.climbers.iter().filter(|climber| climber.rests).count() >= self.climbers.len()
    }

    /// One step of all that still climb; returns the evaluations it took.
    pub(super) fn advance(
        &mut self,
        cloud: &mut Cloud,
        target: &dyn LogDensity<f64>,
    ) -> Result<u64> {
        let dim = cloud.theta.cols();
        let active: Vec<usize> =
            (0..self.climbers.len()).filter(|&i| !self.climbers[i].rests).collect();
        let ahead = Matrix::from_fn(active.len(), dim, |row, j| {
            let climber = &self.climbers[active[row]];
            cloud.theta.row(active[row])[j] + climber.step * climber.direction[j]
        });
        let (mut values, mut scores) = (vec![0.0; active.len()], Matrix::zeros(active.len(), dim));
        evaluate(target, ahead.as_ref(), &mut values, scores.as_mut())?;
        let here = &*cloud;
        let good: Vec<bool> = self
            .climbers
            .par_iter_mut()
            .with_min_len(crate::engine::rows_per_task(MEMORY * dim))
            .enumerate()
            .map(|(i, climber)| {
                let Ok(row) = active.binary_search(&i) else { return false };
                let old = Place {
                    theta: here.theta.row(i),
                    value: here.log_density[i],
                    score: here.score.row(i),
                };
                let new =
                    Place { theta: ahead.row(row), value: values[row], score: scores.row(row) };
                climber.judge(&old, &new)
            })
            .collect();
        for (row, &i) in active.iter().enumerate() {
            if good[i] {
                cloud.theta.row_mut(i).copy_from_slice(ahead.row(row));
                cloud.log_density[i] = values[row];
                cloud.score.row_mut(i).copy_from_slice(scores.row(row));
            }
        }
        self.evaluations += 1;
        Ok(active.len() as u64)
    }

    /// Rows s/√(s·u) and u/√(s·u), both with either sign: positions and scores that hold the curvature
    /// where particles are. The last pairs of each; all of them where particles are few.
    pub(super) fn pairs(&self) -> Option<(Matrix<f64>, Matrix<f64>)> {
        let dim = self.climbers[0].direction.len();
        let most = if self.climbers.len() > dim { 2 } else { MEMORY };
        let pairs: Vec<&Pair> =
            self.climbers.iter().flat_map(|climber| climber.pairs.iter().take(most)).collect();
        if pairs.len() < dim.max(10) {
            return None;
        }
        let rows = |of: &dyn Fn(&Pair, usize) -> f64| {
            Matrix::from_fn(2 * pairs.len(), dim, |i, j| {
                let pair = pairs[i / 2];
                let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                sign * pair.rho.sqrt() * of(pair, j)
            })
        };
        Some((rows(&|pair, j| pair.step[j]), rows(&|pair, j| pair.change[j])))
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put("climb.evaluations", [self.evaluations as f64]);
        let (mut numbers, mut directions, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for climber in &self.climbers {
            let rests = f64::from(u8::from(climber.rests));
            let counts = [climber.failures, climber.calm].map(f64::from);
            numbers.extend([climber.pairs.len() as f64, climber.gamma, climber.step, rests]);
            numbers.extend(counts);
            directions.extend(&climber.direction);
            for pair in &climber.pairs {
                pairs.push(pair.rho);
                pairs.extend(pair.step.iter().chain(&pair.change));
            }
        }
        into.put("climb.numbers", numbers);
        into.put("climb.directions", directions);
        into.put("climb.pairs", pairs);
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        let numbers = from.get_exactly("climb.numbers", 6 * count)?;
        let directions = from.get_exactly("climb.directions", count * dim)?;
        let mut pairs = from.get("climb.pairs")?.chunks_exact(1 + 2 * dim);
        let climber = |i: usize| -> Result<Climber> {
            let of = &numbers[6 * i..6 * i + 6];
            let pairs = (0..of[0] as usize).map(|_| {
                let row = pairs.next().ok_or(FOREIGN)?;
                let (step, change) = row[1..].split_at(dim);
                Ok(Pair { step: step.to_vec(), change: change.to_vec(), rho: row[0] })
            });
            Ok(Climber {
                pairs: pairs.collect::<Result<_>>()?,
                direction: directions[i * dim..(i + 1) * dim].to_vec(),
                gamma: of[1],
                step: of[2],
                rests: of[3] != 0.0,
                failures: of[4] as u32,
                calm: of[5] as u32,
            })
        };
        let climbers = (0..count).map(climber).collect::<Result<_>>()?;
        Ok(Self { climbers, evaluations: from.get_count("climb.evaluations")? })
    }
}

/// Where a climber is, or might go.
struct Place<'a> {
    theta: &'a [f64],
    value: f64,
    score: &'a [f64],
}

impl Climber {
    /// Whether the step is taken; learns from it, and plans the next.
    fn judge(&mut self, old: &Place<'_>, new: &Place<'_>) -> bool {
        let calm = old.theta.len() as f64;
        let gain = new.value - old.value;
        let promised = self.step * dot(old.score, &self.direction);
        let good = new.value.is_finite() && gain >= ENOUGH * promised;
        let mut learnt = false;
        if good {
            let step: Vec<f64> = new.theta.iter().zip(old.theta).map(|(a, b)| a - b).collect();
            let change: Vec<f64> = old.score.iter().zip(new.score).map(|(a, b)| a - b).collect();
            let product = dot(&step, &change);
            learnt = product > 1e-10 * norm(&step) * norm(&change);
            if learnt {
                self.gamma = product / dot(&change, &change);
                self.pairs.truncate(MEMORY - 1);
                self.pairs.insert(0, Pair { step, change, rho: product.recip() });
            }
        }
        let score = if good { new.score } else { old.score };
        self.failures = if good { 0 } else { self.failures + 1 };
        self.step = match (good, learnt) {
            (true, true) => 1.0,
            (true, false) => self.step * 4.0,
            (false, _) => self.step * 0.25,
        };
        if self.failures % FORGETS.0 == FORGETS.0 - 1 {
            self.pairs.clear();
            self.gamma = 1e-3 / norm(score).max(1e-150);
            self.step = 1.0;
        }
        self.aim(score);
        let promise = dot(score, &self.direction);
        if good {
            self.calm = if gain < calm && promise < calm { self.calm + 1 } else { 0 };
        }
        self.rests = self.failures >= FORGETS.1
            || self.calm >= CALM
            || (self.calm > 0 && promise < 1e-6 * calm);
        good
    }

    /// The two-loop recursion.
    fn aim(&mut self, score: &[f64]) {
        let direction = &mut self.direction;
        direction.copy_from_slice(score);
        let mut along = [0.0; MEMORY];
        for (pair, along) in self.pairs.iter().zip(&mut along) {
            *along = pair.rho * dot(&pair.step, direction);
            direction.iter_mut().zip(&pair.change).for_each(|(q, u)| *q -= *along * u);
        }
        for q in direction.iter_mut() {
            *q *= self.gamma;
        }
        for (pair, along) in self.pairs.iter().zip(&along).rev() {
            let rest = along - pair.rho * dot(&pair.change, direction);
            direction.iter_mut().zip(&pair.step).for_each(|(q, s)| *q += rest * s);
        }
        if dot(score, direction) <= 0.0 {
            self.pairs.clear();
            direction.iter_mut().zip(score).for_each(|(q, g)| *q = g * self.gamma);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
