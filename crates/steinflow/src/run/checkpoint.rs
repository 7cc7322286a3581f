//! Where a run is, as plain data: what another process needs to go on to the same bits.
//!
//! Noise and minibatches are drawn by counters (seed, purpose, step, particle), so a step, the
//! particles, and what field, integrator and preconditioner remember say everything.

use std::time::Duration;

use super::warm_up;
use crate::arrays::Arrays;
use crate::system::Saved;
use crate::{Error, Real, Result};

/// A run between two steps.
///
/// An observer takes one by [`Snapshot::checkpoint`](super::Snapshot::checkpoint), every
/// [`Outcome`](super::Outcome) carries the last, and
/// [`Sampler::resume_from`](super::Sampler::resume_from) goes on from it. It does not hold the
/// settings: those of the sampler that goes on must be the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint<T> {
    /// Steps taken.
    pub step: u64,
    /// The phase that the last step was in.
    pub phase: usize,
    /// The sum of all step sizes so far.
    pub time: f64,
    /// What shrinking has left of the scheduled step size.
    pub step_size_factor: f64,
    /// How often the step size was halved.
    pub shrinks: u32,
    /// Evaluations of the target so far.
    pub gradients: u64,
    /// The particles that are frozen, in ascending order.
    pub frozen: Vec<usize>,
    /// Mean |v|² of every block as it last moved, for the stop rule.
    pub squared_speeds: Vec<f64>,
    /// The particles.
    pub particles: Saved<T>,
    /// What that phase's integrator remembers:
    /// [`Integrator::memory`](crate::integrator::Integrator::memory).
    pub integrator: Vec<f64>,
    /// The states that the policy `shrink` would go back to, at most two, the older first.
    pub past: Vec<Past<T>>,
    /// Wall-clock time so far.
    pub elapsed: Duration,
    /// The ensemble, also while it warms up for a method, or the coordinates that it has learnt for the
    /// run; empty where there are none.
    pub learnt: Arrays,
}

/// A state that a run was in, to go back to from a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Past<T> {
    /// The step before which it was kept, or from which the run last went back to it.
    pub step: u64,
    /// The phase of that step.
    pub phase: usize,
    /// The particles.
    pub particles: Saved<T>,
    /// What that phase's integrator remembered.
    pub integrator: Vec<f64>,
}

/// Past states that are worth keeping.
pub(super) const MOST_PAST: usize = 2;

impl<T: Real> Checkpoint<T> {
    /// Whether this was taken before the first step, while an ensemble was warming up for a method.
    pub fn is_of_warm_up(&self) -> bool {
        warm_up::is_under_way(&self.learnt)
    }

    /// Checks all that a target of `dim` coordinates, dynamics of so many blocks and a run of so
    /// many steps can be held against.
    pub(super) fn check(&self, dim: usize, blocks: usize, total_steps: u64) -> Result<()> {
        if self.step > total_steps {
            let remedy = format!(
                "the phases have only {total_steps} steps: give at least as many as were taken"
            );
            return Err(Error::setting("steps of the checkpoint", self.step, remedy));
        }
        if self.is_of_warm_up() {
            // The rest is the ensemble's, which looks at it itself.
            let Saved { state, score, .. } = &self.particles;
            let shape = (state.rows(), state.cols()) == (score.rows(), dim);
            let fits = shape && self.step == 0 && self.past.is_empty();
            return if fits { Ok(()) } else { Err(Error::ForeignState { whose: "any run" }) };
        }
        let fits = self.time >= 0.0 && self.step_size_factor > 0.0 && self.step_size_factor <= 1.0;
        let in_order = self.past.windows(2).all(|pair| pair[0].step <= pair[1].step)
            && self.past.iter().all(|past| past.step <= self.step);
        if !fits || !in_order || self.past.len() > MOST_PAST {
            return Err(Error::ForeignState { whose: "any run" });
        }
        let particles = self.particles.state.rows();
        let all = self.past.iter().map(|past| &past.particles).chain([&self.particles]);
        all.into_iter().try_for_each(|saved| saved.check(particles, dim, blocks))
    }
}
