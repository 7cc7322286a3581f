//! Kernel sums: K·R and Sᵍ·Rᵍ for all particles, with K and Sᵍ never stored.
//!
//! K = Πᵍ φ(qᵍ) over the factors g of the kernel, with qᵍᵢⱼ the squared distance times the
//! factor's rate; the slope Sᵍ is what multiplies (Yᵢ − Yⱼ) in ∇₂k. For the squared exponential every
//! slope is K itself.
//!
//! The N×N matrix is worked off in fixed tiles. A thread takes whole bands of rows and adds the
//! tiles of a band from left to right, so the bits do not depend on how many threads there are. Where K is
//! all that is needed, few particles have it computed as a whole, and many by half (`symmetric`).

use std::ops::Range;

use rayon::prelude::*;

use super::cloud::mirror;
use super::points::{Distances, Factor, STRIP, windows};
use super::rows_per_task;
use super::simd::{add_products, squared_distances_to_rows, vectorised};
use super::symmetric::symmetric_sums;
use crate::kernel::Radial;
use crate::{MatRef, Matrix, Real};

/// Up to this many columns, a tile is multiplied by a right-hand side column by column; above, by
/// a matrix product, whose packing then pays.
const NARROW_COLUMNS: usize = 8;

/// Below this many products of numbers, other threads are not worth waking.
const SERIAL_PRODUCTS: usize = 1 << 20;
/// Rows that one task works on where K is known to fit a cache.
const KNOWN_ROWS: usize = 48;

/// Up to this many particles, the tiles of half of K would be too few to share out.
const FEW: usize = 256;

/// Rows of a tile, what one task works on: enough for a product to be fast, and few enough that the tasks
/// of a few hundred particles can be shared out evenly.
fn band_rows(count: usize) -> usize {
    if (33..=FEW).contains(&count) {
        16
    } else if count <= 32 {
        32
    } else {
        64
    }
}

/// What to sum. Shapes: N particles throughout.
#[derive(Clone, Copy, Debug)]
pub struct KernelSums<'a, T> {
    /// The profile of every factor.
    pub radial: Radial,
    /// The factors of the kernel.
    pub factors: &'a [Factor<'a, T>],
    /// R, multiplied by K.
    pub values: MatRef<'a, T>,
    /// Rᵍ, multiplied by Sᵍ: one per factor, or none.
    pub slopes: &'a [MatRef<'a, T>],
}

/// Returns K·R and every Sᵍ·Rᵍ.
pub fn kernel_sums<T: Real>(sums: &KernelSums<'_, T>) -> (Matrix<T>, Vec<Matrix<T>>) {
    let count = sums.values.rows();
    let mut values = Matrix::zeros(count, sums.values.cols());
    let mut slopes: Vec<Matrix<T>> =
        sums.slopes.iter().map(|rhs| Matrix::zeros(count, rhs.cols())).collect();
    let out = std::iter::once(&mut values).chain(&mut slopes);
    write_kernel_sums(sums, 0..count, &mut out.collect::<Vec<_>>());
    (values, slopes)
}

/// Writes K·R and then every Sᵍ·Rᵍ, in some of the rows at least; what others hold then means nothing.
pub fn write_kernel_sums<T: Real>(
    sums: &KernelSums<'_, T>,
    wanted: Range<usize>,
    out: &mut [&mut Matrix<T>],
) {
    let Some((values, slopes)) = out.split_first_mut() else { return };
    let count = sums.values.rows();
    let exponential = sums.radial == Radial::SquaredExponential && slopes.is_empty();
    if exponential
        && let Some(squares) = sums.factors.iter().map(Factor::squares).collect::<Option<Vec<_>>>()
    {
        return sums_of_known(sums, &squares, values);
    }
    let prepared = Prepared {
        factors: sums.factors.iter().map(Distances::new).collect(),
        values: Columns::new(sums.values),
        slopes: sums.slopes.iter().map(|rhs| Columns::new(*rhs)).collect(),
    };
    values.as_mut_slice().fill(T::zero());
    if exponential
        && let Columns::Wide(rhs) = prepared.values
        && count > FEW
    {
        let fill = |first, m, start, n, tile: &mut [T]| {
            prepared.squared_exponential(sums, first, m, start, n, tile);
        };
        return symmetric_sums(fill, rhs, wanted, values.as_mut_slice());
    }
    for slope in slopes.iter_mut() {
        slope.as_mut_slice().fill(T::zero());
    }

    // Cut every output into bands of rows, and hand out band after band.
    let band = band_rows(count);
    let mut bands: Vec<Band<'_, T>> = Vec::with_capacity(count.div_ceil(band));
    {
        let mut value_bands = values.as_mut_slice().chunks_mut((band * sums.values.cols()).max(1));
        let mut slope_bands: Vec<_> = slopes
            .iter_mut()
            .map(|out| {
                let cols = out.cols();
                out.as_mut_slice().chunks_mut((band * cols).max(1))
            })
            .collect();
        for first in (0..count).step_by(band) {
            let own = Band {
                first,
                rows: band.min(count - first),
                values: value_bands.next().unwrap_or_default(),
                slopes: slope_bands.iter_mut().map(|b| b.next().unwrap_or_default()).collect(),
            };
            if first < wanted.end && first + own.rows > wanted.start {
                bands.push(own);
            }
        }
    }
    match &mut bands[..] {
        // Waking a thread pool would cost more than a single band.
        [band] => band.sum(sums, &prepared),
        bands => bands.par_iter_mut().for_each(|band| band.sum(sums, &prepared)),
    }
}

/// K·R for few particles whose squared distances are known: K fits a cache, and is computed once.
fn sums_of_known<T: Real>(
    sums: &KernelSums<'_, T>,
    squares: &[MatRef<'_, T>],
    out: &mut Matrix<T>,
) {
    let (count, width) = (sums.values.rows(), sums.values.cols());
    let rates: Vec<T> = sums.factors.iter().map(Factor::rate).collect();
    let is_shared = count * count * width >= SERIAL_PRODUCTS;
    let kernel = known_kernel(&rates, squares, is_shared);
    let (rhs, out) = (sums.values.as_slice(), out.as_mut_slice());
    if !is_shared {
        T::product(&kernel, rhs, out, count, width, count);
    } else if width > count {
        T::product_by_columns(&kernel, rhs, out, count, width, count);
    } else {
        let bands =
            kernel.par_chunks(KNOWN_ROWS * count).zip(out.par_chunks_mut(KNOWN_ROWS * width));
        bands.for_each(|(kernel, out)| {
            T::product(kernel, rhs, out, kernel.len() / count, width, count);
        });
    }
}

/// K of the squared exponential from the squared distances that its factors see, each with its rate: N×N.
pub(crate) fn known_kernel<T: Real>(
    rates: &[T],
    squares: &[MatRef<'_, T>],
    is_shared: bool,
) -> Vec<T> {
    let count = squares[0].rows();
    let mut kernel = vec![T::zero(); count * count];
    let fill = |(i, row): (usize, &mut [T])| {
        let row = &mut row[..=i];
        row.copy_from_slice(&squares[0].row(i)[..=i]);
        for (more, &rate) in squares.iter().zip(rates).skip(1) {
            let weight = rate / rates[0];
            for (square, &more) in row.iter_mut().zip(more.row(i)) {
                *square += weight * more;
            }
        }
        T::exp_of_negated(row, rates[0]);
    };
    if is_shared {
        // An exponential is some ten times the work of touching a number.
        let rows = kernel.par_chunks_mut(count).enumerate();
        rows.with_min_len(rows_per_task(10 * count)).for_each(fill);
    } else {
        kernel.chunks_mut(count).enumerate().for_each(fill);
    }
    mirror(&mut kernel, count);
    kernel
}

/// K itself, N×N and in `f64`: for the few fields that solve with it or factor it.
pub fn kernel_matrix<T: Real>(radial: Radial, factors: &[Factor<'_, T>]) -> Matrix<f64> {
    let count = factors[0].count();
    let points: Vec<Matrix<f64>> = factors
        .iter()
        .map(|factor| {
            Matrix::from_fn(count, factor.coordinates(), |i, j| factor.row(i)[j].as_f64())
        })
        .collect();
    let mut matrix = Matrix::zeros(count, count);
    matrix.as_mut_slice().par_chunks_mut(count).enumerate().for_each(|(i, row)| {
        let mut squares = vec![0.0; count];
        row.fill(1.0);
        for (points, factor) in points.iter().zip(factors) {
            let stride = points.cols();
            squared_distances_to_rows(points.row(i), points.as_slice(), stride, &mut squares);
            let rate = factor.rate().as_f64();
            for (entry, square) in row.iter_mut().zip(&squares) {
                *entry *= radial.value(rate * square);
            }
        }
    });
    matrix
}

/// The inputs, laid out for the loops below.
struct Prepared<'a, T: Real> {
    factors: Vec<Distances<'a, T>>,
    values: Columns<'a, T>,
    slopes: Vec<Columns<'a, T>>,
}

impl<T: Real> Prepared<'_, T> {
    /// A tile of exp(−q₁) exp(−q₂) … = exp(−(q₁ + q₂ + …)).
    fn squared_exponential(
        &self,
        sums: &KernelSums<'_, T>,
        first: usize,
        rows: usize,
        start: usize,
        n: usize,
        kernel: &mut [T],
    ) {
        let rate = sums.factors[0].rate();
        self.factors[0].squares(first, rows, start, n, kernel);
        for (distances, factor) in self.factors.iter().zip(sums.factors).skip(1) {
            let mut more = vec![T::zero(); kernel.len()];
            distances.squares(first, rows, start, n, &mut more);
            let weight = factor.rate() / rate;
            for (square, more) in kernel.iter_mut().zip(more) {
                *square += weight * more;
            }
        }
        T::exp_of_negated(kernel, rate);
    }
}

/// A right-hand side, laid out for the way it is multiplied.
enum Columns<'a, T> {
    /// Column after column.
    Narrow { width: usize, by_column: Vec<T> },
    /// As it is.
    Wide(MatRef<'a, T>),
}

impl<'a, T: Real> Columns<'a, T> {
    fn new(rhs: MatRef<'a, T>) -> Self {
        if rhs.cols() <= NARROW_COLUMNS {
            Self::Narrow { width: rhs.cols(), by_column: transposed(rhs) }
        } else {
            Self::Wide(rhs)
        }
    }

    /// out += tile · (rows `start..start + n` of the right-hand side), for a tile of `m` rows.
    fn accumulate(&self, tile: &[T], start: usize, m: usize, n: usize, out: &mut [T]) {
        match self {
            Self::Narrow { width: 0, .. } => {}
            Self::Narrow { width, by_column } => {
                add_products(tile, &windows(by_column, *width, start, n), n, out);
            }
            Self::Wide(rhs) => {
                let width = rhs.cols();
                let rows = &rhs.as_slice()[start * width..(start + n) * width];
                T::accumulate_product(tile, rows, out, m, width, n);
            }
        }
    }
}

fn transposed<T: Real>(matrix: MatRef<'_, T>) -> Vec<T> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let mut out = vec![T::zero(); rows * cols];
    for i in 0..rows {
        for (j, &x) in matrix.row(i).iter().enumerate() {
            out[j * rows + i] = x;
        }
    }
    out
}

/// A band of rows of the outputs.
struct Band<'a, T> {
    first: usize,
    rows: usize,
    values: &'a mut [T],
    slopes: Vec<&'a mut [T]>,
}

impl<T: Real> Band<'_, T> {
    fn sum(&mut self, sums: &KernelSums<'_, T>, prepared: &Prepared<'_, T>) {
        let count = sums.values.rows();
        let mut kernel = vec![T::zero(); self.rows * STRIP.min(count)];
        let shared = sums.radial.slope_is_value();
        // Every factor's own slope, where it is not k.
        let mut factors =
            if shared { Vec::new() } else { vec![kernel.clone(); sums.factors.len()] };
        for start in (0..count).step_by(STRIP) {
            let n = STRIP.min(count - start);
            let kernel = &mut kernel[..self.rows * n];
            match sums.radial {
                Radial::SquaredExponential => {
                    prepared.squared_exponential(sums, self.first, self.rows, start, n, kernel);
                }
                Radial::InverseMultiquadric => {
                    self.inverse_multiquadric(sums, prepared, start, n, kernel, &mut factors);
                }
            }
            prepared.values.accumulate(kernel, start, self.rows, n, self.values);
            for (g, rhs) in prepared.slopes.iter().enumerate() {
                let slope = if shared { &*kernel } else { &factors[g][..self.rows * n] };
                rhs.accumulate(slope, start, self.rows, n, self.slopes[g]);
            }
        }
    }

    /// k = Πᵍ tᵍ^½ and Sᵍ = k·tᵍ with tᵍ = 1/(1 + qᵍ).
    fn inverse_multiquadric(
        &self,
        sums: &KernelSums<'_, T>,
        prepared: &Prepared<'_, T>,
        start: usize,
        n: usize,
        kernel: &mut [T],
        factors: &mut [Vec<T>],
    ) {
        kernel.fill(T::one());
        for ((distances, source), factor) in
            prepared.factors.iter().zip(sums.factors).zip(factors.iter_mut())
        {
            let factor = &mut factor[..self.rows * n];
            distances.squares(self.first, self.rows, start, n, factor);
            vectorised(
                #[inline(always)]
                || {
                    for (k, t) in kernel.iter_mut().zip(factor) {
                        *t = (T::one() + source.rate() * *t).recip();
                        *k *= *t;
                    }
                },
            );
        }
        vectorised(
            #[inline(always)]
            || {
                for k in kernel.iter_mut() {
                    *k = k.sqrt();
                }
                for factor in factors {
                    for (t, &k) in factor.iter_mut().zip(kernel.iter()) {
                        *t *= k;
                    }
                }
            },
        );
    }
}
