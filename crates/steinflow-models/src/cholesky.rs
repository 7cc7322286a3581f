//! `Σ = LLᵀ` with L lower triangular: tests that a matrix is positive definite, inverts it, and turns
//! standard normals n into draws Ln of covariance Σ.

use rayon::prelude::*;
use steinflow::Matrix;

use crate::{Error, Result};

/// The lower factor of a symmetric positive definite matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cholesky {
    factor: Matrix<f64>,
}

impl Cholesky {
    /// Factorises `matrix`; `what` names it in the errors.
    pub(crate) fn new(matrix: &Matrix<f64>, what: &'static str) -> Result<Self> {
        let dim = matrix.rows();
        require_symmetric(matrix, what)?;
        let mut factor = Matrix::zeros(dim, dim);
        for i in 0..dim {
            for j in 0..=i {
                let rest = matrix.row(i)[j] - dot(&factor.row(i)[..j], &factor.row(j)[..j]);
                factor.row_mut(i)[j] = if i != j {
                    rest / factor.row(j)[j]
                } else if rest > singular_below(dim, matrix.row(i)[i]) {
                    rest.sqrt()
                } else {
                    return Err(Error::NotPositiveDefinite { what, coordinate: i, value: rest });
                };
            }
        }
        Ok(Self { factor })
    }

    /// Σ⁻¹, row by row: each solves Σx = e.
    pub(crate) fn inverse(&self) -> Matrix<f64> {
        let dim = self.factor.rows();
        let mut inverse = Matrix::zeros(dim, dim);
        inverse.as_mut_slice().par_chunks_mut(dim.max(1)).enumerate().for_each(|(i, row)| {
            row[i] = 1.0;
            self.solve(row);
        });
        // Rounding differs above and below the diagonal.
        Matrix::from_fn(dim, dim, |i, j| 0.5 * (inverse.row(i)[j] + inverse.row(j)[i]))
    }

    /// Replaces `b` by Σ⁻¹b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        for i in 0..b.len() {
            let row = self.factor.row(i);
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
        // Lᵀ by rows of L, so that memory is read in order.
        for i in (0..b.len()).rev() {
            let row = self.factor.row(i);
            b[i] /= row[i];
            let (before, at) = b.split_at_mut(i);
            for (x, l) in before.iter_mut().zip(row) {
                *x -= at[0] * l;
            }
        }
    }

    /// Ln.
    pub(crate) fn times(&self, n: &[f64]) -> impl Iterator<Item = f64> {
        (0..n.len()).map(|i| dot(&self.factor.row(i)[..=i], &n[..=i]))
    }

    /// log det Σ = 2 Σᵢ log Lᵢᵢ.
    pub(crate) fn log_determinant(&self) -> f64 {
        (0..self.factor.rows()).map(|i| 2.0 * self.factor.row(i)[i].ln()).sum()
    }
}

/// A pivot smaller than the rounding error of its own computation is taken for zero.
fn singular_below(dim: usize, diagonal: f64) -> f64 {
    4.0 * dim as f64 * f64::EPSILON * diagonal.abs()
}

fn require_symmetric(matrix: &Matrix<f64>, what: &'static str) -> Result<()> {
    const RELATIVE_TOLERANCE: f64 = 1e-9;
    for row in 0..matrix.rows() {
        for column in 0..row {
            let (value, mirror) = (matrix.row(row)[column], matrix.row(column)[row]);
            let tolerance = RELATIVE_TOLERANCE * value.abs().max(mirror.abs());
            // Written so that NaN is rejected too.
            if !((value - mirror).abs() <= tolerance) {
                return Err(Error::NotSymmetric { what, row, column, value, mirror });
            }
        }
    }
    Ok(())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Matrix<f64> {
        Matrix::from_vec(vec![4.0, 2.0, 0.6, 2.0, 5.0, 1.0, 0.6, 1.0, 3.0], 3, 3).unwrap()
    }

    #[test]
    fn the_factor_reproduces_the_matrix_and_its_inverse() {
        let sigma = example();
        let cholesky = Cholesky::new(&sigma, "covariance").unwrap();
        let inverse = cholesky.inverse();
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| sigma.row(i)[k] * inverse.row(k)[j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-14);
                let square = dot(cholesky.factor.row(i), cholesky.factor.row(j));
                assert!((square - sigma.row(i)[j]).abs() < 1e-14);
            }
        }
        // Sarrus by hand: 4(15 − 1) − 2(6 − 0.6) + 0.6(2 − 3).
        assert!((cholesky.log_determinant() - (56.0_f64 - 10.8 - 0.6).ln()).abs() < 1e-14);
    }

    #[test]
    fn indefinite_singular_and_asymmetric_matrices_are_told_apart() {
        let matrix = |entries: [f64; 4]| Matrix::from_vec(entries.to_vec(), 2, 2).unwrap();
        let error = |entries| Cholesky::new(&matrix(entries), "covariance").unwrap_err();
        assert!(matches!(
            error([1.0, 2.0, 2.0, 1.0]),
            Error::NotPositiveDefinite { coordinate: 1, value: -3.0, .. }
        ));
        let third = 1.0 / 3.0;
        assert!(matches!(error([third; 4]), Error::NotPositiveDefinite { coordinate: 1, .. }));
        assert!(matches!(
            error([1.0, 0.5, 0.4, 1.0]),
            Error::NotSymmetric { row: 1, column: 0, value: 0.4, mirror: 0.5, .. }
        ));
        assert!(matches!(error([1.0, f64::NAN, 0.0, 1.0]), Error::NotSymmetric { .. }));
        assert!(matches!(error([f64::NAN, 0.0, 0.0, 1.0]), Error::NotPositiveDefinite { .. }));
    }
}
