//! A warm-up before the first step, and what is kept of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Observer;
use super::auto::show;
use crate::arrays::Arrays;
use crate::coordinates::Coordinates;
use crate::ensemble::{Ensemble, Options, Status};
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
}

/// What a warm-up leaves to the steps that follow.
pub(super) struct Warmth {
    pub(super) moments: WarmMoments,
    pub(super) coordinates: Coordinates,
    /// Evaluations of the target that it took.
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
    fn is_due(&self, begun: Instant) -> bool {
        self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
            || self.budget.is_some_and(|budget| begun.elapsed() >= budget)
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

/// Runs an ensemble until it is warm and has made some draws. Observers see it, at step 0.
pub(super) fn run<T: Real>(
    target: &dyn LogDensity<f64>,
    options: &Options,
    observers: &mut [Box<dyn Observer<T> + '_>],
    stop: &Stop,
    begun: Instant,
) -> Result<Warmth> {
    let mut ensemble = Ensemble::new(target.dim(), options.clone())?;
    let (mut failed, mut sums) = (None, Sums::default());
    while !ensemble.is_done() && sums.count < DRAWS * ensemble.particles() {
        let status = ensemble.advance(target, &mut |at| {
            if let Some(draw) = at.draw {
                // Draws that turned out to be warm-up are forgotten.
                if draw == 0 {
                    sums = Sums::default();
                }
                sums.add(at.theta);
            }
            match show(at, 0, begun.elapsed(), options, observers) {
                Ok(ControlFlow::Continue(())) if !stop.is_due(begun) => ControlFlow::Continue(()),
                Ok(_) => ControlFlow::Break(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if status == Status::Interrupted {
            return Err(failed.unwrap_or(Error::Interrupted { during: "the warm-up" }));
        }
    }
    let gradients = ensemble.gradients().ceil() as u64;
    let learnt = ensemble.learnt();
    if sums.count == 0 {
        sums.add(learnt.theta.as_ref());
    }
    let moments = sums.moments();
    Ok(Warmth { moments, coordinates: learnt.coordinates, gradients, theta: learnt.theta })
}
