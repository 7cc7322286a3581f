//! How particles move while draws are made. Every move ends with an accept step, so every one is exact.

use std::f64::consts::PI;

use super::Ensemble;
use super::dice::{between, index, uniform};

/// The longest trajectory before any turn was seen, and after.
const LONGEST: (usize, usize) = (10, 1000);

/// Moves of production, all of them leapfrogs in learnt coordinates; what is learnt before is learnt with
/// [`Moves::Turning`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moves {
    /// Hamiltonian Monte Carlo: momenta afresh, then a quarter to three quarters of the way to a U-turn. In
    /// the recipe, C alone.
    #[default]
    Turning,
    /// The adjusted Langevin algorithm, MALA: momenta afresh, then one leapfrog. In the recipe, A alone.
    Langevin,
    /// Generalised Hamiltonian Monte Carlo: momenta refreshed in part, p ← cp + √(1 − c²)ξ, then one
    /// leapfrog; a rejected particle turns round, p ← −p. In the recipe, A and C: `sghmc` with an accept
    /// step.
    Persistent,
}

impl Moves {
    /// The acceptance that the step size of one leapfrog is adapted to. Langevin moves do best at 0.574;
    /// momenta persist only while nothing is rejected.
    pub(super) fn acceptance(self) -> Option<f64> {
        match self {
            Self::Turning => None,
            Self::Langevin => Some(0.574),
            Self::Persistent => Some(0.9),
        }
    }

    /// Draws between two judgements: those of one leapfrog are worth less.
    pub(super) fn block(self) -> usize {
        if self == Self::Turning { 25 } else { 100 }
    }
}

/// One move of all particles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) step: f64,
    /// Leapfrogs.
    pub(super) length: usize,
    /// c: how much of the momenta is kept.
    pub(super) persistence: f64,
}

impl Ensemble {
    /// The next move: of one leapfrog once their step size is being learnt; until then, and always when
    /// [`Moves::Turning`], a quarter to three quarters of a random particle's way to its turn.
    pub(super) fn next_move(&mut self) -> Stride {
        let mut generator = self.dice.throw().shared();
        let (step, lengths) = (self.learning.step(), &self.learning.lengths);
        if self.learning.is_single() {
            let step = step * between(&mut generator, 0.9, 1.1);
            // Momenta are forgotten at the rate π/(time of a U-turn), which is 1 for N(0, I): there the
            // slowest of u and u² are then forgotten soonest.
            let persistence = match self.options.moves {
                Moves::Persistent => (-PI * step / self.learning.turn_time()).exp(),
                Moves::Turning | Moves::Langevin => 0.0,
            };
            return Stride { step, length: 1, persistence };
        }
        let (turn, longest) = if lengths.is_empty() {
            (PI / step, LONGEST.0)
        } else {
            (lengths[index(&mut generator, lengths.len())], LONGEST.1)
        };
        let length = turn * between(&mut generator, 0.25, 0.75) + uniform(&mut generator);
        let step = step * between(&mut generator, 0.9, 1.1);
        Stride { step, length: (length as usize).clamp(1, longest), persistence: 0.0 }
    }
}
