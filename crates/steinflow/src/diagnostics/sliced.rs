//! Sliced Wasserstein distance (Rabin et al. 2012): the Wasserstein distance of projections on lines,
//! where it is that of sorted numbers.

use rayon::prelude::*;

use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, MatRef, Real, Result};

/// The root of the mean, over `directions` random lines drawn from `seed`, of W₂² between the
/// projections of the rows of `x` and of `y`.
///
/// ```
/// use steinflow::{Matrix, diagnostics::sliced_wasserstein};
/// let x = Matrix::from_fn(3, 1, |i, _| i as f64);
/// let y = Matrix::from_fn(3, 1, |i, _| i as f64 + 0.5);
/// assert!((sliced_wasserstein(x.as_ref(), y.as_ref(), 10, 0)? - 0.5).abs() < 1e-12);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn sliced_wasserstein<T: Real>(
    x: MatRef<'_, T>,
    y: MatRef<'_, T>,
    directions: usize,
    seed: u64,
) -> Result<f64> {
    super::require_same_dimension(x, y)?;
    if directions == 0 {
        return Err(Error::setting("number of directions", 0, "take 1 or more, such as 100"));
    }
    if x.rows() == 0 || y.rows() == 0 {
        return Err(Error::setting("number of points", 0, "a distance needs 1 or more"));
    }
    let squares: Vec<f64> = (0..directions as u64)
        .into_par_iter()
        .map(|k| {
            let mut direction = vec![0.0f64; x.cols()];
            fill_standard_normal(&mut stream(seed, Purpose::Projection, 0, k), &mut direction);
            let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
            let sorted = |points: MatRef<'_, T>| {
                let project = |i| {
                    let row: &[T] = points.row(i);
                    row.iter().zip(&direction).map(|(x, v)| x.as_f64() * v / norm).sum::<f64>()
                };
                let mut values: Vec<f64> = (0..points.rows()).map(project).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            squared_distance(&sorted(x), &sorted(y))
        })
        .collect();
    Ok((squares.iter().sum::<f64>() / directions as f64).sqrt())
}

/// ∫ (F⁻¹(p) − G⁻¹(p))² dp for the distributions of two sorted lists.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    // In units of 1/(|a| |b|), so that both lists' steps are whole numbers.
    let (mut i, mut j, mut done, mut sum) = (0, 0, 0, 0.0);
    while i < a.len() && j < b.len() {
        let (next_a, next_b) = ((i + 1) * b.len(), (j + 1) * a.len());
        let next = next_a.min(next_b);
        sum += (next - done) as f64 * (a[i] - b[j]).powi(2);
        done = next;
        i += usize::from(next == next_a);
        j += usize::from(next == next_b);
    }
    sum / (a.len() as f64 * b.len() as f64)
}
