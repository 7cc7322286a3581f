//! Random numbers by counters: every random event of the ensemble has a number, every particle its own
//! stream there.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use crate::random::{Purpose, stream};

/// The number of the next random event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dice {
    pub(super) seed: u64,
    pub(super) event: u64,
}

/// One event: a stream for every particle, and one for what they share.
#[derive(Clone, Copy)]
pub(super) struct Event {
    seed: u64,
    event: u64,
}

impl Dice {
    pub(super) fn throw(&mut self) -> Event {
        self.event += 1;
        Event { seed: self.seed, event: self.event }
    }
}

impl Event {
    pub(super) fn of(self, particle: usize) -> ChaCha8Rng {
        stream(self.seed, Purpose::Ensemble, self.event, particle as u64)
    }

    pub(super) fn shared(self) -> ChaCha8Rng {
        stream(self.seed, Purpose::Ensemble, self.event, u64::MAX)
    }
}

/// Uniform in [0, 1).
pub(super) fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Uniform in [low, high).
pub(super) fn between(generator: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * uniform(generator)
}

/// One of 0, …, count − 1.
pub(super) fn index(generator: &mut ChaCha8Rng, count: usize) -> usize {
    ((uniform(generator) * count as f64) as usize).min(count - 1)
}
