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
    chains: usize,
    steps: Vec<u64>,
    values: Vec<T>,
}

impl<T: Real> Samples<T> {
    /// Collects at `from`, `from + every`, …
    pub fn new(from: u64, every: u64) -> Self {
        Self { from, every: every.max(1), chains: 0, steps: Vec::new(), values: Vec::new() }
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

    /// The observer that fills these samples.
    pub fn observer(&mut self) -> impl Observer<T> + '_ {
        move |at: &Snapshot<'_, T>| {
            if at.step >= self.from && (at.step - self.from).is_multiple_of(self.every) {
                self.chains = at.state.rows();
                self.steps.push(at.step);
                for i in 0..at.state.rows() {
                    self.values.extend_from_slice(&at.state.row(i)[..at.dim]);
                }
            }
            Result::Ok(ControlFlow::Continue(()))
        }
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
