//! Bringing a copy of the particles to rest: a small set of points with equal weights, for whoever has an
//! expensive model to run at each of them.
//!
//! From representative draws, in learnt coordinates, some steps of SVGD with an affine part in its kernel leave points with
//! the mean and the covariance of any Gaussian, more even than draws are. Where the target is not one, they
//! may be wrong, and nothing about them says so: they are compared with draws, and refused if they differ.

use super::representative::thinned;
use super::{Outcome, Sampler};
use crate::coordinates::{Coordinates, InCoordinates};
use crate::dynamics::Langevin;
use crate::field::Stein;
use crate::integrator::{Adaptive, StepSize};
use crate::kernel::{Bandwidth, Kernel};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// As many particles as pairs of them are to be afforded without asking.
pub fn affordable_particles(dim: usize) -> usize {
    const MOST_NUMBERS: usize = 200_000;
    (MOST_NUMBERS / dim.max(1)).max(100)
}

/// Particles at rest. Where a target is not Gaussian, the d² conditions on second moments that an affine kernel
/// sets are met with an error that falls with N/d.
pub fn resting_particles(dim: usize) -> usize {
    (50 * dim).clamp(400, 1000).min(affordable_particles(dim))
}

/// Steps of Adam for particles that come to rest, and the sizes of the first and the last of them. As many particles as are
/// recommended stand for all draws that they are taken from and have little to mend; longer steps would fit what so many can
/// fit of a target that is not Gaussian. Much fewer have lost some of the spread, and have to get it back.
pub fn resting_steps(particles: usize, dim: usize) -> (u64, [f64; 2]) {
    let are_few = particles < resting_particles(dim) / 2;
    let (steps, size) = if are_few { (100, 0.02) } else { (60, 0.01) };
    (steps, [size, 1e-4])
}

/// How far a standard deviation may be from that of many draws, relative to it.
const TOLERANCE: f64 = 0.1;
/// And from that of few, in standard errors of theirs.
const STANDARD_ERRORS: f64 = 3.0;

impl<T: Real> Outcome<T> {
    /// As many points as particles, at rest, with equal weights, from those of `draws` that stand for all of them.
    /// Takes 60 gradients a point, 100 where there are [few](resting_steps).
    ///
    /// For runs with a [warm-up](Sampler::warm_up) or of [`Auto`](super::Auto), whose learnt coordinates it
    /// moves in. Refuses fewer particles than twice the dimension, and points whose standard deviations
    /// are more than 10 % away from those of `draws`, rows of θ that the run has collected; of fewer than 450 draws, more than
    /// three standard errors.
    ///
    /// ```
    /// use steinflow::target::PerParticle;
    /// use steinflow::run::{Auto, Samples};
    /// // N(3, 2²).
    /// let target = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
    ///     score[0] = -(theta[0] - 3.0) / 4.0;
    ///     -(theta[0] - 3.0).powi(2) / 8.0
    /// });
    /// let mut samples = Samples::of_ensemble();
    /// let outcome = Auto::new(&target).observe(samples.observer()).run()?;
    /// let points = outcome.at_rest(&target, samples.theta().as_ref())?;
    /// let count = points.rows() as f64;
    /// let mean = points.as_slice().iter().sum::<f64>() / count;
    /// let variance = points.as_slice().iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    /// assert!((mean - 3.0).abs() < 0.01 && (variance / 4.0 - 1.0).abs() < 0.03);
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn at_rest(&self, target: impl LogDensity<T>, draws: MatRef<'_, T>) -> Result<Matrix<T>> {
        let (dim, count) = (target.dim(), self.state.rows());
        if count < 2 * dim {
            let remedy = format!(
                "fewer than 2d can not have the covariance of {dim} dimensions; take {} or more",
                2 * dim
            );
            return Err(Error::setting("particles to bring to rest", count, remedy));
        }
        if self.checkpoint.learnt.as_slice().is_empty() {
            let remedy = "points come to rest in coordinates that a warm-up or `auto` has learnt; run one of them";
            return Err(Error::setting("points at rest", "after a run that learnt none", remedy));
        }
        let coordinates = Coordinates::restore(dim, &self.checkpoint.learnt)?;
        let theta = if draws.rows() < count {
            self.theta().cast()
        } else {
            let draws = Matrix::from_fn(draws.rows(), dim, |i, j| draws.row(i)[j].as_f64());
            thinned(draws.as_ref(), count, &coordinates, &*T::widen(Box::new(&target)))?
        };
        let white = coordinates.from_theta(theta.as_ref());
        let kernel = Kernel {
            bandwidth: Bandwidth::White { factor: 10.0 },
            affine: 1.0,
            ..Kernel::default()
        };
        let target = InCoordinates::new(target, coordinates.clone())?;
        let (steps, [first, last]) = resting_steps(count, dim);
        let rested = Sampler::new(target, Langevin::new(), Stein::new(kernel))
            .start_at(white.cast())
            .phase(Adaptive::<T>::adam(), steps, StepSize::Linear(first, last))
            .run_here()?;
        let points = coordinates.to_theta(rested.theta().cast::<f64>().as_ref());
        compare(points.as_ref(), draws)?;
        Ok(points.cast())
    }
}

/// Refuses points that are wider or narrower than draws.
fn compare<T: Real>(points: MatRef<'_, f64>, draws: MatRef<'_, T>) -> Result<()> {
    let standard_error = 0.5_f64.sqrt() / (draws.rows() as f64).sqrt();
    let tolerance = TOLERANCE.max(STANDARD_ERRORS * standard_error);
    for j in 0..points.cols() {
        let own = sd((0..points.rows()).map(|i| points.row(i)[j]));
        let of_draws = sd((0..draws.rows()).map(|i| draws.row(i)[j].as_f64()));
        let ratio = own / of_draws;
        if !((ratio - 1.0).abs() <= tolerance) {
            let what = format!("{ratio:.2} times the spread of the draws in coordinate {}", j + 1);
            let remedy = "the target is too far from a Gaussian for so few points: use the draws, or \
                          take more particles";
            return Err(Error::setting("points at rest", what, remedy));
        }
    }
    Ok(())
}

fn sd(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt()
}
