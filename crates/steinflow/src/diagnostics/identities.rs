//! What the score says of the particles' mean and spread, by Stein's identities.
//!
//! For θ ~ π, whatever π is,
//!
//! ```text
//! E s = 0,   E (θ − c) sᵀ = −I,   s = ∇log π(θ)
//! ```
//!
//! The first tells where the mean is: one Newton step, Σ E s, is how far it has to go, exactly so for a
//! Gaussian. The second tells the spread: for particles that are narrower than a Gaussian target by a
//! factor ρ in variance, −E (θ − c)ᵀs/d is ρ. No reference sample is needed, and in d dimensions the
//! trace has the precision of N·d draws, so that it tells a collapse in 200 dimensions from 20
//! particles.
//!
//! Both are blind to modes without particles, as is everything that looks at the score alone.

use rayon::prelude::*;

use super::normal;
use crate::linalg::{spectral, symmetric_eigen};
use crate::{Error, MatRef, Real, Result};

/// A mean over particles, with the standard error of as many independent draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// Variances relative to the target's along the narrowest and the widest direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Directions {
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// Where the lowest of as many exact draws lies in 999 of 1000 cases: above this.
    pub lowest_bound: f64,
    /// Where the highest of as many exact draws lies in 999 of 1000 cases: below this.
    pub highest_bound: f64,
}

/// Stein's identities at a set of particles.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinIdentities {
    /// How far the mean of each coordinate is from the target's, in the particles' standard deviations;
    /// 0 for exact draws.
    pub shift: Vec<Estimate>,
    /// The particles' variance relative to the target's, each coordinate; 1 for exact draws.
    pub spread: Vec<Estimate>,
    /// The same over all coordinates.
    pub total_spread: Estimate,
    /// The same along the directions where it is lowest and highest, where there are enough particles
    /// to tell: 4 for every coordinate.
    pub directions: Option<Directions>,
}

/// More coordinates than this, and an eigendecomposition is no longer a matter of moments.
const MOST_DIRECTIONS: usize = 400;
/// Where the spread is this much less certain than a Gaussian's, directions are not told apart: their
/// bounds are a Gaussian's.
const LARGEST_EXCESS: f64 = 1.5;

impl SteinIdentities {
    /// Evaluates them at particles with the given scores, one a row.
    ///
    /// ```
    /// use steinflow::{Matrix, diagnostics::SteinIdentities};
    /// // Points of N(0, 1) squeezed to half its width: a quarter of its variance.
    /// let x = Matrix::from_fn(5, 1, |i, _| 0.5 * [-1.5, -0.5, 0.0, 0.5, 1.5][i]);
    /// let score = Matrix::from_fn(5, 1, |i, j| -x.row(i)[j]);
    /// let found = SteinIdentities::new(x.as_ref(), score.as_ref())?;
    /// assert_eq!(found.shift[0].value, 0.0);
    /// assert!((found.total_spread.value - 0.25 * 5.0 / 4.0).abs() < 1e-15);
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn new<T: Real>(particles: MatRef<'_, T>, score: MatRef<'_, T>) -> Result<Self> {
        let (count, dim) = (particles.rows(), particles.cols());
        if (score.rows(), score.cols()) != (count, dim) {
            return Err(Error::Shape {
                what: "the score",
                found: format!("shape {} × {}", score.rows(), score.cols()),
                expected: format!("{count} × {dim}, as the particles"),
            });
        }
        if count < 2 {
            return Err(Error::setting("number of particles", count, "a spread needs 2 or more"));
        }
        let n = count as f64;
        // The identity holds for any centre; a median does not follow a tail.
        let centre: Vec<f64> = (0..dim)
            .map(|j| {
                let mut column: Vec<f64> =
                    (0..count).map(|i| particles.row(i)[j].as_f64()).collect();
                column.sort_by(f64::total_cmp);
                0.5 * (column[(count - 1) / 2] + column[count / 2])
            })
            .collect();
        let centred: Vec<Vec<f64>> = (0..count)
            .map(|i| particles.row(i).iter().zip(&centre).map(|(x, m)| x.as_f64() - m).collect())
            .collect();
        let scores: Vec<Vec<f64>> =
            (0..count).map(|i| score.row(i).iter().map(|s| s.as_f64()).collect()).collect();

        // −(θ − c)ⱼ sⱼ; one degree of freedom went into the centre.
        let correction = n / (n - 1.0);
        let product = |i: usize, j: usize| -correction * centred[i][j] * scores[i][j];
        let spread = (0..dim).map(|j| estimate(count, |i| product(i, j))).collect();
        let total_spread =
            estimate(count, |i| (0..dim).map(|j| product(i, j)).sum::<f64>() / dim as f64);
        let shift = shifts(&centred, &scores);
        let enough = count >= 4 * dim && (2..=MOST_DIRECTIONS).contains(&dim);
        // Heavier tails than a Gaussian's make the spread less certain.
        let excess = (total_spread.standard_error / (2.0 / (n * dim as f64)).sqrt()).max(1.0);
        let directions =
            (enough && excess < LARGEST_EXCESS).then(|| directions(&centred, &scores, excess));
        Ok(Self { shift, spread, total_spread, directions })
    }
}

fn estimate(count: usize, of: impl Fn(usize) -> f64) -> Estimate {
    let n = count as f64;
    let value = (0..count).map(&of).sum::<f64>() / n;
    let square = (0..count).map(|i| (of(i) - value).powi(2)).sum::<f64>() / (n - 1.0);
    Estimate { value, standard_error: (square / n).sqrt() }
}

/// (Σ s̄)ⱼ/σⱼ, with the particles' covariance Σ = X Xᵀ/N never formed: sᵢᵀ Σ = (sᵢᵀ X) Xᵀ/N.
fn shifts(centred: &[Vec<f64>], scores: &[Vec<f64>]) -> Vec<Estimate> {
    let (count, dim) = (centred.len(), centred[0].len());
    let n = count as f64;
    let sds: Vec<f64> =
        (0..dim).map(|j| (centred.iter().map(|x| x[j] * x[j]).sum::<f64>() / n).sqrt()).collect();
    let steps: Vec<Vec<f64>> = scores
        .par_iter()
        .map(|score| {
            let mut step = vec![0.0; dim];
            for x in centred {
                let along = dot(score, x) / n;
                for (step, x) in step.iter_mut().zip(x) {
                    *step += along * x;
                }
            }
            for (step, sd) in step.iter_mut().zip(&sds) {
                *step /= sd;
            }
            step
        })
        .collect();
    (0..dim).map(|j| estimate(count, |i| steps[i][j])).collect()
}

/// The eigenvalues of Σ^(−½) T Σ^½, T = −E (θ − c) sᵀ: for a Gaussian target of precision H, those of
/// H^½ Σ H^½.
fn directions(centred: &[Vec<f64>], scores: &[Vec<f64>], excess: f64) -> Directions {
    let (count, dim) = (centred.len(), centred[0].len());
    let n = count as f64;
    let product = |a: &[Vec<f64>], b: &[Vec<f64>]| -> Vec<f64> {
        let rows = (0..dim).into_par_iter().flat_map_iter(|j| {
            let mut row = vec![0.0; dim];
            for (a, b) in a.iter().zip(b) {
                for (out, b) in row.iter_mut().zip(b) {
                    *out += a[j] * b / (n - 1.0);
                }
            }
            row
        });
        rows.collect()
    };
    let (values, vectors) = symmetric_eigen(&product(centred, centred), dim);
    let lowest = values[dim - 1] * f64::EPSILON;
    let root = spectral(&values, &vectors, |x| x.max(lowest).sqrt());
    let inverse = spectral(&values, &vectors, |x| x.max(lowest).sqrt().recip());
    let identity = product(centred, scores);
    let whitened = multiply(&multiply(&inverse, &identity, dim), &root, dim);
    let symmetric: Vec<f64> =
        (0..dim * dim).map(|k| -0.5 * (whitened[k] + whitened[k % dim * dim + k / dim])).collect();
    let (values, _) = symmetric_eigen(&symmetric, dim);
    // Marchenko and Pastur's edges, and beyond them 3.27 of Johnstone's (2001) units: the 0.999
    // quantile of the Tracy–Widom law.
    let ratio = (dim as f64 / n).sqrt();
    let unit =
        |edge: f64| 3.27 * edge.powf(4.0 / 3.0) * ratio.powf(-1.0 / 3.0) * n.powf(-2.0 / 3.0);
    let (low, high) = (1.0 - ratio, 1.0 + ratio);
    Directions {
        lowest: values[0],
        highest: values[dim - 1],
        lowest_bound: 1.0 - excess * (1.0 - low * low + unit(low)),
        highest_bound: 1.0 + excess * (high * high - 1.0 + unit(high)),
    }
}

fn multiply(a: &[f64], b: &[f64], dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; dim * dim];
    for (a, out) in a.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
        for (a, b) in a.iter().zip(b.chunks_exact(dim)) {
            for (out, b) in out.iter_mut().zip(b) {
                *out += a * b;
            }
        }
    }
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Estimate {
    /// How many standard errors the value is above `expected`.
    pub fn deviation(&self, expected: f64) -> f64 {
        (self.value - expected) / self.standard_error
    }
}

/// How many standard errors the largest of `count` numbers exceeds in one of `1/tail` cases.
pub(super) fn bound_of_largest(count: usize, tail: f64) -> f64 {
    normal::quantile(1.0 - 0.5 * tail / count.max(1) as f64)
}
