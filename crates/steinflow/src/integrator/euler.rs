//! Euler: z ← z + ε v(z), and Euler–Maruyama for a diffusion. First order.

use super::Integrator;
use crate::flow::Flow;
use crate::{Real, Result};

/// All blocks at once, one velocity and one gradient a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Euler;

impl<T: Real> Integrator<T> for Euler {
    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        let blocks: Vec<usize> = (0..flow.structure().blocks()).collect();
        flow.advance(&blocks, dt)
    }
}
