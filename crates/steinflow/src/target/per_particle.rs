//! A target from a function of one particle.

use rayon::prelude::*;

use super::{LogDensity, Minibatch};
use crate::{MatMut, MatRef, Real, Result};

/// Wraps a function that takes one θ, writes ∇log π(θ) and returns log π(θ).
///
/// Particles are evaluated in parallel; each alone, so the result does not depend on the threads.
///
/// ```
/// use steinflow::{LogDensity, Matrix, target::PerParticle};
///
/// let gaussian = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
///     for (s, x) in score.iter_mut().zip(theta) {
///         *s = -x;
///     }
///     -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
/// });
/// let theta = Matrix::from_fn(1, 2, |_, j| j as f64);
/// let (mut log_density, mut score) = ([0.0], Matrix::zeros(1, 2));
/// gaussian.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
/// assert_eq!((log_density[0], score.row(0)), (-0.5, &[-0.0, -1.0][..]));
/// # Ok::<(), steinflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PerParticle<F> {
    dim: usize,
    function: F,
}

impl<F> PerParticle<F> {
    /// A target in `dim` dimensions.
    pub fn new(dim: usize, function: F) -> Self {
        Self { dim, function }
    }
}

impl<T: Real, F: Fn(&[T], &mut [T]) -> T + Send + Sync> LogDensity<T> for PerParticle<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> Result<()> {
        // Cheap densities are not worth a task each.
        const PARTICLES_PER_TASK: usize = 64;
        log_density
            .par_chunks_mut(PARTICLES_PER_TASK)
            .zip(score.as_mut_slice().par_chunks_mut(PARTICLES_PER_TASK * self.dim.max(1)))
            .enumerate()
            .for_each(|(task, (values, scores))| {
                let first = task * PARTICLES_PER_TASK;
                for (offset, (value, score)) in
                    values.iter_mut().zip(scores.chunks_exact_mut(self.dim.max(1))).enumerate()
                {
                    *value = (self.function)(theta.row(first + offset), score);
                }
            });
        Ok(())
    }
}
