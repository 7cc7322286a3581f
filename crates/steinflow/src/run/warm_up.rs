//! A warm-up before the first step, and what is kept of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::auto::show;
use super::same_target::check_ensemble;
use super::{Checkpoint, Observer};
use crate::arrays::Arrays;
use crate::coordinates::Coordinates;
use crate::ensemble::{Ensemble, Options};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Moments of exact draws that a warm-up has made, to compare with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WarmMoments {
    /// How many draws, of all particles together.
    pub draws: usize,
    /// Of every coordinate of θ.
    pub mean: Vec<f64>,
    /// Of every coordinate of θ.
    pub sd: Vec<f64>,
}

/// Draws of each particle that moments are made of.
const DRAWS: usize = 25;

/// Draws for particles that are more than the ensemble has.
#[derive(Default)]
struct Kept {
    /// θ, draw after draw.
    values: Vec<f64>,
}

impl Kept {
    /// `count` rows from draws that are as far apart as can be, the last among them. Rows come again where
    /// there are too few.
    fn spread(&self, count: usize, last: &Matrix<f64>) -> Matrix<f64> {
        let (particles, dim) = (last.rows(), last.cols());
        let draws = self.values.len() / (particles * dim);
        if draws == 0 {
            return Matrix::from_fn(count, dim, |i, j| last.row(i % particles)[j]);
        }
        let taken = count.div_ceil(particles).min(draws);
        Matrix::from_fn(count, dim, |i, j| {
            let draw = draws - 1 - (i / particles % taken) * (draws / taken);
            self.values[(draw * particles + i % particles) * dim + j]
        })
    }
}

/// Running sums of draws, about the first of them.
#[derive(Default)]
struct Sums {
    centre: Vec<f64>,
    count: usize,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    fn add(&mut self, theta: MatRef<'_, f64>) {
        if self.count == 0 {
            self.centre = theta.row(0).to_vec();
            (self.first, self.second) = (vec![0.0; theta.cols()], vec![0.0; theta.cols()]);
        }
        for i in 0..theta.rows() {
            for (j, x) in theta.row(i).iter().enumerate() {
                let away = x - self.centre[j];
                self.first[j] += away;
                self.second[j] += away * away;
            }
        }
        self.count += theta.rows();
    }

    fn moments(&self) -> WarmMoments {
        let count = self.count.max(1) as f64;
        let mean = |j: usize| self.first[j] / count;
        let all = 0..self.first.len();
        WarmMoments {
            draws: self.count,
            mean: all.clone().map(|j| self.centre[j] + mean(j)).collect(),
            sd: all.map(|j| (self.second[j] / count - mean(j).powi(2)).max(0.0).sqrt()).collect(),
        }
    }

    fn save(&self, into: &mut Arrays) {
        into.put(UNDER_WAY, [self.count as f64]);
        let fields = [("centre", &self.centre), ("first", &self.first), ("second", &self.second)];
        for (name, values) in fields {
            into.put(format!("sums.{name}"), &**values);
        }
    }

    fn restore(dim: usize, from: &Arrays) -> Result<Self> {
        let count = from.get_count(UNDER_WAY)? as usize;
        let field =
            |name| from.get_exactly(&format!("sums.{name}"), if count == 0 { 0 } else { dim });
        Ok(Self {
            count,
            centre: field("centre")?,
            first: field("first")?,
            second: field("second")?,
        })
    }
}

/// Draws so far, where they are kept.
const KEPT: &str = "kept";

/// What a checkpoint has learnt, where its warm-up was under way.
const UNDER_WAY: &str = "sums.count";

/// Whether these were saved before the first step, while the warm-up was under way.
pub(super) fn is_under_way(learnt: &Arrays) -> bool {
    learnt.get(UNDER_WAY).is_ok()
}

/// What a warm-up leaves to the steps that follow.
pub(super) struct Warmth {
    pub(super) moments: WarmMoments,
    pub(super) coordinates: Coordinates,
    /// Evaluations of the target that it took, for each particle that it left.
    pub(super) gradients: u64,
    /// θ of every particle; none in a run that goes on from a checkpoint.
    theta: Matrix<f64>,
}

/// When a warm-up is to be given up.
pub(super) struct Stop {
    pub(super) budget: Option<Duration>,
    pub(super) interrupt: Option<Arc<AtomicBool>>,
}

impl Stop {
    fn is_due(&self, elapsed: Duration) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.budget.is_some_and(|budget| elapsed >= budget)
    }
}

impl Warmth {
    pub(super) fn restore(dim: usize, arrays: &Arrays) -> Result<Self> {
        Ok(Self {
            moments: WarmMoments {
                draws: arrays.get_count("draws")? as usize,
                mean: arrays.get_exactly("mean", dim)?,
                sd: arrays.get_exactly("sd", dim)?,
            },
            coordinates: Coordinates::restore(dim, arrays)?,
            gradients: arrays.get_count("gradients")?,
            theta: Matrix::zeros(0, dim),
        })
    }

    pub(super) fn save(&self) -> Arrays {
        let mut arrays = self.coordinates.save();
        arrays.put("gradients", [self.gradients as f64]);
        arrays.put("draws", [self.moments.draws as f64]);
        arrays.put("mean", &*self.moments.mean);
        arrays.put("sd", &*self.moments.sd);
        arrays
    }

    /// The particles where the warm-up left them, in its coordinates.
    pub(super) fn white<T: Real>(&self) -> Matrix<T> {
        self.coordinates.from_theta(self.theta.as_ref()).cast()
    }

    /// A state in these coordinates, with θ in the target's own.
    pub(super) fn in_theta<T: Real>(&self, state: MatRef<'_, T>, dim: usize) -> Matrix<T> {
        let white = Matrix::from_fn(state.rows(), dim, |i, j| state.row(i)[j].as_f64());
        let theta = self.coordinates.to_theta(white.as_ref());
        Matrix::from_fn(state.rows(), state.cols(), |i, j| {
            if j < dim { T::of(theta.row(i)[j]) } else { state.row(i)[j] }
        })
    }
}

/// Runs an ensemble until it is warm and has made some draws, from `earlier` on where that is a checkpoint
/// of it, and leaves `count` particles. Those may be more than the ensemble has: a warm-up costs no more for
/// many. Observers see it, at step 0.
pub(super) fn run<T: Real>(
    target: &dyn LogDensity<f64>,
    options: &Options,
    (count, earlier): (usize, Option<&Checkpoint<T>>),
    observers: &mut [Box<dyn Observer<T> + '_>],
    stop: &Stop,
    begun: Instant,
) -> Result<Warmth> {
    let (mut ensemble, mut sums, mut kept) = match earlier {
        Some(checkpoint) => {
            let ensemble = Ensemble::restore(options.clone(), &checkpoint.learnt)?;
            check_ensemble::<T>(&ensemble, target)?;
            let kept = Kept { values: checkpoint.learnt.get(KEPT)?.to_vec() };
            (ensemble, Sums::restore(target.dim(), &checkpoint.learnt)?, kept)
        }
        None => (Ensemble::new(target.dim(), options.clone())?, Sums::default(), Kept::default()),
    };
    let before = earlier.map_or(Duration::ZERO, |checkpoint| checkpoint.elapsed);
    let enough = count.max(DRAWS * ensemble.particles());
    let shown = Options { effective: enough as f64, ..options.clone() };
    while !ensemble.is_done() && sums.count < enough {
        let mut stopped = None;
        ensemble.advance(target, &mut |at| {
            if let Some(draw) = at.draw {
                // Draws that turned out to be warm-up are forgotten.
                if draw == 0 {
                    (sums, kept) = (Sums::default(), Kept::default());
                }
                sums.add(at.theta);
                if count > at.theta.rows() {
                    kept.values.extend_from_slice(at.theta.as_slice());
                }
            }
            let elapsed = before.saturating_add(begun.elapsed());
            let saved = || {
                let mut learnt = at.save();
                sums.save(&mut learnt);
                learnt.put(KEPT, &*kept.values);
                (0, learnt)
            };
            match show(at, count, 0, elapsed, &shown, observers, &saved) {
                Ok(ControlFlow::Continue(())) if !stop.is_due(elapsed) => {}
                Ok(_) => stopped = Some(Error::Interrupted { during: "the warm-up" }),
                Err(error) => stopped = Some(error),
            }
            let is_over = stopped.is_some() || sums.count >= enough;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = stopped {
            return Err(error);
        }
    }
    let evaluations = ensemble.gradients() * ensemble.particles() as f64;
    let gradients = (evaluations / count as f64).ceil() as u64;
    let learnt = ensemble.learnt();
    if sums.count == 0 {
        sums.add(learnt.theta.as_ref());
    }
    let moments = sums.moments();
    let theta = kept.spread(count, &learnt.theta);
    Ok(Warmth { moments, coordinates: learnt.coordinates, gradients, theta })
}
