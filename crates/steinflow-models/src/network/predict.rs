//! Predictions of all particles: a Gaussian N(f(x; wᵢ), 1/γᵢ) for every particle i and row x, or N(f, e⁻ˢ/γᵢ)
//! where the noise depends on the input.

use rayon::prelude::*;
use steinflow::{Error, MatRef, Matrix, Real};

use super::block::{Block, ROWS_PER_BLOCK};
use super::noise::log_factor;
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
        let rows = inputs.rows();
        let (mut means, mut sds) =
            (Matrix::zeros(theta.rows(), rows), Matrix::zeros(theta.rows(), rows));
        let mut block = Block::default();
        for first in (0..inputs.rows()).step_by(ROWS_PER_BLOCK) {
            let size = ROWS_PER_BLOCK.min(inputs.rows() - first);
            block.gather(&inputs, &no_targets, size, |k| first + k);
            let rows_of_all = means.as_mut_slice().par_chunks_mut(rows);
            let rows_of_all = rows_of_all.zip(sds.as_mut_slice().par_chunks_mut(rows)).enumerate();
            rows_of_all.for_each_init(
                || self.workspaces.lend(),
                |workspace, (i, (means, sds))| {
                    let theta = theta.row(i);
                    let noise = self.precisions_at(theta)[0].value.sqrt().recip();
                    let own = first..first + size;
                    let mut both = means[own.clone()].iter_mut().zip(&mut sds[own]);
                    for tile in block.tiles(inputs.cols(), size) {
                        let width = tile.targets.len();
                        let outputs = workspace.forward(self.network(), theta, tile.inputs, width);
                        let (f, t) = outputs.split_at(width);
                        for (k, (mean, sd)) in both.by_ref().take(tile.rows).enumerate() {
                            *mean = f[k].as_f64();
                            let s = t.get(k).map_or(0.0, |t| log_factor(t.as_f64()).0);
                            *sd = noise * (-0.5 * s).exp();
                        }
                    }
                },
            );
        }
        Predictive::with_noise(&means, &sds)
    }
}
