//! What a system draws at random: auxiliary variables and minibatches.

use super::{System, own};
use crate::dynamics::{Structure, THETA};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, Matrix, Minibatch, Real, Result};

impl<T: Real> System<'_, T> {
    /// Draws the auxiliary variables afresh from their Gaussians; `index` names the draw, and 0 is
    /// that of the start.
    pub fn resample_auxiliaries(&mut self, index: u64) {
        auxiliaries(own(&mut self.at.state), &self.structure, self.seed, index);
        let auxiliaries: Vec<usize> = (THETA + 1..self.structure.blocks()).collect();
        self.versions.changed(&auxiliaries);
    }

    /// Takes `size` rows of the target's data at a time, new ones after every move of θ.
    pub fn with_minibatches(mut self, size: usize) -> Result<Self> {
        check_batch_size(size, self.target.data_rows())?;
        self.batch_size = Some(size);
        self.draw_minibatch();
        Ok(self)
    }

    pub(super) fn draw_minibatch(&mut self) {
        if let Some(size) = self.batch_size {
            let rows = self.target.data_rows();
            self.minibatch = Some(Minibatch::draw(self.seed, self.at.batches, rows, size));
        }
    }
}

/// Draws every auxiliary variable from its Gaussian.
pub(super) fn auxiliaries<T: Real>(
    state: &mut Matrix<T>,
    structure: &Structure,
    seed: u64,
    index: u64,
) {
    let dim = structure.dim();
    for i in 0..state.rows() {
        let mut generator = stream(seed, Purpose::Auxiliary, index, i as u64);
        let blocks = state.row_mut(i)[dim..].chunks_exact_mut(dim);
        for (values, law) in blocks.zip(structure.auxiliaries()) {
            fill_standard_normal(&mut generator, values);
            for x in values {
                *x = T::of(law.mean) + T::of(law.variance.sqrt()) * *x;
            }
        }
    }
}

/// A minibatch has at least one row, and no more than there are.
pub(crate) fn check_batch_size(size: usize, data_rows: usize) -> Result<()> {
    if size == 0 || size > data_rows {
        let remedy = if data_rows == 0 {
            "this target has no data to take minibatches of".to_owned()
        } else {
            format!("the target has {data_rows} rows of data: take 1 to {data_rows}")
        };
        return Err(Error::setting("batch size", size, remedy));
    }
    Ok(())
}
