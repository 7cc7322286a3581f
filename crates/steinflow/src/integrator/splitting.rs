//! Symmetric splitting: half steps of the auxiliary blocks around a full step of θ.
//!
//! ```text
//! r ← r + (ε/2) v_r,   θ ← θ + ε v_θ,   r ← r + (ε/2) v_r            (the paper, "GSVGD in practice")
//! ```
//!
//! each velocity taken at the current state; with three blocks the pattern is nested. The paper's
//! half steps are explicit in r, so the scheme measures **first** order, with a smaller constant
//! than Euler's. With the midpoint rule in every part it is **second** order. Either way a step
//! costs one gradient, unless the dynamics' coefficients read the density (SGRHMC): then the
//! midpoint rule needs two.

use super::Integrator;
use crate::dynamics::Structure;
use crate::flow::Flow;
use crate::{Error, Real, Result};

/// The paper's scheme.
#[derive(Clone, Copy, Debug, Default)]
pub struct SymmetricSplitting;

/// The same pattern with midpoint steps: second order, twice the kernel sums. Deterministic fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct MidpointSplitting;

/// The same pattern with the midpoint rule for the innermost part alone, which moves θ. Second order too
/// where the auxiliary blocks are pushed by what they do not change themselves: without friction, and with a
/// kernel that sees θ. Deterministic fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct MidpointDrift;

/// As [`MidpointDrift`], implicitly: the same steps backwards lead back, and how they change volume is kept in
/// [`Flow::log_volume`]. For a joint accept step, which needs both.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImplicitDrift;

fn needs_auxiliaries(structure: &Structure) -> Result<()> {
    if structure.blocks() == 1 {
        return Err(Error::setting(
            "integrator",
            "splitting",
            "there is no auxiliary variable to split off; use euler",
        ));
    }
    Ok(())
}

fn needs_determinism(name: &str, random: bool) -> Result<()> {
    if random {
        let remedy = "it is made for deterministic fields; run a diffusion with euler or splitting";
        return Err(Error::setting("integrator", name, remedy));
    }
    Ok(())
}

/// Outer stages for half a step, the innermost for a whole one, outer stages back.
fn nested<T: Real, F: Flow<T> + ?Sized>(
    flow: &mut F,
    dt: f64,
    advance: impl Fn(&mut F, &[usize], f64) -> Result<()>,
    advance_middle: impl Fn(&mut F, &[usize], f64) -> Result<()>,
) -> Result<()> {
    let stages = flow.structure().stages();
    let Some((middle, outer)) = stages.split_last() else { return Ok(()) };
    for stage in outer {
        advance(flow, stage, 0.5 * dt)?;
    }
    advance_middle(flow, middle, dt)?;
    for stage in outer.iter().rev() {
        advance(flow, stage, 0.5 * dt)?;
    }
    Ok(())
}

impl<T: Real> Integrator<T> for SymmetricSplitting {
    fn validate(&self, structure: &Structure, _random: bool) -> Result<()> {
        needs_auxiliaries(structure)
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        nested(flow, dt, Flow::advance, Flow::advance)
    }
}

impl<T: Real> Integrator<T> for MidpointSplitting {
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        needs_determinism("midpoint-splitting", random)?;
        needs_auxiliaries(structure)
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        nested(flow, dt, Flow::advance_by_midpoint, Flow::advance_by_midpoint)
    }
}

impl<T: Real> Integrator<T> for MidpointDrift {
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        needs_determinism("midpoint-drift", random)?;
        needs_auxiliaries(structure)
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        nested(flow, dt, Flow::advance, Flow::advance_by_midpoint)
    }
}

impl<T: Real> Integrator<T> for ImplicitDrift {
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        needs_determinism("implicit-drift", random)?;
        needs_auxiliaries(structure)
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        nested(flow, dt, Flow::advance, Flow::advance_implicitly)
    }

    fn tracks_volume(&self) -> bool {
        true
    }
}
