//! Bends one after the other, along coordinates or along directions of their own.

use rayon::prelude::*;

use super::bend::{Bend, Buffer};
use super::frame::Frame;
use super::linear::{DENSE, Linear, Misfit};
use crate::arrays::{Arrays, as_count};
use crate::engine::rows_per_task;
use crate::{MatRef, Matrix, Result};

/// Bends that are worth fitting one after the other.
const MOST: usize = 4;
/// What a bend has to take off the [misfit](Linear::least_misfit): it costs windows of learning, and a
/// chance bend breaks what linear coordinates had got right.
const WORTH: f64 = 0.03;
/// The typical misfit from which other directions than the coordinates' are tried.
const CROOKED: f64 = 0.5;
/// Dimensions beyond which none is looked for: every pair of coordinates is tried.
const WIDEST: usize = 300;

/// θ from z by a chain of bends; none where nothing bends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warp {
    /// Directions in which the bends are, where they are not those of the coordinates.
    frame: Option<Frame>,
    /// In the order in which they were found: the last maps z first.
    bends: Vec<Bend>,
}

impl Warp {
    /// The bends that positions and scores show, in directions of their own only where that is worth more
    /// than bends along coordinates.
    pub fn fit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Self {
        let dim = positions.cols();
        if !(2..=WIDEST).contains(&dim) {
            return Self::default();
        }
        let straight = Linear::least_misfit(positions, scores);
        let (mut best, mut least) = Self::along_coordinates(positions, scores, straight);
        if least.median > CROOKED && dim <= DENSE {
            let left = |x: MatRef<'_, f64>, g: MatRef<'_, f64>| {
                Self::along_coordinates(x, g, Linear::least_misfit(x, g)).1.median
            };
            for frame in Frame::candidates(positions, scores, left) {
                let (mut y, mut g) = (copy(positions), copy(scores));
                frame.backward(y.as_mut_slice());
                frame.pull(g.as_mut_slice());
                let (found, misfit) = Self::along_coordinates(y.as_ref(), g.as_ref(), straight);
                if misfit.is_below(least, WORTH) {
                    (best, least) = (Self { frame: Some(frame), ..found }, misfit);
                }
            }
        }
        best
    }

    /// Bends whose parents and children are coordinates, and the misfit that they leave of what was there.
    fn along_coordinates(
        positions: MatRef<'_, f64>,
        scores: MatRef<'_, f64>,
        mut misfit: Misfit,
    ) -> (Self, Misfit) {
        let mut warp = Self::default();
        let (mut x, mut g) = (copy(positions), copy(scores));
        while warp.bends.len() < MOST {
            let Some(bend) = Bend::fit(x.as_ref(), g.as_ref()) else { break };
            let mut buffer = Buffer::default();
            for i in 0..x.rows() {
                bend.backward(x.row_mut(i), &mut buffer);
                bend.pull(x.row(i), g.row_mut(i), &mut buffer);
            }
            if !x.as_slice().iter().chain(g.as_slice()).all(|x| x.is_finite()) {
                break;
            }
            let after = Linear::least_misfit(x.as_ref(), g.as_ref());
            if !after.is_below(misfit, WORTH) {
                break;
            }
            misfit = after;
            warp.bends.push(bend);
        }
        (warp, misfit)
    }

    /// The bends, in the order in which they were found. Parents and children are numbers of coordinates or,
    /// where bends have directions of their own, of those.
    pub fn bends(&self) -> &[Bend] {
        &self.bends
    }

    /// Replaces rows of z by rows of θ.
    pub fn forward(&self, rows: &mut [f64], dim: usize) {
        self.for_each_row(rows, dim, |row, buffer| {
            self.bends.iter().rev().for_each(|bend| bend.forward(row, buffer));
        });
        if let Some(frame) = &self.frame {
            frame.forward(rows);
        }
    }

    /// Replaces rows of θ by rows of z.
    pub fn backward(&self, rows: &mut [f64], dim: usize) {
        if let Some(frame) = &self.frame {
            frame.backward(rows);
        }
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
        if let Some(frame) = &self.frame {
            let log_jacobian = frame.pull(scores);
            for value in &mut *log_density {
                *value += log_jacobian;
            }
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
        into.put(format!("{name}.framed"), [f64::from(u8::from(self.frame.is_some()))]);
        if let Some(frame) = &self.frame {
            frame.save(&format!("{name}.frame"), into);
        }
        into.put(format!("{name}.bends"), [self.bends.len() as f64]);
        for (k, bend) in self.bends.iter().enumerate() {
            bend.save(&format!("{name}.bend{k}"), into);
        }
    }

    pub(crate) fn restore(name: &str, dim: usize, from: &Arrays) -> Result<Self> {
        let count = as_count(from.get_number(&format!("{name}.bends"))?)?;
        let bends = (0..count).map(|k| Bend::restore(&format!("{name}.bend{k}"), dim, from));
        let framed = from.get_number(&format!("{name}.framed"))? != 0.0;
        let frame = framed.then(|| Frame::restore(&format!("{name}.frame"), dim, from));
        Ok(Self { frame: frame.transpose()?, bends: bends.collect::<Result<_>>()? })
    }
}

fn copy(from: MatRef<'_, f64>) -> Matrix<f64> {
    Matrix::from_fn(from.rows(), from.cols(), |i, j| from.row(i)[j])
}

#[cfg(test)]
mod tests {
    use super::Warp;
    use crate::coordinates::linear::{Linear, Misfit};
    use crate::coordinates::straightened;
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

    fn misfit(warp: &Warp, x: MatRef<'_, f64>, g: MatRef<'_, f64>) -> Misfit {
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
                    warp == Warp::default() || after.is_below(before, 0.03),
                    "slope {slope}, {apart} apart: {before:?} became {after:?}"
                );
            }
        }
        assert!(found >= 4, "{found} of 16 funnels were found");
    }

    #[test]
    fn the_misfit_of_any_gaussian_is_nothing() {
        let noise = random_states(300, 3, 7);
        let x = Matrix::from_fn(300, 3, |i, j| 1e4 + [1.0, 1e2, 1e4][j] * noise.row(i)[j]);
        let g = Matrix::from_fn(300, 3, |i, j| -noise.row(i)[j] / [1.0, 1e2, 1e4][j]);
        assert!(Linear::least_misfit(x.as_ref(), g.as_ref()).mean < 1e-6);
    }
}
