//! Going back: what a run needs when a step has led to numbers that are not finite.

use super::{Configuration, System};
use crate::Real;

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

    /// A copy of the current configuration, whose score must be current.
    pub(crate) fn save(&mut self) -> Configuration<T> {
        self.field.save();
        self.at.clone()
    }

    /// Goes back to a saved configuration.
    pub(crate) fn restore(&mut self, saved: &Configuration<T>) {
        self.field.restore();
        self.at.clone_from(saved);
        self.draw_minibatch();
        self.score_is_current = true;
        self.locals_are_current = false;
    }
}
