//! The target on a regular grid, for what is drawn behind particles.

use steinflow::{Matrix, Real};
use steinflow_models::Model;

use crate::error::Result;

/// log π on a regular grid: row i at the i-th y, column j at the j-th x.
pub fn log_density_grid<T: Real>(
    model: &dyn Model<T>,
    limits: &[(f64, f64)],
    points: usize,
) -> Result<Matrix<f64>> {
    let at = |axis: usize, k: usize| {
        let (low, high) = limits[axis];
        low + (high - low) * k as f64 / (points - 1) as f64
    };
    let rows = if limits.len() == 1 { 1 } else { points };
    let theta = Matrix::from_fn(rows * points, limits.len(), |i, axis| {
        T::of(if axis == 0 { at(0, i % points) } else { at(1, i / points) })
    });
    let mut log_density = vec![T::zero(); theta.rows()];
    let mut score = Matrix::zeros(theta.rows(), theta.cols());
    model.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
    Ok(Matrix::from_fn(rows, points, |i, j| log_density[i * points + j].as_f64()))
}
