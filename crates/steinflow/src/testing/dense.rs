//! Naive twins: A, C and the GSVGD velocity as the paper writes them, with dense matrices.

use crate::dynamics::{Block, Evaluated, Structure};
use crate::kernel::{Kernel, Radial, View};
use crate::{MatRef, Matrix};

/// A and C at one particle, `(blocks · dim)²` each, from the coefficients (without the leading 1).
pub fn dense_matrices(structure: &Structure, coefficients: &[f64]) -> (Matrix<f64>, Matrix<f64>) {
    let (dim, size) = (structure.dim(), structure.dim() * structure.blocks());
    let entry = |block: &Block, i: usize, j: usize| -> f64 {
        let on_diagonal = if i == j { 1.0 } else { 0.0 };
        match block {
            Block::Scalar(a) => a * on_diagonal,
            Block::Diagonal(a) => a[i] * on_diagonal,
            Block::Full(a) => a.row(i)[j],
            Block::ScalarCoefficient(k) => coefficients[*k] * on_diagonal,
            Block::DiagonalCoefficients(k) => coefficients[k + i] * on_diagonal,
            Block::FullCoefficients(k) => coefficients[k + i * dim + j],
        }
    };
    let (mut a, mut c) = (Matrix::zeros(size, size), Matrix::zeros(size, size));
    for (block, value) in structure.diffusion_blocks() {
        for i in 0..dim {
            for j in 0..dim {
                a.row_mut(block * dim + i)[block * dim + j] += entry(value, i, j);
            }
        }
    }
    for (row, column, value) in structure.curl_blocks() {
        for i in 0..dim {
            for j in 0..dim {
                if row != column || i < j {
                    let x = entry(value, i, j);
                    c.row_mut(row * dim + i)[column * dim + j] += x;
                    c.row_mut(column * dim + j)[row * dim + i] -= x;
                }
            }
        }
    }
    (a, c)
}

/// k(z, z′) and ∇₂k(z, z′), with one bandwidth per block (none: the kernel does not see it).
fn kernel_and_gradient(
    kernel: &Kernel,
    bandwidths: &[Option<f64>],
    dim: usize,
    z: &[f64],
    other: &[f64],
) -> (f64, Vec<f64>) {
    let square = |block: usize| -> f64 {
        let range = block * dim..(block + 1) * dim;
        z[range.clone()].iter().zip(&other[range]).map(|(a, b)| (a - b).powi(2)).sum()
    };
    let seen: Vec<(usize, f64)> =
        bandwidths.iter().enumerate().filter_map(|(b, h)| h.map(|h| (b, h))).collect();
    let together: f64 = seen.iter().map(|&(b, h)| square(b) / h).sum();
    let value = match (kernel.radial, kernel.view) {
        (Radial::SquaredExponential, _) => (-together).exp(),
        (Radial::InverseMultiquadric, View::Product) => {
            seen.iter().map(|&(b, h)| (1.0 + square(b) / h).powf(-0.5)).product()
        }
        (Radial::InverseMultiquadric, _) => (1.0 + together).powf(-0.5),
    };
    let mut gradient = vec![0.0; z.len()];
    for &(block, h) in &seen {
        let slope = match (kernel.radial, kernel.view) {
            (Radial::SquaredExponential, _) => 2.0 * value / h,
            (Radial::InverseMultiquadric, View::Product) => value / (h * (1.0 + square(block) / h)),
            (Radial::InverseMultiquadric, _) => value / (h * (1.0 + together)),
        };
        for i in block * dim..(block + 1) * dim {
            gradient[i] = slope * (z[i] - other[i]);
        }
    }
    (value, gradient)
}

/// The velocity of all blocks by a double loop over particles with dense matrices; `starred`
/// leaves C out of the repulsion. `bandwidths` has one entry per block, none where the kernel is
/// blind.
pub fn dense_velocity(
    structure: &Structure,
    at: &Evaluated<'_, f64>,
    kernel: &Kernel,
    bandwidths: &[Option<f64>],
    starred: bool,
) -> Matrix<f64> {
    let states: MatRef<'_, f64> = at.state;
    let (count, size) = (states.rows(), states.cols());
    let mut velocity = Matrix::zeros(count, size);
    let drift = at.drift();
    for j in 0..count {
        let (a, c) = dense_matrices(structure, &at.coefficients.row(j)[1..]);
        // Column and value of what is not zero in a row of M.
        let m = |row: usize| {
            let curl = if starred { 0.0 } else { 1.0 };
            let entry = move |(column, (a, c)): (usize, (&f64, &f64))| (column, a + curl * c);
            let entries = a.row(row).iter().zip(c.row(row)).enumerate().map(entry);
            entries.filter(|(_, x)| *x != 0.0).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<(usize, f64)>> = (0..size).map(m).collect();
        for i in 0..count {
            let (k, gradient) = kernel_and_gradient(
                kernel,
                bandwidths,
                structure.dim(),
                states.row(i),
                states.row(j),
            );
            for (row, entries) in rows.iter().enumerate() {
                let product: f64 = entries.iter().map(|&(column, m)| m * gradient[column]).sum();
                velocity.row_mut(i)[row] += (k * drift.row(j)[row] + product) / count as f64;
            }
        }
    }
    velocity
}
