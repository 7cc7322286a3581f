//! A target in single precision, as the ensemble, which computes in double, sees it.

use crate::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Result};

/// Rounds θ to `f32`, and widens what the target says there.
#[derive(Clone, Debug)]
pub struct Widened<D>(pub D);

impl<D: LogDensity<f32>> LogDensity<f64> for Widened<D> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn data_rows(&self) -> usize {
        self.0.data_rows()
    }

    fn coordinate_name(&self, coordinate: usize) -> Option<String> {
        self.0.coordinate_name(coordinate)
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        mut score: MatMut<'_, f64>,
    ) -> Result<()> {
        let (count, dim) = (theta.rows(), theta.cols());
        let narrow = Matrix::from_fn(count, dim, |i, j| theta.row(i)[j] as f32);
        let (mut values, mut scores) = (vec![0.0; count], Matrix::zeros(count, dim));
        self.0.evaluate(narrow.as_ref(), rows, &mut values, scores.as_mut())?;
        log_density.iter_mut().zip(values).for_each(|(out, x)| *out = f64::from(x));
        let wide = score.as_mut_slice().iter_mut().zip(scores.as_slice());
        wide.for_each(|(out, &x)| *out = f64::from(x));
        Ok(())
    }
}
