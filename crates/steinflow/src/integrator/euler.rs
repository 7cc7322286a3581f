//! Euler: z ← z + ε v(z), and Euler–Maruyama for a diffusion. First order.

use super::Integrator;
use crate::system::System;
use crate::{Real, Result};

/// All blocks at once, one velocity and one gradient a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Euler;

impl<T: Real> Integrator<T> for Euler {
    fn step(&mut self, system: &mut System<'_, T>, dt: f64) -> Result<()> {
        let blocks: Vec<usize> = (0..system.structure().blocks()).collect();
        system.advance(&blocks, dt)
    }
}
