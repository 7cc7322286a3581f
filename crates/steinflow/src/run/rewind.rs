//! States of the past that a run can go back to.

use super::checkpoint::{MOST_PAST, Past};

/// Steps between two states that are kept.
const APART: u64 = 100;

/// The last states, [`APART`] steps from one another, the oldest first.
#[derive(Debug)]
pub(super) struct Rewind<T> {
    past: Vec<Past<T>>,
}

impl<T> Default for Rewind<T> {
    fn default() -> Self {
        Self { past: Vec::new() }
    }
}

impl<T> Rewind<T> {
    /// Goes on with what another run had kept.
    pub(super) fn of(past: Vec<Past<T>>) -> Self {
        Self { past }
    }

    /// What is kept now.
    pub(super) fn past(&self) -> &[Past<T>] {
        &self.past
    }

    /// Whether a state should be kept before the step with this number.
    pub(super) fn is_due(&self, step: u64) -> bool {
        self.past.last().is_none_or(|past| step >= past.step + APART)
    }

    pub(super) fn keep(&mut self, past: Past<T>) {
        if self.past.len() == MOST_PAST {
            self.past.remove(0);
        }
        self.past.push(past);
    }

    /// Keeps one state only.
    pub(super) fn keep_last(&mut self, past: Past<T>) {
        self.past.clear();
        self.past.push(past);
    }

    /// The state to go back to from `step`; later ones are forgotten.
    pub(super) fn back(&mut self, step: u64) -> &Past<T> {
        self.past.truncate(1);
        let past = self.past.first_mut().expect("a state is kept before the first step");
        // The next one is kept when this many steps went well.
        past.step = step;
        past
    }
}
