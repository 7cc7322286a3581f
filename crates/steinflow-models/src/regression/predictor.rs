//! The posterior of any model with a linear predictor η = Xβ + o + u[g]·v, for all particles at once:
//! log π(θ) = c Σᵢ ℓ(ηᵢ, yᵢ, ψ) + log p(β) + log p(u) + log p(ψ), with the coefficients β, the effects u of
//! groups and the parameters ψ of the likelihood all parts of θ, and c = n / batch size on a minibatch and 1
//! otherwise.

use rayon::prelude::*;
use steinflow::target::DeviceSource;
use steinflow::{Error, MatMut, MatRef, Matrix, Minibatch, Real};

use super::groups::{GroupRows, Groups};
use super::{Design, Family, Prior};
use crate::checks::require_shapes;
use crate::pool::{Loan, Pool};

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

/// X, y and o in the particles' precision.
#[derive(Clone, Debug)]
pub(super) struct Predictor<T> {
    rows: Matrix<T>,
    /// X once more, laid out for η = Xβ.
    columns: Vec<T>,
    target: Vec<T>,
    /// o, or nothing where it is 0.
    offset: Vec<T>,
    groups: GroupRows<T>,
    /// For a family that looks at targets: where each row of the data stands, as they are in the order of their targets,
    /// and how many rows have each.
    sorted: Option<Sorted>,
    gathered: Pool<Gathered<T>>,
    tiles: Pool<Tile<T>>,
}

/// Buffers are no part of what a model is.
impl<T: PartialEq> PartialEq for Predictor<T> {
    fn eq(&self, other: &Self) -> bool {
        let own = (&self.rows, &self.target, &self.offset, &self.groups);
        own == (&other.rows, &other.target, &other.offset, &other.groups)
    }
}

#[derive(Clone, Debug)]
struct Sorted {
    places: Vec<usize>,
    counted: Vec<(f64, f64)>,
}

/// The rows of a minibatch, in both layouts.
struct Gathered<T> {
    places: Vec<usize>,
    rows: Vec<T>,
    columns: Vec<T>,
    target: Vec<T>,
    offset: Vec<T>,
    groups: GroupRows<T>,
    counted: Vec<(f64, f64)>,
}

impl<T> Default for Gathered<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            rows: Vec::new(),
            columns: Vec::new(),
            target: Vec::new(),
            offset: Vec::new(),
            groups: GroupRows::default(),
            counted: Vec::new(),
        }
    }
}

/// What a tile of particles works with.
struct Tile<T> {
    /// η, then ∂ℓ/∂η.
    eta: Vec<T>,
    /// β, and ∂Σℓ/∂β.
    coefficients: Vec<T>,
    slopes: Vec<T>,
    /// u, and ∂Σℓ/∂u.
    effects: Vec<T>,
    effect_slopes: Vec<T>,
    /// ψ, and ∂Σℓ/∂ψ.
    extras: Vec<f64>,
    extra_slopes: Vec<f64>,
}

impl<T> Default for Tile<T> {
    fn default() -> Self {
        Self {
            eta: Vec::new(),
            coefficients: Vec::new(),
            slopes: Vec::new(),
            effects: Vec::new(),
            effect_slopes: Vec::new(),
            extras: Vec::new(),
            extra_slopes: Vec::new(),
        }
    }
}

impl<T: Real> Predictor<T> {
    pub(super) fn new(
        design: &Design,
        target: &[f64],
        offset: &[f64],
        looks_at_targets: bool,
    ) -> Self {
        let mut order: Vec<usize> = (0..target.len()).collect();
        if looks_at_targets {
            order.sort_by(|&a, &b| target[a].total_cmp(&target[b]));
        }
        let x = design.rows();
        let rows = Matrix::from_fn(x.rows(), x.cols(), |i, j| T::of(x.row(order[i])[j]));
        let mut columns = Vec::with_capacity(rows.as_slice().len());
        write_columns(rows.as_slice(), rows.cols(), &mut columns);
        let mut groups = GroupRows::default();
        groups.gather(&GroupRows::new(design.terms(), target.len()), &order);
        let in_order = |values: &[f64]| order.iter().map(|&row| T::of(values[row])).collect();
        let target: Vec<T> = in_order(target);
        let offset = if offset.is_empty() { Vec::new() } else { in_order(offset) };
        let sorted = looks_at_targets.then(|| {
            let (mut places, mut counted) = (vec![0; order.len()], Vec::new());
            order.iter().enumerate().for_each(|(place, &row)| places[row] = place);
            count(&target, &mut counted);
            Sorted { places, counted }
        });
        let (gathered, tiles) = (Pool::default(), Pool::default());
        Self { rows, columns, target, offset, groups, sorted, gathered, tiles }
    }

    /// The posterior as text, with a likelihood `real likelihood(real eta, real y, real *slope)`; none where
    /// there is an offset.
    pub(super) fn device_source(&self, code: String, prior_sd: f64) -> Option<DeviceSource> {
        self.offset.is_empty().then(|| DeviceSource::Linear {
            code,
            rows: self.rows.cast(),
            outcomes: self.target.iter().map(|y| y.as_f64()).collect(),
            precision: 1.0 / (prior_sd * prior_sd),
        })
    }

    pub(super) fn data_rows(&self) -> usize {
        self.rows.rows()
    }

    /// Evaluates every particle.
    pub(super) fn evaluate(
        &self,
        (prior, groups, family): (&Prior, &Groups, &impl Family),
        theta: MatRef<'_, T>,
        batch: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let dim = prior.dim() + groups.dim() + family.extra_names().len();
        require_shapes(dim, theta, log_density, score.rows(), score.cols())?;
        let gathered = batch.map(|batch| self.gather(batch)).transpose()?;
        let scale = batch.map_or(1.0, |batch| batch.scale);
        let features = self.rows.cols();
        let data = match &gathered {
            Some(gathered) => Data {
                rows: &gathered.rows,
                columns: &gathered.columns,
                target: &gathered.target,
                offset: &gathered.offset,
                groups: &gathered.groups,
                counted: &gathered.counted,
                features,
            },
            None => Data {
                rows: self.rows.as_slice(),
                columns: &self.columns,
                target: &self.target,
                offset: &self.offset,
                groups: &self.groups,
                counted: self.sorted.as_ref().map_or(&[], |sorted| &sorted.counted),
                features,
            },
        };
        let tile = particles_per_tile(theta.rows());

        log_density
            .par_chunks_mut(tile)
            .zip(score.as_mut_slice().par_chunks_mut(tile * dim))
            .zip(theta.as_slice().par_chunks(tile * dim))
            // Tile by tile, so that whoever is free takes the next.
            .with_max_len(1)
            .for_each(|((values, scores), theta)| {
                let mut tile = self.tiles.lend();
                let sums = data.likelihood_tile((prior, groups, family), theta, dim, &mut tile);
                let Tile { slopes, effect_slopes, extras, extra_slopes, .. } = &mut *tile;
                let coefficients = features * family.predictors();
                let (effects, extra) = (groups.effects(), dim - prior.dim() - groups.dim());
                for (i, (value, sum)) in values.iter_mut().zip(sums).enumerate() {
                    let (theta, score) = (&theta[i * dim..][..dim], &mut scores[i * dim..][..dim]);
                    let slopes = &slopes[i * coefficients..][..coefficients];
                    let (own, rest) = score.split_at_mut(prior.dim());
                    let (of_groups, rest) = rest.split_at_mut(groups.dim());
                    let place = own.len()..own.len() + of_groups.len();
                    let mut log_prior = prior.add(scale, &theta[..own.len()], slopes, own);
                    let slopes = &effect_slopes[i * effects..][..effects];
                    log_prior += groups.add(scale, &theta[place], slopes, of_groups);
                    let slopes = &mut extra_slopes[i * extra..][..extra];
                    for slope in slopes.iter_mut() {
                        *slope *= scale;
                    }
                    log_prior += family.log_prior(&extras[i * extra..][..extra], slopes);
                    for (score, &slope) in rest.iter_mut().zip(&*slopes) {
                        *score = T::of(slope);
                    }
                    *value = T::of(scale * sum + log_prior);
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
        let Gathered { places, rows, columns, target, offset, groups, counted } = &mut *gathered;
        places.clear();
        places.extend_from_slice(&batch.indices);
        if let Some(sorted) = &self.sorted {
            for place in places.iter_mut() {
                *place = sorted.places[*place];
            }
            places.sort_unstable();
        }
        rows.clear();
        target.clear();
        offset.clear();
        for &place in &*places {
            rows.extend_from_slice(self.rows.row(place));
            target.push(self.target[place]);
            offset.extend(self.offset.get(place));
        }
        groups.gather(&self.groups, places);
        if self.sorted.is_some() {
            count(target, counted);
        }
        write_columns(rows, self.rows.cols(), columns);
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

/// Writes numbers that ascend once each, and how often they are there.
fn count<T: Real>(values: &[T], counted: &mut Vec<(f64, f64)>) {
    counted.clear();
    counted.extend(values.iter().map(|x| (x.as_f64(), 1.0)));
    counted.dedup_by(|next, before| {
        let is_same = next.0 == before.0;
        before.1 += if is_same { next.1 } else { 0.0 };
        is_same
    });
}

/// The rows that count, in both layouts.
#[derive(Clone, Copy)]
struct Data<'a, T> {
    rows: &'a [T],
    columns: &'a [T],
    target: &'a [T],
    offset: &'a [T],
    groups: &'a GroupRows<T>,
    counted: &'a [(f64, f64)],
    features: usize,
}

impl<T: Real> Data<'_, T> {
    /// Leaves ∂Σℓ/∂β and ∂Σℓ/∂ψ of a tile of particles in `tile` and returns their Σᵢℓᵢ, summed in `f64`.
    fn likelihood_tile(
        &self,
        (prior, groups, family): (&Prior, &Groups, &impl Family),
        theta: &[T],
        dim: usize,
        tile: &mut Tile<T>,
    ) -> [f64; MOST_PARTICLES_PER_TILE] {
        let (features, predictors) = (self.features, family.predictors());
        let particles = theta.len() / dim;
        let Tile { eta, coefficients, slopes, effects, effect_slopes, extras, extra_slopes } = tile;
        coefficients.clear();
        effects.clear();
        extras.clear();
        for theta in theta.chunks_exact(dim) {
            let (own, rest) = theta.split_at(prior.dim());
            let (of_groups, rest) = rest.split_at(groups.dim());
            prior.coefficients(own, coefficients);
            groups.append_effects(of_groups, effects);
            extras.extend(rest.iter().map(|x| x.as_f64()));
        }
        slopes.clear();
        slopes.resize(coefficients.len(), T::zero());
        effect_slopes.clear();
        effect_slopes.resize(effects.len(), T::zero());
        extra_slopes.clear();
        extra_slopes.resize(extras.len(), 0.0);
        let (effect, extra) = (effects.len() / particles, extras.len() / particles);
        let mut sums = [0.0; MOST_PARTICLES_PER_TILE];
        for (i, sum) in sums[..particles].iter_mut().enumerate() {
            let own = i * extra..(i + 1) * extra;
            let slopes = &mut extra_slopes[own.clone()];
            *sum = family.of_targets(self.counted, &extras[own], slopes);
        }
        let lines = particles * predictors;
        eta.resize(lines * ROWS_PER_TILE.min(self.target.len()), T::zero());
        let tiles = self.rows.chunks(ROWS_PER_TILE * features);
        let tiles = tiles.zip(self.columns.chunks(ROWS_PER_TILE * features));
        let mut first = 0;
        for ((rows, columns), target) in tiles.zip(self.target.chunks(ROWS_PER_TILE)) {
            let count = target.len();
            let eta = &mut eta[..lines * count];
            T::product(coefficients, columns, eta, lines, count, features);
            if !self.offset.is_empty() {
                let offset = &self.offset[first..first + count];
                for line in eta.chunks_exact_mut(count) {
                    line.iter_mut().zip(offset).for_each(|(eta, &offset)| *eta += offset);
                }
            }
            for (i, eta) in eta.chunks_exact_mut(predictors * count).enumerate() {
                let own = i * extra..(i + 1) * extra;
                let (extras, slopes) = (&extras[own.clone()], &mut extra_slopes[own]);
                let of_groups = i * effect..(i + 1) * effect;
                if effect > 0 {
                    self.groups.add_to(first, &effects[of_groups.clone()], eta);
                }
                sums[i] += family.log_likelihood(eta, target, extras, slopes);
                if effect > 0 {
                    self.groups.add_slopes(first, eta, &mut effect_slopes[of_groups]);
                }
            }
            T::accumulate_product(eta, rows, slopes, lines, features, count);
            first += count;
        }
        sums
    }
}
