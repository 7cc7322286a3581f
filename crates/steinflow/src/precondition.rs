//! Better-scaled coordinates: θ = s ⊙ u, with s learnt from the gradients as the particles move.
//!
//! ```text
//! v ← average over steps and particles of (∇log π)²,   s = (√v + floor)^(−1/2)
//! ```
//!
//! Dynamics, kernel and noise then work in u, where directions of very different curvature (the
//! layers and precisions of a neural network) become alike. At fixed s this is a change of variables
//! and changes nothing else: the law that is sampled is the same. While s still moves it is not
//! exact, so it can be held after a number of steps.

use crate::{Error, Matrix, Real, Result};

/// How s is learnt: by the root mean square of the gradient.
///
/// ```
/// use steinflow::precondition::RootMeanSquare;
/// let rule = RootMeanSquare { hold_after: Some(2500), ..RootMeanSquare::default() };
/// assert_eq!(rule.decay, 0.999);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootMeanSquare {
    /// Weight of the past in the moving average, from 0 to below 1.
    pub decay: f64,
    /// Bounds s where the gradient vanishes; positive.
    pub floor: f64,
    /// Stops learning after this many gradients.
    pub hold_after: Option<u64>,
}

impl Default for RootMeanSquare {
    fn default() -> Self {
        Self { decay: 0.999, floor: 1e-3, hold_after: None }
    }
}

impl RootMeanSquare {
    /// Checks the numbers.
    pub fn validate(&self) -> Result<()> {
        if !(self.decay >= 0.0 && self.decay < 1.0) {
            let remedy = "take 0 or more and less than 1; 0.999 is a good start";
            return Err(Error::setting("decay of the preconditioner", self.decay, remedy));
        }
        if !(self.floor > 0.0 && self.floor.is_finite()) {
            let remedy = "it must be positive and finite; 0.001 is a good start";
            return Err(Error::setting("floor of the preconditioner", self.floor, remedy));
        }
        Ok(())
    }
}

/// What a preconditioner has learnt, enough for another one to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// Σ decayᵏ · mean (∇log π)², not yet divided by Σ decayᵏ.
    pub moments: Vec<f64>,
    /// Σ decayᵏ.
    pub weight: f64,
    /// How many gradients it has learnt from.
    pub seen: u64,
}

impl Learnt {
    /// Whether this can be of `dim` coordinates.
    pub(crate) fn fits(&self, dim: usize) -> bool {
        let numbers = self.moments.iter().chain([&self.weight]);
        self.moments.len() == dim
            && numbers.into_iter().all(|x| *x >= 0.0)
            && (self.seen == 0 || self.weight > 0.0)
    }
}

/// A rule and what it has learnt.
#[derive(Clone, Debug)]
pub(crate) struct Preconditioner<T> {
    rule: RootMeanSquare,
    learnt: Learnt,
    scale: Vec<T>,
}

impl<T: Real> Preconditioner<T> {
    pub(crate) fn new(rule: RootMeanSquare, dim: usize) -> Self {
        let learnt = Learnt { moments: vec![0.0; dim], weight: 0.0, seen: 0 };
        Self { rule, learnt, scale: vec![T::one(); dim] }
    }

    pub(crate) fn learnt(&self) -> Learnt {
        self.learnt.clone()
    }

    /// Goes on from what was learnt before.
    pub(crate) fn recall(&mut self, learnt: &Learnt) {
        self.learnt.clone_from(learnt);
        self.set_scale();
    }

    /// s.
    pub(crate) fn scale(&self) -> &[T] {
        &self.scale
    }

    /// Takes the scores of all particles into account.
    pub(crate) fn learn(&mut self, score: &Matrix<T>) {
        let Learnt { moments, weight, seen } = &mut self.learnt;
        if self.rule.hold_after.is_some_and(|most| *seen >= most) {
            return;
        }
        *seen += 1;
        let (decay, share) = (self.rule.decay, 1.0 / score.rows() as f64);
        *weight = decay * *weight + 1.0;
        for moment in moments.iter_mut() {
            *moment *= decay;
        }
        for i in 0..score.rows() {
            for (moment, s) in moments.iter_mut().zip(score.row(i)) {
                *moment += share * s.as_f64() * s.as_f64();
            }
        }
        self.set_scale();
    }

    fn set_scale(&mut self) {
        let Learnt { moments, weight, seen } = &self.learnt;
        for (scale, moment) in self.scale.iter_mut().zip(moments) {
            *scale = if *seen == 0 {
                T::one()
            } else {
                T::of(((moment / weight).sqrt() + self.rule.floor).sqrt().recip())
            };
        }
    }
}
