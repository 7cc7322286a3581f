//! The seam between what moves particles and where their numbers live.
//!
//! Integrators and the run loop speak to a [`Flow`]. [`System`] is the one on this machine's processor; another
//! [`Engine`] may keep the particles on a device, from which they come when somebody looks.

use std::sync::Arc;

use crate::dynamics::{Dynamics, Structure};
use crate::field::Field;
use crate::integrator::{Averages, Rescaling};
use crate::precondition::RootMeanSquare;
use crate::run::NonFinitePolicy;
use crate::system::{Saved, System};
use crate::team::Team;
use crate::{Error, LogDensity, MatMut, MatRef, Matrix, Real, Result};

/// Particles as somebody sees them.
#[derive(Clone, Copy, Debug)]
pub struct Particles<'a, T> {
    /// z = (θ, r, …), `N × (blocks · dim)`.
    pub state: MatRef<'a, T>,
    /// log π(θ) of every particle, as of the last evaluation.
    pub log_density: &'a [T],
    /// ∇log π(θ), as of the last evaluation.
    pub score: MatRef<'a, T>,
    /// Whether that was on all of the data.
    pub is_full: bool,
}

/// The few numbers that tell how a flow fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vitals {
    /// Mean |v|² of every block as it last moved.
    pub squared_speeds: Vec<f64>,
    /// The bandwidths that the last velocity used.
    pub bandwidths: Vec<f64>,
}

impl Vitals {
    /// √(mean |v|²), all blocks together.
    pub fn velocity_norm(&self) -> f64 {
        self.squared_speeds.iter().sum::<f64>().sqrt()
    }
}

/// What an integrator moves and a run drives. The methods are those of [`System`], where they are explained.
pub trait Flow<T: Real> {
    /// The blocks of A and C.
    fn structure(&self) -> &Structure;

    /// Tells which step it is, and how long.
    fn begin_step(&mut self, step: u64, step_size: f64);

    /// The size of the step under way, or of the last one.
    fn step_size(&self) -> f64;

    /// Moves the blocks in `moving` for a time `dt` along their velocity, with the field's noise.
    fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()>;

    /// As [`Flow::advance`], by the explicit midpoint rule.
    fn advance_by_midpoint(&mut self, moving: &[usize], dt: f64) -> Result<()>;

    /// As [`Flow::advance`], by the implicit midpoint rule.
    fn advance_implicitly(&mut self, moving: &[usize], dt: f64) -> Result<()>;

    /// Moves the blocks in `moving` by what `rescaling` makes of their velocity and of its averages; whether it did,
    /// for a step may be made in parts.
    fn advance_rescaled(
        &mut self,
        moving: &[usize],
        rescaling: &Rescaling,
        averages: &mut Averages<T>,
    ) -> Result<bool>;

    /// Brings log π and the score up to date with θ and the minibatch.
    fn evaluate_target(&mut self) -> Result<()>;

    /// Brings log π and the score up to date with θ, on all of the data.
    fn evaluate_full_target(&mut self) -> Result<()>;

    /// Asks the target about the particles, on the present minibatch; the flow keeps its own answer.
    fn ask(&self, log_density: &mut [T], score: MatMut<'_, T>) -> Result<()>;

    /// Draws the auxiliary variables afresh; `index` names the draw.
    fn resample_auxiliaries(&mut self, index: u64) -> Result<()>;

    /// The particles.
    fn particles(&self) -> Result<Particles<'_, T>>;

    /// How it fares.
    fn vitals(&self) -> Result<Vitals>;

    /// How often the target was evaluated, for all particles at once.
    fn gradients(&self) -> u64;

    /// A copy of all that a step can spoil.
    fn save(&self) -> Result<Saved<T>>;

    /// Goes back to what was saved, by this flow or by one like it.
    fn restore(&mut self, saved: &Saved<T>) -> Result<()>;

    /// Takes up what is counted beside the particles, in a run that another process began.
    fn take_up(&mut self, gradients: u64, frozen: &[usize], squared_speeds: &[f64]) -> Result<()>;

    /// Whether looking at particles takes time, so that only those should who need to.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether freezing this particle would leave any that move.
    fn can_freeze(&self, particle: usize) -> bool {
        let _ = particle;
        false
    }

    /// Keeps a particle where it is from now on.
    fn freeze(&mut self, particle: usize) {
        let _ = particle;
    }

    /// The particles that were frozen.
    fn frozen(&self) -> Vec<usize> {
        Vec::new()
    }

    /// log |det ∂z′/∂z| of the steps since it was last set; NaN where it is not kept.
    fn log_volume(&self) -> f64 {
        f64::NAN
    }

    /// Sets what [`Flow::log_volume`] counts from.
    fn set_log_volume(&mut self, log_volume: f64) {
        let _ = log_volume;
    }
}

/// What a run asks of an engine.
#[derive(Clone, Debug)]
pub struct Request {
    /// The blocks of A and C, and so the dimension.
    pub structure: Structure,
    /// N.
    pub particles: usize,
    /// Rows of a minibatch.
    pub batch_size: Option<usize>,
    /// The preconditioner, if there is one.
    pub preconditioner: Option<RootMeanSquare>,
    /// What to do with non-finite numbers.
    pub policy: NonFinitePolicy,
    /// Whether stretches are accepted or refused as a whole.
    pub joint_accept: bool,
}

/// What a flow is made of.
pub struct Parts<'a, T: Real> {
    /// π.
    pub target: Box<dyn LogDensity<T> + 'a>,
    /// (A, C).
    pub dynamics: Box<dyn Dynamics<T> + 'a>,
    /// The field.
    pub field: Box<dyn Field<T> + 'a>,
    /// Where the particles begin.
    pub theta: Matrix<T>,
    /// The seed of every random number.
    pub seed: u64,
}

/// Keeps the particles of a run: on a device, say.
pub trait Engine<T: Real>: Send {
    /// Refuses what it does not do, before the run.
    fn check(&self, request: &Request, target: &dyn LogDensity<T>) -> Result<()>;

    /// Puts the particles in place.
    fn start<'a>(&self, parts: Parts<'a, T>, request: &Request) -> Result<Box<dyn Flow<T> + 'a>>;
}

/// The engine of this machine's processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host;

impl<T: Real> Engine<T> for Host {
    fn check(&self, _request: &Request, _target: &dyn LogDensity<T>) -> Result<()> {
        Ok(())
    }

    fn start<'a>(&self, parts: Parts<'a, T>, request: &Request) -> Result<Box<dyn Flow<T> + 'a>> {
        Ok(Box::new(system(parts, request)?))
    }
}

/// The engine of this machine's processor and of others that share its work.
#[derive(Clone, Debug)]
pub struct Shared<T>(pub Arc<dyn Team<T>>);

impl<T: Real> Engine<T> for Shared<T> {
    fn check(&self, _request: &Request, _target: &dyn LogDensity<T>) -> Result<()> {
        Ok(())
    }

    fn start<'a>(&self, parts: Parts<'a, T>, request: &Request) -> Result<Box<dyn Flow<T> + 'a>> {
        Ok(Box::new(system(parts, request)?.with_team(Arc::clone(&self.0))))
    }
}

/// The particles on this machine's processor.
pub(crate) fn system<'a, T: Real>(parts: Parts<'a, T>, request: &Request) -> Result<System<'a, T>> {
    let Parts { target, dynamics, field, theta, seed } = parts;
    let mut system = System::new(target, dynamics, field, &theta, seed)?;
    if let Some(size) = request.batch_size {
        system = system.with_minibatches(size)?;
    }
    if let Some(rule) = request.preconditioner {
        system = system.with_preconditioner(rule)?;
    }
    Ok(system)
}

impl<T: Real> Flow<T> for System<'_, T> {
    fn structure(&self) -> &Structure {
        self.structure()
    }

    fn begin_step(&mut self, step: u64, step_size: f64) {
        self.begin_step(step, step_size);
    }

    fn step_size(&self) -> f64 {
        self.step_size()
    }

    fn advance(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        if self.makes(moving) { self.advance(moving, dt) } else { Ok(()) }
    }

    fn advance_by_midpoint(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        if self.makes(moving) { self.advance_by_midpoint(moving, dt) } else { Ok(()) }
    }

    fn advance_implicitly(&mut self, moving: &[usize], dt: f64) -> Result<()> {
        if self.makes(moving) { self.advance_implicitly(moving, dt) } else { Ok(()) }
    }

    fn advance_rescaled(
        &mut self,
        moving: &[usize],
        rescaling: &Rescaling,
        averages: &mut Averages<T>,
    ) -> Result<bool> {
        if !self.makes(moving) {
            return Ok(false);
        }
        let mut velocity = self.velocity(moving)?;
        rescaling.apply(averages, velocity.as_mut_slice());
        self.displace(moving, &velocity)?;
        self.finish_move(moving);
        Ok(true)
    }

    fn evaluate_target(&mut self) -> Result<()> {
        self.evaluate_target()
    }

    fn evaluate_full_target(&mut self) -> Result<()> {
        self.evaluate_full_target()
    }

    fn ask(&self, log_density: &mut [T], score: MatMut<'_, T>) -> Result<()> {
        self.ask(log_density, score)
    }

    fn resample_auxiliaries(&mut self, index: u64) -> Result<()> {
        self.resample_auxiliaries(index);
        Ok(())
    }

    fn particles(&self) -> Result<Particles<'_, T>> {
        let (log_density, score) = self.last_answer();
        let is_full = self.full_score().is_some();
        Ok(Particles { state: self.state(), log_density, score, is_full })
    }

    fn vitals(&self) -> Result<Vitals> {
        let (squared_speeds, bandwidths) =
            (self.squared_speeds().to_vec(), self.bandwidths().to_vec());
        Ok(Vitals { squared_speeds, bandwidths })
    }

    fn gradients(&self) -> u64 {
        self.gradients()
    }

    fn save(&self) -> Result<Saved<T>> {
        Ok(self.save())
    }

    fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        self.restore(saved)
    }

    fn take_up(&mut self, gradients: u64, frozen: &[usize], squared_speeds: &[f64]) -> Result<()> {
        self.take_up(gradients, frozen, squared_speeds)
    }

    fn can_freeze(&self, particle: usize) -> bool {
        self.can_freeze(particle)
    }

    fn freeze(&mut self, particle: usize) {
        self.freeze(particle);
    }

    fn frozen(&self) -> Vec<usize> {
        self.frozen()
    }

    fn log_volume(&self) -> f64 {
        self.log_volume()
    }

    fn set_log_volume(&mut self, log_volume: f64) {
        self.set_log_volume(log_volume);
    }
}

/// The refusal of something that an engine does not do.
pub fn refuse(what: &'static str, value: impl std::fmt::Display, device: &str) -> Error {
    Error::setting(
        what,
        value,
        format!("it does not run on {device}; choose otherwise, or run with device cpu"),
    )
}
