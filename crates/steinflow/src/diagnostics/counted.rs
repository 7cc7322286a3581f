//! The target as the verdict sees it: in double precision, at full data, and with every evaluation counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

/// Counts the points that a target is evaluated at.
pub(crate) struct Counted<'a> {
    target: Box<dyn LogDensity<f64> + 'a>,
    points: AtomicU64,
}

impl<'a> Counted<'a> {
    pub(crate) fn new<T: Real>(target: &'a (impl LogDensity<T> + ?Sized)) -> Self {
        Self { target: T::widen(Box::new(target)), points: AtomicU64::new(0) }
    }

    /// How many points it was.
    pub(crate) fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// Log densities, −∞ where there is none, and scores.
    pub(super) fn at(&self, points: &Matrix<f64>) -> Result<(Vec<f64>, Matrix<f64>)> {
        let mut log_density = vec![0.0; points.rows()];
        let mut score = Matrix::zeros(points.rows(), points.cols());
        if points.rows() > 0 {
            self.evaluate(points.as_ref(), None, &mut log_density, score.as_mut())?;
        }
        log_density.iter_mut().filter(|v| v.is_nan()).for_each(|v| *v = f64::NEG_INFINITY);
        Ok((log_density, score))
    }
}

impl LogDensity<f64> for Counted<'_> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn data_rows(&self) -> usize {
        self.target.data_rows()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        score: MatMut<'_, f64>,
    ) -> Result<()> {
        self.points.fetch_add(theta.rows() as u64, Ordering::Relaxed);
        self.target.evaluate(theta, rows, log_density, score)
    }
}
