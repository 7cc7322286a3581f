//! Going back: what a run needs when a step has led to numbers that are not finite.

use super::{Configuration, System};
use crate::{Real, Result};

/// Particles as they were, and what their field remembered.
#[derive(Clone, Debug)]
pub(crate) struct Saved<T> {
    at: Configuration<T>,
    field: Vec<f64>,
}

impl<T: Real> System<'_, T> {
    /// Whether freezing this particle would leave any that move.
    pub(crate) fn can_freeze(&self, particle: usize) -> bool {
        let others = self.frozen.iter().enumerate().filter(|&(i, _)| i != particle);
        !self.frozen[particle] && others.into_iter().any(|(_, frozen)| !frozen)
    }

    /// Keeps a particle where it is from now on; the others still feel it.
    pub(crate) fn freeze(&mut self, particle: usize) {
        self.frozen[particle] = true;
    }

    /// The particles that were frozen.
    pub fn frozen(&self) -> Vec<usize> {
        (0..self.frozen.len()).filter(|&i| self.frozen[i]).collect()
    }

    /// A copy of all that a step can spoil; the score must be current.
    pub(crate) fn save(&self) -> Saved<T> {
        Saved { at: self.at.clone(), field: self.field.memory() }
    }

    /// Goes back to what was saved.
    pub(crate) fn restore(&mut self, saved: &Saved<T>) -> Result<()> {
        self.field.recall(&saved.field)?;
        self.at.clone_from(&saved.at);
        self.draw_minibatch();
        self.score_is_current = true;
        self.changed_everywhere();
        Ok(())
    }
}
