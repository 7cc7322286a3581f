//! Predictions of all particles: a Gaussian N(f(x; wᵢ), 1/γᵢ) for every particle i and row x, or N(f, e⁻ˢ/γᵢ)
//! where the noise depends on the input; or the probability of every class.

use rayon::prelude::*;
use steinflow::{Error, MatRef, Matrix, Real};

use super::block::{Block, ROWS_PER_BLOCK};
use super::likelihood::{Likelihood, log_probabilities};
use super::noise::log_factor;
use super::{Bnn, require_inputs};
use crate::Result;
use crate::prediction::{ClassPredictive, Predictive};

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
        if self.likelihood == Likelihood::Classes {
            let remedy = "its target has classes: ask for their probabilities";
            return Err(Error::setting("prediction", "a number", remedy).into());
        }
        let outputs = self.outputs(theta, inputs)?;
        let rows = inputs.rows();
        let means = Matrix::from_fn(theta.rows(), rows, |i, k| outputs.row(i)[k]);
        let noise: Vec<f64> = (0..theta.rows())
            .map(|i| self.precisions_at(theta.row(i))[0].value.sqrt().recip())
            .collect();
        let sds = Matrix::from_fn(theta.rows(), rows, |i, k| {
            let s = outputs.row(i).get(rows + k).map_or(0.0, |&t| log_factor(t).0);
            noise[i] * (-0.5 * s).exp()
        });
        Predictive::with_noise(&means, &sds)
    }

    /// The probabilities of classes that the particles `theta` predict for rows that are standardised like the
    /// training data.
    pub fn predict_classes(
        &self,
        theta: MatRef<'_, T>,
        inputs: &Matrix<f64>,
    ) -> Result<ClassPredictive> {
        if self.likelihood != Likelihood::Classes {
            let remedy = "its target is a number: ask for its distribution";
            return Err(Error::setting("prediction", "classes", remedy).into());
        }
        let (outputs, rows) = (self.outputs(theta, inputs)?, inputs.rows());
        let of_row = |row: usize| {
            let of_particle = |i: usize| log_probabilities(outputs.row(i), rows, row);
            (0..theta.rows()).flat_map(of_particle).collect()
        };
        ClassPredictive::new(self.layout.output.outputs, (0..rows).map(of_row).collect())
    }

    /// All outputs of every particle, in a row: output after output, each for all rows of `inputs`.
    fn outputs(&self, theta: MatRef<'_, T>, inputs: &Matrix<f64>) -> Result<Matrix<f64>> {
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
        let mut outputs = Matrix::zeros(theta.rows(), rows * self.layout.output.outputs);
        let mut block = Block::default();
        for first in (0..rows).step_by(ROWS_PER_BLOCK) {
            let size = ROWS_PER_BLOCK.min(rows - first);
            block.gather(&inputs, &no_targets, size, |k| first + k);
            let of_all = outputs.as_mut_slice().par_chunks_mut(rows * self.layout.output.outputs);
            of_all.enumerate().for_each_init(
                || self.workspaces.lend(),
                |workspace, (i, to)| {
                    let mut start = first;
                    for tile in block.tiles(inputs.cols(), size) {
                        let width = tile.targets.len();
                        let from =
                            workspace.forward(self.network(), theta.row(i), tile.inputs, width);
                        for (to, from) in to.chunks_exact_mut(rows).zip(from.chunks_exact(width)) {
                            let to = &mut to[start..start + tile.rows];
                            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.as_f64());
                        }
                        start += tile.rows;
                    }
                },
            );
        }
        Ok(outputs)
    }
}
