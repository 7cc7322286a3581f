//! How sharply the target is curved where the particles start: what a default step size is made of.

use steinflow::precondition::RootMeanSquare;
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::{LogDensity, Matrix, Result};

/// The largest |eigenvalue| of ∇²log π at the mean of the start and at a few draws from it, by
/// power iteration on differences of the score; in the coordinates that a preconditioner would begin
/// with, if there is one.
pub fn at_start(
    target: &dyn LogDensity<f64>,
    mean: &[f64],
    sd: f64,
    preconditioner: Option<RootMeanSquare>,
) -> Result<f64> {
    const PLACES: usize = 5;
    const ITERATIONS: usize = 20;
    let dim = mean.len();
    let (mut places, mut directions) = (Matrix::zeros(PLACES, dim), Matrix::zeros(PLACES, dim));
    for i in 0..PLACES {
        let mut generator = stream(0, Purpose::Start, 0, i as u64);
        fill_standard_normal(&mut generator, directions.row_mut(i));
        fill_standard_normal(&mut generator, places.row_mut(i));
        for (x, mean) in places.row_mut(i).iter_mut().zip(mean) {
            *x = if i == 0 { *mean } else { mean + sd * *x };
        }
    }
    let scale = match preconditioner {
        Some(rule) => {
            let mut score = Matrix::zeros(PLACES, dim);
            target.evaluate(places.as_ref(), None, &mut [0.0; PLACES], score.as_mut())?;
            let square = |j: usize| (0..PLACES).map(|i| score.row(i)[j].powi(2)).sum::<f64>();
            let root_mean_square = |j: usize| (square(j) / PLACES as f64).sqrt();
            (0..dim).map(|j| (root_mean_square(j) + rule.floor).sqrt().recip()).collect()
        }
        None => vec![1.0; dim],
    };
    let mut largest: f64 = 0.0;
    for _ in 0..ITERATIONS {
        for i in 0..PLACES {
            let norm = directions.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
            for v in directions.row_mut(i) {
                *v /= norm.max(f64::MIN_POSITIVE);
            }
        }
        let step = 1e-4 * (1.0 + sd);
        let moved = Matrix::from_fn(2 * PLACES, dim, |row, j| {
            let (i, sign) = if row < PLACES { (row, step) } else { (row - PLACES, -step) };
            places.row(i)[j] + sign * scale[j] * directions.row(i)[j]
        });
        let mut score = Matrix::zeros(2 * PLACES, dim);
        target.evaluate(moved.as_ref(), None, &mut [0.0; 2 * PLACES], score.as_mut())?;
        largest = 0.0;
        for i in 0..PLACES {
            for j in 0..dim {
                directions.row_mut(i)[j] =
                    scale[j] * (score.row(i)[j] - score.row(i + PLACES)[j]) / (2.0 * step);
            }
            let norm = directions.row(i).iter().map(|v| v * v).sum::<f64>().sqrt();
            // A start where the score is not finite is the run's to report.
            if norm.is_finite() {
                largest = largest.max(norm);
            }
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use steinflow::precondition::RootMeanSquare;
    use steinflow_models::toy::Gaussian;

    fn gaussian() -> Gaussian {
        let covariance =
            steinflow::Matrix::from_fn(3, 3, |i, j| if i == j { [4.0, 0.01, 1.0][i] } else { 0.0 });
        Gaussian::new(vec![0.0; 3], covariance).unwrap()
    }

    #[test]
    fn finds_the_sharpest_direction_of_a_gaussian() {
        let found = super::at_start(&gaussian(), &[1.0, 2.0, 3.0], 0.5, None).unwrap();
        assert!((found - 100.0).abs() < 0.1, "{found}");
    }

    /// The score is −(1/4, 200, 3) everywhere that matters, so curvature over its size is at most 1.
    #[test]
    fn a_preconditioner_evens_the_directions_out() {
        let rule = Some(RootMeanSquare::default());
        let found = super::at_start(&gaussian(), &[1.0, 2.0, 3.0], 1e-6, rule).unwrap();
        assert!((found - 0.25 / 0.251).abs() < 1e-3, "{found}");
    }
}
