//! The warm-up alone: starts and coordinates for any other method.

use super::{Ensemble, Options, Status, Watch};
use crate::coordinates::Coordinates;
use crate::{LogDensity, Matrix, Result};

/// Where particles are, and the coordinates in which the target is near N(0, I).
#[derive(Clone, Debug, PartialEq)]
pub struct WarmUp {
    /// θ, N × d.
    pub theta: Matrix<f64>,
    /// [`InCoordinates`](crate::coordinates::InCoordinates) is the target there.
    pub coordinates: Coordinates,
    /// Of leapfrogs in u at the learnt acceptance.
    pub step_size: f64,
    /// Gradients of each particle that it took.
    pub gradients: f64,
}

impl Ensemble {
    /// What the ensemble has learnt so far.
    pub fn learnt(&self) -> WarmUp {
        WarmUp {
            theta: self.cloud.theta.clone(),
            coordinates: self.coordinates.clone(),
            step_size: self.learning.step(),
            gradients: self.gradients(),
        }
    }
}

/// Runs an ensemble until its first draw; `None` when the watcher interrupts.
///
/// ```
/// use std::ops::ControlFlow;
/// use steinflow::ensemble::{Options, warm_up};
/// use steinflow::target::PerParticle;
/// let target = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
///     score[0] = -(theta[0] - 1e4) * 1e6;
///     -0.5e6 * (theta[0] - 1e4).powi(2)
/// });
/// let learnt = warm_up(&target, Options::default(), &mut |_| ControlFlow::Continue(()))?.unwrap();
/// let white = learnt.coordinates.from_theta(learnt.theta.as_ref());
/// assert!(white.as_slice().iter().all(|u| u.abs() < 6.0));
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn warm_up(
    target: &dyn LogDensity<f64>,
    options: Options,
    watch: &mut Watch<'_>,
) -> Result<Option<WarmUp>> {
    let mut ensemble = Ensemble::new(target.dim(), options)?;
    while !ensemble.is_warm() {
        if ensemble.advance(target, watch)? == Status::Interrupted {
            return Ok(None);
        }
    }
    Ok(Some(ensemble.learnt()))
}
