//! The loop: phases of steps, observers, stop rules, interrupts.

mod auto;
mod check;
mod checkpoint;
mod collect;
mod joint;
mod observer;
mod outcome;
mod policy;
mod progress;
mod representative;
mod resampling;
mod rest;
mod rewind;
mod same_target;
mod sampler;
mod start;
mod stepper;
mod trace;
mod warm_up;

pub use auto::Auto;
pub use checkpoint::{Checkpoint, Past};
pub use collect::{Collecting, Samples};
pub use observer::{EnsembleView, Observer, Snapshot};
pub use outcome::{Ended, Outcome};
pub use policy::NonFinitePolicy;
pub use resampling::Resampling;
pub use rest::{affordable_particles, resting_particles, resting_steps};
pub use sampler::Sampler;
pub use stepper::{Halted, Stepper};
pub use trace::{Trace, TraceRow, Tracing};
pub use warm_up::{Standing, WarmMoments};

pub use crate::precondition::Learnt;
pub use crate::system::Saved;

use joint::Joint;
use progress::{Position, Progress};
use resampling::Clock;
use sampler::Phase;
use start::Start;
use warm_up::Warmth;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::coordinates::InCoordinates;
use crate::diagnostics::require_gradient;
use crate::flow::Parts;
use crate::{Error, LogDensity, Real, Result};

impl<'a, T: Real> Sampler<'a, T> {
    /// Runs all phases, or until a stop rule.
    pub fn run(self) -> Result<Outcome<T>> {
        self.check()?;
        // On one of the threads that share the work: handing every small piece over to them from
        // outside would cost more than the piece.
        rayon::scope(|_| self.take_steps())
    }

    /// As [`Sampler::run`], with target and observers called on the calling thread: for those that are
    /// bound to it. A little slower for small problems.
    pub fn run_here(self) -> Result<Outcome<T>> {
        self.check()?;
        self.take_steps()
    }

    fn take_steps(mut self) -> Result<Outcome<T>> {
        let (begun, total_steps) = (Instant::now(), self.total_steps());
        let request = self.request(self.start.check(self.target.dim())?);
        let is_given = matches!(self.start, Start::At(_));
        let (mut theta, checkpoint) = std::mem::take(&mut self.start).particles(self.seed);
        if self.check_gradient && self.batch_size.is_none() && checkpoint.is_none() {
            require_gradient(&*self.target, theta.as_ref())?;
        }
        let (warming, checkpoint) = match checkpoint {
            Some(found) if found.is_of_warm_up() => (Some(found), None),
            found => (None, found),
        };
        let earlier = warming.as_ref().map_or(Duration::ZERO, |checkpoint| checkpoint.elapsed);
        let warmth = match (self.warm_up.take(), &checkpoint) {
            (None, _) => None,
            (Some(_), Some(checkpoint)) => {
                Some(Warmth::restore(self.target.dim(), &checkpoint.learnt)?)
            }
            (Some(options), None) => {
                let found = self.warm(&options, &theta, is_given, warming.as_deref(), begun)?;
                theta = found.white();
                Some(found)
            }
        };
        let target: Box<dyn LogDensity<T> + 'a> = match &warmth {
            Some(warmth) => Box::new(InCoordinates::new(self.target, warmth.coordinates.clone())?),
            None => self.target,
        };
        let (dynamics, field, seed) = (self.dynamics, self.field, self.seed);
        let parts = Parts { target, dynamics, field, theta, seed };
        let flow = self.engine.start(parts, &request)?;
        let mut phases = self.phases;
        let joint = self.joint_accept.then(|| Joint::new(self.seed));
        let at = Position::start(flow, self.policy, (begun, earlier), warmth, joint);
        let mut run = Progress { at, observers: self.observers, total_steps };
        let mut ended = None;
        // Steps into the phase where the run goes on; those before it are done.
        let (first, done) = if let Some(checkpoint) = checkpoint {
            let place = place(&phases, checkpoint.step);
            if let Some(phase) = phases.get_mut(checkpoint.phase) {
                phase.integrator.recall(&checkpoint.integrator)?;
            }
            run.at.take_up(*checkpoint)?;
            // The process may have died between the step that came to rest and the end.
            if run.at.step > 0 && is_at_rest(&run.at, self.tolerance)? {
                ended = Some(Ended::AtRest);
            }
            place
        } else {
            let step_size = phases.first().map_or(0.0, |p| p.step_size.at(0, p.steps));
            run.at.flow.begin_step(0, step_size);
            run.at.flow.evaluate_target()?;
            run.at.begin_stretch()?;
            ended = run.show(None)?;
            (0, 0)
        };
        let mut clock = self.resampling.map(|resampling| Clock::new(resampling, self.seed));
        if let Some(clock) = &mut clock {
            // It is the clock of the whole run.
            let sizes =
                phases.iter().flat_map(|p| (0..p.steps).map(|k| p.step_size.at(k, p.steps)));
            for (step, size) in (1..=run.at.step).zip(sizes) {
                clock.is_due(step, size);
            }
        }
        'phases: for (index, phase) in phases.iter_mut().enumerate().skip(first) {
            for k in if index == first { done } else { 0 }..phase.steps {
                if self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    ended = Some(Ended::Interrupted);
                } else if self.budget.is_some_and(|budget| run.at.elapsed() >= budget) {
                    ended = ended.or(Some(Ended::OutOfTime));
                }
                if ended.is_some() {
                    break 'phases;
                }
                run.at.phase = index;
                let step_size = phase.step_size.at(k, phase.steps);
                run.at.step(&mut *phase.integrator, step_size)?;
                let step = run.at.step;
                if clock.as_mut().is_some_and(|clock| clock.is_due(step, step_size)) {
                    run.at.flow.resample_auxiliaries(run.at.step)?;
                    run.at.begin_stretch()?;
                }
                ended = match run.show(Some(&*phase.integrator)) {
                    Err(error @ Error::NonFinite { .. }) if run.at.flow.is_remote() => {
                        run.at.recover(error, &mut *phase.integrator, step_size)?;
                        None
                    }
                    shown => shown?,
                };
                if ended.is_none() && is_at_rest(&run.at, self.tolerance)? {
                    ended = Some(Ended::AtRest);
                }
            }
        }
        let integrator = phases.get(run.at.phase).map(|phase| &*phase.integrator);
        let mut checkpoint = run.at.checkpoint(integrator)?;
        run.at.flow.evaluate_full_target()?;
        checkpoint.elapsed = run.at.elapsed();
        let gradients = checkpoint.gradients.max(run.at.gradients());
        let acceptance = run.at.joint.as_ref().and_then(Joint::acceptance);
        let warmth = run.at.warmth.take();
        let structure = run.at.flow.structure().clone();
        let particles = run.at.flow.particles()?;
        let state = match &warmth {
            Some(warmth) => warmth.in_theta(particles.state, structure.dim()),
            None => particles.state.copied(),
        };
        let log_density = particles.log_density.to_vec();
        Ok(Outcome {
            state,
            log_density,
            structure,
            ended: ended.unwrap_or(Ended::Finished),
            steps: checkpoint.step,
            gradients,
            frozen: checkpoint.frozen.clone(),
            shrinks: checkpoint.shrinks,
            elapsed: checkpoint.elapsed,
            acceptance,
            report: None,
            warm_moments: warmth.map(|warmth| warmth.moments),
            checkpoint,
        })
    }
}

/// Whether there is a tolerance, and the velocity norm within it.
fn is_at_rest<T: Real>(at: &Position<'_, T>, tolerance: Option<f64>) -> Result<bool> {
    tolerance.map_or(Ok(false), |tolerance| at.is_at_rest(tolerance))
}

/// The phase that the step after `steps` steps is in, and how many of its steps are done. After the
/// last step of all: the last phase, with all of its steps done.
fn place<T>(phases: &[Phase<T>], steps: u64) -> (usize, u64) {
    let mut before = 0;
    for (index, phase) in phases.iter().enumerate() {
        if steps - before < phase.steps || index + 1 == phases.len() {
            return (index, steps - before);
        }
        before += phase.steps;
    }
    (0, 0)
}
