//! States of the past that a run can go back to.

use crate::system::Saved;

/// Steps between two states that are kept.
const APART: u64 = 100;

/// A state that a run was in.
#[derive(Clone, Debug)]
pub(super) struct Past<T> {
    pub(super) step: u64,
    pub(super) phase: usize,
    pub(super) system: Saved<T>,
    pub(super) integrator: Vec<f64>,
}

/// The two last states, [`APART`] steps from one another.
#[derive(Debug)]
pub(super) struct Rewind<T> {
    older: Option<Past<T>>,
    newer: Option<Past<T>>,
}

impl<T> Default for Rewind<T> {
    fn default() -> Self {
        Self { older: None, newer: None }
    }
}

impl<T> Rewind<T> {
    /// Whether a state should be kept before the step with this number.
    pub(super) fn is_due(&self, step: u64) -> bool {
        let last = self.newer.as_ref().or(self.older.as_ref());
        last.is_none_or(|past| step >= past.step + APART)
    }

    pub(super) fn keep(&mut self, past: Past<T>) {
        if let Some(newer) = self.newer.replace(past) {
            self.older = Some(newer);
        }
    }

    /// Keeps one state only.
    pub(super) fn keep_last(&mut self, past: Past<T>) {
        *self = Self { older: Some(past), newer: None };
    }

    /// The state to go back to from `step`; later ones are forgotten.
    pub(super) fn back(&mut self, step: u64) -> &Past<T> {
        if let Some(newer) = self.newer.take().filter(|_| self.older.is_none()) {
            self.older = Some(newer);
        }
        let past = self.older.as_mut().expect("a state is kept before the first step");
        // The next one is kept when this many steps went well.
        past.step = step;
        past
    }
}
