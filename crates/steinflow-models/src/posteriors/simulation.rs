//! Simulated data: every posterior draws from a stream of its own, always the same one.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal, StandardUniform};
use steinflow::random::{Purpose, stream};

/// The seed of all simulated data.
const SEED: u64 = 1;

/// Random numbers for one data set.
pub(super) struct Draws(ChaCha8Rng);

impl Draws {
    pub(super) fn new() -> Self {
        Self(stream(SEED, Purpose::Exact, 0, 0))
    }

    pub(super) fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let standard: f64 = StandardNormal.sample(&mut self.0);
        mean + sd * standard
    }

    pub(super) fn uniform(&mut self, from: f64, to: f64) -> f64 {
        let unit: f64 = StandardUniform.sample(&mut self.0);
        from + (to - from) * unit
    }

    /// A whole number in `from..=to`, as data often are.
    pub(super) fn whole(&mut self, from: f64, to: f64) -> f64 {
        self.uniform(from, to + 1.0).floor()
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.uniform(0.0, 1.0) < probability
    }

    pub(super) fn poisson(&mut self, rate: f64) -> f64 {
        Poisson::new(rate).expect("rates of simulated data are positive").sample(&mut self.0)
    }

    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        Gamma::new(shape, 1.0).expect("shapes of simulated data are positive").sample(&mut self.0)
    }

    /// Successes in `trials` of them.
    pub(super) fn binomial(&mut self, trials: f64, probability: f64) -> f64 {
        (0..trials as usize).filter(|_| self.chance(probability)).count() as f64
    }
}

/// `count` rows, drawn one after the other.
pub(super) fn rows<R>(count: usize, mut row: impl FnMut(usize) -> R) -> Vec<R> {
    (0..count).map(&mut row).collect()
}
