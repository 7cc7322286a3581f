//! Densities that are written for one particle at a time.

use steinflow::target::PerParticle;
use steinflow::{LogDensity as _, MatMut, MatRef, Real};

use crate::checks::require_shapes;

/// Checks the shapes, then evaluates particles in parallel.
pub(crate) fn evaluate_each<T: Real>(
    dim: usize,
    theta: MatRef<'_, T>,
    log_density: &mut [T],
    score: MatMut<'_, T>,
    density: impl Fn(&[T], &mut [T]) -> T + Send + Sync,
) -> steinflow::Result<()> {
    require_shapes(dim, theta, log_density, score.rows(), score.cols())?;
    PerParticle::new(dim, density).evaluate(theta, None, log_density, score)
}

/// The same for a density in double precision alone.
pub(crate) fn evaluate_in_f64<T: Real>(
    dim: usize,
    theta: MatRef<'_, T>,
    log_density: &mut [T],
    score: MatMut<'_, T>,
    density: impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync,
) -> steinflow::Result<()> {
    evaluate_each(dim, theta, log_density, score, |theta: &[T], score: &mut [T]| {
        let wide: Vec<f64> = theta.iter().map(|x| x.as_f64()).collect();
        let mut slopes = vec![0.0; dim];
        let value = density(&wide, &mut slopes);
        for (to, from) in score.iter_mut().zip(slopes) {
            *to = T::of(from);
        }
        T::of(value)
    })
}
