//! The drift alone: every particle descends to a mode by itself.
//!
//! With SGHMC dynamics this is gradient descent with momentum from many starts: deep ensembles
//! ([Lakshminarayanan et al. 2017](https://arxiv.org/abs/1612.01474)). Not a sampler of π.

use rayon::prelude::*;

use super::Field;
use crate::dynamics::Evaluated;
use crate::engine::rows_per_task;
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
        let moved = velocity.cols();
        let rows = velocity.as_mut_slice().par_chunks_mut(moved).enumerate();
        rows.with_min_len(rows_per_task(moved)).for_each(|(i, out)| at.write_drift(i, moving, out));
        Ok(())
    }
}
