//! Whether the score is the gradient of the log density: two functions that people write by hand.
//!
//! At a few places, along coordinates, (f(x + h) − f(x − h))/2h is compared with the score for steps h over six
//! orders of magnitude, the largest of them where the score promises a change of a third of a nat. A step counts
//! when rounding cannot explain what it shows, and both of its halves show the same slope: not across a kink,
//! not at a wall, not where curvature rules. One such step that agrees is enough. Two that agree with each other
//! and not with the score are a fault; anything else says nothing.

use std::fmt;

use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Places that are looked at.
const PLACES: usize = 2;
/// Coordinates that are looked at, at each of them.
const MOST_COORDINATES: usize = 32;
/// Steps, in units of the inverse score.
const STEPS: [f64; 6] = [0.3, 0.03, 3e-3, 3e-4, 3e-5, 3e-6];
/// Rounding errors of a log density, in units of its last digit: sums of many terms have more than one.
const DIGITS: f64 = 50.0;
/// Parts of a slope: what rounding may hide, by how much its halves may differ, what is another slope, and
/// what is the same.
const ROUNDING: f64 = 0.03;
const BENT: f64 = 0.3;
const OTHER: f64 = 0.1;
const SAME: f64 = 0.03;

/// A score that is not the gradient of the log density.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongGradient {
    /// The coordinate, from 0.
    pub coordinate: usize,
    /// What the score says.
    pub given: f64,
    /// What differences of the log density say.
    pub found: f64,
    /// θ.
    pub place: Vec<f64>,
}

impl fmt::Display for WrongGradient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { coordinate, given, found, place } = self;
        write!(
            out,
            "coordinate {coordinate} of the gradient is {given:.4e}, {:.3} times the {found:.4e} by which the \
             log density changes, at θ = (",
            given / found
        )?;
        for (j, x) in place.iter().take(4).enumerate() {
            write!(out, "{}{x:.4}", if j > 0 { ", " } else { "" })?;
        }
        out.write_str(if place.len() > 4 { ", …)" } else { ")" })
    }
}

/// Compares score and log density at the first of the given places and at one in their middle, on all of the
/// data. Some hundred evaluations.
///
/// ```
/// use steinflow::{Matrix, diagnostics::find_wrong_gradient, target::PerParticle};
/// let doubled = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
///     score[0] = -2.0 * theta[0];
///     -0.5 * theta[0].powi(2)
/// });
/// let fault = find_wrong_gradient(&doubled, Matrix::from_fn(1, 1, |_, _| 3.0).as_ref())?.unwrap();
/// assert!(fault.coordinate == 0 && (fault.given / fault.found - 2.0).abs() < 1e-3);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn find_wrong_gradient<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    places: MatRef<'_, T>,
) -> Result<Option<WrongGradient>> {
    let (count, dim) = (places.rows(), places.cols());
    let chosen: Vec<usize> = (0..count.min(PLACES)).map(|k| k * count / (2 * k).max(1)).collect();
    let theta = Matrix::from_fn(chosen.len(), dim, |i, j| places.row(chosen[i])[j]);
    let (log_density, score) = evaluate(target, &theta)?;
    let asked = dim.min(MOST_COORDINATES);
    let mut tries: Vec<(usize, usize, f64)> = Vec::new();
    for i in 0..chosen.len() {
        let is_finite = log_density[i].is_finite() && theta.row(i).iter().all(|x| x.is_finite());
        for k in (0..asked).filter(|_| is_finite) {
            // Others at every place, where there are more than can be asked.
            let j = (k * dim + i * dim / PLACES) / asked % dim;
            let slope = score.row(i)[j].as_f64().abs();
            let unit =
                if slope > 0.0 { slope.recip() } else { theta.row(i)[j].as_f64().abs().max(1.0) };
            if slope.is_finite() {
                tries.extend(STEPS.iter().map(|step| (i, j, step * unit)));
            }
        }
    }
    let points = Matrix::from_fn(2 * tries.len(), dim, |row, j| {
        let (i, along, step) = tries[row / 2];
        let x = theta.row(i)[j];
        let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
        if j == along { x + T::of(sign * step) } else { x }
    });
    let (found, _) = evaluate(target, &points)?;
    let mut known =
        tries.iter().zip(found.chunks_exact(2)).enumerate().map(|(k, (&(i, j, _), ends))| {
            let moved = |row: usize| (points.row(row)[j] - theta.row(i)[j]).as_f64();
            let (up, down) = (moved(2 * k), -moved(2 * k + 1));
            let middle = log_density[i].as_f64();
            let (above, below) = (ends[0].as_f64(), ends[1].as_f64());
            let slope = (above - below) / (up + down);
            let given = score.row(i)[j].as_f64();
            let size = slope.abs().max(given.abs());
            let noise = DIGITS * T::epsilon().as_f64() * above.abs().max(below.abs()) / (up + down);
            let bend = (above - middle) / up - (middle - below) / down;
            // Written so that NaN does not count.
            let counts = noise <= ROUNDING * size && bend.abs() <= BENT * size;
            (i, j, counts.then_some((slope, given, size)))
        });
    let mut of_one: Vec<(f64, f64, f64)> = Vec::new();
    let mut at = (usize::MAX, 0);
    loop {
        let next = known.next();
        if next.is_none_or(|(i, j, _)| (i, j) != at) {
            if let Some((found, given)) = disagreement(&of_one) {
                let place = theta.row(at.0).iter().map(|x| x.as_f64()).collect();
                return Ok(Some(WrongGradient { coordinate: at.1, given, found, place }));
            }
            of_one.clear();
        }
        let Some((i, j, slope)) = next else { return Ok(None) };
        at = (i, j);
        of_one.extend(slope);
    }
}

/// The slope that two steps agree on, and the score that none agrees with.
fn disagreement(known: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    if known.iter().any(|&(slope, given, size)| (slope - given).abs() <= OTHER * size) {
        return None;
    }
    let pair = known.windows(2).find(|pair| (pair[0].0 - pair[1].0).abs() <= SAME * pair[1].2)?;
    Some((pair[1].0, pair[1].1))
}

fn evaluate<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    points: &Matrix<T>,
) -> Result<(Vec<T>, Matrix<T>)> {
    let mut log_density = vec![T::zero(); points.rows()];
    let mut score = Matrix::zeros(points.rows(), points.cols());
    if points.rows() > 0 {
        target.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
    }
    Ok((log_density, score))
}

/// The same as an error.
pub(crate) fn require_gradient<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    places: MatRef<'_, T>,
) -> Result<()> {
    match find_wrong_gradient(target, places)? {
        Some(fault) => Err(Error::WrongGradient(Box::new(fault))),
        None => Ok(()),
    }
}
