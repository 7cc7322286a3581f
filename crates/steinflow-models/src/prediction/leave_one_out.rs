//! How well a fit predicts every row from all others, without fitting again: log p(yᵢ | y₋ᵢ) by Pareto-smoothed
//! importance sampling (Vehtari, Gelman and Gabry 2017, Statistics and Computing 27; Vehtari and others 2024,
//! Journal of Machine Learning Research 25).
//!
//! Draws θₛ of the posterior stand for draws without row i by the weights 1/p(yᵢ | θₛ). The largest are
//! replaced by those of a generalised Pareto distribution that is fitted to them; its shape k says how far
//! to trust the row: above 0.7 the weights have no mean to speak of.

use rayon::prelude::*;

/// The shape above which a row is not to be trusted.
pub const LARGEST_SHAPE: f64 = 0.7;

/// Leave-one-out scores of all rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaveOneOut {
    /// log p(yᵢ | y₋ᵢ), row by row.
    pub scores: Vec<f64>,
    /// log p(yᵢ | y), by draws that have seen the row.
    pub fits: Vec<f64>,
    /// k, row by row.
    pub shapes: Vec<f64>,
}

impl LeaveOneOut {
    /// From log p(yᵢ | θₛ) of every draw, for each row.
    pub fn new(rows: usize, log_densities: impl Fn(usize) -> Vec<f64> + Sync) -> Self {
        let of_row = |row: usize| {
            let own = log_densities(row);
            let (weights, shape) = smoothed_weights(&own);
            let joint: Vec<f64> = weights.iter().zip(&own).map(|(w, x)| w + x).collect();
            let fit = log_sum(&own) - (own.len() as f64).ln();
            (log_sum(&joint) - log_sum(&weights), (fit, shape))
        };
        let (scores, (fits, shapes)) = (0..rows).into_par_iter().map(of_row).unzip();
        Self { scores, fits, shapes }
    }

    /// The sum over all rows; larger is better.
    pub fn total(&self) -> f64 {
        self.scores.iter().sum()
    }

    /// The standard error of the total, were other rows drawn.
    pub fn standard_error(&self) -> f64 {
        standard_error(self.scores.iter().copied())
    }

    /// By how much this is better than another on the same rows, and the standard error of that.
    pub fn difference(&self, other: &Self) -> (f64, f64) {
        let differences = || self.scores.iter().zip(&other.scores).map(|(a, b)| a - b);
        (differences().sum(), standard_error(differences()))
    }

    /// How many parameters the data has been used for.
    pub fn effective_parameters(&self) -> f64 {
        self.fits.iter().sum::<f64>() - self.total()
    }

    /// Rows whose score is not to be trusted.
    pub fn doubtful(&self) -> usize {
        self.shapes.iter().filter(|&&shape| shape > LARGEST_SHAPE).count()
    }
}

/// How much every draw counts without a row whose log densities these are; they sum to 1.
pub(crate) fn left_out_weights(log_densities: &[f64]) -> Vec<f64> {
    let (weights, _) = smoothed_weights(log_densities);
    let total = log_sum(&weights);
    weights.iter().map(|weight| (weight - total).exp()).collect()
}

/// Of a sum of independent numbers.
fn standard_error(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0) * count).sqrt()
}

fn log_sum(values: &[f64]) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() {
        top + values.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
    } else {
        top
    }
}

/// The logarithms of the weights of all draws, and k.
fn smoothed_weights(log_densities: &[f64]) -> (Vec<f64>, f64) {
    /// Fewer are too few to fit anything to.
    const FEWEST: usize = 5;
    let count = log_densities.len();
    let lowest = log_densities.iter().copied().fold(f64::INFINITY, f64::min);
    // The largest weight is 1.
    let mut weights: Vec<f64> = log_densities.iter().map(|x| lowest - x).collect();
    let tail = (0.2 * count as f64).min(3.0 * (count as f64).sqrt()).ceil() as usize;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    if tail < FEWEST || tail >= count || !lowest.is_finite() {
        return (weights, f64::INFINITY);
    }
    let (below, largest) = order.split_at(count - tail);
    let cutoff = weights[below[below.len() - 1]].exp();
    let excesses: Vec<f64> = largest.iter().map(|&s| weights[s].exp() - cutoff).collect();
    if excesses[tail - 1] <= f64::EPSILON {
        // All draws agree about the row.
        return (weights, 0.0);
    }
    let (shape, scale) = pareto(&excesses);
    for (place, &s) in largest.iter().enumerate() {
        let level = (place as f64 + 0.5) / tail as f64;
        let excess = scale * (-shape * (-level).ln_1p()).exp_m1() / shape;
        weights[s] = (cutoff + excess).ln().min(0.0);
    }
    (weights, shape)
}

/// Shape and scale of a generalised Pareto distribution, from numbers in ascending order: the mean of its
/// one free parameter over a grid, by the likelihood (Zhang and Stephens 2009, Technometrics 51), with the
/// shape drawn towards 0.5 as if by ten further numbers.
fn pareto(excesses: &[f64]) -> (f64, f64) {
    let count = excesses.len() as f64;
    let quartile =
        excesses[((count / 4.0 + 0.5).floor() as usize).max(1) - 1].max(f64::MIN_POSITIVE);
    let largest = excesses[excesses.len() - 1];
    let points = 30 + count.sqrt() as usize;
    let shape_of = |b: f64| excesses.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / count;
    let grid: Vec<f64> = (1..=points)
        .map(|j| {
            let place = (points as f64 / (j as f64 - 0.5)).sqrt();
            1.0 / largest + (1.0 - place) / (3.0 * quartile)
        })
        .collect();
    let likelihoods: Vec<f64> = grid
        .iter()
        .map(|&b| {
            let shape = shape_of(b);
            count * ((-b / shape).ln() - shape - 1.0)
        })
        .collect();
    let total = log_sum(&likelihoods);
    let b: f64 = grid.iter().zip(&likelihoods).map(|(b, l)| b * (l - total).exp()).sum();
    let shape = shape_of(b);
    ((shape * count + 5.0) / (count + 10.0), -shape / b)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardUniform};
    use steinflow::random::{Purpose, stream};

    use super::*;

    #[test]
    fn the_shape_of_a_tail_is_found() {
        let mut random = stream(3, Purpose::Start, 0, 0);
        for shape in [-0.3, 0.2, 0.6, 0.9_f64] {
            let mut excesses: Vec<f64> = (0..4000)
                .map(|_| {
                    let level: f64 = StandardUniform.sample(&mut random);
                    2.0 * (-shape * (-level).ln_1p()).exp_m1() / shape
                })
                .collect();
            excesses.sort_by(f64::total_cmp);
            let (found, scale) = pareto(&excesses);
            // The standard error of a shape is (1 + k)/√n.
            assert!((found - shape).abs() < 4.0 * (1.0 + shape) / 63.0, "{shape}: {found}");
            assert!((scale - 2.0).abs() < 0.2, "{shape}: {scale}");
        }
    }

    #[test]
    fn draws_that_agree_need_no_weights() {
        let found = LeaveOneOut::new(3, |row| vec![-(row as f64); 100]);
        assert_eq!(found.scores, found.fits);
        assert!((found.total() + 3.0).abs() < 1e-12 && found.doubtful() == 0);
        assert!(found.effective_parameters().abs() < 1e-12);
        let few = LeaveOneOut::new(1, |_| vec![-1.0, -2.0]);
        assert_eq!(few.doubtful(), 1);
    }
}
