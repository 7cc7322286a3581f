//! The target in coordinates that fit the particles, where distances and climbs have a scale.

use super::super::counted::Counted;
use crate::coordinates::Linear;
use crate::{Matrix, Result};

/// The target in coordinates in which the particles have mean 0 and variance 1.
pub(in crate::diagnostics) struct View<'a> {
    pub(super) target: &'a Counted<'a>,
    pub(super) linear: Linear,
    pub(super) middle: Vec<f64>,
    pub(super) spread: Vec<f64>,
    /// The particles.
    pub(in crate::diagnostics) own: Matrix<f64>,
}

impl<'a> View<'a> {
    pub(in crate::diagnostics) fn new(
        target: &'a Counted<'a>,
        theta: &Matrix<f64>,
        score: &Matrix<f64>,
    ) -> Self {
        let linear = Linear::fit(theta.as_ref(), score.as_ref());
        let mut white = Matrix::zeros(theta.rows(), theta.cols());
        linear.from_position(theta.as_slice(), white.as_mut_slice());
        let (middle, spread) = crate::diagnostics::moments(white.as_ref());
        let own = Matrix::from_fn(theta.rows(), theta.cols(), |i, j| {
            (white.row(i)[j] - middle[j]) / spread[j]
        });
        Self { target, linear, middle, spread, own }
    }

    fn positions(&self, points: &Matrix<f64>) -> Matrix<f64> {
        let white = Matrix::from_fn(points.rows(), points.cols(), |i, j| {
            self.middle[j] + self.spread[j] * points.row(i)[j]
        });
        let mut theta = Matrix::zeros(points.rows(), points.cols());
        self.linear.to_position(white.as_slice(), theta.as_mut_slice());
        theta
    }

    pub(super) fn theta(&self, point: &[f64]) -> Vec<f64> {
        let point = Matrix::from_fn(1, point.len(), |_, j| point[j]);
        self.positions(&point).into_vec()
    }

    /// Log density and score, both as functions of these coordinates; the volume that they change is the
    /// same everywhere, and left out.
    pub(super) fn at(&self, points: &Matrix<f64>) -> Result<(Vec<f64>, Matrix<f64>)> {
        let (log_density, score) = self.target.at(&self.positions(points))?;
        let mut pulled = Matrix::zeros(points.rows(), points.cols());
        self.linear.down(score.as_slice(), pulled.as_mut_slice());
        for i in 0..points.rows() {
            pulled.row_mut(i).iter_mut().zip(&self.spread).for_each(|(s, spread)| *s *= spread);
        }
        Ok((log_density, pulled))
    }
}
