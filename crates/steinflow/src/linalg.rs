//! Small symmetric matrices: eigenvalues and square roots, in `f64`.

use faer::{MatRef, Side};

/// Eigenvalues in ascending order, and the eigenvectors as columns of a row-major matrix.
///
/// Non-finite input gives NaN eigenvalues.
pub(crate) fn symmetric_eigen(matrix: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let view = MatRef::from_row_major_slice(matrix, dim, dim);
    if matrix.iter().all(|x| x.is_finite())
        && let Ok(eigen) = view.self_adjoint_eigen(Side::Lower)
    {
        let values = eigen.S().column_vector().iter().copied().collect();
        let mut vectors = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..dim {
                vectors[i * dim + j] = eigen.U()[(i, j)];
            }
        }
        return (values, vectors);
    }
    (vec![f64::NAN; dim], vec![f64::NAN; dim * dim])
}

/// V diag(g(λ)) Vᵀ, row-major, for the eigenvalues and eigenvectors of a symmetric matrix.
pub(crate) fn spectral(values: &[f64], vectors: &[f64], g: impl Fn(f64) -> f64) -> Vec<f64> {
    let dim = values.len();
    let mut out = vec![0.0; dim * dim];
    for (k, &value) in values.iter().enumerate() {
        let weight = g(value);
        for i in 0..dim {
            for j in 0..dim {
                out[i * dim + j] += weight * vectors[i * dim + k] * vectors[j * dim + k];
            }
        }
    }
    out
}
