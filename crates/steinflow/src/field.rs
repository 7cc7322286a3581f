//! Fields: how the particles of a dynamics move.
//!
//! The same target, dynamics and loop give a stochastic sampler with [`Diffusion`] and a
//! deterministic one with [`Stein`]: de-randomising is one word.
//!
//! | field | velocity | noise |
//! |---|---|---|
//! | [`Diffusion`] | f | √(2A), independent |
//! | [`Drift`] | f | none |
//! | [`Stein`] | E[k f + M∇₂k] | none |
//! | [`Lawgd`] | −M∇φ with −𝒜φ = ρ/π − 1, on a grid: d ≤ 2 | none |
//! | [`LogRatio`] | M(∇log π + u), u an estimate of −∇log ρ: Blob, GFSD, GFSF | none |
//! | [`ProductSpace`] | Stein's | √(2Ã), correlated between particles |

mod diffusion;
mod drift;
mod lawgd;
mod log_ratio;
mod product_space;
mod stein;

pub use diffusion::Diffusion;
pub use drift::Drift;
pub use lawgd::Lawgd;
pub use log_ratio::{Estimator, LogRatio};
pub use product_space::ProductSpace;
pub use stein::{CurlForm, Stein, TimeUnit};

use crate::dynamics::Evaluated;
use crate::{Error, Matrix, Real, Result};

/// The address of a draw: see [`crate::random`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The run's seed.
    pub seed: u64,
    /// A number that no other draw of the run has.
    pub index: u64,
}

/// The velocity of every particle, and the noise of stochastic fields.
pub trait Field<T: Real = f64>: Send {
    /// Checks the field against the number of blocks and particles, before the run.
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        let _ = (blocks, particles);
        Ok(())
    }

    /// Writes the velocity of the blocks in `moving`, one after the other: `N × (moving · dim)`.
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()>;

    /// The same field for some coordinates at a time, where it can be had: see [`ByCoordinate`]. What A and C are at
    /// the particles need not be known yet.
    fn by_coordinate(&mut self, at: &Evaluated<'_, T>) -> Result<Option<Box<dyn ByCoordinate<T>>>> {
        let _ = at;
        Ok(None)
    }

    /// Whether [`Field::add_noise`] does anything.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether the field only makes sense in the target's own coordinates, not in preconditioned ones.
    fn needs_own_coordinates(&self) -> bool {
        false
    }

    /// Whether, in a flow without friction, π⊗…⊗π is invariant and a step of the auxiliary blocks preserves
    /// volume: what moves them depends on θ alone, and so does the kernel, which is held.
    fn preserves_volume_of_auxiliaries(&self) -> bool {
        false
    }

    /// Adds the noise of a step of length `dt` to the displacement of the blocks in `moving`.
    fn add_noise(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        dt: f64,
        draw: Draw,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        let _ = (at, moving, dt, draw, displacement);
        Ok(())
    }

    /// The bandwidths that the last velocity used, one per factor of the kernel.
    fn bandwidths(&self) -> &[f64] {
        &[]
    }

    /// Whatever it carries from step to step, as numbers; empty when it carries nothing.
    fn memory(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Goes back to an earlier [`Field::memory`].
    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        if memory.is_empty() { Ok(()) } else { Err(Error::ForeignState { whose: "the field" }) }
    }
}

/// A field at one instant, once that is known which joins coordinates: the kernel. What is left to do acts on each
/// coordinate alone, so that in many dimensions a strip of them can be worked on while it is in a cache.
pub trait ByCoordinate<T: Real>: Send + Sync {
    /// As [`Field::velocity`], of the coordinates that `at` has. Of the state it has the blocks that M reads for those
    /// in `moving`, and any numbers in place of others.
    fn velocity(&self, at: &Evaluated<'_, T>, moving: &[usize], velocity: &mut Matrix<T>);
}

impl<T: Real, F: Field<T> + ?Sized> Field<T> for Box<F> {
    fn validate(&self, blocks: usize, particles: usize) -> Result<()> {
        (**self).validate(blocks, particles)
    }
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        (**self).velocity(at, moving, velocity)
    }
    fn by_coordinate(&mut self, at: &Evaluated<'_, T>) -> Result<Option<Box<dyn ByCoordinate<T>>>> {
        (**self).by_coordinate(at)
    }
    fn is_random(&self) -> bool {
        (**self).is_random()
    }
    fn needs_own_coordinates(&self) -> bool {
        (**self).needs_own_coordinates()
    }
    fn preserves_volume_of_auxiliaries(&self) -> bool {
        (**self).preserves_volume_of_auxiliaries()
    }
    fn add_noise(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        dt: f64,
        draw: Draw,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        (**self).add_noise(at, moving, dt, draw, displacement)
    }
    fn bandwidths(&self) -> &[f64] {
        (**self).bandwidths()
    }
    fn memory(&self) -> Vec<f64> {
        (**self).memory()
    }
    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        (**self).recall(memory)
    }
}

/// Interacting particles need company.
fn at_least_two(particles: usize) -> Result<()> {
    if particles < 2 {
        return Err(Error::setting(
            "number of particles",
            particles,
            "interacting particles need company: take 2 or more (100 is a good start), or a \
             diffusion such as `ld` for a single chain",
        ));
    }
    Ok(())
}
