//! Observers: see every step, record, report, or ask for the end.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use super::Checkpoint;
use crate::ensemble::Stage;
use crate::{MatRef, Real, Result};

/// The particles after a step.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a, T> {
    /// Steps taken; 0 before the first.
    pub step: u64,
    /// Steps the run was asked for.
    pub total_steps: u64,
    /// The sum of all step sizes so far.
    pub time: f64,
    /// The size of the last step.
    pub step_size: f64,
    /// z = (θ, r, …), `N × (blocks · dim)`.
    pub state: MatRef<'a, T>,
    /// The number of coordinates of θ.
    pub dim: usize,
    /// log π(θ) of every particle, on the current minibatch if there is one.
    pub log_density: &'a [T],
    /// ∇log π(θ) of every particle, `N × dim`; none where minibatches make it uncertain.
    pub score: Option<MatRef<'a, T>>,
    /// √(mean |v|²) over particles; none before the first step.
    pub velocity_norm: Option<f64>,
    /// The bandwidths in use, one per factor of the kernel; none for a diffusion.
    pub bandwidths: &'a [f64],
    /// Evaluations of the target so far.
    pub gradients: u64,
    /// Wall-clock time so far.
    pub elapsed: Duration,
    /// How far an ensemble is, while one is at work.
    pub ensemble: Option<EnsembleView>,
    pub(super) camera: Camera<'a, T>,
}

/// How far an ensemble is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnsembleView {
    /// What it is at.
    pub stage: Stage,
    /// `Some(k)` when θ are draws number k of all chains: see [`Moment::draw`](crate::ensemble::Moment).
    pub draw: Option<usize>,
    /// Effective draws so far, and how many are wanted.
    pub effective: (f64, f64),
    /// The largest R̂, once there is one.
    pub rhat: Option<f64>,
    /// The share of the gradients that was used.
    pub used: f64,
}

impl EnsembleView {
    /// How much of the run is done, from 0 to 1: by effective draws or by the budget, whichever is nearer
    /// to its end.
    pub fn share(&self) -> f64 {
        let (found, wanted) = self.effective;
        self.used.max(found / wanted).clamp(0.0, 1.0)
    }
}

impl<T: Real> Snapshot<'_, T> {
    /// A copy of all that another process needs to go on from here to the same bits.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use steinflow::run::{Checkpoint, Snapshot};
    /// let mut kept: Option<Checkpoint<f64>> = None;
    /// let keep_every_hundredth = |at: &Snapshot<'_, f64>| {
    ///     if at.step.is_multiple_of(100) {
    ///         kept = Some(at.checkpoint()?);
    ///     }
    ///     steinflow::Result::Ok(ControlFlow::Continue(()))
    /// };
    /// # let _: Box<dyn steinflow::run::Observer<f64>> = Box::new(keep_every_hundredth);
    /// ```
    pub fn checkpoint(&self) -> Result<Checkpoint<T>> {
        (self.camera.0)()
    }
}

/// Takes checkpoints for those who ask, at no cost for those who do not.
#[derive(Clone, Copy)]
pub(super) struct Camera<'a, T>(pub(super) &'a dyn Fn() -> Result<Checkpoint<T>>);

impl<T> fmt::Debug for Camera<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Camera")
    }
}

/// Sees the start and every step. Closures of the right shape are observers:
///
/// ```
/// use std::ops::ControlFlow;
/// use steinflow::run::{Observer, Snapshot};
/// let stop_after_ten = |at: &Snapshot<'_, f64>| {
///     Ok(if at.step >= 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
/// };
/// # let _: Box<dyn Observer<f64>> = Box::new(stop_after_ten);
/// ```
pub trait Observer<T: Real = f64>: Send {
    /// Called before the first step and after every step; `Break` ends the run, keeping all.
    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>>;

    /// Whether it needs to see the particles after this step. Asked of everybody after every step; where
    /// particles are on a device and nobody is due, they stay there and nobody is called.
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        let _ = (step, total_steps);
        true
    }
}

impl<T, F> Observer<T> for F
where
    T: Real,
    F: FnMut(&Snapshot<'_, T>) -> Result<ControlFlow<()>> + Send,
{
    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self(at)
    }
}
