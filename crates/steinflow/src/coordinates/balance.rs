//! The algebra behind the fit of linear coordinates: A·Cg·A = Cx for covariances of positions and scores.

use super::linear::root_mean_squares;
use crate::engine::Gemm;
use crate::linalg::symmetric_eigen;

/// Directions that positions, and scores, each contribute to a low rank.
const RANK: usize = 40;

/// rowsᵀ rows / n.
pub(super) fn second_moments(rows: &[f64], width: usize) -> Vec<f64> {
    let count = rows.len() / width;
    let mut out = vec![0.0; width * width];
    f64::transposed_product(rows, rows, &mut out, width, width, count);
    for x in &mut out {
        *x /= count as f64;
    }
    out
}

/// rows · basis, for a basis of d × k.
pub(super) fn project(rows: &[f64], basis: &[f64], dim: usize) -> Vec<f64> {
    let (count, width) = (rows.len() / dim, basis.len() / dim);
    let mut out = vec![0.0; count * width];
    f64::product(rows, basis, &mut out, count, width, dim);
    out
}

/// The solution of A·Cg·A = Cx, as eigenvalues and eigenvectors. Both are shrunk: to `alone`, what they
/// were if no coordinate depended on another, and in later passes to their own diagonals.
pub(super) fn balanced(
    cx: &[f64],
    cg: &[f64],
    alone: Vec<f64>,
    width: usize,
    shrink: f64,
    passes: usize,
) -> (Vec<f64>, Vec<f64>) {
    let mut solution = (vec![1.0; width], in_basis(&vec![1.0; width], None, width));
    let mut alone = Some(alone);
    for _ in 0..passes {
        let (values, vectors) = &solution;
        let floor = 1e-13 * values[width - 1];
        let root = spectral(values, vectors, |w| w.max(floor).sqrt());
        let inverse = spectral(values, vectors, |w| w.max(floor).sqrt().recip());
        let (here_x, here_g) = (sandwich(&inverse, cx, width), sandwich(&root, cg, width));
        let alone = alone.take();
        let here_x = shrunk(here_x, alone.as_deref(), width, shrink);
        let here_g = shrunk(here_g, alone.as_deref(), width, shrink);
        let (values, vectors) = symmetric_eigen(&here_g, width);
        let least = 1e-14 * values[width - 1];
        let half = spectral(&values, &vectors, |w| w.max(least).sqrt());
        let back = spectral(&values, &vectors, |w| w.max(least).sqrt().recip());
        let (values, vectors) = symmetric_eigen(&sandwich(&half, &here_x, width), width);
        let middle = spectral(&values, &vectors, |w| w.max(0.0).sqrt());
        let a = sandwich(&root, &sandwich(&back, &middle, width), width);
        solution = symmetric_eigen(&a, width);
    }
    solution
}

/// V diag(g(λ)) Vᵀ.
pub(super) fn spectral(values: &[f64], vectors: &[f64], g: impl Fn(f64) -> f64) -> Vec<f64> {
    let width = values.len();
    let mut weighted = vectors.to_vec();
    for row in weighted.chunks_exact_mut(width) {
        row.iter_mut().zip(values).for_each(|(v, &w)| *v *= g(w));
    }
    let mut out = vec![0.0; width * width];
    f64::product_transposed(&weighted, vectors, &mut out, width, width, width);
    out
}

/// Qᵀ diag(squares) Q; the diagonal matrix where there is no Q.
pub(super) fn in_basis(squares: &[f64], basis: Option<&[f64]>, width: usize) -> Vec<f64> {
    let mut out = vec![0.0; width * width];
    if let Some(basis) = basis {
        let mut weighted = basis.to_vec();
        for (row, square) in weighted.chunks_exact_mut(width).zip(squares) {
            for q in row.iter_mut() {
                *q *= square;
            }
        }
        f64::transposed_product(&weighted, basis, &mut out, width, width, squares.len());
    } else {
        squares.iter().enumerate().for_each(|(i, square)| out[i * (width + 1)] = *square);
    }
    out
}

/// (1 − γ) C + γ T, where T is C's own diagonal if none is given.
fn shrunk(mut matrix: Vec<f64>, to: Option<&[f64]>, width: usize, shrink: f64) -> Vec<f64> {
    for (at, entry) in matrix.iter_mut().enumerate() {
        let own = if at % (width + 1) == 0 { *entry } else { 0.0 };
        *entry += shrink * (to.map_or(own, |to| to[at]) - *entry);
    }
    matrix
}

/// S M S for symmetric S and M, made symmetric to the last bit.
fn sandwich(outer: &[f64], inner: &[f64], width: usize) -> Vec<f64> {
    let (mut half, mut out) = (vec![0.0; width * width], vec![0.0; width * width]);
    f64::product(outer, inner, &mut half, width, width, width);
    f64::product(&half, outer, &mut out, width, width, width);
    for i in 0..width {
        for j in 0..i {
            let mean = f64::midpoint(out[i * width + j], out[j * width + i]);
            (out[i * width + j], out[j * width + i]) = (mean, mean);
        }
    }
    out
}

/// An orthonormal basis, d × k, of the top directions of positions and of scores together; both by
/// their correlations, so that no unit counts more than another.
pub(super) fn joint_basis(x: &[f64], g: &[f64], dim: usize) -> Vec<f64> {
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for rows in [x, g] {
        let spread = root_mean_squares(rows, dim);
        let mut scaled = rows.to_vec();
        for row in scaled.chunks_exact_mut(dim) {
            row.iter_mut().zip(&spread).for_each(|(x, s)| *x /= s);
        }
        columns.extend(top_directions(&scaled, dim));
    }
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for mut column in columns {
        // Twice is enough (Kahan): what the first pass leaves by rounding, the second removes.
        for _ in 0..2 {
            for known in &basis {
                let along: f64 = known.iter().zip(&column).map(|(a, b)| a * b).sum();
                column.iter_mut().zip(known).for_each(|(c, k)| *c -= along * k);
            }
        }
        let norm = column.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm > 1e-8 {
            for x in &mut column {
                *x /= norm;
            }
            basis.push(column);
        }
    }
    let width = basis.len();
    let mut out = vec![0.0; dim * width];
    for (k, column) in basis.iter().enumerate() {
        column.iter().enumerate().for_each(|(i, x)| out[i * width + k] = *x);
    }
    out
}

/// The first [`RANK`] right singular vectors of the rows, from the smaller of the two Gram matrices.
fn top_directions(rows: &[f64], dim: usize) -> Vec<Vec<f64>> {
    let count = rows.len() / dim;
    let rank = RANK.min(count - 1);
    if count >= dim {
        let (_, vectors) = symmetric_eigen(&second_moments(rows, dim), dim);
        let column = |k: usize| (0..dim).map(|i| vectors[i * dim + k]).collect();
        return (dim - rank..dim).rev().map(column).collect();
    }
    let mut gram = vec![0.0; count * count];
    f64::product_transposed(rows, rows, &mut gram, count, count, dim);
    let (_, vectors) = symmetric_eigen(&gram, count);
    let along = |k: usize| {
        let mut out = vec![0.0; dim];
        for (i, row) in rows.chunks_exact(dim).enumerate() {
            out.iter_mut().zip(row).for_each(|(o, x)| *o += vectors[i * count + k] * x);
        }
        let norm = out.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-150);
        for x in &mut out {
            *x /= norm;
        }
        out
    };
    (count - rank..count).rev().map(along).collect()
}
