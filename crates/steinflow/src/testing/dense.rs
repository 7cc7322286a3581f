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

/// k(z, z′) and ∇₂k(z, z′), with one bandwidth per block (none: the kernel does not see it), the affine
/// part included.
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
    let mut product = 1.0;
    for &(block, _) in &seen {
        for i in block * dim..(block + 1) * dim {
            product += z[i] * other[i];
            gradient[i] += kernel.affine * z[i];
        }
    }
    (value + kernel.affine * product, gradient)
}

/// Which Stein field [`dense_velocity`] computes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// C is left out of the repulsion.
    pub starred: bool,
    /// C between two particles is (C(zᵢ) + C(zⱼ))/2.
    pub symmetrised: bool,
}

/// The velocity of all blocks by a double loop over particles with dense matrices. `bandwidths` has one
/// entry per block, none where the kernel is blind.
///
/// With M̂ᵢⱼ = A(zⱼ) + C between i and j, this is Σⱼ ∇ⱼ·(π kᵢⱼ M̂ᵢⱼ)/(πN), the diagonal included.
pub fn dense_velocity(
    structure: &Structure,
    at: &Evaluated<'_, f64>,
    kernel: &Kernel,
    bandwidths: &[Option<f64>],
    form: Form,
) -> Matrix<f64> {
    let (states, dim): (MatRef<'_, f64>, usize) = (at.state, structure.dim());
    let (count, size) = (states.rows(), states.cols());
    let (gradient, drift, curl_divergence) = (at.gradient(), at.drift(), at.curl_divergence());
    let own = if form.symmetrised { 0.5 } else { 0.0 };
    let matrices: Vec<_> =
        (0..count).map(|i| dense_matrices(structure, &at.coefficients.row(i)[1..])).collect();
    // Where A or C of some particle is not zero: row by row.
    let entries: Vec<Vec<usize>> = (0..size)
        .map(|row| {
            let filled = |column: usize| {
                let differs = |m: &Matrix<f64>| m.row(row)[column] != 0.0;
                matrices.iter().any(|(a, c)| differs(a) || differs(c))
            };
            (0..size).filter(|&column| filled(column)).collect()
        })
        .collect();
    let product = |row: usize, entry: &dyn Fn(usize) -> f64, u: &[f64]| -> f64 {
        entries[row].iter().map(|&column| entry(column) * u[column]).sum()
    };
    let mut velocity = Matrix::zeros(count, size);
    for i in 0..count {
        for j in 0..count {
            let (z, other) = (states.row(i), states.row(j));
            let (k, slope) = kernel_and_gradient(kernel, bandwidths, dim, z, other);
            let ((a, c), (_, own_c)) = (&matrices[j], &matrices[i]);
            for row in 0..size {
                let curl =
                    |column: usize| (1.0 - own) * c.row(row)[column] + own * own_c.row(row)[column];
                let all = |column: usize| a.row(row)[column] + curl(column);
                let whole = |column: usize| a.row(row)[column] + c.row(row)[column];
                let repels = |column: usize| {
                    a.row(row)[column] + if form.starred { 0.0 } else { curl(column) }
                };
                // What the drift has beyond M∇log π is its divergence.
                let divergence = drift.row(j)[row] - product(row, &whole, gradient.row(j));
                let shared = divergence - own * curl_divergence.row(j)[row];
                let mut v = k * (product(row, &all, gradient.row(j)) + shared);
                v += product(row, &repels, &slope);
                if i == j {
                    // ∇₁k, which only the affine part has, and all of ∇·C.
                    v += product(row, &repels, &slope) + k * own * curl_divergence.row(i)[row];
                }
                velocity.row_mut(i)[row] += v / count as f64;
            }
        }
    }
    velocity
}
