//! The drift alone: every particle descends to a mode by itself.
//!
//! With SGHMC dynamics this is gradient descent with momentum from many starts: deep ensembles
//! ([Lakshminarayanan et al. 2017](https://arxiv.org/abs/1612.01474)). Not a sampler of π.

use super::{Field, gather};
use crate::dynamics::Evaluated;
use crate::{Matrix, Real, Result};

/// v = f, without noise or interaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift;

impl<T: Real> Field<T> for Drift {
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let dim = at.operator.dim();
        for i in 0..at.state.rows() {
            gather(at.drift.row(i), moving, dim, velocity.row_mut(i));
        }
        Ok(())
    }
}
