//! A run whose loop is somebody else's: a gradient in, a step on.
//!
//! A step of symmetric splitting ends with a half step that needs the score of the particles where they now are,
//! and the next one begins with another that needs the same. So a run that is driven from outside halts where a
//! score is asked for, and with one gradient does the end of a step and the beginning of the next. The moves
//! are those of [`Sampler::run`], and so are their bits.

use std::mem;
use std::sync::Arc;

use super::resampling::Clock;
use super::{NonFinitePolicy, Phase, Sampler, place};
use crate::flow::{Parts, system};
use crate::precondition::Learnt;
use crate::system::System;
use crate::{Error, MatMut, Matrix, Real, Result};

/// A run under way, on this machine's processor.
///
/// ```
/// use steinflow::dynamics::Sghmc;
/// use steinflow::field::Stein;
/// use steinflow::integrator::{StepSize, SymmetricSplitting};
/// use steinflow::kernel::Kernel;
/// use steinflow::target::PerParticle;
/// use steinflow::Sampler;
///
/// let gaussian = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
///     score[0] = -theta[0];
///     -0.5 * theta[0].powi(2)
/// });
/// let sampler = || {
///     Sampler::new(&gaussian, Sghmc { friction: 1.0, variance: 1.0 }, Stein::new(Kernel::default()))
///         .phase(SymmetricSplitting, 10, StepSize::Constant(0.1))
/// };
/// let mut by_hand = sampler().stepper()?;
/// for _ in 0..10 {
///     by_hand.step()?;
/// }
/// by_hand.finish()?;
/// assert_eq!(*by_hand.halted().state, sampler().run()?.state);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub struct Stepper<'a, T: Real> {
    system: System<'a, T>,
    phases: Vec<Phase<T>>,
    clock: Option<Clock>,
    /// Steps that are finished.
    step: u64,
    /// Moves that are made of the step under way, if one is.
    made: Option<usize>,
    /// The phase of the last step that was begun.
    phase: usize,
    /// Whether the particles' score has been given.
    is_answered: bool,
}

/// Where a run has halted, as plain data: it waits for the score of its particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Halted<T> {
    /// z = (θ, r, …), `N × (blocks · dim)`. The run goes on in memory of its own for as long as this is kept.
    pub state: Arc<Matrix<T>>,
    /// Steps that are finished.
    pub step: u64,
    /// Moves that are made of the step under way, if one is.
    pub made: Option<usize>,
    /// The phase of the last step that was begun.
    pub phase: usize,
    /// What that phase's integrator remembers.
    pub integrator: Vec<f64>,
    /// What the preconditioner has learnt, if there is one.
    pub preconditioner: Option<Learnt>,
    /// What the field remembers.
    pub field: Vec<f64>,
    /// The time since auxiliary variables were last drawn afresh, and how often they were.
    pub clock: (f64, u64),
}

impl<'a, T: Real> Sampler<'a, T> {
    /// The same run with a loop of your own: see [`Stepper`]. Observers and stop rules are the loop's.
    pub fn stepper(self) -> Result<Stepper<'a, T>> {
        self.check()?;
        let refuse = |what: &'static str, remedy: &str| {
            Err(Error::setting(what, "asked for in a run by steps", remedy))
        };
        if self.phases.is_empty() {
            return Err(Error::setting("phases", 0, "name at least one"));
        }
        if self.policy != NonFinitePolicy::Stop {
            let remedy = "keep the state before a step, and go back to it yourself";
            return refuse("a policy for non-finite values", remedy);
        }
        if self.joint_accept {
            return refuse("a joint accept step", "it is for whole runs");
        }
        if self.warm_up.is_some() {
            return refuse("a warm-up", "it is for whole runs; leave it out");
        }
        if self.batch_size.is_some() {
            return refuse("a batch size", "the batches are yours to choose; leave it out");
        }
        let request = self.request(self.start.check(self.target.dim())?);
        let (theta, _) = self.start.particles(self.seed);
        let (target, dynamics, field) = (self.target, self.dynamics, self.field);
        let parts = Parts { target, dynamics, field, theta, seed: self.seed };
        Ok(Stepper {
            system: system(parts, &request)?,
            phases: self.phases,
            clock: self.resampling.map(|resampling| Clock::new(resampling, self.seed)),
            step: 0,
            made: None,
            phase: 0,
            is_answered: false,
        })
    }
}

impl<T: Real> Stepper<'_, T> {
    /// Takes log densities and scores of the particles from somebody who knows them, for whatever is done next:
    /// that does not ask the target then, unless for particles that it has moved.
    pub fn answer(
        &mut self,
        write: impl FnOnce(&mut [T], MatMut<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (_, step_size) = self.scheduled();
        self.system.begin_step(self.step, step_size);
        self.system.answer(write)?;
        self.is_answered = true;
        Ok(())
    }

    /// Asks the target about the particles, finishes the step under way, and begins the next.
    ///
    /// θ is then where it is after one step more; momenta may wait for the score there.
    pub fn step(&mut self) -> Result<()> {
        self.finish()?;
        let (phase, step_size) = self.scheduled();
        self.phase = phase;
        self.system.begin_step(self.step, step_size);
        self.system.begin_part(0, true);
        self.phases[phase].integrator.step(&mut self.system, step_size)?;
        self.made = Some(self.system.end_part());
        Ok(())
    }

    /// Asks the target about the particles, and finishes the step under way: momenta too are then where they
    /// are between two steps.
    pub fn finish(&mut self) -> Result<()> {
        let (phase, step_size) = self.scheduled();
        self.system.begin_step(self.step, step_size);
        if !mem::take(&mut self.is_answered) {
            self.system.outdate_score();
            self.system.evaluate_target()?;
        }
        let Some(made) = self.made.take() else { return Ok(()) };
        self.system.begin_part(made, false);
        self.phases[phase].integrator.step(&mut self.system, step_size)?;
        self.system.end_part();
        self.system.evaluate_target()?;
        self.step += 1;
        if self.clock.as_mut().is_some_and(|clock| clock.is_due(self.step, step_size)) {
            self.system.resample_auxiliaries(self.step);
        }
        Ok(())
    }

    /// Finishes the step under way, and gives the velocity of the whole state, without noise.
    pub fn velocity(&mut self) -> Result<Matrix<T>> {
        self.finish()?;
        let blocks: Vec<usize> = (0..self.system.structure().blocks()).collect();
        let mut velocity = self.system.velocity(&blocks)?;
        if let Some(scale) = self.system.evaluated()?.scale {
            for i in 0..velocity.rows() {
                let theta = velocity.row_mut(i).iter_mut().zip(scale);
                theta.for_each(|(v, &s)| *v *= s);
            }
        }
        Ok(velocity)
    }

    /// Where the run is.
    pub fn halted(&self) -> Halted<T> {
        let (preconditioner, field) = self.system.memory();
        Halted {
            state: self.system.shared_state(),
            step: self.step,
            made: self.made,
            phase: self.phase,
            integrator: self
                .phases
                .get(self.phase)
                .map_or_else(Vec::new, |p| p.integrator.memory()),
            preconditioner,
            field,
            clock: self.clock.as_ref().map_or((0.0, 0), Clock::reading),
        }
    }

    /// Goes to where this run, or one with the same settings and seed, has halted.
    pub fn go_to(&mut self, halted: &Halted<T>) -> Result<()> {
        if halted.phase >= self.phases.len() {
            return Err(Error::ForeignState { whose: "any run" });
        }
        self.system.share_state(Arc::clone(&halted.state))?;
        self.system.recall(halted.preconditioner.as_ref(), &halted.field)?;
        for (index, phase) in self.phases.iter_mut().enumerate() {
            let memory: &[f64] = if index == halted.phase { &halted.integrator } else { &[] };
            phase.integrator.recall(memory)?;
        }
        if let Some(clock) = &mut self.clock {
            clock.set(halted.clock);
        }
        (self.step, self.made, self.phase) = (halted.step, halted.made, halted.phase);
        self.is_answered = false;
        Ok(())
    }

    /// The phase and the size of the step under way, or of the next. After the last step of a schedule, steps
    /// stay as long as that one.
    fn scheduled(&self) -> (usize, f64) {
        let (index, done) = place(&self.phases, self.step);
        let step_size = self.phases.get(index).map_or(0.0, |phase| {
            phase.step_size.at(done.min(phase.steps.saturating_sub(1)), phase.steps)
        });
        (index, step_size)
    }
}
