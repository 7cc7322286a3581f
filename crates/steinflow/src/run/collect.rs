//! More samples than particles: θ at many steps, chain and draw kept apart.

use std::ops::ControlFlow;

use super::{Observer, Snapshot};
use crate::{Error, Matrix, Real, Result};

/// Collects θ of every particle at every `every`-th step from step `from` on. Pass
/// `samples.observer()` to the sampler.
///
/// With momentum resampling, N deterministic particles go on to new places after every draw of
/// fresh momenta, and their visits are further samples.
#[derive(Clone, Debug)]
pub struct Samples<T> {
    from: u64,
    every: u64,
    /// Whether the draws of an ensemble are collected, whatever their steps.
    of_ensemble: bool,
    chains: usize,
    steps: Vec<u64>,
    values: Vec<T>,
}

impl<T: Real> Samples<T> {
    /// Collects at `from`, `from + every`, …
    pub fn new(from: u64, every: u64) -> Self {
        Self {
            from,
            every: every.max(1),
            of_ensemble: false,
            chains: 0,
            steps: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Collects the draws of an ensemble.
    pub fn of_ensemble() -> Self {
        Self { of_ensemble: true, ..Self::new(0, 1) }
    }

    /// Goes on with what was collected before a checkpoint: the step of every draw, and all samples
    /// as [`Samples::theta`] gives them.
    pub fn resume(
        from: u64,
        every: u64,
        chains: usize,
        steps: Vec<u64>,
        theta: Matrix<T>,
    ) -> Result<Self> {
        if steps.len().checked_mul(chains) != Some(theta.rows()) {
            return Err(Error::Shape {
                what: "the collected samples",
                found: format!("{} rows", theta.rows()),
                expected: format!("{} draws of {chains} particles", steps.len()),
            });
        }
        Ok(Self { chains, steps, values: theta.into_vec(), ..Self::new(from, every) })
    }

    /// As [`Samples::resume`], for the draws of an ensemble.
    pub fn resume_ensemble(chains: usize, steps: Vec<u64>, theta: Matrix<T>) -> Result<Self> {
        Ok(Self { of_ensemble: true, ..Self::resume(0, 1, chains, steps, theta)? })
    }

    /// The observer that fills these samples.
    pub fn observer(&mut self) -> Collecting<'_, T> {
        Collecting(self)
    }

    /// Whether particles are collected after this step of a method.
    pub fn is_due(&self, step: u64) -> bool {
        !self.of_ensemble && step >= self.from && (step - self.from).is_multiple_of(self.every)
    }

    /// How many particles there are.
    pub fn chains(&self) -> usize {
        self.chains
    }

    /// The step of every draw.
    pub fn steps(&self) -> &[u64] {
        &self.steps
    }

    /// All samples in row order, as [`Samples::theta`] has them.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All samples, `(draws · chains) × dim`: draw after draw, and within a draw chain after chain.
    pub fn theta(&self) -> Matrix<T> {
        let rows = self.steps.len() * self.chains;
        let dim = self.values.len().checked_div(rows).unwrap_or(0);
        Matrix::from_vec(self.values.clone(), rows, dim).expect("whole draws were collected")
    }
}

/// Fills samples.
#[derive(Debug)]
pub struct Collecting<'a, T>(&'a mut Samples<T>);

impl<T: Real> Observer<T> for Collecting<'_, T> {
    fn is_due(&mut self, step: u64, _total_steps: u64) -> bool {
        self.0.is_due(step)
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        let own = &mut *self.0;
        let is_due = if own.of_ensemble {
            let draw = at.ensemble.and_then(|ensemble| ensemble.draw);
            // Draws that turned out to be warm-up are forgotten.
            if let Some(draw) = draw {
                own.steps.truncate(draw);
                own.values.truncate(draw * own.chains * at.dim);
            }
            draw.is_some()
        } else {
            // The warm-up of a method is not a step of it.
            at.ensemble.is_none() && own.is_due(at.step)
        };
        if is_due {
            own.chains = at.state.rows();
            own.steps.push(at.step);
            for i in 0..at.state.rows() {
                own.values.extend_from_slice(&at.state.row(i)[..at.dim]);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
