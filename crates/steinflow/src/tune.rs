//! Step size and momentum by short pilot runs: which candidates there are, who goes on, and by what
//! they are judged.
//!
//! Candidates are the paper's grids in its own parametrisation, the learning rate η (ε = σ√η with
//! momentum, ε = η without) and the momentum decay α = Aε/σ². In it σ rescales nothing but the momenta,
//! so it is not searched.
//!
//! | searched | values |
//! |---|---|
//! | η | [`learning_rates`] |
//! | α | [`MOMENTUM_DECAYS`] |
//! | μ of the thermostat, γ of third-order dynamics | [`COUPLINGS`] |
//!
//! [`successive_halving`] lets all of them run a little and the better ones longer. Runs that are still in go on from where they were, by
//! [`Sampler::resume_from`](crate::Sampler::resume_from), so no step is taken twice. [`SteinJudge`]
//! compares particles.

mod choice;
mod halving;
mod judge;

pub use choice::{Choice, choices};
pub use halving::{Fate, Rung, Search, Trial, rungs, rungs_within, steps_of, successive_halving};
pub use judge::SteinJudge;

/// α, as in the paper.
pub const MOMENTUM_DECAYS: [f64; 3] = [0.01, 0.1, 0.5];

/// μ, as in the paper, and γ.
pub const COUPLINGS: [f64; 3] = [0.1, 1.0, 10.0];

/// The paper's learning rates 1e-8 … 1e-2, `per_decade` in each factor of ten, extended to where runs
/// diverge: a particle alone is stable up to about η = 1/L, whether it has momentum or not, and where
/// the score is averaged over N particles that are far from each other, up to about N/L.
/// [`crate::integrator::sharpness()`] gives L; it is taken at the start and may be off elsewhere, so
/// there is a factor of ten on top.
///
/// ```
/// use steinflow::tune::learning_rates;
/// let rates = learning_rates(1.0, 100, 1);
/// assert_eq!((rates[0], rates[rates.len() - 1]), (1e-8, 1e3));
/// // A target as narrow as 1e-6 needs shorter steps than the paper's.
/// assert!(learning_rates(1e12, 100, 1)[0] <= 1e-14);
/// ```
pub fn learning_rates(sharpness: f64, particles: usize, per_decade: u32) -> Vec<f64> {
    let stable = sharpness.clamp(1e-12, 1e12).recip();
    let last = (10.0 * stable * particles.max(1) as f64).max(1e-2).log10().ceil() as i32;
    let first = (1e-2 * stable).min(1e-8).log10().floor() as i32;
    let per_decade = i32::try_from(per_decade.max(1)).unwrap_or(i32::MAX);
    (first * per_decade..=last * per_decade)
        // By way of text: 1e-3 is the number that people write, not its neighbour.
        .map(|k| format!("{:.3e}", 10f64.powf(f64::from(k) / f64::from(per_decade))))
        .filter_map(|text| text.parse().ok())
        .collect()
}
