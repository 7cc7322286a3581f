//! Kernel Stein discrepancy with a kernel that is the same for all that are compared.

use crate::diagnostics::{Statistic, squared_stein_discrepancy};
use crate::kernel::Radial;
use crate::{Error, LogDensity, Matrix, Real, Result};

/// Judges particles by their kernel Stein discrepancy: IMQ, whose slow decay sees particles that have
/// strayed, in coordinates that are scaled once, with h = d.
///
/// Scales and bandwidth must not come from the particles that are judged: a bandwidth that follows them
/// makes those that have run far apart look smooth, and those that have collapsed too. They come from
/// the pool of all runs of the first round: in every coordinate the interquartile range, which is blind
/// to the few runs that are about to diverge, over the half of the runs with the higher median log
/// density, which leaves out those that have hardly moved. In these units points of the target are at
/// squared distances around 2d, where the kernel with h = d is neither flat nor spiky.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinJudge {
    scales: Vec<f64>,
}

impl SteinJudge {
    /// The scales of a pool: particles, one a row, and the log density of each. Without particles that
    /// are finite they are 1.
    pub fn of_pool<'p, T: Real>(
        dim: usize,
        pool: impl IntoIterator<Item = (&'p Matrix<T>, &'p [T])>,
    ) -> Self {
        let mut runs: Vec<(f64, &Matrix<T>)> = pool
            .into_iter()
            .filter_map(|(theta, log_density)| {
                let values = log_density.iter().map(|x| x.as_f64()).filter(|x| x.is_finite());
                Some((quantile(values.collect(), 0.5)?, theta))
            })
            .collect();
        runs.sort_by(|a, b| b.0.total_cmp(&a.0));
        runs.truncate(runs.len().div_ceil(2));
        let scale = |j: usize| {
            let values = runs.iter().flat_map(|(_, theta)| {
                (0..theta.rows()).map(move |i| theta.row(i)[j].as_f64()).filter(|x| x.is_finite())
            });
            let values: Vec<f64> = values.collect();
            let range = quantile(values.clone(), 0.75)? - quantile(values, 0.25)?;
            // 1.349: the interquartile range of a standard normal.
            Some(range / 1.349).filter(|&scale| scale > 0.0 && scale.is_finite())
        };
        Self { scales: (0..dim).map(|j| scale(j).unwrap_or(1.0)).collect() }
    }

    /// KSD (not squared) of particles, one a row, on all of the target's data; infinite where a score is
    /// not finite.
    pub fn discrepancy<T: Real>(
        &self,
        target: &dyn LogDensity<T>,
        theta: &Matrix<T>,
    ) -> Result<f64> {
        let (count, dim) = (theta.rows(), theta.cols());
        if dim != self.scales.len() {
            return Err(Error::Shape {
                what: "the particles",
                found: format!("{dim} coordinates"),
                expected: format!("{}, as the pool", self.scales.len()),
            });
        }
        let mut log_density = vec![T::zero(); count];
        let mut score = Matrix::zeros(count, dim);
        target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
        let x = Matrix::from_fn(count, dim, |i, j| theta.row(i)[j].as_f64() / self.scales[j]);
        let s = Matrix::from_fn(count, dim, |i, j| score.row(i)[j].as_f64() * self.scales[j]);
        let (radial, h) = (Radial::InverseMultiquadric, dim as f64);
        let square = squared_stein_discrepancy(x.as_ref(), s.as_ref(), radial, h, Statistic::V)?;
        // Rounding may leave a square of 0 below it.
        Ok(if square.is_finite() { square.max(0.0).sqrt() } else { f64::INFINITY })
    }
}

/// The nearest value to a quantile; none of no values.
fn quantile(mut values: Vec<f64>, level: f64) -> Option<f64> {
    let place = (level * values.len().checked_sub(1)? as f64).round() as usize;
    Some(*values.select_nth_unstable_by(place, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::PerParticle;
    use crate::testing::random_states;

    fn gaussian(sd: f64) -> impl LogDensity<f64> {
        PerParticle::new(2, move |theta: &[f64], score: &mut [f64]| {
            score.copy_from_slice(&[-theta[0] / (sd * sd), -theta[1]]);
            -0.5 * ((theta[0] / sd).powi(2) + theta[1].powi(2))
        })
    }

    fn log_densities(target: &impl LogDensity<f64>, theta: &Matrix<f64>) -> Vec<f64> {
        let mut log_density = vec![0.0; theta.rows()];
        let mut score = Matrix::zeros(theta.rows(), theta.cols());
        target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut()).unwrap();
        log_density
    }

    #[test]
    fn samples_beat_particles_that_are_too_wide_too_narrow_or_beside() {
        let (target, samples) = (gaussian(1.0), random_states(200, 2, 5));
        let moved =
            |scale: f64, by: f64| Matrix::from_fn(200, 2, |i, j| scale * samples.row(i)[j] + by);
        let log_density = log_densities(&target, &samples);
        let judge = SteinJudge::of_pool(2, [(&samples, &log_density[..])]);
        let score = |theta: &Matrix<f64>| judge.discrepancy(&target, theta).unwrap();
        for other in [moved(3.0, 0.0), moved(0.2, 0.0), moved(1.0, 1.0), moved(1e6, 0.0)] {
            assert!(score(&other) > 1.5 * score(&samples));
        }
        assert_eq!(score(&moved(1.0, f64::NAN)), f64::INFINITY);
    }

    #[test]
    fn units_do_not_matter() {
        let samples = random_states(100, 2, 5);
        let scores = [1.0, 1e3].map(|sd| {
            let target = gaussian(sd);
            let theta =
                Matrix::from_fn(100, 2, |i, j| samples.row(i)[j] * if j == 0 { sd } else { 1.0 });
            let log_density = log_densities(&target, &theta);
            let judge = SteinJudge::of_pool(2, [(&theta, &log_density[..])]);
            judge.discrepancy(&target, &theta).unwrap()
        });
        assert!((scores[0] / scores[1] - 1.0).abs() < 1e-10, "{scores:?}");
    }

    #[test]
    fn runs_that_are_lost_do_not_set_the_scale() {
        let (target, good) = (gaussian(1.0), random_states(100, 2, 5));
        let lost = Matrix::from_fn(100, 2, |i, j| 1e9 * good.row(i)[j]);
        let nowhere = Matrix::from_fn(100, 2, |_, _| f64::NAN);
        let densities = [&good, &lost, &nowhere].map(|theta| log_densities(&target, theta));
        let pool = [&good, &lost, &nowhere].into_iter().zip(&densities);
        let judge = SteinJudge::of_pool(2, pool.map(|(theta, density)| (theta, &density[..])));
        assert_eq!(judge, SteinJudge::of_pool(2, [(&good, &densities[0][..])]));
        assert_eq!(SteinJudge::of_pool::<f64>(3, []).scales, [1.0; 3]);
    }
}
