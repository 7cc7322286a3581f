//! Means and spreads of a sample against those that are known from elsewhere.

use super::identities::bound_of_largest;
use crate::run::{Standing, WarmMoments};
use crate::{MatRef, Real};

/// A difference of means, in standard deviations, that does not matter.
const NEGLIGIBLE_SHIFT: f64 = 0.15;
/// A difference of spreads, as the logarithm of a ratio, that does not matter.
const NEGLIGIBLE_SPREAD: f64 = 0.11;
/// The part of what is allowed beyond that within which things are close.
const CLOSE: f64 = 0.4;
/// A bound of spreads, as the logarithm of a ratio, that says nothing.
const VAGUE_BOUND: f64 = 0.4;
/// … if it is so much larger than that of as many draws of a Gaussian, of which the score tells enough.
const HEAVY: f64 = 1.4;
/// Draws that say more are so many times as many.
const MORE: f64 = 2.0;
/// How seldom exact draws differ by more.
const TAIL: f64 = 0.001;

/// What a sample is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// The target's own moments.
    ExactMoments,
    /// Draws that a warm-up has made.
    WarmUp,
    /// The particles themselves, moved on by a sampler with an accept step, which leaves what is right as it
    /// is and mends what is not.
    MovedOn,
}

/// The coordinates that differ most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// With what.
    pub with: With,
    /// The difference of a mean, in standard deviations, and what is allowed.
    pub shift: (f64, f64),
    /// The difference of a standard deviation, as the logarithm of a ratio, and what is allowed.
    pub spread: (f64, f64),
    /// What would be allowed of the spread of a Gaussian.
    spread_of_gaussian: f64,
    /// Whether what it is compared with has more to say than as many draws: particles that moves hardly carry
    /// along agree with themselves.
    says_more: bool,
    /// Whether it is certain to be right: the target's own moments, or draws that a sampler with an accept step
    /// holds to be enough.
    pub(super) is_sure: bool,
}

impl Comparison {
    /// Compares a sample that is worth `effective` draws; infinitely many for particles at rest, which are
    /// spread evenly.
    pub(super) fn new<T: Real>(
        theta: MatRef<'_, T>,
        effective: f64,
        with: With,
        known: &WarmMoments,
    ) -> Option<Self> {
        let (count, dim) = (theta.rows() as f64, theta.cols());
        if known.mean.len() != dim || known.sd.len() != dim || known.draws == 0 {
            return None;
        }
        // Draws of one chain are worth about half as many.
        let draws =
            if with == With::ExactMoments { f64::INFINITY } else { 0.5 * known.draws as f64 };
        let unit = effective.recip() + draws.recip();
        let z = bound_of_largest(2 * dim, TAIL);
        let mut worst = Self {
            with,
            shift: (0.0, f64::INFINITY),
            spread: (0.0, f64::INFINITY),
            spread_of_gaussian: NEGLIGIBLE_SPREAD.hypot(z * (0.5 * unit).sqrt()),
            says_more: draws > MORE * effective.min(count),
            is_sure: with == With::ExactMoments || known.standing == Standing::Settled,
        };
        for j in 0..dim {
            let central = |power: i32, about: f64| {
                let powers =
                    (0..theta.rows()).map(|i| (theta.row(i)[j].as_f64() - about).powi(power));
                powers.sum::<f64>() / count
            };
            let mean = central(1, 0.0);
            let square = central(2, mean);
            // Far draws decide the spread of heavy tails.
            let kurtosis = (central(4, mean) / (square * square)).max(3.0);
            // What does not matter and what is chance are two errors that have nothing to do with each other.
            let shift = (
                (mean - known.mean[j]).abs() / known.sd[j],
                NEGLIGIBLE_SHIFT.hypot(z * unit.sqrt()),
            );
            let spread = (
                (square.sqrt() / known.sd[j]).ln().abs(),
                NEGLIGIBLE_SPREAD.hypot(z * 0.5 * ((kurtosis - 1.0) * unit).sqrt()),
            );
            let is_worse = |new: (f64, f64), old: (f64, f64)| !(new.0 - new.1 <= old.0 - old.1);
            if is_worse(shift, worst.shift) {
                worst.shift = shift;
            }
            if is_worse(spread, worst.spread) {
                worst.spread = spread;
            }
        }
        Some(worst)
    }

    /// Whether means are the same.
    pub fn means_agree(&self) -> bool {
        self.shift.0 <= self.shift.1
    }

    /// Whether too little is known of spreads to agree with: by a warm-up that ended early, or because tails are
    /// heavy.
    pub(super) fn is_vague(&self) -> bool {
        let least = match self.with {
            With::ExactMoments => return false,
            With::WarmUp => VAGUE_BOUND,
            With::MovedOn => VAGUE_BOUND.max(HEAVY * self.spread_of_gaussian),
        };
        self.spread.1 > least
    }

    /// Whether both are nearer than those of most exact draws, to something that could have said otherwise.
    pub(super) fn is_close(&self) -> bool {
        let close = |(found, allowed): (f64, f64), negligible: f64| {
            found <= negligible + CLOSE * (allowed - negligible)
        };
        self.says_more
            && !self.is_vague()
            && close(self.shift, NEGLIGIBLE_SHIFT)
            && close(self.spread, NEGLIGIBLE_SPREAD)
    }

    /// Whether spreads are the same.
    pub fn spreads_agree(&self) -> bool {
        self.spread.0 <= self.spread.1
    }
}
