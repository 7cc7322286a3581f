//! Whether the target that a run goes on with is the one that it was saved with.
//!
//! A checkpoint has log densities and scores, and no function: they are compared with what the target says
//! now of the same particles, on the same minibatch where there is one.

use crate::ensemble::{Ensemble, Stage};
use crate::flow::{Flow, Particles};
use crate::{Error, LogDensity, MatMut, MatRef, Matrix, Real, Result};

/// A target that is random may be so many times further from what it said than two of its answers are from
/// each other.
const NOISE: f64 = 10.0;

/// What a target says of all particles.
struct Answer<T> {
    log_density: Vec<T>,
    score: Matrix<T>,
}

/// Compares what the target says of a flow's particles with what was saved of them.
pub(super) fn check_flow<T: Real>(flow: &dyn Flow<T>) -> Result<()> {
    let Particles { log_density, score, .. } = flow.particles()?;
    let epsilon = T::epsilon().as_f64();
    check(log_density, score, epsilon, |log_density, score| flow.ask(log_density, score))
}

/// Compares what a target of precision `T` says of an ensemble with what was saved of it.
pub(super) fn check_ensemble<T: Real>(
    ensemble: &Ensemble,
    target: &dyn LogDensity<f64>,
) -> Result<()> {
    if ensemble.stage() == Stage::Start {
        return Ok(());
    }
    let at = ensemble.theta();
    // What is lost at infinity the target has not seen.
    let seen = |x: f64| if x.is_finite() { x } else { 0.0 };
    let theta = Matrix::from_fn(at.rows(), at.cols(), |i, j| seen(at.row(i)[j]));
    let epsilon = T::epsilon().as_f64();
    check(ensemble.log_density(), ensemble.score(), epsilon, |log_density, score| {
        target.evaluate(theta.as_ref(), None, log_density, score)
    })
}

/// Compares what was saved with what `evaluate` says now; `epsilon` is that of the target's precision.
///
/// A log density, and the score of a particle, may differ by √ε of their size, for a target may sum in
/// another order. One that is random itself is evaluated twice, and may differ by ten times what the two do.
fn check<T: Real>(
    log_density: &[T],
    score: MatRef<'_, T>,
    epsilon: f64,
    evaluate: impl Fn(&mut [T], MatMut<'_, T>) -> Result<()>,
) -> Result<()> {
    let (count, dim) = (score.rows(), score.cols());
    let ask = || {
        let mut log_density = vec![T::zero(); count];
        let mut score = Matrix::zeros(count, dim);
        evaluate(&mut log_density, score.as_mut())?;
        Ok(Answer { log_density, score })
    };
    let now = ask()?;
    let known = log_density.iter().map(|x| x.is_finite());
    // At a wall there is nothing to compare.
    let known: Vec<usize> = known.enumerate().filter_map(|(i, is)| is.then_some(i)).collect();
    let compare = |noise: (f64, f64)| {
        known.iter().find_map(|&i| {
            let (was, is) = (&log_density[i..=i], &now.log_density[i..=i]);
            differs("log density", i, was, is, epsilon, noise.0)
                .or_else(|| differs("score", i, score.row(i), now.score.row(i), epsilon, noise.1))
        })
    };
    if compare((0.0, 0.0)).is_none() {
        return Ok(());
    }
    let again = ask()?;
    let noise = (
        largest(now.log_density.iter().zip(&again.log_density).map(|(a, b)| *a - *b)),
        largest(now.score.as_slice().iter().zip(again.score.as_slice()).map(|(a, b)| *a - *b)),
    );
    compare(noise).map_or(Ok(()), Err)
}

/// The first number of a particle that is too far from what it was.
fn differs<T: Real>(
    what: &'static str,
    particle: usize,
    was: &[T],
    is: &[T],
    epsilon: f64,
    noise: f64,
) -> Option<Error> {
    let scale = 1.0 + largest(was.iter().copied());
    let allowed = epsilon.sqrt() * scale + NOISE * noise;
    // Written so that NaN differs.
    let is_far = |&(was, is): &(&T, &T)| !((*is - *was).as_f64().abs() <= allowed);
    was.iter().zip(is).find(is_far).map(|(was, is)| Error::OtherTarget {
        what,
        particle,
        saved: was.as_f64(),
        found: is.as_f64(),
    })
}

fn largest<T: Real>(numbers: impl Iterator<Item = T>) -> f64 {
    numbers.map(|x| x.as_f64().abs()).fold(0.0, f64::max)
}
