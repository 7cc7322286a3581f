//! Pieces of a run's work, and what they leave for those that come after.

use cudarc::driver::CudaGraph;
use steinflow::Result;

use crate::device::{Buffer, Device};
use crate::rules::Rules;

/// A piece of work that can be recorded: the same one does the same with other numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// The target at the particles, on a minibatch if there are some.
    Evaluate,
    /// What the preconditioner learns from that.
    Learn,
    /// A move of some blocks, with squared distances in the first or in the second place and not known of some; by a rule with averages, whose numbers are given as bits, or for a time.
    Move { moving: Vec<usize>, is_second: bool, stale: u32, rule: Option<[u64; 3]> },
    /// Keeps the particles, as those before a step or before a move.
    Keep { is_before: bool },
    /// See `Midpoint::rebase`.
    Rebase { doubled: bool },
}

/// A piece of work with its numbers: how long, or of what weight, and the place of its minibatch.
pub(crate) struct Due {
    pub(crate) task: Task,
    pub(crate) amount: f64,
    /// What a rule multiplies squares by.
    pub(crate) second: f64,
    pub(crate) batch: usize,
}

impl Due {
    pub(crate) fn of(task: Task, amount: f64) -> Self {
        Self { task, amount, second: 0.0, batch: 0 }
    }
}

/// What was recorded of some work that came before.
#[derive(Default)]
pub(crate) struct Recording {
    pub(crate) runs: u64,
    pub(crate) graph: Option<CudaGraph>,
}

/// Squared distances that are kept from move to move: see `World::squares`.
pub(crate) struct Squares {
    pub(crate) places: Vec<Buffer>,
    pub(crate) is_second: bool,
    /// Blocks of which they are not known, as bits.
    pub(crate) stale: u32,
}

impl Squares {
    pub(crate) fn new(device: &Device, rules: &Rules) -> Result<Self> {
        let (places, bytes) = if rules.are_few() {
            (2, rules.parts_of_few().1)
        } else if rules.store_kernel() {
            (rules.structure.blocks(), rules.count * rules.count * rules.size)
        } else {
            (0, 0)
        };
        let places = (0..places).map(|_| device.zeros(bytes)).collect::<Result<_>>()?;
        Ok(Self { places, is_second: false, stale: rules.seen() })
    }

    /// What the next move finds, after which these blocks have moved.
    pub(crate) fn next(&mut self, rules: &Rules, moving: &[usize]) -> (bool, u32) {
        let found = (self.is_second, self.stale);
        if rules.are_few() {
            (self.is_second, self.stale) = (!self.is_second, 0);
        } else {
            self.stale = moving.iter().fold(0, |bits, block| bits | 1 << block) & rules.seen();
        }
        if self.places.is_empty() { (false, 0) } else { found }
    }
}
