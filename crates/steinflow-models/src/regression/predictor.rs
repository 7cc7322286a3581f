//! The posterior of any model with a linear predictor η = Xθ, for all particles at once:
//! log π(θ) = c Σᵢ ℓ(ηᵢ, yᵢ) − |θ|²/(2s²), ∇log π(θ) = c Xᵀ ℓ′(η, y) − θ/s²,
//! with c = n / batch size on a minibatch and 1 otherwise.

use rayon::prelude::*;
use steinflow::target::DeviceSource;
use steinflow::{Error, MatMut, MatRef, Matrix, Minibatch, Real};

use crate::checks::require_shapes;
use crate::pool::{Loan, Pool};
use crate::prior::add_gaussian;

// The size of tiles depends on the number of particles alone, and each particle's sums run over them in
// order, so that the bits do not depend on the number of threads. A tile of η is at most 64 × 1024, which
// fits the second-level cache.
const MOST_PARTICLES_PER_TILE: usize = 64;
const ROWS_PER_TILE: usize = 1024;

/// Every tile lays out the data for its products once more, so that many particles should share one; but
/// there must be tiles enough to share out evenly.
fn particles_per_tile(particles: usize) -> usize {
    (particles / 16).next_multiple_of(16).clamp(16, MOST_PARTICLES_PER_TILE)
}

/// X, y and the prior, in the particles' precision.
#[derive(Clone, Debug)]
pub(super) struct Predictor<T> {
    rows: Matrix<T>,
    /// X once more, laid out for η = Xθ.
    columns: Vec<T>,
    target: Vec<T>,
    prior_sd: f64,
    gathered: Pool<Gathered<T>>,
    /// η of a tile.
    tiles: Pool<Vec<T>>,
}

/// Buffers are no part of what a model is.
impl<T: PartialEq> PartialEq for Predictor<T> {
    fn eq(&self, other: &Self) -> bool {
        let own = (&self.rows, &self.target, self.prior_sd);
        own == (&other.rows, &other.target, other.prior_sd)
    }
}

/// The rows of a minibatch, in both layouts.
struct Gathered<T> {
    rows: Vec<T>,
    columns: Vec<T>,
    target: Vec<T>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), columns: Vec::new(), target: Vec::new() }
    }
}

impl<T: Real> Predictor<T> {
    pub(super) fn new(rows: &Matrix<f64>, target: &[f64], prior_sd: f64) -> Self {
        let rows = rows.cast();
        let mut columns = Vec::with_capacity(rows.as_slice().len());
        write_columns(rows.as_slice(), rows.cols(), &mut columns);
        let target = target.iter().map(|&y| T::of(y)).collect();
        let (gathered, tiles) = (Pool::default(), Pool::default());
        Self { rows, columns, target, prior_sd, gathered, tiles }
    }

    pub(super) fn dim(&self) -> usize {
        self.rows.cols()
    }

    /// The posterior as text, with a likelihood `real likelihood(real eta, real y, real *slope)`.
    pub(super) fn device_source(&self, code: String) -> DeviceSource {
        DeviceSource::Linear {
            code,
            rows: self.rows.cast(),
            outcomes: self.target.iter().map(|y| y.as_f64()).collect(),
            precision: 1.0 / (self.prior_sd * self.prior_sd),
        }
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
        let scale = batch.map_or(1.0, |batch| batch.scale);
        let (rows, columns, target) = match &gathered {
            Some(gathered) => (&gathered.rows[..], &gathered.columns, &gathered.target),
            None => (self.rows.as_slice(), &self.columns, &self.target),
        };
        let data = Data { rows, columns, target, dim };
        let tile = particles_per_tile(theta.rows());
        let prior_precision = 1.0 / (self.prior_sd * self.prior_sd);

        log_density
            .par_chunks_mut(tile)
            .zip(score.as_mut_slice().par_chunks_mut(tile * dim))
            .zip(theta.as_slice().par_chunks(tile * dim))
            // Tile by tile, so that whoever is free takes the next.
            .with_max_len(1)
            .for_each(|((values, scores), theta)| {
                let sums = data.likelihood_tile(theta, scores, &likelihood, &mut self.tiles.lend());
                let particles = theta.chunks_exact(dim).zip(scores.chunks_exact_mut(dim));
                for ((value, sum), (theta, score)) in values.iter_mut().zip(sums).zip(particles) {
                    let squares =
                        add_gaussian(T::of(scale), T::of(prior_precision), theta, score).as_f64();
                    *value = T::of(scale * sum - prior_precision * squares / 2.0);
                }
            });
        Ok(())
    }

    /// The rows of a minibatch, contiguous.
    fn gather(&self, batch: &Minibatch) -> steinflow::Result<Loan<'_, Gathered<T>>> {
        if let Some(&index) = batch.indices.iter().find(|&&index| index >= self.data_rows()) {
            let remedy = format!("the data has {} rows, counted from 0", self.data_rows());
            return Err(Error::setting("minibatch index", index, remedy));
        }
        let mut gathered = self.gathered.lend();
        let Gathered { rows, columns, target } = &mut *gathered;
        rows.clear();
        target.clear();
        for &index in &batch.indices {
            rows.extend_from_slice(self.rows.row(index));
            target.push(self.target[index]);
        }
        write_columns(rows, self.dim(), columns);
        Ok(gathered)
    }
}

/// Writes the columns of every tile of rows, one after the other.
fn write_columns<T: Real>(rows: &[T], dim: usize, columns: &mut Vec<T>) {
    columns.clear();
    for tile in rows.chunks(ROWS_PER_TILE * dim) {
        for column in 0..dim {
            columns.extend(tile.iter().skip(column).step_by(dim));
        }
    }
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
        predictor: &mut Vec<T>,
    ) -> [f64; MOST_PARTICLES_PER_TILE] {
        let dim = self.dim;
        let particles = theta.len() / dim;
        let mut sums = [0.0; MOST_PARTICLES_PER_TILE];
        predictor.resize(particles * ROWS_PER_TILE.min(self.target.len()), T::zero());
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
