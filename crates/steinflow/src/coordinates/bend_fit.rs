//! Which coordinate bends which others, and how: the fit of a [`Bend`].
//!
//! Scores tell scales without noise from elsewhere: on a Gaussian log g² of a coordinate depends on no other,
//! so a slope of log g_j² on w_k means that k sets the scale of j. A square of w_k that explains what the
//! other coordinates leave of j (linearly) means that k bends its mean.

use super::bend::Bend;
use super::linear::Linear;
use super::regression::Regression;
use crate::engine::Gemm;
use crate::linalg::{spectral, symmetric_eigen};
use crate::quantiles::{median, quantile};
use crate::{MatRef, Matrix};

/// The slope of a log scale that is taken for a funnel.
const SCALE: f64 = 0.25;
/// The share of a variance, explained by a square, that is taken for a banana.
const SQUARE: f64 = 0.3;
/// A slope that is not worth bending for.
const LEAST_SLOPE: f64 = 0.15;
/// Outliers in w count as if they were here.
const FAR: f64 = 4.0;
/// Rows for each child that its direction takes.
const ROWS_PER_DIRECTION: usize = 15;

pub(super) fn fit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Option<Bend> {
    let (rows, dim) = (positions.rows(), positions.cols());
    let (mean, sd): (Vec<f64>, Vec<f64>) =
        (0..dim).map(|j| mean_and_sd(&column(positions, j))).unzip();
    let (parent, children, squared) = family(positions, scores, &mean, &sd)?;
    let w: Vec<f64> =
        column(positions, parent).iter().map(|x| (x - mean[parent]) / sd[parent]).collect();
    let near: Vec<f64> = w.iter().map(|w| w.clamp(-FAR, FAR)).collect();
    let width = children.len();
    let pick =
        |from: MatRef<'_, f64>| Matrix::from_fn(rows, width, |i, j| from.row(i)[children[j]]);
    let (x, g) = (pick(positions), pick(scores));
    let (directions, inverse) = if width > 1 && width * ROWS_PER_DIRECTION <= rows {
        uncorrelated_low_and_high(&x, &g, &w)
    } else {
        (identity(width), identity(width))
    };
    let mut bend = Bend {
        parent,
        children,
        mean: mean[parent],
        sd: sd[parent],
        directions,
        inverse,
        slopes: vec![0.0; width],
        offsets: vec![0.0; width],
        curvatures: vec![0.0; width],
    };
    let scale_law = Regression::on(vec![vec![1.0; rows], near.clone()]);
    let (mut y, mut h) = in_directions(&bend, &x, &g);
    for j in 0..width {
        bend.slopes[j] = -log_scale_slope(&scale_law, &column(h.as_ref(), j));
    }
    for _ in 0..3 {
        drop_small(&mut bend.slopes);
        let left = straighten(&mut bend, &y, &h, &w, &near, squared);
        (y, h) = in_directions(&bend, &x, &g);
        for j in 0..width {
            let from_scores = log_scale_slope(&scale_law, &column(h.as_ref(), j));
            bend.slopes[j] = (log_scale_slope(&scale_law, &left[j]) - from_scores) / 2.0;
        }
    }
    drop_small(&mut bend.slopes);
    for (offset, &slope) in bend.offsets.iter_mut().zip(&bend.slopes) {
        if slope == 0.0 {
            *offset = 0.0;
        }
    }
    (squared || bend.slopes.iter().any(|&b| b != 0.0)).then_some(bend)
}

/// The coordinate that others depend on most, those others, and whether it bends the mean of any.
fn family(
    positions: MatRef<'_, f64>,
    scores: MatRef<'_, f64>,
    mean: &[f64],
    sd: &[f64],
) -> Option<(usize, Vec<usize>, bool)> {
    let (rows, dim) = (positions.rows(), positions.cols());
    let mut w = vec![0.0; rows * dim];
    let mut log_squares = vec![0.0; rows * dim];
    for i in 0..rows {
        for j in 0..dim {
            let standard = (positions.row(i)[j] - mean[j]) / sd[j];
            w[i * dim + j] = standard.clamp(-FAR, FAR);
            log_squares[i * dim + j] = (scores.row(i)[j].powi(2) + 1e-300).ln();
        }
    }
    centre(&mut w, dim);
    centre(&mut log_squares, dim);
    let squares_of_w = column_squares(&w, dim);
    let slopes = transposed_product(&w, &log_squares, dim);
    // The squares of every coordinate, without what is linear in it.
    let mut squares: Vec<f64> = w.iter().map(|w| w * w).collect();
    centre(&mut squares, dim);
    for j in 0..dim {
        let along: f64 = (0..rows).map(|i| squares[i * dim + j] * w[i * dim + j]).sum();
        let slope = along / squares_of_w[j].max(1e-300);
        (0..rows).for_each(|i| squares[i * dim + j] -= slope * w[i * dim + j]);
    }
    // Every coordinate given the others: rows of W Cov(W)⁻¹.
    let mut covariance = transposed_product(&w, &w, dim);
    for c in &mut covariance {
        *c /= rows as f64;
    }
    (0..dim).for_each(|j| covariance[j * (dim + 1)] += 1e-6);
    let (values, vectors) = symmetric_eigen(&covariance, dim);
    let precision = spectral(&values, &vectors, f64::recip);
    let mut given_others = vec![0.0; rows * dim];
    f64::product(&w, &precision, &mut given_others, rows, dim, dim);
    let explained = transposed_product(&squares, &given_others, dim);
    let (of_squares, of_rest) = (column_squares(&squares, dim), column_squares(&given_others, dim));

    let share = |k: usize, j: usize| {
        let share = explained[k * dim + j].powi(2) / ((of_squares[k] + 1e-9) * of_rest[j]);
        if share > SQUARE { share.min(0.99) } else { 0.0 }
    };
    let strength = |k: usize, j: usize| {
        let slope = -0.5 * slopes[k * dim + j] / (squares_of_w[k] + 1e-9);
        let funnel = if slope.abs() > SCALE { slope * slope } else { 0.0 };
        let share = share(k, j);
        if k == j { 0.0 } else { funnel + share / (1.0 - share) }
    };
    let mut best = (0.0, 0);
    for k in 0..dim {
        let total: f64 = (0..dim).map(|j| strength(k, j)).sum();
        if total > best.0 {
            best = (total, k);
        }
    }
    let parent = best.1;
    let children: Vec<usize> = (0..dim).filter(|&j| strength(parent, j) > 0.0).collect();
    let squared = children.iter().any(|&j| share(parent, j) > 0.0);
    (!children.is_empty()).then_some((parent, children, squared))
}

/// T and T⁻¹: directions in which the children are uncorrelated in the lowest and in the highest
/// third of w alike.
fn uncorrelated_low_and_high(x: &Matrix<f64>, g: &Matrix<f64>, w: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let width = x.cols();
    let (low, high) = (quantile(w, 1.0 / 3.0), quantile(w, 2.0 / 3.0));
    let fit = |chosen: &dyn Fn(f64) -> bool| {
        let rows: Vec<usize> = (0..w.len()).filter(|&i| chosen(w[i])).collect();
        let of = |m: &Matrix<f64>| Matrix::from_fn(rows.len(), width, |i, j| m.row(rows[i])[j]);
        Linear::fit(of(x).as_ref(), of(g).as_ref())
    };
    let (below, above) = (fit(&|w| w < low), fit(&|w| w > high));
    let apply = |map: &dyn Fn(&[f64], &mut [f64]), rows: &[f64]| {
        let mut out = vec![0.0; width * width];
        map(rows, &mut out);
        out
    };
    // Rows are images, so a map of unit vectors is the transpose of its matrix.
    let one = identity(width);
    let whitening = transposed(&apply(&|a, b| below.white(a, b), &one), width);
    let raising = transposed(&apply(&|a, b| below.up(a, b), &one), width);
    let both = apply(&|a, b| below.white(a, b), &apply(&|a, b| above.up(a, b), &one));
    // The left singular vectors of bothᵀ.
    let (_, axes) = symmetric_eigen(&transposed_product(&both, &both, width), width);
    let mut directions = vec![0.0; width * width];
    f64::transposed_product(&axes, &whitening, &mut directions, width, width, width);
    let mut inverse = vec![0.0; width * width];
    f64::product(&raising, &axes, &mut inverse, width, width, width);
    (directions, inverse)
}

/// Fits offsets and curvatures for given slopes, and takes out of the directions that scale what they
/// owe linearly to those that do not. Returns the residuals of every direction.
fn straighten(
    bend: &mut Bend,
    y: &Matrix<f64>,
    h: &Matrix<f64>,
    w: &[f64],
    near: &[f64],
    squared: bool,
) -> Vec<Vec<f64>> {
    let (rows, width) = (y.rows(), y.cols());
    let soft: Vec<usize> = (0..width).filter(|&j| bend.slopes[j] == 0.0).collect();
    let mut columns = vec![vec![1.0; rows], w.to_vec()];
    if squared {
        columns.push(w.iter().map(|w| w * w).collect());
    }
    let place = Regression::on(columns);
    let mut owed = identity(width);
    let mut left = Vec::with_capacity(width);
    for j in 0..width {
        let scale: Vec<f64> =
            near.iter().map(|w| (bend.slopes[j] * w).clamp(-8.0, 8.0).exp()).collect();
        let mut z = column(y.as_ref(), j);
        let score = column(h.as_ref(), j);
        if bend.slopes[j] != 0.0 {
            // y + s²g is the mean of y given the rest, free of noise on a Gaussian: its value and its
            // slopes on the soft directions are seen best from the neck.
            let of_y = z.iter().zip(&scale).map(|(y, e)| ((y - bend.offsets[j]) / e).powi(2));
            let of_g = score.iter().zip(&scale).map(|(g, e)| (g * e).powi(2));
            let spread = median(of_y.collect());
            let ratio = (spread / median(of_g.collect()).max(1e-300)).sqrt();
            let mut columns = vec![scale.iter().map(|e| e.recip()).collect()];
            for &k in &soft {
                let of_soft = column(y.as_ref(), k);
                columns.push(of_soft.iter().zip(&scale).map(|(y, e)| y / e).collect());
            }
            columns.push(scale.clone());
            let response = (0..rows).map(|i| {
                let e = scale[i];
                (z[i] + e * e * ratio * score[i]) / e
            });
            let found = Regression::on(columns).solve(&response.collect::<Vec<_>>());
            bend.offsets[j] = found[0];
            for (&k, slope) in soft.iter().zip(&found[1..]) {
                owed[j * width + k] = -slope;
            }
            for (i, z) in z.iter_mut().enumerate() {
                let linear: f64 =
                    soft.iter().zip(&found[1..]).map(|(&k, slope)| slope * y.row(i)[k]).sum();
                *z -= found[0] + linear;
            }
        }
        z.iter_mut().zip(&scale).for_each(|(z, e)| *z /= e);
        let found = place.solve(&z);
        bend.curvatures[j] = if squared { found[2] } else { 0.0 };
        let predicted = place.predict(&found);
        left.push((0..rows).map(|i| (z[i] - predicted[i]) * scale[i]).collect());
    }
    // What is owed is owed to directions that owe nothing, so (I + N)⁻¹ = I − N.
    let back: Vec<f64> = owed.iter().zip(identity(width)).map(|(k, i)| 2.0 * i - k).collect();
    bend.directions = product(&owed, &bend.directions, width);
    bend.inverse = product(&bend.inverse, &back, width);
    left
}

/// Half the slope of log E[e²] on w: a Gamma regression with a logarithmic link.
fn log_scale_slope(law: &Regression, residuals: &[f64]) -> f64 {
    let logs: Vec<f64> = residuals.iter().map(|e| (e * e + 1e-300).ln()).collect();
    let mut found = law.solve(&logs);
    for _ in 0..8 {
        let predicted = law.predict(&found);
        let excess =
            logs.iter().zip(&predicted).map(|(l, p)| (l - p).min(5.0).exp().min(30.0) - 1.0);
        let change = law.solve(&excess.collect::<Vec<_>>());
        found.iter_mut().zip(&change).for_each(|(f, c)| *f += 0.5 * c);
    }
    0.5 * found[1]
}

fn drop_small(slopes: &mut [f64]) {
    for slope in slopes {
        // Not a number is no slope either.
        if !(slope.abs() >= LEAST_SLOPE) {
            *slope = 0.0;
        }
    }
}

/// The children and their scores in the bend's directions.
fn in_directions(bend: &Bend, x: &Matrix<f64>, g: &Matrix<f64>) -> (Matrix<f64>, Matrix<f64>) {
    let (rows, width) = (x.rows(), x.cols());
    let (mut y, mut h) = (Matrix::zeros(rows, width), Matrix::zeros(rows, width));
    f64::product_transposed(x.as_slice(), &bend.directions, y.as_mut_slice(), rows, width, width);
    f64::product(g.as_slice(), &bend.inverse, h.as_mut_slice(), rows, width, width);
    (y, h)
}

fn column(rows: MatRef<'_, f64>, j: usize) -> Vec<f64> {
    (0..rows.rows()).map(|i| rows.row(i)[j]).collect()
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt() + 1e-150)
}

fn centre(rows: &mut [f64], dim: usize) {
    let count = (rows.len() / dim) as f64;
    for j in 0..dim {
        let mean = rows[j..].iter().step_by(dim).sum::<f64>() / count;
        rows[j..].iter_mut().step_by(dim).for_each(|x| *x -= mean);
    }
}

fn column_squares(rows: &[f64], dim: usize) -> Vec<f64> {
    (0..dim).map(|j| rows[j..].iter().step_by(dim).map(|x| x * x).sum()).collect()
}

/// aᵀ b for matrices of `dim` columns.
fn transposed_product(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    f64::transposed_product(a, b, &mut out, dim, dim, a.len() / dim);
    out
}

fn product(a: &[f64], b: &[f64], width: usize) -> Vec<f64> {
    let mut out = vec![0.0; width * width];
    f64::product(a, b, &mut out, width, width, width);
    out
}

fn identity(width: usize) -> Vec<f64> {
    (0..width * width).map(|at| if at % (width + 1) == 0 { 1.0 } else { 0.0 }).collect()
}

fn transposed(matrix: &[f64], width: usize) -> Vec<f64> {
    (0..width * width).map(|at| matrix[at % width * width + at / width]).collect()
}
