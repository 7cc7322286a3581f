//! A frame: directions that are no coordinates, in which funnels and bananas lie along axes.
//!
//! θ = origin + y P, with the directions as rows of P. In white coordinates u, with scores s, two statistics
//! tell where to look, and neither asks for a pair of coordinates:
//!
//! - log |s|² depends on no direction of a Gaussian, so its slope on u is the parent of a funnel;
//! - u + s is 0 on a Gaussian. A banana that bends along v, away from a straight line along a, has it in the
//!   plane of v and a, row by row: the two are the first eigenvectors of its second moments, turned by an
//!   angle that is found by trying.

use super::linear::{Linear, by_strips};
use crate::arrays::Arrays;
use crate::engine::Gemm;
use crate::linalg::symmetric_eigen;
use crate::{MatRef, Matrix, Result};

/// Angles that are tried in a quarter turn, and again between the neighbours of the best.
const ANGLES: usize = 12;

/// θ = origin + y P.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    origin: Vec<f64>,
    /// P, a direction a row.
    directions: Vec<f64>,
    /// P⁻¹.
    inverse: Vec<f64>,
    log_determinant: f64,
}

impl Frame {
    /// The frames that positions and scores suggest. `misfit` is what bends along the coordinates leave of
    /// the plane that it is shown.
    pub(super) fn candidates(
        positions: MatRef<'_, f64>,
        scores: MatRef<'_, f64>,
        misfit: impl Fn(MatRef<'_, f64>, MatRef<'_, f64>) -> f64,
    ) -> Vec<Self> {
        let (rows, dim) = (positions.rows(), positions.cols());
        let linear = Linear::fit(positions, scores);
        let (mut white, mut down) = (vec![0.0; rows * dim], vec![0.0; rows * dim]);
        linear.from_position(positions.as_slice(), &mut white);
        linear.down(scores.as_slice(), &mut down);
        if !white.iter().chain(&down).all(|x| x.is_finite()) {
            return Vec::new();
        }
        let mut rotation = crooked_directions(&white, &down, dim);
        let (first, rest) = rotation.split_at_mut(dim);
        let second = &mut rest[..dim];
        let along = |rows: &[f64], direction: &[f64]| -> Vec<f64> {
            let dot = |row: &[f64]| row.iter().zip(direction).map(|(x, d)| x * d).sum();
            rows.chunks_exact(dim).map(dot).collect()
        };
        let u = [along(&white, first), along(&white, second)];
        let s = [along(&down, first), along(&down, second)];
        let at = |angle: f64| {
            let turned = |of: &[Vec<f64>; 2]| {
                Matrix::from_fn(rows, 2, |i, j| turn(angle, of[0][i], of[1][i])[j])
            };
            misfit(turned(&u).as_ref(), turned(&s).as_ref())
        };
        let step = std::f64::consts::FRAC_PI_2 / ANGLES as f64;
        let best = least((0..ANGLES).map(|k| k as f64 * step), at);
        let fine = (0..=ANGLES).map(|k| best + step * (2.0 * k as f64 / ANGLES as f64 - 1.0));
        let best = least(fine, at);
        for (a, b) in first.iter_mut().zip(second) {
            [*a, *b] = turn(best, *a, *b);
        }
        let reflection = reflection_to(&scale_slope(&white, &down, dim));
        [Some(rotation), reflection].iter().flatten().map(|r| Self::new(&linear, r)).collect()
    }

    /// The directions that are rows of an orthogonal matrix in u.
    fn new(linear: &Linear, rotation: &[f64]) -> Self {
        let dim = linear.dim();
        let mut identity = vec![0.0; dim * dim];
        identity.iter_mut().step_by(dim + 1).for_each(|one| *one = 1.0);
        let (mut directions, mut white) = (vec![0.0; dim * dim], vec![0.0; dim * dim]);
        linear.up(rotation, &mut directions);
        linear.white(&identity, &mut white);
        let mut inverse = vec![0.0; dim * dim];
        f64::product_transposed(&white, rotation, &mut inverse, dim, dim, dim);
        let origin = linear.centre().to_vec();
        Self { origin, directions, inverse, log_determinant: linear.log_determinant() }
    }

    fn dim(&self) -> usize {
        self.origin.len()
    }

    /// Replaces rows of y by rows of θ.
    pub(super) fn forward(&self, rows: &mut [f64]) {
        self.multiply(rows, &self.directions, false);
        for row in rows.chunks_exact_mut(self.dim()) {
            row.iter_mut().zip(&self.origin).for_each(|(x, o)| *x += o);
        }
    }

    /// Replaces rows of θ by rows of y.
    pub(super) fn backward(&self, rows: &mut [f64]) {
        for row in rows.chunks_exact_mut(self.dim()) {
            row.iter_mut().zip(&self.origin).for_each(|(x, o)| *x -= o);
        }
        self.multiply(rows, &self.inverse, false);
    }

    /// Replaces scores with respect to θ by scores with respect to y; returns the log Jacobian.
    pub(super) fn pull(&self, scores: &mut [f64]) -> f64 {
        self.multiply(scores, &self.directions, true);
        self.log_determinant
    }

    fn multiply(&self, rows: &mut [f64], by: &[f64], transposed: bool) {
        let from = rows.to_vec();
        by_strips(&from, rows, self.dim(), |from, out, count, dim| {
            if transposed {
                f64::product_transposed(from, by, out, count, dim, dim);
            } else {
                f64::product(from, by, out, count, dim, dim);
            }
        });
    }

    pub(super) fn save(&self, name: &str, into: &mut Arrays) {
        into.put(format!("{name}.origin"), &*self.origin);
        into.put(format!("{name}.directions"), &*self.directions);
        into.put(format!("{name}.inverse"), &*self.inverse);
        into.put(format!("{name}.log_determinant"), [self.log_determinant]);
    }

    pub(super) fn restore(name: &str, dim: usize, from: &Arrays) -> Result<Self> {
        Ok(Self {
            origin: from.get_exactly(&format!("{name}.origin"), dim)?,
            directions: from.get_exactly(&format!("{name}.directions"), dim * dim)?,
            inverse: from.get_exactly(&format!("{name}.inverse"), dim * dim)?,
            log_determinant: from.get_number(&format!("{name}.log_determinant"))?,
        })
    }
}

/// The slope of log |s|² on u, for u of variance 1.
fn scale_slope(white: &[f64], scores: &[f64], dim: usize) -> Vec<f64> {
    let logs: Vec<f64> = scores
        .chunks_exact(dim)
        .map(|s| s.iter().map(|s| s * s).sum::<f64>().max(1e-300).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let mut slope = vec![0.0; dim];
    for (u, log) in white.chunks_exact(dim).zip(&logs) {
        slope.iter_mut().zip(u).for_each(|(slope, u)| *slope += u * (log - mean));
    }
    slope
}

/// Eigenvectors of the second moments of u + s as rows, the largest eigenvalue first. Far rows count no more
/// than others.
fn crooked_directions(white: &[f64], scores: &[f64], dim: usize) -> Vec<f64> {
    let mut residuals: Vec<f64> = white.iter().zip(scores).map(|(u, s)| u + s).collect();
    for row in residuals.chunks_exact_mut(dim) {
        let size = 1.0 + row.iter().map(|r| r * r).sum::<f64>();
        for r in row {
            *r /= size.sqrt();
        }
    }
    let mut moments = vec![0.0; dim * dim];
    f64::transposed_product(&residuals, &residuals, &mut moments, dim, dim, white.len() / dim);
    let (_, vectors) = symmetric_eigen(&moments, dim);
    (0..dim * dim).map(|entry| vectors[entry % dim * dim + (dim - 1 - entry / dim)]).collect()
}

fn turn(angle: f64, x: f64, y: f64) -> [f64; 2] {
    let (sine, cosine) = angle.sin_cos();
    [cosine * x + sine * y, cosine * y - sine * x]
}

/// Where a function is least.
fn least(places: impl Iterator<Item = f64>, function: impl Fn(f64) -> f64) -> f64 {
    let all = places.map(|place| (place, function(place)));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(place, _)| place)
}

/// The orthogonal matrix I − 2nnᵀ whose first row is along `direction`.
fn reflection_to(direction: &[f64]) -> Option<Vec<f64>> {
    let dim = direction.len();
    let length = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return None;
    }
    // Along it or against it, whichever is further from the axis: no cancellation.
    let sign = -direction[0].signum();
    let mut normal: Vec<f64> = direction.iter().map(|x| -sign * x / length).collect();
    normal[0] += 1.0;
    let square: f64 = normal.iter().map(|x| x * x).sum();
    let entry = |k: usize| {
        let (i, j) = (k / dim, k % dim);
        f64::from(u8::from(i == j)) - 2.0 * normal[i] * normal[j] / square
    };
    Some((0..dim * dim).map(entry).collect())
}
