//! The stochastic original: dz = f dt + √(2A) dW, every particle a chain of its own.

use rayon::prelude::*;

use super::{Draw, Drift, Field};
use crate::dynamics::Evaluated;
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Matrix, Real, Result};

/// Drift plus independent noise √(2A).
#[derive(Clone, Copy, Debug, Default)]
pub struct Diffusion;

impl<T: Real> Field<T> for Diffusion {
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        Drift.velocity(at, moving, velocity)
    }

    fn is_random(&self) -> bool {
        true
    }

    fn add_noise(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        dt: f64,
        draw: Draw,
        displacement: &mut Matrix<T>,
    ) -> Result<()> {
        let scale = T::of((2.0 * dt).sqrt());
        let moved = displacement.cols();
        displacement
            .as_mut_slice()
            .par_chunks_mut(moved)
            .enumerate()
            .with_min_len(64)
            .for_each_init(
                || vec![T::zero(); moved],
                |noise, (i, out)| {
                    let mut generator = stream(draw.seed, Purpose::Noise, draw.index, i as u64);
                    fill_standard_normal(&mut generator, noise);
                    let c = at.coefficients.row(i);
                    at.operator.apply_diffusion_root(c, noise, moving, scale, out);
                },
            );
        Ok(())
    }
}
