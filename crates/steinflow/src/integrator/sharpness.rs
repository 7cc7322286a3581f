//! How sharply the target is curved where the particles start: what a default step size is made of.

use crate::precondition::RootMeanSquare;
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{LogDensity, MatRef, Matrix, Real, Result};

/// A few places that stand for a start at N(mean, sd²·I): the mean, and draws.
pub fn places_around(mean: &[f64], sd: f64) -> Matrix<f64> {
    const PLACES: usize = 5;
    let (mut places, mut direction) = (Matrix::zeros(PLACES, mean.len()), vec![0.0; mean.len()]);
    for i in 0..PLACES {
        let mut generator = stream(0, Purpose::Start, 0, i as u64);
        // What comes first in the stream is the direction that the place is looked along.
        fill_standard_normal(&mut generator, &mut direction);
        fill_standard_normal(&mut generator, places.row_mut(i));
        for (x, mean) in places.row_mut(i).iter_mut().zip(mean) {
            *x = if i == 0 { *mean } else { mean + sd * *x };
        }
    }
    places
}

/// The largest |eigenvalue| of ∇²log π at any of the places, by power iteration on differences of
/// the score; in the coordinates that a preconditioner would begin with, if there is one. `spread`
/// is the scale of the places, which differences are taken in a small fraction of.
///
/// Every evaluation is of as many points as there are places: a target that is compiled for a number
/// of particles is compiled once.
pub fn sharpness<T: Real>(
    target: &dyn LogDensity<T>,
    places: MatRef<'_, T>,
    spread: f64,
    preconditioner: Option<RootMeanSquare>,
) -> Result<f64> {
    const ITERATIONS: usize = 20;
    let (count, dim) = (places.rows(), places.cols());
    let mut log_density = vec![T::zero(); count];
    let mut score_at = |points: &Matrix<T>| -> Result<Matrix<T>> {
        let mut score = Matrix::zeros(count, dim);
        target.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
        Ok(score)
    };
    let mut directions = Matrix::zeros(count, dim);
    for i in 0..count {
        let mut generator = stream(0, Purpose::Start, 0, i as u64);
        fill_standard_normal(&mut generator, directions.row_mut(i));
    }
    let scale = match preconditioner {
        Some(rule) => {
            let score = score_at(&Matrix::from_fn(count, dim, |i, j| places.row(i)[j]))?;
            let square =
                |j: usize| (0..count).map(|i| score.row(i)[j].as_f64().powi(2)).sum::<f64>();
            let root_mean_square = |j: usize| (square(j) / count as f64).sqrt();
            (0..dim).map(|j| (root_mean_square(j) + rule.floor).sqrt().recip()).collect()
        }
        None => vec![1.0; dim],
    };
    let step = 1e-4 * (1.0 + spread);
    let mut largest: f64 = 0.0;
    for _ in 0..ITERATIONS {
        for i in 0..count {
            let norm = directions.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
            for v in directions.row_mut(i) {
                *v /= norm.max(f64::MIN_POSITIVE);
            }
        }
        let moved = |step: f64| {
            Matrix::from_fn(count, dim, |i, j| {
                T::of(places.row(i)[j].as_f64() + step * scale[j] * directions.row(i)[j])
            })
        };
        let (forward, backward) = (score_at(&moved(step))?, score_at(&moved(-step))?);
        largest = 0.0;
        for i in 0..count {
            for j in 0..dim {
                let difference = forward.row(i)[j].as_f64() - backward.row(i)[j].as_f64();
                directions.row_mut(i)[j] = scale[j] * difference / (2.0 * step);
            }
            let norm = directions.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
            // A start where the score is not finite is the run's to report.
            if norm.is_finite() {
                largest = largest.max(norm);
            } else {
                directions.row_mut(i).fill(0.0);
            }
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::{places_around, sharpness};
    use crate::precondition::RootMeanSquare;
    use crate::target::PerParticle;
    use crate::{LogDensity, Real};

    const VARIANCES: [f64; 3] = [4.0, 0.01, 1.0];

    fn gaussian<T: Real>() -> impl LogDensity<T> {
        PerParticle::new(3, |theta: &[T], score: &mut [T]| {
            for ((s, &x), variance) in score.iter_mut().zip(theta).zip(VARIANCES) {
                *s = -x / T::of(variance);
            }
            T::zero()
        })
    }

    #[test]
    fn finds_the_sharpest_direction_of_a_gaussian() {
        let places = places_around(&[1.0, 2.0, 3.0], 0.5);
        let found = sharpness::<f64>(&gaussian(), places.as_ref(), 0.5, None).unwrap();
        assert!((found - 100.0).abs() < 0.1, "{found}");
        let single = sharpness::<f32>(&gaussian(), places.cast().as_ref(), 0.5, None).unwrap();
        assert!((single - 100.0).abs() < 5.0, "{single}");
    }

    /// The score is −(1/4, 200, 3) everywhere that matters, so curvature over its size is at most 1.
    #[test]
    fn a_preconditioner_evens_the_directions_out() {
        let places = places_around(&[1.0, 2.0, 3.0], 1e-6);
        let rule = Some(RootMeanSquare::default());
        let found = sharpness::<f64>(&gaussian(), places.as_ref(), 1e-6, rule).unwrap();
        assert!((found - 0.25 / 0.251).abs() < 1e-3, "{found}");
    }
}
