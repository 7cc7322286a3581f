//! Least squares with a few columns, as the fits of bends need them.

use crate::linalg::{spectral, symmetric_eigen};

/// Columns to regress on, prepared for any number of responses.
pub(super) struct Regression {
    columns: Vec<Vec<f64>>,
    /// The inverse of columnsᵀ·columns, without directions that the rows do not determine.
    inverse: Vec<f64>,
}

impl Regression {
    pub(super) fn on(columns: Vec<Vec<f64>>) -> Self {
        let width = columns.len();
        let norms: Vec<f64> =
            columns.iter().map(|column| dot(column, column).sqrt().max(1e-150)).collect();
        let mut gram = vec![0.0; width * width];
        for i in 0..width {
            for j in 0..=i {
                let entry = dot(&columns[i], &columns[j]) / (norms[i] * norms[j]);
                (gram[i * width + j], gram[j * width + i]) = (entry, entry);
            }
        }
        let (values, vectors) = symmetric_eigen(&gram, width);
        let least = 1e-12 * values.last().copied().unwrap_or(0.0);
        let mut inverse = spectral(&values, &vectors, |w| if w > least { w.recip() } else { 0.0 });
        for i in 0..width {
            for j in 0..width {
                inverse[i * width + j] /= norms[i] * norms[j];
            }
        }
        Self { columns, inverse }
    }

    /// The coefficients that fit a response best.
    pub(super) fn solve(&self, response: &[f64]) -> Vec<f64> {
        let along: Vec<f64> = self.columns.iter().map(|column| dot(column, response)).collect();
        self.inverse.chunks_exact(along.len()).map(|row| dot(row, &along)).collect()
    }

    /// Σₖ coefficientₖ · columnₖ.
    pub(super) fn predict(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.columns[0].len()];
        for (column, c) in self.columns.iter().zip(coefficients) {
            out.iter_mut().zip(column).for_each(|(o, x)| *o += c * x);
        }
        out
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}
