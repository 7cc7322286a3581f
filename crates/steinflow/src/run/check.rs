//! All that can be checked before a particle moves.

use super::Sampler;
use super::start::Start;
use crate::dynamics::Structure;
use crate::flow::Request;
use crate::system::check_batch_size;
use crate::{Error, Real, Result};

impl<T: Real> Sampler<'_, T> {
    /// Checks everything that can be checked before a particle moves.
    pub fn check(&self) -> Result<()> {
        let dim = self.target.dim();
        let structure = self.dynamics.structure(dim);
        structure.validate()?;
        let particles = self.start.check(dim)?;
        self.field.validate(structure.blocks(), particles)?;
        if let Start::Checkpoint(checkpoint) = &self.start {
            checkpoint.check(dim, structure.blocks(), self.total_steps())?;
            if checkpoint.is_of_warm_up() && self.warm_up.is_none() {
                return Err(Error::ForeignState { whose: "a run without a warm-up" });
            }
        }
        if let Some(size) = self.batch_size {
            check_batch_size(size, self.target.data_rows())?;
        }
        if let Some(rule) = &self.preconditioner {
            rule.validate()?;
            if self.field.needs_own_coordinates() {
                let remedy =
                    "this field has a grid over the target's own coordinates; leave it out";
                return Err(Error::setting("preconditioner", "root mean square", remedy));
            }
        }
        if self.warm_up.is_some() {
            let clash = |what: &'static str, remedy: &str| {
                Err(Error::setting(what, "given with a warm-up", remedy))
            };
            if self.batch_size.is_some() {
                let remedy = "the warm-up looks at all of the data; leave one of them out";
                return clash("batch size", remedy);
            }
            if self.preconditioner.is_some() {
                return clash("preconditioner", "both learn coordinates; leave one of them out");
            }
            if self.field.needs_own_coordinates() {
                return clash("field", "it has a grid over the target's own coordinates");
            }
        }
        for phase in &self.phases {
            phase.integrator.validate(&structure, self.field.is_random())?;
            phase.step_size.validate(phase.steps)?;
        }
        if let Some(resampling) = self.resampling {
            resampling.validate(&structure)?;
        }
        if self.joint_accept {
            self.check_joint(&structure)?;
        }
        self.engine.check(&self.request(particles), &*self.target)?;
        match self.tolerance {
            Some(tolerance) if !(tolerance >= 0.0) => {
                Err(Error::setting("tolerance", tolerance, "it must be zero or positive"))
            }
            _ => Ok(()),
        }
    }

    /// What the engine is asked for.
    pub(super) fn request(&self, particles: usize) -> Request {
        Request {
            structure: self.dynamics.structure(self.target.dim()),
            particles,
            batch_size: self.batch_size,
            preconditioner: self.preconditioner,
            policy: self.policy,
            joint_accept: self.joint_accept,
        }
    }

    /// A joint accept step asks for a flow that preserves π⊗…⊗π, and for steps whose volume is known.
    fn check_joint(&self, structure: &Structure) -> Result<()> {
        let refuse = |remedy: &str| Err(Error::setting("joint accept step", "asked for", remedy));
        let varies = structure.coefficients() > 0;
        if !self.field.preserves_volume_of_auxiliaries() || structure.has_diffusion() || varies {
            return refuse(
                "it is for sghmc-stein and third-order-stein without friction, with a kernel on \
                 theta, time in units of lambda and all pairs",
            );
        }
        if !self.phases.iter().all(|phase| phase.integrator.tracks_volume()) {
            return refuse("take the integrator implicit-drift, which knows how volumes change");
        }
        if self.resampling.is_none() {
            return refuse(
                "momenta must be drawn afresh: say when, with a time between resamplings",
            );
        }
        if self.batch_size.is_some() || self.preconditioner.is_some() {
            return refuse("it needs one density: leave out minibatches and preconditioner");
        }
        Ok(())
    }

    /// The steps of all phases.
    pub(super) fn total_steps(&self) -> u64 {
        self.phases.iter().fold(0, |total, phase| total.saturating_add(phase.steps))
    }
}
