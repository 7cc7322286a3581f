//! A run between two steps, and the step itself.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::joint::Joint;
use super::observer::Camera;
use super::rewind::Rewind;
use super::same_target;
use super::warm_up::Warmth;
use super::{Checkpoint, Ended, NonFinitePolicy, Observer, Past, Snapshot};
use crate::flow::{Flow, Particles};
use crate::integrator::Integrator;
use crate::{Error, Matrix, Real, Result};

/// Where a run is.
pub(super) struct Position<'a, T: Real> {
    pub(super) flow: Box<dyn Flow<T> + 'a>,
    /// The coordinates that the flow moves in, where they were learnt.
    pub(super) warmth: Option<Warmth>,
    /// The joint accept step, where there is one.
    pub(super) joint: Option<Joint<T>>,
    pub(super) phase: usize,
    pub(super) step: u64,
    time: f64,
    /// What shrinking has left of the scheduled step size.
    factor: f64,
    shrinks: u32,
    rewind: Rewind<T>,
    policy: NonFinitePolicy,
    begun: Instant,
    /// Wall-clock time of the processes that worked on this run before.
    earlier: Duration,
}

/// A run and those who watch it.
pub(super) struct Progress<'a, T: Real> {
    pub(super) at: Position<'a, T>,
    pub(super) observers: Vec<Box<dyn Observer<T> + 'a>>,
    pub(super) total_steps: u64,
}

impl<'a, T: Real> Position<'a, T> {
    /// Before the first step, `earlier` after the first process began.
    pub(super) fn start(
        flow: Box<dyn Flow<T> + 'a>,
        policy: NonFinitePolicy,
        (begun, earlier): (Instant, Duration),
        warmth: Option<Warmth>,
        joint: Option<Joint<T>>,
    ) -> Self {
        Self {
            flow,
            warmth,
            joint,
            phase: 0,
            step: 0,
            time: 0.0,
            factor: 1.0,
            shrinks: 0,
            rewind: Rewind::default(),
            policy,
            begun,
            earlier,
        }
    }

    /// Goes to where a checkpoint was taken.
    pub(super) fn take_up(&mut self, checkpoint: Checkpoint<T>) -> Result<()> {
        self.flow.restore(&checkpoint.particles)?;
        let Checkpoint { gradients, frozen, squared_speeds, .. } = &checkpoint;
        let earlier = self.warmth.as_ref().map_or(0, |warmth| warmth.gradients);
        self.flow.take_up(gradients.saturating_sub(earlier), frozen, squared_speeds)?;
        self.phase = checkpoint.phase;
        self.step = checkpoint.step;
        self.time = checkpoint.time;
        self.factor = checkpoint.step_size_factor;
        self.shrinks = checkpoint.shrinks;
        self.rewind = Rewind::of(checkpoint.past);
        self.earlier = checkpoint.elapsed;
        if let Some(joint) = &mut self.joint {
            joint.recall(&checkpoint.learnt, &mut *self.flow)?;
        }
        same_target::check_flow(&*self.flow)
    }

    /// All that another process would need to come here; the integrator is that of the last step.
    pub(super) fn checkpoint(
        &self,
        integrator: Option<&dyn Integrator<T>>,
    ) -> Result<Checkpoint<T>> {
        // The other policies go back only within a step.
        let kept = self.policy == NonFinitePolicy::Shrink;
        let mut learnt = self.warmth.as_ref().map(Warmth::save).unwrap_or_default();
        if let Some(joint) = &self.joint {
            joint.save(&*self.flow, &mut learnt);
        }
        Ok(Checkpoint {
            step: self.step,
            phase: self.phase,
            time: self.time,
            step_size_factor: self.factor,
            shrinks: self.shrinks,
            gradients: self.gradients(),
            frozen: self.flow.frozen(),
            squared_speeds: self.flow.vitals()?.squared_speeds,
            particles: self.flow.save()?,
            integrator: integrator.map(Integrator::memory).unwrap_or_default(),
            past: if kept { self.rewind.past().to_vec() } else { Vec::new() },
            elapsed: self.elapsed(),
            learnt,
        })
    }

    /// Evaluations of the target, those of a warm-up included.
    pub(super) fn gradients(&self) -> u64 {
        self.flow.gradients() + self.warmth.as_ref().map_or(0, |warmth| warmth.gradients)
    }

    /// Wall-clock time, over all processes.
    pub(super) fn elapsed(&self) -> Duration {
        self.earlier.saturating_add(self.begun.elapsed())
    }

    /// Whether the velocity norm is within `tolerance`.
    pub(super) fn is_at_rest(&self, tolerance: f64) -> Result<bool> {
        Ok(self.flow.vitals()?.velocity_norm() <= tolerance)
    }

    /// One step, which ends with the target evaluated where the particles now are: no gradient
    /// more than the next step needs, and every state that is kept has a finite score.
    pub(super) fn step(
        &mut self,
        integrator: &mut dyn Integrator<T>,
        scheduled: f64,
    ) -> Result<()> {
        if self.joint.is_some() {
            return self.joint_step(integrator, scheduled);
        }
        match self.policy {
            NonFinitePolicy::Freeze => self.rewind.keep_last(self.past(integrator)?),
            NonFinitePolicy::Shrink if self.rewind.is_due(self.step) => {
                match self.past(integrator) {
                    Ok(past) => self.rewind.keep(past),
                    Err(error) => self.recover(error, integrator, scheduled)?,
                }
            }
            NonFinitePolicy::Stop | NonFinitePolicy::Shrink => {}
        }
        loop {
            let dt = scheduled * self.factor;
            self.flow.begin_step(self.step, dt);
            let taken =
                integrator.step(&mut *self.flow, dt).and_then(|()| self.flow.evaluate_target());
            match taken {
                Ok(()) => {
                    self.step += 1;
                    self.time += dt;
                    return Ok(());
                }
                Err(error) => self.recover(error, integrator, scheduled)?,
            }
        }
    }

    /// Does what the policy says where a number was not finite. Particles that are far away tell of it some steps
    /// later, or when somebody looks.
    pub(super) fn recover(
        &mut self,
        error: Error,
        integrator: &mut dyn Integrator<T>,
        scheduled: f64,
    ) -> Result<()> {
        /// Enough to go from 1 to 1e-12; if that does not help, the step size is not the trouble.
        const MOST_SHRINKS: u32 = 40;
        match (error, self.policy) {
            (Error::NonFinite { particle, .. }, NonFinitePolicy::Freeze)
                if self.flow.can_freeze(particle) =>
            {
                self.go_back(integrator)?;
                self.flow.freeze(particle);
                Ok(())
            }
            (Error::NonFinite { .. }, NonFinitePolicy::Shrink) if self.shrinks < MOST_SHRINKS => {
                self.go_back(integrator)?;
                self.factor *= 0.5;
                self.shrinks += 1;
                Ok(())
            }
            (Error::NonFinite { step, .. }, NonFinitePolicy::Shrink) => {
                let (step_size, halvings) = (scheduled, self.shrinks);
                Err(Error::RanAway { step, step_size, halvings })
            }
            (error, _) => Err(error),
        }
    }

    /// Auxiliary variables are fresh: a joint accept step looks back to here.
    pub(super) fn begin_stretch(&mut self) -> Result<()> {
        match &mut self.joint {
            Some(joint) => joint.begin(&mut *self.flow, self.step),
            None => Ok(()),
        }
    }

    /// A step of a stretch that may be refused: the particles are then back where it began, and stay there
    /// until their momenta are fresh.
    fn joint_step(&mut self, integrator: &mut dyn Integrator<T>, scheduled: f64) -> Result<()> {
        let Some(joint) = &mut self.joint else { return Ok(()) };
        let dt = scheduled * self.factor;
        self.flow.begin_step(self.step, dt);
        if !joint.is_refused() {
            let taken =
                integrator.step(&mut *self.flow, dt).and_then(|()| self.flow.evaluate_target());
            let excess = match taken {
                Ok(()) => joint.excess(&*self.flow)?,
                Err(Error::NonFinite { .. }) => f64::INFINITY,
                Err(error) => return Err(error),
            };
            if joint.judge(excess, &mut *self.flow)? {
                self.factor *= 0.5;
                self.shrinks += 1;
            }
        }
        self.step += 1;
        self.time += dt;
        Ok(())
    }

    /// All that would be needed to come back here.
    fn past(&self, integrator: &dyn Integrator<T>) -> Result<Past<T>> {
        let (phase, step) = (self.phase, self.step);
        Ok(Past { step, phase, particles: self.flow.save()?, integrator: integrator.memory() })
    }

    /// Goes back to the oldest state that is kept. Steps are counted on, so that observers see
    /// every number once.
    fn go_back(&mut self, integrator: &mut dyn Integrator<T>) -> Result<()> {
        let past = self.rewind.back(self.step);
        self.flow.restore(&past.particles)?;
        // What another phase's integrator remembers is of no use to this one.
        integrator.recall(if past.phase == self.phase { &past.integrator } else { &[] })
    }
}

impl<T: Real> Progress<'_, T> {
    /// Shows the particles to all observers; the integrator is that of the last step, if there was one.
    /// Particles that are far away are fetched when an observer is due.
    pub(super) fn show(&mut self, integrator: Option<&dyn Integrator<T>>) -> Result<Option<Ended>> {
        let at = &self.at;
        let (step, total_steps) = (at.step, self.total_steps);
        // All are asked, for they may keep a clock.
        let observers = self.observers.iter_mut();
        let due = observers.map(|observer| observer.is_due(step, total_steps));
        // At the end somebody has to see whether all went well.
        let is_over = step == total_steps;
        if !(due.fold(false, |any, due| any | due) || is_over) && at.flow.is_remote() {
            return Ok(None);
        }
        let take = || at.checkpoint(integrator);
        let dim = at.flow.structure().dim();
        let Particles { state, log_density, score, is_full } = at.flow.particles()?;
        let vitals = at.flow.vitals()?;
        let in_theta = at.warmth.as_ref().map(|warmth| warmth.in_theta(state, dim));
        let snapshot = Snapshot {
            step,
            total_steps,
            time: at.time,
            step_size: at.flow.step_size(),
            state: in_theta.as_ref().map_or(state, Matrix::as_ref),
            dim,
            log_density,
            // In learnt coordinates the score is not that of θ.
            score: Some(score).filter(|_| is_full && in_theta.is_none()),
            velocity_norm: integrator.map(|_| vitals.velocity_norm()),
            bandwidths: &vitals.bandwidths,
            gradients: at.gradients(),
            elapsed: at.elapsed(),
            ensemble: None,
            camera: Camera(&take),
        };
        let mut ended = None;
        for observer in &mut self.observers {
            if let ControlFlow::Break(()) = observer.observe(&snapshot)? {
                ended = Some(Ended::Interrupted);
            }
        }
        Ok(ended)
    }
}
