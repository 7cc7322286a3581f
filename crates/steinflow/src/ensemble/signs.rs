//! Sign steps (Rprop), for those whom L-BFGS leaves on a plateau: every coordinate of every particle has a
//! length of its own, doubled while the sign of its score stays, shortened when it turns.

use super::cloud::{Cloud, evaluate};
use crate::arrays::Arrays;
use crate::{LogDensity, Matrix, Result};

/// Steps.
const LONGEST: u64 = 50;
const FIRST_LENGTH: f64 = 0.1;
const LONGER: f64 = 2.0;
const SHORTER: f64 = 0.4;
const AT_A_WALL: f64 = 0.25;

/// Where particles are now; the cloud holds the best that each has seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signs {
    lengths: Matrix<f64>,
    theta: Matrix<f64>,
    score: Matrix<f64>,
    evaluations: u64,
}

impl Signs {
    pub(super) fn new(cloud: &Cloud) -> Self {
        let (count, dim) = (cloud.theta.rows(), cloud.theta.cols());
        Self {
            lengths: Matrix::from_fn(count, dim, |_, _| FIRST_LENGTH),
            theta: cloud.theta.clone(),
            score: cloud.score.clone(),
            evaluations: 0,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.evaluations >= LONGEST
    }

    /// One step of all; returns the evaluations it took.
    pub(super) fn advance(
        &mut self,
        cloud: &mut Cloud,
        target: &dyn LogDensity<f64>,
    ) -> Result<u64> {
        let (count, dim) = (self.theta.rows(), self.theta.cols());
        let ahead = Matrix::from_fn(count, dim, |i, j| {
            let score = self.score.row(i)[j];
            let sign = if score == 0.0 { 0.0 } else { score.signum() };
            self.theta.row(i)[j] + self.lengths.row(i)[j] * sign
        });
        let (mut values, mut scores) = (vec![0.0; count], Matrix::zeros(count, dim));
        evaluate(target, ahead.as_ref(), &mut values, scores.as_mut())?;
        for i in 0..count {
            if !values[i].is_finite() {
                self.lengths.row_mut(i).iter_mut().for_each(|h| *h *= AT_A_WALL);
                continue;
            }
            let both = scores.row(i).iter().zip(self.score.row(i));
            for (length, (new, old)) in self.lengths.row_mut(i).iter_mut().zip(both) {
                *length *= match new * old {
                    turned if turned < 0.0 => SHORTER,
                    kept if kept > 0.0 => LONGER,
                    _ => 1.0,
                };
            }
            self.theta.row_mut(i).copy_from_slice(ahead.row(i));
            self.score.row_mut(i).copy_from_slice(scores.row(i));
            if values[i] > cloud.log_density[i] {
                cloud.theta.row_mut(i).copy_from_slice(ahead.row(i));
                cloud.log_density[i] = values[i];
                cloud.score.row_mut(i).copy_from_slice(scores.row(i));
            }
        }
        self.evaluations += 1;
        Ok(count as u64)
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put_matrix("signs.lengths", &self.lengths);
        into.put_matrix("signs.theta", &self.theta);
        into.put_matrix("signs.score", &self.score);
        into.put("signs.evaluations", [self.evaluations as f64]);
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        Ok(Self {
            lengths: from.get_matrix("signs.lengths", count, dim)?,
            theta: from.get_matrix("signs.theta", count, dim)?,
            score: from.get_matrix("signs.score", count, dim)?,
            evaluations: from.get_count("signs.evaluations")?,
        })
    }
}
