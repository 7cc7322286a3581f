//! How much of a spread a single particle makes. One that went far out into a tail, and is slow to come back, adds
//! to a variance what no test by the score sees, for out there the score is hardly anything.

use super::identities::bound_of_largest;
use crate::{MatRef, Real};

/// A share of a variance that one particle may have whatever the number of them.
const NEGLIGIBLE_SHARE: f64 = 0.25;
/// How seldom draws of a Gaussian have a larger one.
const TAIL: f64 = 0.001;

/// The largest share of a coordinate's variance that a single particle has, over all that it drew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlying {
    /// The share.
    pub share: f64,
    /// What is allowed.
    pub allowed: f64,
}

impl Outlying {
    /// Of draws in rows, those of every particle so many rows apart.
    pub(super) fn of<T: Real>(draws: MatRef<'_, T>, particles: usize) -> Self {
        let share_in = |j: usize| {
            let column = || (0..draws.rows()).map(|i| draws.row(i)[j].as_f64());
            let mean = column().sum::<f64>() / draws.rows() as f64;
            let mut squares = vec![0.0; particles];
            for (i, x) in column().enumerate() {
                squares[i % particles] += (x - mean).powi(2);
            }
            let total: f64 = squares.iter().sum();
            squares.into_iter().fold(0.0, f64::max) / total.max(f64::MIN_POSITIVE)
        };
        Self {
            share: (0..draws.cols()).map(share_in).fold(0.0, f64::max),
            allowed: largest_share(particles, draws.cols()).max(NEGLIGIBLE_SHARE),
        }
    }

    /// Whether it is no more than that.
    pub fn is_usual(&self) -> bool {
        self.share <= self.allowed
    }
}

/// The largest share of draws of a Gaussian, by Grubbs: t²/(n − 2 + t²), with t of Student's distribution with n − 2
/// degrees of freedom. One or two draws may have all.
fn largest_share(particles: usize, dim: usize) -> f64 {
    if particles < 3 {
        return 1.0;
    }
    let (z, degrees) = (bound_of_largest(particles * dim, TAIL), particles as f64 - 2.0);
    // The beginning of its expansion by 1/degrees.
    let t = z
        + (z.powi(3) + z) / (4.0 * degrees)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees * degrees);
    t * t / (degrees + t * t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    #[test]
    fn draws_of_a_gaussian_are_usual_and_one_far_particle_is_not() {
        for (count, dim) in [(4, 2), (5, 3), (20, 50), (100, 10), (1000, 1)] {
            for seed in 0..30 {
                let mut draws = random_states(count, dim, seed);
                // As one draw each, and as draws of few particles, each of which has a good share.
                for particles in [count, 4, 1] {
                    let found = Outlying::of(draws.as_ref(), particles);
                    assert!(found.is_usual(), "{count}, {dim}, {particles}: {found:?}");
                }
                if count > 5 {
                    draws.row_mut(3)[dim - 1] = 5.0 * (count as f64).sqrt();
                    assert!(!Outlying::of(draws.as_ref(), count).is_usual());
                }
            }
        }
    }
}
