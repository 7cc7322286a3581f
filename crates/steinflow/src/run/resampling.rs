//! When auxiliary variables are drawn afresh.

use rand::Rng as _;

use crate::dynamics::Structure;
use crate::random::{Purpose, stream};
use crate::{Error, Result};

/// How long momenta are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resampling {
    /// For so many steps.
    Steps(u64),
    /// For a time, in units of the step size. Every stretch is longer or shorter by up to a share `jitter`
    /// of it, so that no motion of the target keeps step with it.
    Time {
        /// The mean length of a stretch.
        time: f64,
        /// 0.2 for ±20 %.
        jitter: f64,
    },
}

impl Resampling {
    pub(super) fn validate(self, structure: &Structure) -> Result<()> {
        match self {
            Self::Steps(0) => {
                let remedy = "resample every 1 or more steps, or leave it out";
                return Err(Error::setting("steps between resamplings", 0, remedy));
            }
            Self::Time { time, .. } if !(time > 0.0 && time.is_finite()) => {
                let remedy = "it must be positive and finite";
                return Err(Error::setting("time between resamplings", time, remedy));
            }
            Self::Time { jitter, .. } if !(0.0..1.0).contains(&jitter) => {
                let remedy = "it must be at least 0 and below 1: 0.2 for ±20 %";
                return Err(Error::setting("jitter of resampling", jitter, remedy));
            }
            Self::Steps(_) | Self::Time { .. } => {}
        }
        if structure.blocks() == 1 {
            let (name, value) = match self {
                Self::Steps(steps) => ("steps between resamplings", steps.to_string()),
                Self::Time { time, .. } => ("time between resamplings", time.to_string()),
            };
            let remedy = "these dynamics have no auxiliary variable to draw afresh; take one \
                          with momentum, such as sghmc";
            return Err(Error::setting(name, value, remedy));
        }
        Ok(())
    }
}

/// Tells after which steps it is time. What it says depends on the steps' lengths in the schedule alone.
pub(super) struct Clock {
    rule: Resampling,
    seed: u64,
    /// Since the last draw.
    elapsed: f64,
    draws: u64,
}

impl Clock {
    pub(super) fn new(rule: Resampling, seed: u64) -> Self {
        Self { rule, seed, elapsed: 0.0, draws: 0 }
    }

    /// Where it is: the time since the last draw, and the number of draws.
    pub(super) fn reading(&self) -> (f64, u64) {
        (self.elapsed, self.draws)
    }

    /// Goes back to an earlier [`Clock::reading`].
    pub(super) fn set(&mut self, (elapsed, draws): (f64, u64)) {
        (self.elapsed, self.draws) = (elapsed, draws);
    }

    /// Whether auxiliary variables are due after the step with this number, counted from 1.
    pub(super) fn is_due(&mut self, step: u64, step_size: f64) -> bool {
        match self.rule {
            Resampling::Steps(every) => step.is_multiple_of(every),
            Resampling::Time { time, jitter } => {
                self.elapsed += step_size;
                let mut generator = stream(self.seed, Purpose::Resampling, self.draws, 0);
                // 53 bits, from −1 to 1.
                let uniform = (generator.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
                // To the nearest step.
                let due = self.elapsed + 0.5 * step_size >= time * (1.0 + jitter * uniform);
                if due {
                    (self.elapsed, self.draws) = (0.0, self.draws + 1);
                }
                due
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_their_mean_and_stay_within_their_jitter() {
        let mut clock = Clock::new(Resampling::Time { time: 10.0, jitter: 0.2 }, 3);
        let due: Vec<u64> = (1..=33_000).filter(|&step| clock.is_due(step, 0.3)).collect();
        let lengths: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64 * 0.3).collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        // Uniform on 8 … 12: a standard deviation of 1.15, and 990 of them.
        assert!((mean - 10.0).abs() < 4.0 * 1.16 / (lengths.len() as f64).sqrt(), "{mean}");
        assert!(lengths.iter().all(|length| (7.8..=12.2).contains(length)));
        assert!(lengths.iter().any(|l| *l < 8.5) && lengths.iter().any(|l| *l > 11.5));
    }
}
