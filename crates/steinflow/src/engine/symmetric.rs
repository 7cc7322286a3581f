//! K·R from half of a symmetric K: every tile off the diagonal is computed once, and used for its own rows
//! and, transposed, for those of its mirror image.
//!
//! A range of rows is halved until it fits a tile: both halves among themselves, side by side, then one
//! with the other. A rectangle between two ranges is quartered, and quarters that share no rows run side
//! by side. So no two threads add to the same row, and every row adds its tiles in an order that depends
//! on the number of particles alone.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::{MatRef, Real};

/// Rows and columns of a tile: enough for fast products, and it stays in the second cache.
const TILE: usize = 128;

/// Writes K·R, where `fill(first, m, start, n, tile)` writes the entries of K in rows `first..first + m` and
/// columns `start..start + n`; `out` holds zeros. Tiles that no `wanted` row needs are left out.
pub(super) fn symmetric_sums<T: Real>(
    fill: impl Fn(usize, usize, usize, usize, &mut [T]) + Sync,
    rhs: MatRef<'_, T>,
    wanted: Range<usize>,
    out: &mut [T],
) {
    let sums = Symmetric { fill, rhs, wanted, tiles: Mutex::default() };
    sums.among(Rows { first: 0, count: rhs.rows(), out });
}

struct Symmetric<'a, T, F> {
    fill: F,
    rhs: MatRef<'a, T>,
    wanted: Range<usize>,
    /// Buffers at rest, as many as there were threads at once.
    tiles: Mutex<Vec<Vec<T>>>,
}

/// A range of rows of the result.
struct Rows<'a, T> {
    first: usize,
    count: usize,
    out: &'a mut [T],
}

impl<T> Rows<'_, T> {
    fn fit_a_tile(&self) -> bool {
        self.count <= TILE
    }

    /// Two halves, cut between tiles; the second is empty where one tile is enough.
    fn halves(&mut self) -> (Rows<'_, T>, Rows<'_, T>) {
        let half = self.count.min(self.count.div_ceil(TILE).div_ceil(2) * TILE);
        let (upper, lower) = self.out.split_at_mut(self.out.len() / self.count * half);
        (
            Rows { first: self.first, count: half, out: upper },
            Rows { first: self.first + half, count: self.count - half, out: lower },
        )
    }
}

impl<T: Real, F: Fn(usize, usize, usize, usize, &mut [T]) + Sync> Symmetric<'_, T, F> {
    /// Adds what the particles of a range are to each other.
    fn among(&self, mut rows: Rows<'_, T>) {
        if !self.wants(&rows) {
            return;
        }
        if rows.fit_a_tile() {
            let (first, n) = (rows.first, rows.count);
            return self.with_tile(first, n, first, n, |tile| {
                T::accumulate_product(tile, self.rhs_of(&rows), rows.out, n, self.rhs.cols(), n);
            });
        }
        let (mut upper, mut lower) = rows.halves();
        let again = |rows: &mut Rows<'_, T>| {
            self.among(Rows { first: rows.first, count: rows.count, out: rows.out });
        };
        rayon::join(|| again(&mut upper), || again(&mut lower));
        self.between(upper, lower);
    }

    /// Adds what the particles of two ranges are to those of the other.
    fn between(&self, mut a: Rows<'_, T>, mut b: Rows<'_, T>) {
        if a.count == 0 || b.count == 0 || !(self.wants(&a) || self.wants(&b)) {
            return;
        }
        if a.fit_a_tile() && b.fit_a_tile() {
            let (m, n, width) = (a.count, b.count, self.rhs.cols());
            return self.with_tile(a.first, m, b.first, n, |tile| {
                if self.wants(&a) {
                    T::accumulate_product(tile, self.rhs_of(&b), a.out, m, width, n);
                }
                if self.wants(&b) {
                    T::accumulate_transposed_product(tile, self.rhs_of(&a), b.out, n, width, m);
                }
            });
        }
        for crossed in [false, true] {
            let (a, b) = (a.halves(), b.halves());
            let (first, second) = if crossed { (b.1, b.0) } else { b };
            rayon::join(|| self.between(a.0, first), || self.between(a.1, second));
        }
    }

    fn wants(&self, rows: &Rows<'_, T>) -> bool {
        rows.first < self.wanted.end && rows.first + rows.count > self.wanted.start
    }

    /// The right-hand side in these rows.
    fn rhs_of(&self, rows: &Rows<'_, T>) -> &[T] {
        let width = self.rhs.cols();
        &self.rhs.as_slice()[rows.first * width..(rows.first + rows.count) * width]
    }

    fn with_tile(&self, first: usize, m: usize, start: usize, n: usize, work: impl FnOnce(&[T])) {
        let at_rest = || self.tiles.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tile = at_rest().pop().unwrap_or_else(|| vec![T::zero(); TILE * TILE]);
        (self.fill)(first, m, start, n, &mut tile[..m * n]);
        work(&tile[..m * n]);
        at_rest().push(tile);
    }
}
