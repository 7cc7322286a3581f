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

use super::{dot, normal};
use crate::{Error, MatRef, Real, Result};

/// A mean over particles, with the standard error of as many independent draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// How unequal the variances of all directions are, relative to the target's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unevenness {
    /// The mean over directions of (λ − 1)², λ the relative variance.
    pub value: f64,
    /// What exact draws of a Gaussian have on average: about d/N.
    pub expected: f64,
    /// The standard deviation of that.
    pub standard_error: f64,
}

/// Stein's identities at a set of particles.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinIdentities {
    /// How far the mean of each coordinate is from the target's, in the particles' standard deviations;
    /// 0 for exact draws. Mode after mode, where there are several.
    pub shift: Vec<Estimate>,
    /// The particles' variance relative to the target's, each coordinate; 1 for exact draws.
    pub spread: Vec<Estimate>,
    /// The same over all coordinates.
    pub total_spread: Estimate,
    /// The same over all directions, coordinate axes or not: particles that are too narrow along some
    /// and too wide along others can have the right variance in every coordinate.
    pub unevenness: Unevenness,
    /// How much less certain the spread is than that of as many draws of a Gaussian; 1 or more.
    pub excess: f64,
}

impl SteinIdentities {
    /// Evaluates them at particles with the given scores, one a row.
    ///
    /// ```
    /// use steinflow::{Matrix, diagnostics::SteinIdentities};
    /// // Points of N(0, 1) squeezed to half its width: a quarter of its variance.
    /// let x = Matrix::from_fn(5, 1, |i, _| 0.5 * [-1.5, -0.5, 0.0, 0.5, 1.5][i]);
    /// let score = Matrix::from_fn(5, 1, |i, j| -x.row(i)[j]);
    /// let found = SteinIdentities::new(x.as_ref(), score.as_ref())?;
    /// assert!(found.shift[0].value.abs() < 1e-15);
    /// assert!((found.total_spread.value - 0.25 * 5.0 / 4.0).abs() < 1e-15);
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn new<T: Real>(particles: MatRef<'_, T>, score: MatRef<'_, T>) -> Result<Self> {
        Self::within(particles, score, &vec![0; particles.rows()])
    }

    /// The same for particles in several modes, `mode_of` saying in which, each with a centre of its own:
    /// the way from one mode to another would drown what the score says of either. The identities hold
    /// within a mode as far as the density vanishes around it.
    pub fn within<T: Real>(
        particles: MatRef<'_, T>,
        score: MatRef<'_, T>,
        mode_of: &[usize],
    ) -> Result<Self> {
        let (count, dim) = (particles.rows(), particles.cols());
        super::require_score(particles, score)?;
        if count < 2 {
            return Err(Error::setting("number of particles", count, "a spread needs 2 or more"));
        }
        let n = count as f64;
        if mode_of.len() != count {
            return Err(Error::Shape {
                what: "the modes",
                found: format!("{} numbers", mode_of.len()),
                expected: format!("{count}, one a particle"),
            });
        }
        let modes = mode_of.iter().max().map_or(1, |last| last + 1);
        let centres: Vec<Vec<f64>> =
            (0..modes).map(|mode| centre(particles, |i| mode_of[i] == mode)).collect();
        let centred: Vec<Vec<f64>> = (0..count)
            .map(|i| {
                let row = particles.row(i).iter().zip(&centres[mode_of[i]]);
                row.map(|(x, c)| x.as_f64() - c).collect()
            })
            .collect();
        let scores: Vec<Vec<f64>> =
            (0..count).map(|i| score.row(i).iter().map(|s| s.as_f64()).collect()).collect();

        // −(θ − c)ⱼ sⱼ; one degree of freedom went into every centre.
        let correction = n / (n - modes as f64).max(1.0);
        let product = |i: usize, j: usize| -correction * centred[i][j] * scores[i][j];
        let spread = (0..dim).map(|j| estimate(count, |i| product(i, j))).collect();
        let total_spread =
            estimate(count, |i| (0..dim).map(|j| product(i, j)).sum::<f64>() / dim as f64);
        // Of every mode by itself: what drives particles into modes on both sides would cancel.
        let mut shift = Vec::new();
        for mode in 0..modes {
            let of = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
                (0..count).filter(|&i| mode_of[i] == mode).map(|i| rows[i].clone()).collect()
            };
            let centred = of(&centred);
            if centred.len() > 1 {
                shift.extend(shifts(&centred, &of(&scores)));
            }
        }
        // Heavier tails than a Gaussian's make the spread less certain.
        let excess = (total_spread.standard_error / (2.0 / (n * dim as f64)).sqrt()).max(1.0);
        let unevenness = unevenness(&centred, &scores, total_spread.value, excess);
        Ok(Self { shift, spread, total_spread, unevenness, excess })
    }
}

/// The median of every coordinate, which does not follow a tail: the identity holds for any centre.
fn centre<T: Real>(particles: MatRef<'_, T>, is_member: impl Fn(usize) -> bool) -> Vec<f64> {
    let members: Vec<usize> = (0..particles.rows()).filter(|&i| is_member(i)).collect();
    let of = |j: usize| {
        let mut column: Vec<f64> = members.iter().map(|&i| particles.row(i)[j].as_f64()).collect();
        column.sort_by(f64::total_cmp);
        match column.len() {
            0 => 0.0,
            count => 0.5 * (column[(count - 1) / 2] + column[count / 2]),
        }
    };
    (0..particles.cols()).map(of).collect()
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
        .enumerate()
        .map(|(i, score)| {
            let mut step = vec![0.0; dim];
            // Without the particle's own part of Σ, which is noise alone.
            for (_, x) in centred.iter().enumerate().filter(|&(k, _)| k != i) {
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

/// tr (T − I)²/d, T = −E (θ − c) sᵀ, whose eigenvalues for a Gaussian target of precision H are those
/// of H^½ Σ H^½. T itself is never formed: tr T² = Σ (xᵢ·sⱼ)(xⱼ·sᵢ)/(N − 1)².
fn unevenness(centred: &[Vec<f64>], scores: &[Vec<f64>], trace: f64, excess: f64) -> Unevenness {
    let (n, dim) = (centred.len() as f64, centred[0].len() as f64);
    let squares: Vec<f64> = (0..centred.len())
        .into_par_iter()
        .map(|i| {
            let with = |j: usize| dot(&centred[i], &scores[j]) * dot(&centred[j], &scores[i]);
            (0..centred.len()).map(with).sum::<f64>()
        })
        .collect();
    let square = squares.iter().sum::<f64>() / ((n - 1.0) * (n - 1.0) * dim);
    // The mean and variance of Σ (λ − 1)² for a Wishart matrix (Bai and Silverstein 2004).
    let ratio = dim / (n - 1.0);
    Unevenness {
        value: square - 2.0 * trace + 1.0,
        expected: excess * excess * ratio * (1.0 + 1.0 / dim),
        standard_error: excess * excess * 2.0 * ratio * (1.0 + 2.0 * ratio).sqrt() / dim,
    }
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
