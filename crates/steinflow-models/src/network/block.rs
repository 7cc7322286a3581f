//! Rows of data laid out for the passes: tile by tile, and feature by feature in each.

use std::array;

use steinflow::{Matrix, Real};

use super::aligned::Aligned;
use super::few_inputs;
use super::pass::{Tile, width};
use super::simd::LANES;

/// Activations of a tile stay in the first caches.
const ROWS_PER_TILE: usize = 128;

/// Rows that are laid out at once for all particles: bounds the memory of a pass over all data.
pub(super) const ROWS_PER_BLOCK: usize = 8 * ROWS_PER_TILE;

/// Rows of data, tile by tile and feature by feature in each.
#[derive(Clone, Debug)]
pub(super) struct Block<T> {
    inputs: Aligned<T>,
    /// Row by row, where there are few inputs.
    by_row: Aligned<T>,
    targets: Aligned<T>,
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        let (inputs, by_row, targets) = Default::default();
        Self { inputs, by_row, targets }
    }
}

impl<T: Real> Block<T> {
    /// Lays out `count` rows of the data, of which the k-th is `row(k)`.
    pub(super) fn gather(
        &mut self,
        inputs: &Matrix<T>,
        targets: &[T],
        count: usize,
        row: impl Fn(usize) -> usize,
    ) {
        let (width, features) = (width(count), inputs.cols());
        self.targets.reserve(width);
        self.inputs.reserve(width * features);
        let to_targets = self.targets.first_mut(width);
        for (k, to) in to_targets[..count].iter_mut().enumerate() {
            *to = targets[row(k)];
        }
        to_targets[count..].fill(T::zero());
        if features <= few_inputs::MOST {
            self.by_row.reserve(width * few_inputs::MOST);
            let by_row = self.by_row.first_mut(count * few_inputs::MOST);
            for (k, to) in by_row.chunks_exact_mut(few_inputs::MOST).enumerate() {
                to[..features].copy_from_slice(inputs.row(row(k)));
                to[features..].fill(T::zero());
            }
        }
        let to_inputs = self.inputs.first_mut(width * features);
        let tiles = to_inputs.chunks_mut(ROWS_PER_TILE * features);
        for (first, tile) in (0..count).step_by(ROWS_PER_TILE).zip(tiles) {
            let width = tile.len() / features;
            let rows = width.min(count - first);
            // A few rows at a time, so that what is written is contiguous too.
            for some in (0..rows).step_by(LANES) {
                let count = LANES.min(rows - some);
                let from: [&[T]; LANES] =
                    array::from_fn(|k| inputs.row(row(first + some + k.min(count - 1))));
                for (j, feature) in tile.chunks_exact_mut(width).enumerate() {
                    for (to, from) in feature[some..some + LANES].iter_mut().zip(from) {
                        *to = from[j];
                    }
                }
            }
            for feature in tile.chunks_exact_mut(width) {
                feature[rows..].fill(T::zero());
            }
        }
    }

    /// The tiles of the `count` rows laid out last.
    pub(super) fn tiles(&self, features: usize, count: usize) -> impl Iterator<Item = Tile<'_, T>> {
        let width = width(count);
        let inputs = self.inputs.first(width * features).chunks(ROWS_PER_TILE * features);
        let targets = self.targets.first(width).chunks(ROWS_PER_TILE);
        let few = features <= few_inputs::MOST;
        inputs.zip(targets).enumerate().map(move |(i, (inputs, targets))| {
            let rows = targets.len().min(count - i * ROWS_PER_TILE);
            let by_row = few.then(|| {
                let all = self.by_row.first(count * few_inputs::MOST);
                &all[i * ROWS_PER_TILE * few_inputs::MOST..][..rows * few_inputs::MOST]
            });
            Tile { inputs, by_row, targets, rows }
        })
    }
}
