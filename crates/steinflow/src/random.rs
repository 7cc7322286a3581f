//! Random numbers by address: every draw is named by (seed, purpose, step, particle).
//!
//! The four numbers form the key of a `ChaCha8` generator, so no generator state is stored or
//! shared: any thread can make any draw, and a resumed run makes the draws it would have made.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::Real;

/// What a draw is for; draws of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Starting positions θ₀.
    Start = 1,
    /// Starting values of the auxiliary variables r, ξ, …
    Auxiliary = 2,
    /// Noise of a diffusion.
    Noise = 3,
    /// Rows of a minibatch.
    Minibatch = 4,
    /// Pairs of particles that a bandwidth rule looks at.
    Bandwidth = 5,
    /// Exact samples from a target.
    Exact = 6,
    /// Rows to test on.
    Split = 7,
    /// Signs of a bootstrap.
    Bootstrap = 8,
    /// Directions that a diagnostic projects on.
    Projection = 9,
    /// Starts of a search for modes.
    Probe = 10,
    /// Whatever the ensemble sampler draws.
    Ensemble = 11,
    /// Times between draws of the auxiliary variables.
    Resampling = 12,
    /// Levels of a joint accept step.
    Accept = 13,
    /// Targets that a model predicts.
    Prediction = 14,
    /// Who meets whom, where particles do not all meet.
    Partners = 15,
}

/// The generator of one draw: the same address always gives the same numbers.
///
/// ```
/// use rand::Rng as _;
/// use steinflow::random::{stream, Purpose};
/// let (mut a, mut b) = (stream(7, Purpose::Noise, 3, 0), stream(7, Purpose::Noise, 3, 0));
/// assert_eq!(a.next_u64(), b.next_u64());
/// ```
pub fn stream(seed: u64, purpose: Purpose, step: u64, particle: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (word, value) in key.chunks_exact_mut(8).zip([seed, purpose as u64, step, particle]) {
        word.copy_from_slice(&value.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// Fills `out` with independent standard normals, drawn in `f64` whatever the precision, so that
/// an `f32` run sees the rounded noise of the `f64` run.
pub fn fill_standard_normal<T: Real>(generator: &mut ChaCha8Rng, out: &mut [T]) {
    for x in out {
        let draw: f64 = StandardNormal.sample(generator);
        *x = T::of(draw);
    }
}
