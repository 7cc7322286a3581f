//! Uphill, along the gradient: as far as the gradient is long, which leads to the top of a Gaussian of variance 1
//! in one step, and no further than steps have succeeded.

use super::View;
use crate::{Matrix, Result};

/// Steps uphill.
const CLIMBS: usize = 60;
/// A point whose steps or whose gradient are this short, in standard deviations, has arrived.
const ARRIVED: f64 = 0.003;

/// Where points have climbed to.
pub(super) struct Ends {
    pub(super) points: Matrix<f64>,
    pub(super) log_density: Vec<f64>,
    /// The log density where they began.
    pub(super) begun_at: Vec<f64>,
}

impl Ends {
    /// Those that are somewhere.
    pub(super) fn highest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.points.rows()).filter(|&k| self.log_density[k].is_finite()).collect();
        order.sort_by(|&a, &b| self.log_density[b].total_cmp(&self.log_density[a]));
        order
    }
}

/// Steps of a length that is `first` at first, in standard deviations, and grows while it succeeds; points that
/// have arrived are not evaluated any more.
pub(super) fn climb(view: &View<'_>, mut points: Matrix<f64>, first: f64) -> Result<Ends> {
    let (mut log_density, mut score) = view.at(&points)?;
    let begun_at = log_density.clone();
    let mut lengths = vec![first; points.rows()];
    for _ in 0..CLIMBS {
        let norm = |k: usize| score.row(k).iter().map(|s| s * s).sum::<f64>().sqrt();
        let moving: Vec<(usize, f64)> = (0..points.rows())
            .map(|k| (k, norm(k)))
            .filter(|&(k, norm)| lengths[k] > ARRIVED && norm > ARRIVED && norm.is_finite())
            .collect();
        if moving.is_empty() {
            break;
        }
        let tried = Matrix::from_fn(moving.len(), points.cols(), |i, j| {
            let (k, norm) = moving[i];
            points.row(k)[j] + lengths[k].min(norm) * score.row(k)[j] / norm
        });
        let (found, scores) = view.at(&tried)?;
        for (i, &(k, norm)) in moving.iter().enumerate() {
            if found[i] > log_density[k] {
                log_density[k] = found[i];
                points.row_mut(k).copy_from_slice(tried.row(i));
                score.row_mut(k).copy_from_slice(scores.row(i));
                lengths[k] *= 1.5;
            } else {
                lengths[k] = 0.4 * lengths[k].min(norm);
            }
        }
    }
    Ok(Ends { points, log_density, begun_at })
}
