//! The particles around their mean and their squared distances, block by block.
//!
//! A splitting moves one block at a time, so what was computed from the others still holds at the next
//! velocity: it is kept until a block's version says that its numbers have changed. Of few particles in many
//! coordinates only the distances are kept: a copy of the particles would take longer to read than to make.

// What is not inlined into a dispatched body is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use std::mem;
use std::ops::Range;

use rayon::prelude::*;

use super::dots::lower_products;
use super::points::Factor;
use super::rows_per_task;
use super::simd::{self, squares_from_products, vectorised};
use crate::{MatRef, Matrix, Real};

/// The most particles whose N×N distances are kept.
const MOST_KEPT: usize = 256;
/// Up to this many coordinates, squared distances are summed directly; above, they come from products.
const DIRECT_COORDINATES: usize = 48;
/// Rows of distances that one task computes: a block of inner products.
const ROWS_PER_TASK: usize = 4;
/// Below this many products of numbers, other threads are not worth waking.
const SERIAL_PRODUCTS: usize = 1 << 20;
/// From this many coordinates on, few particles are worked on in strips of coordinates.
const MANY_COORDINATES: usize = 1024;
/// Numbers of a strip, all blocks: with what is computed from them, they stay in the second cache.
const STRIP_NUMBERS: usize = 1 << 14;

/// How many coordinates of a block of few particles are worked on at a time; `None` where all are.
pub(crate) fn strip_width(count: usize, blocks: usize, dim: usize) -> Option<usize> {
    let is_wide = count <= MOST_KEPT && dim >= MANY_COORDINATES;
    is_wide.then(|| (STRIP_NUMBERS / (count * blocks)).next_multiple_of(SUMS))
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Cloud<T> {
    count: usize,
    dim: usize,
    /// Shaped as the state, or empty where only distances are kept.
    centred: Matrix<T>,
    blocks: Vec<Block<T>>,
    /// Where the middle of the squared distances was last time, for every factor of a kernel; 0 for
    /// nowhere yet.
    middles: Vec<f64>,
}

/// What is kept of a block, and the versions it was computed from; 0 for nothing yet.
#[derive(Debug)]
struct Block<T> {
    centred_version: u64,
    squares_version: u64,
    squares: Matrix<T>,
}

impl<T: Real> Cloud<T> {
    /// Nothing known yet of `count` particles in blocks of `dim` coordinates.
    pub(crate) fn new(count: usize, blocks: usize, dim: usize) -> Self {
        let nothing =
            || Block { centred_version: 0, squares_version: 0, squares: Matrix::zeros(0, 0) };
        let kept = if strip_width(count, blocks, dim).is_some() { 0 } else { blocks * dim };
        Self {
            count,
            dim,
            centred: Matrix::zeros(count, kept),
            blocks: (0..blocks).map(|_| nothing()).collect(),
            middles: vec![0.0; blocks],
        }
    }

    pub(crate) fn has_shape(&self, count: usize, blocks: usize, dim: usize) -> bool {
        (self.count, self.blocks.len(), self.dim) == (count, blocks, dim)
    }

    /// The particles around their mean, shaped as the state, where they are kept.
    pub(crate) fn centred(&self) -> Option<&Matrix<T>> {
        (self.centred.cols() > 0).then_some(&self.centred)
    }

    /// Brings the centred particles up to date with the state.
    ///
    /// Centring does not change velocities, and in `f32` far-off particles keep their differences.
    pub(crate) fn centre(&mut self, state: MatRef<'_, T>, versions: &[u64]) {
        let (dim, are_kept) = (self.dim, self.centred.cols() > 0);
        for (index, (block, &version)) in self.blocks.iter_mut().zip(versions).enumerate() {
            if block.centred_version != version {
                if are_kept {
                    centre(state, index * dim..(index + 1) * dim, &mut self.centred);
                }
                block.centred_version = version;
            }
        }
    }

    /// Where the middle of the squared distances that a kernel's factor sees was last time, or 0.
    pub(crate) fn middle(&self, group: usize) -> f64 {
        self.middles[group]
    }

    pub(crate) fn keep_middle(&mut self, group: usize, middle: f64) {
        self.middles[group] = middle;
    }

    /// Whether squared distances are worth keeping: they fit a processor's own cache.
    pub(crate) fn keeps_squares(&self) -> bool {
        self.count <= MOST_KEPT
    }

    /// Whether somebody has asked for the distances over this block.
    pub(crate) fn is_asked_for(&self, block: usize) -> bool {
        self.blocks[block].squares_version > 0
    }

    /// Takes up what whoever moved a block has summed on the way, in parts of [`strips_of_a_part`].
    pub(crate) fn learn(
        &mut self,
        state: MatRef<'_, T>,
        index: usize,
        version: u64,
        parts: &[Products<T>],
    ) {
        let block = &mut self.blocks[index];
        add_up(parts, &mut block.squares);
        let columns = index * self.dim..(index + 1) * self.dim;
        squares_of_products(state, columns, &mut block.squares);
        (block.centred_version, block.squares_version) = (version, version);
    }

    /// Writes the squared distances over some blocks, N×N. The cloud must have been centred on this state.
    pub(crate) fn write_squares(
        &mut self,
        state: MatRef<'_, T>,
        blocks: Range<usize>,
        out: &mut Matrix<T>,
    ) {
        let (dim, first) = (self.dim, blocks.start);
        let width = strip_width(self.count, self.blocks.len(), dim);
        for index in blocks {
            let block = &mut self.blocks[index];
            if block.squares_version != block.centred_version {
                let columns = index * dim..(index + 1) * dim;
                if block.squares.rows() != self.count {
                    block.squares = Matrix::zeros(self.count, self.count);
                }
                match width {
                    Some(width) => squares_by_strips(state, columns, width, &mut block.squares),
                    None => squared_distances(self.centred.as_ref(), columns, &mut block.squares),
                }
                block.squares_version = block.centred_version;
            }
            let (out, squares) = (out.as_mut_slice(), block.squares.as_slice());
            if index == first {
                out.copy_from_slice(squares);
                continue;
            }
            vectorised(
                #[inline(always)]
                || {
                    for (out, &square) in out.iter_mut().zip(squares) {
                        *out += square;
                    }
                },
            );
        }
    }
}

/// Columns whose sums stay in registers.
const SUMS: usize = 64;

/// Writes some columns of the particles minus their mean, roughly: any centre will do that is close to it.
pub(crate) fn centre<T: Real>(
    state: MatRef<'_, T>,
    columns: Range<usize>,
    centred: &mut Matrix<T>,
) {
    let all = state.cols();
    let rows = centred.as_mut_slice().chunks_exact_mut(all);
    if columns.len() <= SUMS {
        return vectorised(
            #[inline(always)]
            || {
                let means = means(state.rows(), |i| &state.row(i)[columns.clone()]);
                for (i, row) in rows.enumerate() {
                    subtract(&state.row(i)[columns.clone()], &means, &mut row[columns.clone()]);
                }
            },
        );
    }
    // Strips of columns, so that means are taken of what is then at hand to be centred.
    let mut rows: Vec<&mut [T]> = rows.map(|row| &mut row[columns.clone()]).collect();
    let width = rows_per_task(state.rows()).next_multiple_of(SUMS);
    let mut strips: Vec<(Range<usize>, Vec<&mut [T]>)> = Vec::new();
    for first in columns.clone().step_by(width) {
        let strip = first..columns.end.min(first + width);
        let parts = rows.iter_mut().map(|row| {
            let (part, rest) = mem::take(row).split_at_mut(strip.len());
            *row = rest;
            part
        });
        strips.push((strip.clone(), parts.collect()));
    }
    strips.into_par_iter().for_each(|(strip, mut rows)| {
        vectorised(
            #[inline(always)]
            || {
                for first in strip.clone().step_by(SUMS) {
                    let some = first..strip.end.min(first + SUMS);
                    let means = means(state.rows(), |i| &state.row(i)[some.clone()]);
                    for (i, row) in rows.iter_mut().enumerate() {
                        let out = &mut row[first - strip.start..some.end - strip.start];
                        subtract(&state.row(i)[some.clone()], &means, out);
                    }
                }
            },
        );
    });
}

/// Writes some columns of the particles minus their mean, for a strip that is in a cache.
pub(crate) fn write_centred<'p, T: Real + 'p>(
    points: impl Fn(usize) -> &'p [T],
    columns: Range<usize>,
    centred: &mut Matrix<T>,
) {
    let (count, width) = (centred.rows(), centred.cols());
    vectorised(
        #[inline(always)]
        || {
            for first in columns.clone().step_by(SUMS) {
                let some = first..columns.end.min(first + SUMS);
                let means = means(count, |i| &points(i)[some.clone()]);
                for (i, row) in centred.as_mut_slice().chunks_exact_mut(width).enumerate() {
                    subtract(&points(i)[some.clone()], &means, &mut row[some.clone()]);
                }
            }
        },
    );
}

/// The means of at most [`SUMS`] columns.
#[inline(always)]
fn means<'p, T: Real + 'p>(count: usize, part: impl Fn(usize) -> &'p [T]) -> [T; SUMS] {
    let mut means = [T::zero(); SUMS];
    for i in 0..count {
        let row = part(i);
        if let Some(row) = row.first_chunk::<SUMS>() {
            for lane in 0..SUMS {
                means[lane] += row[lane];
            }
        } else {
            for (mean, &x) in means.iter_mut().zip(row) {
                *mean += x;
            }
        }
    }
    let share = T::of(1.0 / count as f64);
    means.map(|sum| share * sum)
}

#[inline(always)]
fn subtract<T: Real>(row: &[T], means: &[T; SUMS], out: &mut [T]) {
    for ((out, &x), &mean) in out.iter_mut().zip(row).zip(means) {
        *out = x - mean;
    }
}

/// All squared distances over some columns.
fn squared_distances<T: Real>(
    points: MatRef<'_, T>,
    columns: Range<usize>,
    squares: &mut Matrix<T>,
) {
    let count = points.rows();
    if columns.len() > DIRECT_COORDINATES {
        return squares_by_products(points, columns, squares);
    }
    let factor = Factor::new(points, T::one()).of(columns);
    let by_coordinate = factor.by_coordinate();
    let others: Vec<&[T]> = by_coordinate.chunks_exact(count).collect();
    for i in 0..count {
        simd::squared_distances(factor.row(i), &others, i + 1, &mut squares.row_mut(i)[..=i]);
    }
    mirror(squares.as_mut_slice(), count);
}

/// |x|² + |y|² − 2x·y, each pair once.
fn squares_by_products<T: Real>(
    points: MatRef<'_, T>,
    columns: Range<usize>,
    squares: &mut Matrix<T>,
) {
    let count = points.rows();
    let products = |(task, out): (usize, &mut [T])| {
        let first = task * ROWS_PER_TASK;
        lower_products(points, columns.clone(), first..first + out.len() / count, out);
    };
    let bands = squares.as_mut_slice();
    if count * count * columns.len() < SERIAL_PRODUCTS {
        bands.chunks_mut(ROWS_PER_TASK * count).enumerate().for_each(products);
    } else {
        let bands = bands.par_chunks_mut(ROWS_PER_TASK * count).enumerate();
        bands.with_max_len(1).for_each(products);
    }
    squares_of_products(points, columns, squares);
}

/// As [`squares_by_products`], of particles that are centred on the way: strip by strip, each read once.
fn squares_by_strips<T: Real>(
    points: MatRef<'_, T>,
    columns: Range<usize>,
    width: usize,
    squares: &mut Matrix<T>,
) {
    let count = points.rows();
    let strips: Vec<usize> = columns.clone().step_by(width).collect();
    let of_part = |firsts: &[usize]| {
        let (mut products, mut strip) = (Products::new(count), Matrix::zeros(0, 0));
        for &first in firsts {
            let some = first..columns.end.min(first + width);
            if strip.cols() != some.len() {
                strip = Matrix::zeros(count, some.len());
            }
            // Row after row: far rows side by side would be read at the pace of waiting.
            for (i, row) in strip.as_mut_slice().chunks_exact_mut(some.len()).enumerate() {
                row.copy_from_slice(&points.row(i)[some.clone()]);
            }
            products.add(count, some.len(), |i| strip.row(i));
        }
        products
    };
    let parts = strips.par_chunks(strips_of_a_part(strips.len())).with_max_len(1);
    let parts: Vec<Products<T>> = parts.map(of_part).collect();
    add_up(&parts, squares);
    squares_of_products(points, columns, squares);
}

/// How many strips are summed one after the other, whoever does it; such parts are then summed in order.
pub(crate) fn strips_of_a_part(strips: usize) -> usize {
    const PARTS: usize = 64;
    strips.div_ceil(PARTS)
}

/// Σ x·y over some strips of coordinates, of centred particles: what squared distances are made of.
pub(crate) struct Products<T: Real> {
    sums: Vec<T>,
    of_strip: Vec<T>,
    centred: Matrix<T>,
}

impl<T: Real> Products<T> {
    pub(crate) fn new(count: usize) -> Self {
        let zeros = || vec![T::zero(); count * count];
        Self { sums: zeros(), of_strip: zeros(), centred: Matrix::zeros(0, 0) }
    }

    /// Takes another strip of so many coordinates of all particles into account.
    pub(crate) fn add<'p>(&mut self, count: usize, width: usize, strip: impl Fn(usize) -> &'p [T])
    where
        T: 'p,
    {
        if self.centred.cols() != width {
            self.centred = Matrix::zeros(count, width);
        }
        write_centred(strip, 0..width, &mut self.centred);
        lower_products(self.centred.as_ref(), 0..width, 0..count, &mut self.of_strip);
        let (sums, of_strip) = (&mut self.sums, &self.of_strip);
        vectorised(
            #[inline(always)]
            || sums.iter_mut().zip(of_strip).for_each(|(sum, &more)| *sum += more),
        );
    }
}

fn add_up<T: Real>(parts: &[Products<T>], out: &mut Matrix<T>) {
    let out = out.as_mut_slice();
    out.fill(T::zero());
    for part in parts {
        out.iter_mut().zip(&part.sums).for_each(|(sum, &more)| *sum += more);
    }
}

/// |x|² + |y|² − 2x·y of products x·y on and below the diagonal, for all pairs.
fn squares_of_products<T: Real>(
    points: MatRef<'_, T>,
    columns: Range<usize>,
    squares: &mut Matrix<T>,
) {
    let count = points.rows();
    let close = T::CLOSE;
    let coordinates = |i: usize| &points.row(i)[columns.clone()];
    let norms: Vec<T> = (0..count).map(|i| squares.row(i)[i]).collect();
    for (i, &norm) in norms.iter().enumerate() {
        let row = &mut squares.row_mut(i)[..=i];
        row[i] = T::zero();
        if squares_from_products(norm, &norms[..i], close, &mut row[..i]) {
            // Close pairs far from the centre have lost their digits to cancellation.
            for (j, x) in row[..i].iter_mut().enumerate() {
                if *x < close * (norm + norms[j]) {
                    let pairs = coordinates(i).iter().zip(coordinates(j));
                    *x = pairs.map(|(&a, &b)| (a - b) * (a - b)).sum();
                }
            }
        }
    }
    mirror(squares.as_mut_slice(), count);
}

/// Writes what is below the diagonal of a square matrix above it too.
pub(super) fn mirror<T: Real>(all: &mut [T], count: usize) {
    // So many numbers are written side by side.
    const SOME: usize = 8;
    for first in (0..count).step_by(SOME) {
        let (before, here) = all.split_at_mut(first * count);
        let rows = here.chunks_mut(count).take(SOME);
        let some = rows.len();
        let mut from: [&mut [T]; SOME] = std::array::from_fn(|_| Default::default());
        for (from, row) in from.iter_mut().zip(rows) {
            *from = row;
        }
        for (j, row) in before.chunks_exact_mut(count).enumerate() {
            for (to, from) in row[first..first + some].iter_mut().zip(&from) {
                *to = from[j];
            }
        }
        for i in 0..some {
            for j in 0..i {
                from[j][first + i] = from[i][first + j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    #[test]
    fn squares_follow_the_versions_of_their_blocks() {
        // Summed directly, from products, centred in one and in two strips, and computed in strips.
        for dim in [20, 60, 200, 500, 1100] {
            squares_follow_the_versions(37, dim);
        }
    }

    fn squares_follow_the_versions(count: usize, dim: usize) {
        let mut state = random_states(count, 2 * dim, 4);
        // Two particles that nearly coincide, far from the others.
        for j in 0..2 * dim {
            state.row_mut(3)[j] = 1e3;
            state.row_mut(5)[j] = 1e3 + 1e-6;
        }
        let naive = |state: &Matrix<f64>, columns: Range<usize>, i: usize, j: usize| {
            let pairs = state.row(i)[columns.clone()].iter().zip(&state.row(j)[columns]);
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>()
        };
        let mut cloud = Cloud::new(count, 2, dim);
        let check = |cloud: &mut Cloud<f64>, state: &Matrix<f64>, versions: [u64; 2]| {
            let mut squares = Matrix::zeros(count, count);
            cloud.centre(state.as_ref(), &versions);
            cloud.write_squares(state.as_ref(), 0..2, &mut squares);
            for i in 0..count {
                for j in 0..count {
                    let (expected, found) = (naive(state, 0..2 * dim, i, j), squares.row(i)[j]);
                    assert!((found - expected).abs() <= 1e-6 * expected, "{found} {expected}");
                }
            }
        };
        assert!(cloud.keeps_squares());
        check(&mut cloud, &state, [1, 1]);
        for i in 0..count {
            state.row_mut(i)[dim + i % dim] += 0.5 * i as f64;
        }
        check(&mut cloud, &state, [1, 2]);
        state.row_mut(7)[0] -= 4.0;
        check(&mut cloud, &state, [3, 2]);

        // Nothing is computed again while versions stay: that is the point of them.
        let before = state.clone();
        state.row_mut(7)[0] += 9.0;
        check(&mut cloud, &before, [3, 2]);
    }
}
