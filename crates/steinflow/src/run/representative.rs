//! A few points that stand for many: those that a flow to rest is best started from.
//!
//! Draws picked at random have the errors of as few draws, and a flow mends of those what its kernel sees. Points
//! picked one after the other, each where the picked ones are thinnest beside all, have nearly the errors of all: the
//! energy distance to them falls as fast as one point more can make it fall (kernel herding, Chen, Welling and Smola
//! 2010, with the kernel −|x − y|).

use rayon::prelude::*;

use crate::coordinates::{Coordinates, InCoordinates};
use crate::{LogDensity, MatRef, Matrix, Result};

/// More than these are thinned out evenly first: pairs of them are to be afforded.
pub(super) const MOST: usize = 4000;

/// `count` of the draws that stand for all of them, fewer if there are not as many. They are compared by place and
/// score, both in the coordinates in which they will move: a flow stands still where averages of the two over all
/// particles vanish, so that it has little to do where those are as in all draws.
pub(super) fn thinned(
    draws: MatRef<'_, f64>,
    count: usize,
    coordinates: &Coordinates,
    target: &dyn LogDensity<f64>,
) -> Result<Matrix<f64>> {
    let (dim, considered) = (draws.cols(), draws.rows().min(MOST.max(count)));
    let row = |i: usize| draws.row(i * draws.rows() / considered);
    let theta = Matrix::from_fn(considered, dim, |i, j| row(i)[j]);
    let white = coordinates.from_theta(theta.as_ref());
    let (mut log_density, mut score) = (vec![0.0; considered], Matrix::zeros(considered, dim));
    let target = InCoordinates::new(target, coordinates.clone())?;
    target.evaluate(white.as_ref(), None, &mut log_density, score.as_mut())?;
    let both = Matrix::from_fn(considered, 2 * dim, |i, j| {
        if j < dim { white.row(i)[j] } else { score.row(i)[j - dim] }
    });
    let picked = representative(both.as_ref(), count);
    Ok(Matrix::from_fn(picked.len(), dim, |i, j| theta.row(picked[i])[j]))
}

/// Which `count` of the rows of `points` to take, in the order in which they are picked; no row twice. As many as
/// there are, at most.
fn representative(points: MatRef<'_, f64>, count: usize) -> Vec<usize> {
    let all = points.rows();
    let distance = |a: usize, b: usize| -> f64 {
        let squares = points.row(a).iter().zip(points.row(b)).map(|(x, y)| (x - y).powi(2));
        squares.sum::<f64>().sqrt()
    };
    // Of every row, its mean distance from all, and the sum of those from the picked ones.
    let to_all: Vec<f64> = (0..all)
        .into_par_iter()
        .map(|a| (0..all).map(|b| distance(a, b)).sum::<f64>() / all as f64)
        .collect();
    let mut to_picked = vec![0.0; all];
    let mut is_picked = vec![false; all];
    let mut picked = Vec::with_capacity(count.min(all));
    while picked.len() < count.min(all) {
        let share = 1.0 / (picked.len() + 1) as f64;
        let excess = |a: usize| to_all[a] - share * to_picked[a];
        let free = (0..all).filter(|&a| !is_picked[a]);
        let Some(next) = free.min_by(|&a, &b| excess(a).total_cmp(&excess(b))) else { break };
        is_picked[next] = true;
        picked.push(next);
        to_picked.par_iter_mut().enumerate().for_each(|(a, sum)| *sum += distance(a, next));
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{self, Purpose};

    /// Two clusters, a third of all in one of them: the picked ones have the shares, the mean and the spread of all,
    /// ten times nearer than as many draws would on average.
    #[test]
    fn picked_rows_have_the_moments_of_all() {
        let (all, count) = (1200, 60);
        let mut noise = vec![0.0; 2 * all];
        random::fill_standard_normal(&mut random::stream(5, Purpose::Start, 0, 0), &mut noise);
        let centre = |i: usize| if i.is_multiple_of(3) { 8.0 } else { -4.0 };
        let points =
            Matrix::from_fn(all, 2, |i, j| noise[2 * i + j] + if j == 0 { centre(i) } else { 0.0 });
        let picked = representative(points.as_ref(), count);
        let mut sorted = picked.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), count);
        let in_smaller = picked.iter().filter(|&&i| i.is_multiple_of(3)).count();
        assert!((19..=21).contains(&in_smaller), "{in_smaller} of {count}");
        for j in 0..2 {
            let moments = |rows: &[usize]| {
                let n = rows.len() as f64;
                let mean = rows.iter().map(|&i| points.row(i)[j]).sum::<f64>() / n;
                let square = rows.iter().map(|&i| (points.row(i)[j] - mean).powi(2)).sum::<f64>();
                (mean, (square / n).sqrt())
            };
            let (mean, sd) = moments(&picked);
            let (mean_of_all, sd_of_all) = moments(&(0..all).collect::<Vec<_>>());
            let standard_error = sd_of_all / (count as f64).sqrt();
            assert!((mean - mean_of_all).abs() < 0.3 * standard_error, "{mean}, {mean_of_all}");
            assert!((sd / sd_of_all - 1.0).abs() < 0.03, "{sd}, {sd_of_all}");
        }
        assert_eq!(representative(points.as_ref(), 5000).len(), all);
    }
}
