//! A record of the run's course, row by row.

use std::ops::ControlFlow;

use super::{Observer, Snapshot};
use crate::diagnostics::{Statistic, squared_stein_discrepancy};
use crate::kernel::{Bandwidth, Radial};
use crate::{Matrix, Real, Result};

/// One recorded step.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRow {
    /// Steps taken.
    pub step: u64,
    /// Mean of log π(θ) over particles.
    pub mean_log_density: f64,
    /// √(mean |v|²).
    pub velocity_norm: f64,
    /// Bandwidth of the kernel's first factor (the one that sees θ); none for a diffusion.
    pub bandwidth: Option<f64>,
    /// Kernel Stein discrepancy of up to 256 particles: inverse multiquadric, median bandwidth,
    /// V-statistic. In every 32nd row and the last; never with minibatches.
    pub stein_discrepancy: Option<f64>,
    /// Step size.
    pub step_size: f64,
    /// Evaluations of the target so far.
    pub gradients: u64,
    /// Wall-clock seconds so far.
    pub seconds: f64,
}

/// Records every `every`-th step and the last. Pass `trace.observer()` to the sampler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    every: u64,
    rows: Vec<TraceRow>,
}

impl Trace {
    /// Records every `every`-th step.
    pub fn new(every: u64) -> Self {
        Self { every: every.max(1), rows: Vec::new() }
    }

    /// Goes on with what was recorded before a checkpoint.
    pub fn resume(every: u64, rows: Vec<TraceRow>) -> Self {
        Self { every: every.max(1), rows }
    }

    /// What was recorded.
    pub fn rows(&self) -> &[TraceRow] {
        &self.rows
    }

    /// The observer that fills this trace.
    pub fn observer(&mut self) -> Tracing<'_> {
        Tracing(self)
    }

    /// Whether a row is due after this step.
    pub fn is_due(&self, step: u64, total_steps: u64) -> bool {
        step > 0 && (step.is_multiple_of(self.every) || step == total_steps)
    }
}

/// Fills a trace.
#[derive(Debug)]
pub struct Tracing<'a>(&'a mut Trace);

impl<T: Real> Observer<T> for Tracing<'_> {
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        self.0.is_due(step, total_steps)
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        let Trace { every, rows } = &mut *self.0;
        let last = at.step == at.total_steps;
        // What was the last step is not one any more when a run is continued.
        if let Some(row) = rows.last()
            && row.step < at.step
            && !row.step.is_multiple_of(*every)
        {
            rows.pop();
        }
        let sum: f64 = at.log_density.iter().map(|x| x.as_f64()).sum();
        let due = at.step > 0 && (at.step.is_multiple_of(*every) || last);
        // An ensemble may have particles at walls until it has weeded them.
        if due && sum.is_finite() {
            rows.push(TraceRow {
                step: at.step,
                mean_log_density: sum / at.log_density.len() as f64,
                velocity_norm: at.velocity_norm.unwrap_or(f64::NAN),
                bandwidth: at.bandwidths.first().copied(),
                stein_discrepancy: if last || at.step.is_multiple_of(32 * *every) {
                    stein_discrepancy(at)
                } else {
                    None
                },
                step_size: at.step_size,
                gradients: at.gradients,
                seconds: at.elapsed.as_secs_f64(),
            });
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Of the first particles: those who watch must not cost more than what they watch.
fn stein_discrepancy<T: Real>(at: &Snapshot<'_, T>) -> Option<f64> {
    const MOST_PARTICLES: usize = 256;
    let score = at.score?;
    let count = at.state.rows().min(MOST_PARTICLES);
    let theta = Matrix::from_fn(count, at.dim, |i, j| at.state.row(i)[j]);
    let score = Matrix::from_fn(count, at.dim, |i, j| score.row(i)[j]);
    let bandwidth = Bandwidth::Median.of(theta.as_ref());
    let radial = Radial::InverseMultiquadric;
    let (theta, score) = (theta.as_ref(), score.as_ref());
    let square = squared_stein_discrepancy(theta, score, radial, bandwidth, Statistic::V).ok()?;
    Some(square.max(0.0).sqrt())
}
