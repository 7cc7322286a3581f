//! Energy distance of Székely and Rizzo (2013), 2 E|X − Y| − E|X − X′| − E|Y − Y′|: zero between
//! equal distributions alone, and so not blind to an empty mode.

use super::sum_by_rows;
use crate::{Error, MatRef, Real, Result};

/// The energy distance of point sets to a reference, whose own term is computed once.
///
/// Means are over all pairs, a point with itself included: n exact samples are at E|X − X′|/n from
/// their law on average, and a set is at 0 from itself.
///
/// ```
/// use steinflow::{Matrix, diagnostics::EnergyDistance};
/// let reference = Matrix::from_fn(2, 1, |i, _| if i == 0 { -1.0 } else { 1.0 });
/// let distance = EnergyDistance::to(reference.as_ref())?;
/// // 2 · 1 − 0 − 1.
/// assert_eq!(distance.of(Matrix::<f64>::zeros(1, 1).as_ref())?, 1.0);
/// # Ok::<(), steinflow::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EnergyDistance<'a, T> {
    reference: MatRef<'a, T>,
    /// E|Y − Y′|.
    within: f64,
}

impl<'a, T: Real> EnergyDistance<'a, T> {
    /// Distances to `reference`, one point a row.
    pub fn to(reference: MatRef<'a, T>) -> Result<Self> {
        require_rows(reference, "the reference")?;
        Ok(Self { reference, within: mean_within(reference) })
    }

    /// The distance of `points`, one a row. A coordinate that is NaN makes it NaN.
    pub fn of(&self, points: MatRef<'_, T>) -> Result<f64> {
        require_rows(points, "the points")?;
        if points.cols() != self.reference.cols() {
            return Err(Error::Shape {
                what: "the points",
                found: format!("{} coordinates", points.cols()),
                expected: format!("{}, as the reference", self.reference.cols()),
            });
        }
        let across = mean_across(points, self.reference);
        Ok(2.0 * across - mean_within(points) - self.within)
    }
}

fn require_rows<T: Real>(points: MatRef<'_, T>, what: &'static str) -> Result<()> {
    if points.rows() == 0 {
        let expected = "one point or more".to_owned();
        return Err(Error::Shape { what, found: "no points".to_owned(), expected });
    }
    Ok(())
}

/// E|X − Y|.
fn mean_across<T: Real>(x: MatRef<'_, T>, y: MatRef<'_, T>) -> f64 {
    let sum =
        sum_by_rows(x.rows(), |i| (0..y.rows()).map(|j| distance(x.row(i), y.row(j))).sum::<f64>());
    sum / (x.rows() as f64 * y.rows() as f64)
}

/// E|X − X′|, from the pairs below the diagonal.
fn mean_within<T: Real>(x: MatRef<'_, T>) -> f64 {
    let sum = sum_by_rows(x.rows(), |i| (0..i).map(|j| distance(x.row(i), x.row(j))).sum::<f64>());
    2.0 * sum / (x.rows() as f64).powi(2)
}

fn distance<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| (a.as_f64() - b.as_f64()).powi(2)).sum::<f64>().sqrt()
}
