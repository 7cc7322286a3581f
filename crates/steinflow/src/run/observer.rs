//! Observers: see every step, record, report, or ask for the end.

use std::ops::ControlFlow;
use std::time::Duration;

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
    /// √(mean |v|²) over particles; none before the first step.
    pub velocity_norm: Option<f64>,
    /// The bandwidths in use, one per factor of the kernel; none for a diffusion.
    pub bandwidths: &'a [f64],
    /// Evaluations of the target so far.
    pub gradients: u64,
    /// Wall-clock time so far.
    pub elapsed: Duration,
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
