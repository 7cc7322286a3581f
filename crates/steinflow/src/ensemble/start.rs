//! Where particles start: uniform in (−2, 2), the last 30 % up to ten times as wide; redrawn at walls.

use super::cloud::{Cloud, evaluate};
use super::dice::{Dice, between};
use crate::{Error, LogDensity, Matrix, Result};

const HALF_WIDTH: f64 = 2.0;
/// The share of particles that start wider, and how wide the last one does.
const WIDE: (f64, f64) = (0.3, 10.0);
/// How often a particle at a wall is redrawn, each time nearer to 0.
const REDRAWS: i32 = 20;
const NEARER: f64 = 0.8;

/// Places all particles, and returns the evaluations that it took.
pub(super) fn start(
    cloud: &mut Cloud,
    target: &dyn LogDensity<f64>,
    given: Option<&Matrix<f64>>,
    dice: &mut Dice,
) -> Result<u64> {
    let count = cloud.count();
    if let Some(given) = given {
        cloud.theta = given.clone();
        let at = cloud.theta.as_ref();
        evaluate(target, at, &mut cloud.log_density, cloud.score.as_mut())?;
        return match cloud.log_density.iter().position(|v| !v.is_finite()) {
            None => Ok(count as u64),
            Some(row) => Err(Error::setting(
                "the start of a particle",
                format!("row {row}, where the log density or its score is not finite"),
                "give every particle a start where both are finite",
            )),
        };
    }
    let mut used = 0;
    let mut waiting: Vec<usize> = (0..count).collect();
    for attempt in 0..=REDRAWS {
        let nearer = NEARER.powi((attempt - 1).max(0));
        let event = dice.throw();
        for &i in &waiting {
            let mut generator = event.of(i);
            let width = HALF_WIDTH * nearer * widening(i, count);
            cloud.theta.row_mut(i).fill_with(|| between(&mut generator, -width, width));
        }
        used += evaluate_some(cloud, target, &waiting)?;
        waiting.retain(|&i| !cloud.log_density[i].is_finite());
        if waiting.is_empty() {
            break;
        }
    }
    if waiting.len() == count {
        return Err(Error::setting(
            "the start",
            format!("uniform in (−{HALF_WIDTH}, {HALF_WIDTH})"),
            format!(
                "no particle found a finite log density there in {} tries: give a start",
                REDRAWS + 1
            ),
        ));
    }
    Ok(used)
}

/// How much wider than the others particle `i` starts.
fn widening(i: usize, count: usize) -> f64 {
    let wide = (WIDE.0 * count as f64) as usize;
    let place = (i + 1 + wide).saturating_sub(count);
    WIDE.1.powf(place as f64 / wide.max(1) as f64)
}

/// Evaluates the target at some of the particles' θ.
pub(super) fn evaluate_some(
    cloud: &mut Cloud,
    target: &dyn LogDensity<f64>,
    chosen: &[usize],
) -> Result<u64> {
    let dim = cloud.theta.cols();
    let theta = Matrix::from_fn(chosen.len(), dim, |i, j| cloud.theta.row(chosen[i])[j]);
    let (mut values, mut scores) = (vec![0.0; chosen.len()], Matrix::zeros(chosen.len(), dim));
    evaluate(target, theta.as_ref(), &mut values, scores.as_mut())?;
    for (row, &i) in chosen.iter().enumerate() {
        cloud.log_density[i] = values[row];
        cloud.score.row_mut(i).copy_from_slice(scores.row(row));
    }
    Ok(chosen.len() as u64)
}
