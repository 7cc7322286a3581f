//! Integrators: one step of the particles' flow.

mod adaptive;
mod euler;
mod schedule;
mod sharpness;
mod splitting;

pub use adaptive::{Adaptive, Averages, Away, Rescaling, Rule};
pub use euler::Euler;
pub use schedule::StepSize;
pub use sharpness::{places_around, sharpness};
pub use splitting::{ImplicitDrift, MidpointDrift, MidpointSplitting, SymmetricSplitting};

use crate::dynamics::Structure;
use crate::flow::Flow;
use crate::{Error, Real, Result};

/// A way to take a step.
pub trait Integrator<T: Real = f64>: Send {
    /// Checks that the scheme fits the dynamics, and the field's noise if it has any.
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        let _ = (structure, random);
        Ok(())
    }

    /// Moves the particles for a time `dt`.
    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()>;

    /// Whether its steps keep [`Flow::log_volume`].
    fn tracks_volume(&self) -> bool {
        false
    }

    /// Whatever it carries from step to step, as numbers; empty when it has taken no step.
    fn memory(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Goes back to an earlier [`Integrator::memory`].
    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        if memory.is_empty() {
            Ok(())
        } else {
            Err(Error::ForeignState { whose: "the integrator" })
        }
    }
}

/// The names of the integrators.
pub const NAMES: [&str; 8] = [
    "euler",
    "splitting",
    "midpoint-splitting",
    "midpoint-drift",
    "implicit-drift",
    "adagrad",
    "rmsprop",
    "adam",
];

/// The integrator of this name.
pub fn named<T: Real>(name: &str) -> Result<Box<dyn Integrator<T>>> {
    Ok(match name {
        "euler" => Box::new(Euler),
        "splitting" => Box::new(SymmetricSplitting),
        "midpoint-splitting" => Box::new(MidpointSplitting),
        "midpoint-drift" => Box::new(MidpointDrift),
        "implicit-drift" => Box::new(ImplicitDrift),
        "adagrad" => Box::new(Adaptive::<T>::adagrad()),
        "rmsprop" => Box::new(Adaptive::<T>::rmsprop()),
        "adam" => Box::new(Adaptive::<T>::adam()),
        other => return Err(Error::unknown("integrator", other, NAMES)),
    })
}

impl<T: Real> Integrator<T> for Box<dyn Integrator<T>> {
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        (**self).validate(structure, random)
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        (**self).step(flow, dt)
    }

    fn tracks_volume(&self) -> bool {
        (**self).tracks_volume()
    }

    fn memory(&self) -> Vec<f64> {
        (**self).memory()
    }

    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        (**self).recall(memory)
    }
}
