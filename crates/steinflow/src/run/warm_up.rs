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

/// What a warm-up leaves to the steps that follow.
pub(super) struct Warmth {
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
            coordinates: Coordinates::restore(dim, arrays)?,
            gradients: arrays.get_count("gradients")?,
            theta: Matrix::zeros(0, dim),
        })
    }

    pub(super) fn save(&self) -> Arrays {
        let mut arrays = self.coordinates.save();
        arrays.put("gradients", [self.gradients as f64]);
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

/// Runs an ensemble until it is warm. Observers see it, at step 0.
pub(super) fn run<T: Real>(
    target: &dyn LogDensity<f64>,
    options: &Options,
    observers: &mut [Box<dyn Observer<T> + '_>],
    stop: &Stop,
    begun: Instant,
) -> Result<Warmth> {
    let mut ensemble = Ensemble::new(target.dim(), options.clone())?;
    let mut failed = None;
    while !ensemble.is_warm() {
        let status = ensemble.advance(target, &mut |at| match show(
            at,
            0,
            begun.elapsed(),
            options,
            observers,
        ) {
            Ok(ControlFlow::Continue(())) if !stop.is_due(begun) => ControlFlow::Continue(()),
            Ok(_) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        if status == Status::Interrupted {
            return Err(failed.unwrap_or(Error::Interrupted { during: "the warm-up" }));
        }
    }
    let gradients = ensemble.gradients().ceil() as u64;
    let learnt = ensemble.learnt();
    Ok(Warmth { coordinates: learnt.coordinates, gradients, theta: learnt.theta })
}
