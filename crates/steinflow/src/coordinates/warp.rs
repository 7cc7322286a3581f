//! Bends one after the other.

use rayon::prelude::*;

use super::Linear;
use super::bend::{Bend, Buffer};
use crate::arrays::{Arrays, as_count};
use crate::engine::rows_per_task;
use crate::{MatRef, Matrix, Result};

/// Bends that are worth fitting one after the other.
const MOST: usize = 4;
/// What a bend has to take off the [misfit](Linear::misfit): it costs windows of learning, and a chance
/// bend breaks what linear coordinates had got right.
const WORTH: f64 = 0.1;
/// Dimensions beyond which none is looked for: every pair of coordinates is tried.
const WIDEST: usize = 300;

/// θ from z by a chain of bends; none where nothing bends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warp {
    /// In the order in which they were found: the last maps z first.
    bends: Vec<Bend>,
}

impl Warp {
    /// The bends that positions and scores show.
    pub fn fit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Self {
        let mut warp = Self::default();
        if !(2..=WIDEST).contains(&positions.cols()) {
            return warp;
        }
        let (rows, dim) = (positions.rows(), positions.cols());
        let copy = |from: MatRef<'_, f64>| Matrix::from_fn(rows, dim, |i, j| from.row(i)[j]);
        let (mut x, mut g) = (copy(positions), copy(scores));
        let mut misfit = None;
        while warp.bends.len() < MOST {
            let Some(bend) = Bend::fit(x.as_ref(), g.as_ref()) else { break };
            let before = misfit.unwrap_or_else(|| Linear::least_misfit(x.as_ref(), g.as_ref()));
            let mut buffer = Buffer::default();
            for i in 0..rows {
                bend.backward(x.row_mut(i), &mut buffer);
                bend.pull(x.row(i), g.row_mut(i), &mut buffer);
            }
            if !x.as_slice().iter().chain(g.as_slice()).all(|x| x.is_finite()) {
                break;
            }
            let after = Linear::least_misfit(x.as_ref(), g.as_ref());
            if !(after < before - WORTH) {
                break;
            }
            misfit = Some(after);
            warp.bends.push(bend);
        }
        warp
    }

    /// The bends, in the order in which they were found.
    pub fn bends(&self) -> &[Bend] {
        &self.bends
    }

    /// Replaces rows of z by rows of θ.
    pub fn forward(&self, rows: &mut [f64], dim: usize) {
        self.for_each_row(rows, dim, |row, buffer| {
            self.bends.iter().rev().for_each(|bend| bend.forward(row, buffer));
        });
    }

    /// Replaces rows of θ by rows of z.
    pub fn backward(&self, rows: &mut [f64], dim: usize) {
        self.for_each_row(rows, dim, |row, buffer| {
            self.bends.iter().for_each(|bend| bend.backward(row, buffer));
        });
    }

    fn for_each_row(
        &self,
        rows: &mut [f64],
        dim: usize,
        map: impl Fn(&mut [f64], &mut Buffer) + Sync,
    ) {
        if !self.bends.is_empty() {
            let strips = rows.par_chunks_mut(rows_per_task(dim) * dim);
            strips.for_each(|strip| {
                let mut buffer = Buffer::default();
                strip.chunks_exact_mut(dim).for_each(|row| map(row, &mut buffer));
            });
        }
    }

    /// Adds the log Jacobian to the log densities, and replaces scores with respect to θ by scores
    /// with respect to z, of the density of z.
    pub fn pull(&self, z: &[f64], log_density: &mut [f64], scores: &mut [f64], dim: usize) {
        if self.bends.is_empty() {
            return;
        }
        let strip = rows_per_task(dim);
        let all = z.par_chunks(strip * dim).zip(scores.par_chunks_mut(strip * dim));
        all.zip(log_density.par_chunks_mut(strip)).for_each(|((z, scores), values)| {
            let mut buffer = Buffer::default();
            // Where each bend found its row, the first-found last.
            let mut way: Vec<Vec<f64>> = vec![Vec::new(); self.bends.len()];
            let rows = z.chunks_exact(dim).zip(scores.chunks_exact_mut(dim));
            for ((z, score), value) in rows.zip(values) {
                let mut row = z.to_vec();
                for (bend, here) in self.bends.iter().zip(&mut way).rev() {
                    here.clone_from(&row);
                    bend.forward(&mut row, &mut buffer);
                }
                for (bend, here) in self.bends.iter().zip(&way) {
                    *value += bend.pull(here, score, &mut buffer);
                }
            }
        });
    }

    pub(crate) fn save(&self, name: &str, into: &mut Arrays) {
        into.put(format!("{name}.bends"), [self.bends.len() as f64]);
        for (k, bend) in self.bends.iter().enumerate() {
            bend.save(&format!("{name}.bend{k}"), into);
        }
    }

    pub(crate) fn restore(name: &str, dim: usize, from: &Arrays) -> Result<Self> {
        let count = as_count(from.get_number(&format!("{name}.bends"))?)?;
        let bends = (0..count).map(|k| Bend::restore(&format!("{name}.bend{k}"), dim, from));
        Ok(Self { bends: bends.collect::<Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::Warp;
    use crate::coordinates::{Linear, straightened};
    use crate::testing::random_states;
    use crate::{MatRef, Matrix};

    /// Rows of (w, s e^{bw} L z) and their scores, with L of two columns that differ by `apart`.
    fn fan(rows: usize, slope: f64, apart: f64, seed: u64) -> (Matrix<f64>, Matrix<f64>) {
        let noise = random_states(rows, 3, seed);
        let mut g = Matrix::zeros(rows, 3);
        let x = Matrix::from_fn(rows, 3, |i, j| {
            let &[w, a, b] = noise.row(i) else { unreachable!("three columns") };
            let scale = (slope * w).exp();
            // θ₁ = e^{bw}(a + apart·b), θ₂ = e^{bw}(a − apart·b).
            let score = [
                -w + slope * (a * a + b * b - 2.0),
                -(a + b / apart) / (2.0 * scale),
                -(a - b / apart) / (2.0 * scale),
            ];
            g.row_mut(i).copy_from_slice(&score);
            [w, scale * (a + apart * b), scale * (a - apart * b)][j]
        });
        (x, g)
    }

    fn misfit(warp: &Warp, x: MatRef<'_, f64>, g: MatRef<'_, f64>) -> f64 {
        let (z, scores) = straightened(warp, x, g);
        Linear::least_misfit(z.as_ref(), scores.as_ref())
    }

    #[test]
    fn bends_bring_rows_nearer_to_a_gaussian_or_are_left_out() {
        let mut found = 0;
        for (k, slope) in [0.25, 0.3, 0.6, 1.0].into_iter().enumerate() {
            for (l, apart) in [1.0, 1e-2, 1e-4, 1e-6].into_iter().enumerate() {
                let (x, g) = fan(400, slope, apart, (4 * k + l) as u64);
                let (x, g) = (x.as_ref(), g.as_ref());
                let warp = Warp::fit(x, g);
                let (before, after) = (misfit(&Warp::default(), x, g), misfit(&warp, x, g));
                found += usize::from(!warp.bends().is_empty());
                assert!(
                    warp == Warp::default() || after < before - 0.1,
                    "slope {slope}, {apart} apart: {before} became {after}"
                );
            }
        }
        assert!(found >= 4, "{found} of 16 funnels were found");
    }

    #[test]
    fn the_misfit_of_any_gaussian_is_nothing() {
        let noise = random_states(300, 3, 7);
        let x = Matrix::from_fn(300, 3, |i, j| 1e4 + 10f64.powi(2 * j as i32) * noise.row(i)[j]);
        let g = Matrix::from_fn(300, 3, |i, j| -noise.row(i)[j] / 10f64.powi(2 * j as i32));
        assert!(Linear::least_misfit(x.as_ref(), g.as_ref()) < 1e-6);
    }
}
