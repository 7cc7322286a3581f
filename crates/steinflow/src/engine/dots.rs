//! Inner products of all pairs of rows: few long rows, which a matrix product is not made for.

// What is not inlined into a dispatched body is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use std::array;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::{MatRef, Real};

/// Rows (and columns) of a block whose sums fill the registers.
const BLOCK: usize = 4;

/// out[i − first][j] = xᵢ·xⱼ for every i of `rows` and all j ≤ i, over some columns of the points; `out`
/// has as many columns as there are points.
pub(super) fn lower_products<T: Real>(
    points: MatRef<'_, T>,
    columns: Range<usize>,
    rows: Range<usize>,
    out: &mut [T],
) {
    Arch::new().dispatch(LowerProducts { points, columns, rows, out });
}

struct LowerProducts<'a, T> {
    points: MatRef<'a, T>,
    columns: Range<usize>,
    rows: Range<usize>,
    out: &'a mut [T],
}

impl<T: Real> WithSimd for LowerProducts<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut row = self.rows.start;
        while row + BLOCK <= self.rows.end {
            self.up_to_diagonal::<S, BLOCK>(simd, row);
            row += BLOCK;
        }
        for row in row..self.rows.end {
            self.up_to_diagonal::<S, 1>(simd, row);
        }
    }
}

impl<T: Real> LowerProducts<'_, T> {
    /// Rows `row..row + M`, with columns up to that of the last.
    #[inline(always)]
    fn up_to_diagonal<S: Simd, const M: usize>(&mut self, simd: S, row: usize) {
        let mut column = 0;
        while column + BLOCK <= row + M {
            self.block::<S, M, BLOCK>(simd, row, column);
            column += BLOCK;
        }
        for column in column..row + M {
            self.block::<S, M, 1>(simd, row, column);
        }
    }

    #[inline(always)]
    fn block<S: Simd, const M: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let of = |i: usize| T::registers::<S>(&self.points.row(i)[self.columns.clone()]);
        let a: [_; M] = array::from_fn(|i| of(row + i));
        let b: [_; N] = array::from_fn(|j| of(column + j));
        // Slices of one length that the compiler knows to be one, so that it checks no index.
        let count = a[0].0.len();
        let a_full: [_; M] = array::from_fn(|i| &a[i].0[..count]);
        let b_full: [_; N] = array::from_fn(|j| &b[j].0[..count]);
        let mut sums = [[T::splat(simd, T::zero()); N]; M];
        for p in 0..count {
            for i in 0..M {
                for j in 0..N {
                    sums[i][j] = T::multiply_add(simd, a_full[i][p], b_full[j][p], sums[i][j]);
                }
            }
        }
        let a_rest: [_; M] = array::from_fn(|i| T::load(simd, a[i].1));
        let b_rest: [_; N] = array::from_fn(|j| T::load(simd, b[j].1));
        let width = self.points.rows();
        for i in 0..M {
            let out = &mut self.out[(row - self.rows.start + i) * width + column..];
            for j in 0..N {
                let sum = T::multiply_add(simd, a_rest[i], b_rest[j], sums[i][j]);
                out[j] = T::sum_of_lanes(simd, sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    #[test]
    fn products_agree_with_plain_sums() {
        for (count, cols) in [(1, 5), (7, 40), (21, 133)] {
            let points = random_states(count, cols, 1);
            let (columns, rows) = (2..cols, count / 3..count);
            let mut out = vec![f64::NAN; rows.len() * count];
            lower_products(points.as_ref(), columns.clone(), rows.clone(), &mut out);
            for i in rows.clone() {
                for j in 0..=i {
                    let pairs = points.row(i)[2..].iter().zip(&points.row(j)[2..]);
                    let expected: f64 = pairs.map(|(a, b)| a * b).sum();
                    let found = out[(i - rows.start) * count + j];
                    assert!((found - expected).abs() < 1e-12, "{i}, {j}: {found}, {expected}");
                }
            }
        }
    }
}
