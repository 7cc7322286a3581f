//! What a run leaves, and why it ended.

use std::time::Duration;

use super::{Checkpoint, WarmMoments};
use crate::dynamics::Structure;
use crate::ensemble::Report;
use crate::{Matrix, Real};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps were taken.
    Finished,
    /// The velocity norm fell below the tolerance.
    AtRest,
    /// The wall-clock budget was used up.
    OutOfTime,
    /// The interrupt flag was raised, or an observer asked for the end.
    Interrupted,
    /// An ensemble ended without meeting its stop rule: its report says why.
    Unsettled,
}

impl Ended {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::AtRest => "at rest",
            Self::OutOfTime => "out of time",
            Self::Interrupted => "interrupted",
            Self::Unsettled => "not done",
        }
    }
}

/// A run's result: the particles, whatever ended it.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// z = (θ, r, …), `N × (blocks · dim)`.
    pub state: Matrix<T>,
    /// log π(θ) of every particle, on all of the data.
    pub log_density: Vec<T>,
    /// The blocks of the state.
    pub structure: Structure,
    /// Why the run ended.
    pub ended: Ended,
    /// Steps taken.
    pub steps: u64,
    /// Evaluations of the target, each for all particles.
    pub gradients: u64,
    /// Particles frozen because their score was not finite.
    pub frozen: Vec<usize>,
    /// How often the step size was halved.
    pub shrinks: u32,
    /// Wall-clock time, over all processes that worked on the run.
    pub elapsed: Duration,
    /// The share of stretches that a joint accept step has accepted.
    pub acceptance: Option<f64>,
    /// How an ensemble fared.
    pub report: Option<Report>,
    /// Moments of draws that a warm-up has made, to compare with.
    pub warm_moments: Option<WarmMoments>,
    /// Where the run is: hand it to [`Sampler::resume_from`](super::Sampler::resume_from) for more steps.
    pub checkpoint: Checkpoint<T>,
}

impl<T: Real> Outcome<T> {
    /// The parameters θ, `N × dim`.
    pub fn theta(&self) -> Matrix<T> {
        self.block(crate::dynamics::THETA)
    }

    /// One block of the state, `N × dim`.
    pub fn block(&self, block: usize) -> Matrix<T> {
        let dim = self.structure.dim();
        Matrix::from_fn(self.state.rows(), dim, |i, j| self.state.row(i)[block * dim + j])
    }
}
