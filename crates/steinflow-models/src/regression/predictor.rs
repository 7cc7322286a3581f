//! The posterior of any model with a linear predictor η = Xθ, for all particles at once:
//! log π(θ) = c Σᵢ ℓ(ηᵢ, yᵢ) − |θ|²/(2s²), ∇log π(θ) = c Xᵀ ℓ′(η, y) − θ/s²,
//! with c = n / batch size on a minibatch and 1 otherwise.

use rayon::prelude::*;
use steinflow::{Error, MatMut, MatRef, Matrix, Minibatch, Real};

use crate::checks::require_shapes;

// Tiles are of fixed size, and each particle's sums run over them in order, so that the bits do not
// depend on the number of threads. A tile of η is 16 × 1024, which fits the second-level cache.
const PARTICLES_PER_TILE: usize = 16;
const ROWS_PER_TILE: usize = 1024;

/// X, y and the prior, in the particles' precision.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predictor<T> {
    rows: Matrix<T>,
    /// X once more, laid out for η = Xθ.
    columns: Vec<T>,
    target: Vec<T>,
    prior_sd: f64,
}

impl<T: Real> Predictor<T> {
    pub(super) fn new(rows: &Matrix<f64>, target: &[f64], prior_sd: f64) -> Self {
        let rows = rows.cast();
        let columns = tiles_of_columns(rows.as_slice(), rows.cols());
        Self { rows, columns, target: target.iter().map(|&y| T::of(y)).collect(), prior_sd }
    }

    pub(super) fn dim(&self) -> usize {
        self.rows.cols()
    }

    pub(super) fn data_rows(&self) -> usize {
        self.rows.rows()
    }

    /// Evaluates every particle; `likelihood(η, y)` replaces the predictors η of some rows by ∂ℓ/∂η and
    /// returns their Σℓ.
    pub(super) fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        batch: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
        likelihood: impl Fn(&mut [T], &[T]) -> f64 + Sync,
    ) -> steinflow::Result<()> {
        let dim = self.dim();
        require_shapes(dim, theta, log_density, score.rows(), score.cols())?;
        let gathered = batch.map(|batch| self.gather(batch)).transpose()?;
        let (data, scale) = match (&gathered, batch) {
            (Some((rows, columns, target)), Some(batch)) => {
                (Data { rows, columns, target, dim }, batch.scale)
            }
            _ => {
                let (rows, columns, target) = (self.rows.as_slice(), &self.columns, &self.target);
                (Data { rows, columns, target, dim }, 1.0)
            }
        };
        let prior_precision = 1.0 / (self.prior_sd * self.prior_sd);

        log_density
            .par_chunks_mut(PARTICLES_PER_TILE)
            .zip(score.as_mut_slice().par_chunks_mut(PARTICLES_PER_TILE * dim))
            .zip(theta.as_slice().par_chunks(PARTICLES_PER_TILE * dim))
            .for_each(|((values, scores), theta)| {
                let sums = data.likelihood_tile(theta, scores, &likelihood);
                for (i, value) in values.iter_mut().enumerate() {
                    let at = i * dim..(i + 1) * dim;
                    let mut squares = 0.0;
                    for (s, x) in scores[at.clone()].iter_mut().zip(&theta[at]) {
                        *s = T::of(scale) * *s - T::of(prior_precision) * *x;
                        squares += x.as_f64() * x.as_f64();
                    }
                    *value = T::of(scale * sums[i] - prior_precision * squares / 2.0);
                }
            });
        Ok(())
    }

    /// The rows of a minibatch, contiguous.
    fn gather(&self, batch: &Minibatch) -> steinflow::Result<(Vec<T>, Vec<T>, Vec<T>)> {
        if let Some(&index) = batch.indices.iter().find(|&&index| index >= self.data_rows()) {
            let remedy = format!("the data has {} rows, counted from 0", self.data_rows());
            return Err(Error::setting("minibatch index", index, remedy));
        }
        let rows: Vec<T> = batch.indices.iter().flat_map(|&i| self.rows.row(i)).copied().collect();
        let columns = tiles_of_columns(&rows, self.dim());
        let target = batch.indices.iter().map(|&i| self.target[i]).collect();
        Ok((rows, columns, target))
    }
}

/// The columns of every tile of rows, one after the other.
fn tiles_of_columns<T: Real>(rows: &[T], dim: usize) -> Vec<T> {
    let mut columns = Vec::with_capacity(rows.len());
    for tile in rows.chunks(ROWS_PER_TILE * dim) {
        for column in 0..dim {
            columns.extend(tile.iter().skip(column).step_by(dim));
        }
    }
    columns
}

/// The rows that count, in both layouts.
#[derive(Clone, Copy)]
struct Data<'a, T> {
    rows: &'a [T],
    columns: &'a [T],
    target: &'a [T],
    dim: usize,
}

impl<T: Real> Data<'_, T> {
    /// Writes Xᵀℓ′ of a tile of particles to `scores` and returns their Σᵢℓᵢ, summed in `f64`.
    fn likelihood_tile(
        &self,
        theta: &[T],
        scores: &mut [T],
        likelihood: &impl Fn(&mut [T], &[T]) -> f64,
    ) -> Vec<f64> {
        let dim = self.dim;
        let particles = theta.len() / dim;
        let mut sums = vec![0.0; particles];
        let mut predictor = vec![T::zero(); particles * ROWS_PER_TILE.min(self.target.len())];
        scores.fill(T::zero());
        let tiles = self.rows.chunks(ROWS_PER_TILE * dim);
        let tiles = tiles.zip(self.columns.chunks(ROWS_PER_TILE * dim));
        for ((rows, columns), target) in tiles.zip(self.target.chunks(ROWS_PER_TILE)) {
            let count = target.len();
            let eta = &mut predictor[..particles * count];
            T::product(theta, columns, eta, particles, count, dim);
            for (sum, eta) in sums.iter_mut().zip(eta.chunks_exact_mut(count)) {
                *sum += likelihood(eta, target);
            }
            T::accumulate_product(eta, rows, scores, particles, dim, count);
        }
        sums
    }
}
