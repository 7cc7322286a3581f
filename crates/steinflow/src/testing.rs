//! Laws that any target, dynamics or kernel can be checked with: the built-in ones and yours.
//!
//! ```
//! use steinflow::dynamics::Sgnht;
//! use steinflow::target::PerParticle;
//! use steinflow::testing::{check_divergence, random_states};
//!
//! let target = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
//!     score.copy_from_slice(&[-theta[0], -theta[1]]);
//!     -0.5 * (theta[0].powi(2) + theta[1].powi(2))
//! });
//! let dynamics = Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 2.0 };
//! check_divergence(&target, &dynamics, random_states(5, 6, 1).as_ref())?;
//! # Ok::<(), steinflow::testing::LawBroken>(())
//! ```

mod dense;
mod local;
mod stein_identity;

pub use dense::{Form, dense_matrices, dense_velocity};
pub use local::{check_diffusion, check_divergence, check_score, check_structure};
pub use stein_identity::{SteinIdentity, check_stein_identity};

use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, Matrix};

/// A law that does not hold, with the place and the numbers.
#[derive(Debug, thiserror::Error)]
pub enum LawBroken {
    /// Two numbers that should agree and do not.
    #[error("{law}: at {place} found {found}, expected {expected} (tolerance {tolerance:e})")]
    Disagreement {
        /// Which law.
        law: &'static str,
        /// Where: particle, coordinate.
        place: String,
        /// What the code under test gives.
        found: f64,
        /// What the law asks for.
        expected: f64,
        /// How far apart they may be.
        tolerance: f64,
    },
    /// The code under test failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

fn agree(
    law: &'static str,
    place: impl FnOnce() -> String,
    found: f64,
    expected: f64,
    tolerance: f64,
) -> Result<(), LawBroken> {
    if (found - expected).abs() <= tolerance {
        Ok(())
    } else {
        Err(LawBroken::Disagreement { law, place: place(), found, expected, tolerance })
    }
}

/// Standard normal rows to check a law at.
pub fn random_states(count: usize, cols: usize, seed: u64) -> Matrix<f64> {
    let mut states = Matrix::zeros(count, cols);
    for i in 0..count {
        fill_standard_normal(&mut stream(seed, Purpose::Start, 0, i as u64), states.row_mut(i));
    }
    states
}
