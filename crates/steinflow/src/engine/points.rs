//! Squared distances between particles, as one factor of a kernel sees them.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::rows_per_task;
use super::simd::{squared_distances, squared_norm, squares_from_products};
use crate::{MatRef, Matrix, Real};

/// Columns of a tile. With the rows of a band, 16 to 64, it stays in the second cache.
pub(super) const STRIP: usize = 512;
/// Up to this many coordinates, the squared distances of a tile are summed directly, which is also the
/// more accurate way; above, they come from a matrix product.
pub(super) const DIRECT_COORDINATES: usize = 16;

/// One factor φ(rate·|x − y|²) of a kernel: which coordinates it looks at, and how far.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a, T> {
    points: MatRef<'a, T>,
    first: usize,
    coordinates: usize,
    rate: T,
    squares: Option<MatRef<'a, T>>,
}

impl<'a, T: Real> Factor<'a, T> {
    /// A factor that looks at all coordinates of the (centred) points; `rate` is 1/h.
    pub fn new(points: MatRef<'a, T>, rate: T) -> Self {
        Self { points, first: 0, coordinates: points.cols(), rate, squares: None }
    }

    /// Looks at these coordinates only.
    pub fn of(self, columns: Range<usize>) -> Self {
        Self { first: columns.start, coordinates: columns.len(), ..self }
    }

    /// With squared distances that are known already, N×N.
    pub(crate) fn with_squares(self, squares: MatRef<'a, T>) -> Self {
        Self { squares: Some(squares), ..self }
    }

    /// The squared distances, where they are known.
    pub(super) fn squares(&self) -> Option<MatRef<'a, T>> {
        self.squares
    }

    /// The points, all of their coordinates.
    pub fn points(&self) -> MatRef<'a, T> {
        self.points
    }

    /// The coordinates that it looks at.
    pub fn columns(&self) -> Range<usize> {
        self.first..self.first + self.coordinates
    }

    /// 1/h.
    pub fn rate(&self) -> T {
        self.rate
    }

    /// The coordinates of one particle that the factor looks at.
    pub(crate) fn row(&self, i: usize) -> &'a [T] {
        &self.points.row(i)[self.first..self.first + self.coordinates]
    }

    /// What it sees of some particles.
    pub(crate) fn points_of(&self, members: &[usize]) -> Matrix<T> {
        let numbers = members.iter().flat_map(|&i| self.row(i)).copied().collect();
        Matrix::from_vec(numbers, members.len(), self.coordinates).expect("all of their rows")
    }

    /// The number of particles.
    pub(crate) fn count(&self) -> usize {
        self.points.rows()
    }

    /// The number of coordinates that it looks at.
    pub(crate) fn coordinates(&self) -> usize {
        self.coordinates
    }

    /// All particles, at the first coordinate looked at, and how far apart their rows begin.
    pub(crate) fn rows(&self) -> (&'a [T], usize) {
        (self.from(0), self.points.cols())
    }

    /// The particles, coordinate after coordinate.
    pub(crate) fn by_coordinate(&self) -> Vec<T> {
        let (count, coordinates) = (self.count(), self.coordinates);
        let mut columns = vec![T::zero(); count * coordinates];
        let some = rows_per_task(4 * count);
        columns.par_chunks_mut(some * count).enumerate().for_each(|(chunk, columns)| {
            // A few particles at a time, so that what is written stays in the first cache.
            for first in (0..count).step_by(16) {
                let particles = first..count.min(first + 16);
                for (j, column) in (chunk * some..).zip(columns.chunks_exact_mut(count)) {
                    for i in particles.clone() {
                        column[i] = self.row(i)[j];
                    }
                }
            }
        });
        columns
    }

    /// Particles from `i` on, at the first coordinate looked at; rows are `points.cols()` apart.
    fn from(&self, i: usize) -> &'a [T] {
        &self.points.as_slice()[i * self.points.cols() + self.first..]
    }
}

/// A factor laid out for the way its distances are computed.
pub(super) enum Distances<'a, T: Real> {
    /// Few coordinates: coordinate after coordinate, so that a loop over particles is contiguous.
    Direct { rows: Cow<'a, [T]>, by_coordinate: Vec<T>, coordinates: usize },
    /// Many: |x|² of each particle, and products.
    Product { factor: Factor<'a, T>, squares: Vec<T> },
    /// Computed already.
    Known(MatRef<'a, T>),
}

impl<'a, T: Real> Distances<'a, T> {
    pub(super) fn new(factor: &Factor<'a, T>) -> Self {
        let (count, coordinates) = (factor.count(), factor.coordinates);
        if let Some(squares) = factor.squares {
            return Self::Known(squares);
        }
        if coordinates > DIRECT_COORDINATES {
            let particles = (0..count).into_par_iter().with_min_len(rows_per_task(coordinates));
            let squares = particles.map(|i| squared_norm(factor.row(i))).collect();
            return Self::Product { factor: *factor, squares };
        }
        let rows = if coordinates == factor.points.cols() {
            Cow::Borrowed(factor.points.as_slice())
        } else {
            Cow::Owned((0..count).flat_map(|i| factor.row(i)).copied().collect())
        };
        Self::Direct { rows, by_coordinate: factor.by_coordinate(), coordinates }
    }

    /// Writes squared distances of particles `first..first + m` to `start..start + n`.
    pub(super) fn squares(&self, first: usize, m: usize, start: usize, n: usize, tile: &mut [T]) {
        match self {
            Self::Direct { rows, by_coordinate, coordinates } => {
                let x = &rows[first * coordinates..(first + m) * coordinates];
                squared_distances(x, &windows(by_coordinate, *coordinates, start, n), n, tile);
            }
            Self::Known(squares) => {
                for (i, tile) in tile.chunks_exact_mut(n).enumerate() {
                    tile.copy_from_slice(&squares.row(first + i)[start..start + n]);
                }
            }
            Self::Product { factor, squares } => {
                let (stride, d) = (factor.points.cols(), factor.coordinates);
                let (a, b) = (factor.from(first), factor.from(start));
                T::product_of_strips(a, stride, b, stride, tile, m, n, d);
                let close = T::CLOSE;
                let others = &squares[start..start + n];
                for (i, tile) in tile.chunks_exact_mut(n).enumerate() {
                    let own = squares[first + i];
                    // Where a particle meets itself, x·x = |x|² would look like a close pair.
                    if let Some(x) = (first + i).checked_sub(start).and_then(|j| tile.get_mut(j)) {
                        *x = T::zero();
                    }
                    let any_close = squares_from_products(own, others, close, tile);
                    if let Some(x) = (first + i).checked_sub(start).and_then(|j| tile.get_mut(j)) {
                        *x = T::zero();
                    }
                    if !any_close {
                        continue;
                    }
                    // Close pairs far from the centre have lost their digits to cancellation.
                    for (j, (x, &other)) in tile.iter_mut().zip(others).enumerate() {
                        if first + i != start + j && *x < close * (own + other) {
                            let pairs = factor.row(first + i).iter().zip(factor.row(start + j));
                            *x = pairs.map(|(&a, &b)| (a - b) * (a - b)).sum();
                        }
                    }
                }
            }
        }
    }
}

/// The part `start..start + n` of each of `count` columns that stand one after the other.
pub(super) fn windows<T>(columns: &[T], count: usize, start: usize, n: usize) -> Vec<&[T]> {
    columns.chunks_exact(columns.len() / count).map(|column| &column[start..start + n]).collect()
}
