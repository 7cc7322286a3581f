//! Predictions of all particles: a Gaussian N(f(x; wᵢ), 1/γᵢ) for every particle i and row x.

use rayon::prelude::*;
use steinflow::{Error, MatRef, Matrix, Real};

use super::block::{Block, ROWS_PER_BLOCK};
use super::{Bnn, require_inputs};
use crate::Result;
use crate::prediction::Predictive;

impl<T: Real> Bnn<T> {
    /// What the particles `theta` predict for rows that are standardised like the training data, in
    /// standardised units of the target; [`Predictive::in_units`] goes back to its own.
    ///
    /// ```
    /// use steinflow::Matrix;
    /// use steinflow_models::Describe;
    /// use steinflow_models::network::{Architecture, Bnn, Precisions};
    ///
    /// let inputs = Matrix::from_fn(40, 1, |i, _| i as f64 / 20.0 - 1.0);
    /// let targets: Vec<f64> = (0..40).map(|i| inputs.row(i)[0].sin()).collect();
    /// let model = Bnn::<f64>::new(&Architecture::default(), &inputs, &targets, Precisions::default())?;
    /// let theta = model.start_sample(20, 1).expect("a start");
    ///
    /// let predictive = model.predict(theta.as_ref(), &inputs)?;
    /// assert_eq!((predictive.particles(), predictive.rows()), (20, 40));
    /// assert!(predictive.mean_log_likelihood(&targets)?.is_finite());
    /// # Ok::<(), steinflow_models::Error>(())
    /// ```
    pub fn predict(&self, theta: MatRef<'_, T>, inputs: &Matrix<f64>) -> Result<Predictive> {
        require_inputs(inputs)?;
        let require = |what, found: usize, expected: usize| {
            if found == expected {
                return Ok(());
            }
            let (found, expected) = (format!("{found} columns"), expected.to_string());
            Err(Error::Shape { what, found, expected })
        };
        require("inputs", inputs.cols(), self.inputs.cols())?;
        require("theta", theta.cols(), self.layout.dim)?;

        let inputs: Matrix<T> = inputs.cast();
        let no_targets = vec![T::zero(); inputs.rows()];
        let mut means = Matrix::zeros(theta.rows(), inputs.rows());
        let mut block = Block::default();
        for first in (0..inputs.rows()).step_by(ROWS_PER_BLOCK) {
            let size = ROWS_PER_BLOCK.min(inputs.rows() - first);
            block.gather(&inputs, &no_targets, size, |k| first + k);
            means.as_mut_slice().par_chunks_mut(inputs.rows()).enumerate().for_each_init(
                || self.workspaces.lend(),
                |workspace, (i, means)| {
                    let mut means = means[first..first + size].iter_mut();
                    for tile in block.tiles(inputs.cols(), size) {
                        let width = tile.targets.len();
                        let f = workspace.forward(self.network(), theta.row(i), tile.inputs, width);
                        for (f, mean) in f[..tile.rows].iter().zip(means.by_ref()) {
                            *mean = f.as_f64();
                        }
                    }
                },
            );
        }
        let noise_sd = |i: usize| self.precisions_at(theta.row(i))[0].value.sqrt().recip();
        Predictive::new(&means, (0..theta.rows()).map(noise_sd).collect())
    }
}
