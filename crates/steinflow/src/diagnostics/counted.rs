//! The target as the verdict sees it: in double precision, at full data, with every evaluation counted, and no more
//! of them than are allowed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

/// Counts the points that a target is evaluated at.
pub(crate) struct Counted<'a> {
    target: Box<dyn LogDensity<f64> + 'a>,
    points: AtomicU64,
    limit: AtomicU64,
}

/// The error of an evaluation that is not allowed any more.
#[derive(Debug, thiserror::Error)]
#[error("the evaluations that were allowed are used up")]
struct Spent;

/// What came of work that ends where no more evaluations are allowed; none if it did.
pub(super) fn unless_spent<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(Error::User(why)) if why.is::<Spent>() => Ok(None),
        found => found.map(Some),
    }
}

impl<'a> Counted<'a> {
    pub(crate) fn new<T: Real>(target: &'a (impl LogDensity<T> + ?Sized)) -> Self {
        Self {
            target: T::widen(Box::new(target)),
            points: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
        }
    }

    /// How many points it was.
    pub(crate) fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// Allows no more than so many from now on.
    pub(super) fn allow(&self, points: u64) {
        self.limit.store(self.points().saturating_add(points), Ordering::Relaxed);
    }

    /// How many are allowed.
    pub(super) fn left(&self) -> u64 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.points())
    }

    /// Counts points that it was evaluated at by another way.
    pub(super) fn charge(&self, points: u64) {
        self.points.fetch_add(points, Ordering::Relaxed);
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
        if theta.rows() as u64 > self.left() {
            return Err(Error::User(Box::new(Spent)));
        }
        self.charge(theta.rows() as u64);
        self.target.evaluate(theta, rows, log_density, score)
    }
}
