//! A step in two parts: up to the move that asks for the score of particles that have moved, and from there on.
//!
//! Whoever brings the scores himself can only bring those of particles that he has seen.

use super::System;
use crate::dynamics::THETA;
use crate::precondition::{Learnt, Preconditioner};
use crate::{Error, Real, Result};

/// Which of the moves that an integrator asks for are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Those of an earlier part, which are not made again.
    before: usize,
    /// Those asked for in this part, the earlier ones included.
    asked: usize,
    /// Those made, the earlier ones included.
    made: usize,
    /// Whether it ends where a new score is asked for.
    ends: bool,
}

impl<T: Real> System<'_, T> {
    /// Begins the part of a step that comes after `before` moves: all of the rest, or with `ends` what can
    /// be done without a new score.
    pub(crate) fn begin_part(&mut self, before: usize, ends: bool) {
        self.part = Some(Part { before, asked: 0, made: before, ends });
    }

    /// Ends the part, and tells how many moves of the step are made.
    pub(crate) fn end_part(&mut self) -> usize {
        self.part.take().map_or(0, |part| part.made)
    }

    /// Whether the move that is asked for is made now.
    pub(crate) fn makes(&mut self, moving: &[usize]) -> bool {
        let is_old = self.score_of != Some(self.score_key());
        let Some(part) = &mut self.part else { return true };
        part.asked += 1;
        if part.asked <= part.before {
            // Its noise has been drawn.
            self.noises += 1;
            return false;
        }
        let waits = part.ends && is_old && self.structure.needs_score(moving);
        // What comes after a move that waits, waits too.
        if waits || part.made + 1 < part.asked {
            return false;
        }
        part.made = part.asked;
        true
    }

    /// Takes the score for that of other particles, so that it is asked for again.
    pub(crate) fn outdate_score(&mut self) {
        self.score_of = None;
    }

    /// What preconditioner and field have learnt.
    pub(crate) fn memory(&self) -> (Option<Learnt>, Vec<f64>) {
        (self.at.preconditioner.as_ref().map(Preconditioner::learnt), self.field.memory())
    }

    /// Goes back to what preconditioner and field had learnt.
    pub(crate) fn recall(&mut self, preconditioner: Option<&Learnt>, field: &[f64]) -> Result<()> {
        match (&mut self.at.preconditioner, preconditioner) {
            (Some(own), Some(learnt)) if learnt.fits(self.structure.dim()) => own.recall(learnt),
            (None, None) => {}
            _ => return Err(Error::ForeignState { whose: "the preconditioner" }),
        }
        self.versions.scale = self.versions.next();
        self.versions.changed(&[THETA]);
        self.field.recall(field)
    }
}
