//! Particles moved on by a sampler with an accept step: what is right stays as it is, and what rests only
//! because its own dynamics are slow goes on.

use std::ops::ControlFlow;

use crate::ensemble::{Ensemble, Options, Status};
use crate::run::WarmMoments;
use crate::{LogDensity, Matrix, Result};

/// Fewer draws of each particle say nothing.
const FEWEST: usize = 5;

/// Moments of the draws that an ensemble makes from these particles with so many gradients of each; none where
/// they are too few for it to get going.
pub(super) fn moments_after_moves(
    target: &dyn LogDensity<f64>,
    start: &Matrix<f64>,
    gradients: u64,
) -> Result<Option<WarmMoments>> {
    let (count, dim) = (start.rows(), start.cols());
    let options = Options {
        particles: Some(count),
        start: Some(start.clone()),
        gradients,
        // As many as there is time for.
        effective: 1e9,
        bends: false,
        jumps: false,
        ..Options::default()
    };
    let mut ensemble = Ensemble::new(dim, options)?;
    let mut draws: Vec<f64> = Vec::new();
    while !ensemble.is_done() {
        let status = ensemble.advance(target, &mut |at| {
            if let Some(draw) = at.draw {
                // Draws that turned out to be warm-up are forgotten.
                draws.truncate(draw * count * dim);
                draws.extend_from_slice(at.theta.as_slice());
            }
            ControlFlow::Continue(())
        })?;
        if status == Status::Interrupted {
            break;
        }
    }
    let rows = draws.len() / dim;
    if rows < FEWEST * count {
        return Ok(None);
    }
    let draws = Matrix::from_vec(draws, rows, dim).expect("whole rows were kept");
    let (mean, sd) = super::moments(draws.as_ref());
    Ok(Some(WarmMoments { draws: rows, mean, sd }))
}
