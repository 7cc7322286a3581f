//! Kernel Stein discrepancy (Liu, Lee and Jordan 2016; Chwialkowski, Strathmann and Gretton 2016):
//! how far particles are from a target that is known by its score alone.
//!
//! ```text
//! KSD² = E u(x, x′),   u = s·s′ k + s·∇′k + s′·∇k + tr ∇∇′k,   s = ∇log π(x)
//! ```
//!
//! and with k = φ(q), q = |x − x′|²/h, w = −2φ′(q)/h,
//!
//! ```text
//! u = s·s′ φ + w (s − s′)·(x − x′) + d w − 4 q φ″(q)/h
//! ```
//!
//! A low value does not mean that all modes are found: the score is blind to their weights.

use rayon::prelude::*;

use crate::kernel::Radial;
use crate::{Error, MatRef, Real, Result};

/// Rows that one task sums over; the sums of the tasks are added in order, so that bits do not
/// depend on threads.
const TILE: usize = 64;

/// How the mean of u is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statistic {
    /// Over all pairs, a particle with itself included: never negative.
    #[default]
    V,
    /// Over pairs of different particles: unbiased.
    U,
}

impl Statistic {
    /// Reads a statistic's name: `v` or `u`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "v" => Ok(Self::V),
            "u" => Ok(Self::U),
            other => Err(Error::unknown("statistic", other, ["v", "u"])),
        }
    }
}

/// KSD² of particles with the given scores, one a row; `bandwidth` is h.
///
/// ```
/// use steinflow::{Matrix, diagnostics::{Statistic, squared_stein_discrepancy}, kernel::Radial};
/// // One particle at the mode of a standard normal: u = d·2/h.
/// let (x, score) = (Matrix::<f64>::zeros(1, 1), Matrix::zeros(1, 1));
/// let radial = Radial::SquaredExponential;
/// let found =
///     squared_stein_discrepancy(x.as_ref(), score.as_ref(), radial, 4.0, Statistic::V)?;
/// assert_eq!(found, 0.5);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn squared_stein_discrepancy<T: Real>(
    particles: MatRef<'_, T>,
    score: MatRef<'_, T>,
    radial: Radial,
    bandwidth: f64,
    statistic: Statistic,
) -> Result<f64> {
    let (count, dim) = (particles.rows(), particles.cols());
    if (score.rows(), score.cols()) != (count, dim) {
        return Err(Error::Shape {
            what: "the score",
            found: format!("shape {} × {}", score.rows(), score.cols()),
            expected: format!("{count} × {dim}, as the particles"),
        });
    }
    let fewest = if statistic == Statistic::V { 1 } else { 2 };
    if count < fewest {
        let remedy = format!("this statistic needs {fewest} or more");
        return Err(Error::setting("number of particles", count, remedy));
    }
    if !(bandwidth > 0.0) || !bandwidth.is_finite() {
        return Err(Error::setting("bandwidth", bandwidth, "it must be positive and finite"));
    }
    let u = |i: usize, j: usize| {
        let (mut square, mut scores, mut cross) = (0.0, 0.0, 0.0);
        let rows = particles.row(i).iter().zip(particles.row(j));
        for ((x, y), (s, t)) in rows.zip(score.row(i).iter().zip(score.row(j))) {
            let difference = x.as_f64() - y.as_f64();
            let (s, t) = (s.as_f64(), t.as_f64());
            square += difference * difference;
            scores += s * t;
            cross += (s - t) * difference;
        }
        let q = square / bandwidth;
        let (value, slope, curvature) = profile(radial, q);
        let w = -2.0 * slope / bandwidth;
        scores * value + w * (cross + dim as f64) - 4.0 * q * curvature / bandwidth
    };
    // u is symmetric: the pairs below the diagonal count twice.
    let of_row = |i: usize| {
        let below: f64 = (0..i).map(|j| u(i, j)).sum();
        2.0 * below + if statistic == Statistic::V { u(i, i) } else { 0.0 }
    };
    let tiles: Vec<f64> = (0..count.div_ceil(TILE))
        .into_par_iter()
        .map(|tile| (tile * TILE..count.min((tile + 1) * TILE)).map(of_row).sum())
        .collect();
    let pairs = match statistic {
        Statistic::V => count as f64 * count as f64,
        Statistic::U => count as f64 * (count as f64 - 1.0),
    };
    Ok(tiles.iter().sum::<f64>() / pairs)
}

/// φ, φ′ and φ″.
fn profile(radial: Radial, q: f64) -> (f64, f64, f64) {
    match radial {
        Radial::SquaredExponential => {
            let k = (-q).exp();
            (k, -k, k)
        }
        Radial::InverseMultiquadric => {
            let k = (1.0 + q).sqrt().recip();
            (k, -0.5 * k.powi(3), 0.75 * k.powi(5))
        }
    }
}
