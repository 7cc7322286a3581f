//! Maximum mean discrepancy (Gretton et al. 2012): how far apart two sets of points are to a kernel.

use super::{Statistic, sum_by_rows};
use crate::kernel::{Bandwidth, Radial};
use crate::{Error, MatRef, Matrix, Real, Result};

/// MMD² = E k(x, x′) + E k(y, y′) − 2 E k(x, y) between the rows of `x` and of `y`.
///
/// With [`Statistic::V`] a point is also paired with itself and the value is never negative; with
/// [`Statistic::U`] it is not, and the value is unbiased.
///
/// ```
/// use steinflow::{Matrix, diagnostics::{Statistic, squared_mean_discrepancy}, kernel::Radial};
/// let (x, y) = (Matrix::<f64>::zeros(1, 1), Matrix::from_fn(1, 1, |_, _| 1.0));
/// let radial = Radial::SquaredExponential;
/// let found = squared_mean_discrepancy(x.as_ref(), y.as_ref(), radial, 1.0, Statistic::V)?;
/// // 1 + 1 − 2 exp(−1).
/// assert!((found - (2.0 - 2.0 * (-1.0f64).exp())).abs() < 1e-15);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn squared_mean_discrepancy<T: Real>(
    x: MatRef<'_, T>,
    y: MatRef<'_, T>,
    radial: Radial,
    bandwidth: f64,
    statistic: Statistic,
) -> Result<f64> {
    let fewest = if statistic == Statistic::V { 1 } else { 2 };
    for (points, what) in [(x, "number of points"), (y, "number of points to compare with")] {
        if points.rows() < fewest {
            let remedy = format!("this statistic needs {fewest} or more");
            return Err(Error::setting(what, points.rows(), remedy));
        }
    }
    super::require_same_dimension(x, y)?;
    super::require_bandwidth(bandwidth)?;
    let kernel = |a: &[T], b: &[T]| {
        let square: f64 = a.iter().zip(b).map(|(a, b)| (a.as_f64() - b.as_f64()).powi(2)).sum();
        match radial {
            Radial::SquaredExponential => (-square / bandwidth).exp(),
            Radial::InverseMultiquadric => (1.0 + square / bandwidth).sqrt().recip(),
        }
    };
    let within = |points: MatRef<'_, T>| {
        let below = sum_by_rows(points.rows(), |i| {
            (0..i).map(|j| kernel(points.row(i), points.row(j))).sum()
        });
        let count = points.rows() as f64;
        match statistic {
            // k(x, x) = 1.
            Statistic::V => (2.0 * below + count) / (count * count),
            Statistic::U => 2.0 * below / (count * (count - 1.0)),
        }
    };
    let across = sum_by_rows(x.rows(), |i| (0..y.rows()).map(|j| kernel(x.row(i), y.row(j))).sum());
    Ok(within(x) + within(y) - 2.0 * across / (x.rows() as f64 * y.rows() as f64))
}

/// The squared median distance between the points of both sets: the usual bandwidth of MMD.
pub fn pooled_bandwidth<T: Real>(x: MatRef<'_, T>, y: MatRef<'_, T>) -> Result<f64> {
    super::require_same_dimension(x, y)?;
    let data = [x.as_slice(), y.as_slice()].concat();
    let pooled = Matrix::from_vec(data, x.rows() + y.rows(), x.cols()).expect("rows of one length");
    Ok(Bandwidth::Median.of(pooled.as_ref()))
}
