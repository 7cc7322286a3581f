//! Kernel sums: K·R and Sᵍ·Rᵍ for all particles, with K and Sᵍ never stored.
//!
//! K = Πᵍ φ(qᵍ) over the factors g of the kernel, with qᵍᵢⱼ the squared distance of the scaled
//! particles; the slope Sᵍ is what multiplies (Yᵢ − Yⱼ) in ∇₂k. For the squared exponential every
//! slope is K itself.
//!
//! The N×N matrix is worked off in fixed tiles. A thread takes whole bands of rows and adds the
//! tiles of a band from left to right, so the bits do not depend on how many threads there are.

use rayon::prelude::*;

use super::simd::{add_products, squared_distances};
use crate::kernel::Radial;
use crate::{MatRef, Matrix, Real};

/// Rows of a tile: what one task works on.
const BAND: usize = 32;
/// Columns of a tile: with [`BAND`], a tile of f64 fills 64 KB.
const STRIP: usize = 256;
/// Up to this many coordinates, squared distances are summed directly, which is also the more
/// accurate way; above, they come from a matrix product.
const DIRECT_COORDINATES: usize = 16;

/// Up to this many columns, a tile is multiplied by a right-hand side column by column; above, by
/// a matrix product, whose packing then pays.
const NARROW_COLUMNS: usize = 8;

/// What to sum. Shapes: N particles throughout.
#[derive(Clone, Copy, Debug)]
pub struct KernelSums<'a, T> {
    /// The profile of every factor.
    pub radial: Radial,
    /// Scaled particles, one matrix per factor of the kernel.
    pub groups: &'a [Matrix<T>],
    /// R, multiplied by K.
    pub values: MatRef<'a, T>,
    /// Rᵍ, multiplied by Sᵍ: one per factor, or none.
    pub slopes: &'a [Matrix<T>],
}

/// Returns K·R and every Sᵍ·Rᵍ.
pub fn kernel_sums<T: Real>(sums: &KernelSums<'_, T>) -> (Matrix<T>, Vec<Matrix<T>>) {
    let count = sums.values.rows();
    let prepared = Prepared {
        groups: sums.groups.iter().map(Points::new).collect(),
        values: Columns::new(sums.values),
        slopes: sums.slopes.iter().map(|rhs| Columns::new(rhs.as_ref())).collect(),
    };
    let mut values = Matrix::zeros(count, sums.values.cols());
    let mut slopes: Vec<Matrix<T>> =
        sums.slopes.iter().map(|rhs| Matrix::zeros(count, rhs.cols())).collect();

    // Cut every output into bands of rows, and hand out band after band.
    let mut bands: Vec<Band<'_, T>> = Vec::with_capacity(count.div_ceil(BAND));
    {
        let mut value_bands = chunks(values.as_mut_slice(), sums.values.cols());
        let mut slope_bands: Vec<_> = slopes
            .iter_mut()
            .map(|out| {
                let cols = out.cols();
                chunks(out.as_mut_slice(), cols)
            })
            .collect();
        for first in (0..count).step_by(BAND) {
            bands.push(Band {
                first,
                rows: BAND.min(count - first),
                values: value_bands.next().unwrap_or_default(),
                slopes: slope_bands.iter_mut().map(|b| b.next().unwrap_or_default()).collect(),
            });
        }
    }
    match &mut bands[..] {
        // Waking a thread pool would cost more than a single band.
        [band] => band.sum(sums, &prepared),
        bands => bands.par_iter_mut().for_each(|band| band.sum(sums, &prepared)),
    }
    drop(bands);
    (values, slopes)
}

/// K itself, N×N and in `f64`: for the few fields that solve with it or factor it.
pub fn kernel_matrix<T: Real>(radial: Radial, groups: &[Matrix<T>]) -> Matrix<f64> {
    let count = groups[0].rows();
    let mut matrix = Matrix::zeros(count, count);
    matrix.as_mut_slice().par_chunks_mut(count).enumerate().for_each(|(i, row)| {
        for (j, entry) in row.iter_mut().enumerate() {
            let squares = groups.iter().map(|points| -> f64 {
                let pairs = points.row(i).iter().zip(points.row(j));
                pairs.map(|(a, b)| (a.as_f64() - b.as_f64()).powi(2)).sum()
            });
            *entry = match radial {
                Radial::SquaredExponential => (-squares.sum::<f64>()).exp(),
                Radial::InverseMultiquadric => squares.map(|q| (1.0 + q).sqrt().recip()).product(),
            };
        }
    });
    matrix
}

fn chunks<T>(data: &mut [T], cols: usize) -> std::slice::ChunksMut<'_, T> {
    data.chunks_mut((BAND * cols).max(1))
}

/// The inputs, laid out for the loops below.
struct Prepared<'a, T> {
    groups: Vec<Points<'a, T>>,
    values: Columns<'a, T>,
    slopes: Vec<Columns<'a, T>>,
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

/// The part `start..start + n` of each of `count` columns that stand one after the other.
fn windows<T>(columns: &[T], count: usize, start: usize, n: usize) -> Vec<&[T]> {
    columns.chunks_exact(columns.len() / count).map(|column| &column[start..start + n]).collect()
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

/// The particles of one factor, laid out for the way their distances are computed.
enum Points<'a, T> {
    /// Coordinate after coordinate, so that a loop over particles is contiguous.
    Direct { rows: &'a Matrix<T>, by_coordinate: Vec<T> },
    /// As they are, with |x|² of each.
    Product { rows: &'a Matrix<T>, squares: Vec<T> },
}

impl<'a, T: Real> Points<'a, T> {
    fn new(rows: &'a Matrix<T>) -> Self {
        let (n, d) = (rows.rows(), rows.cols());
        if d <= DIRECT_COORDINATES {
            Self::Direct { rows, by_coordinate: transposed(rows.as_ref()) }
        } else {
            let squares = (0..n).map(|i| rows.row(i).iter().map(|&x| x * x).sum()).collect();
            Self::Product { rows, squares }
        }
    }

    /// Writes squared distances of particles `first..first + m` to `start..start + n`.
    fn squared_distances(&self, first: usize, m: usize, start: usize, n: usize, tile: &mut [T]) {
        match self {
            Self::Direct { rows, by_coordinate } => {
                let d = rows.cols();
                let x = &rows.as_slice()[first * d..(first + m) * d];
                squared_distances(x, &windows(by_coordinate, d, start, n), n, tile);
            }
            Self::Product { rows, squares } => {
                let d = rows.cols();
                let a = &rows.as_slice()[first * d..(first + m) * d];
                let b = &rows.as_slice()[start * d..(start + n) * d];
                T::product_transposed(a, b, tile, m, n, d);
                // Keeps the relative error of a squared distance below about 1e-5 in f32 and 1e-11
                // in f64; few pairs of a cloud around its centre are that close.
                let close = T::of(if T::NAME == "f32" { 1e-2 } else { 1e-5 });
                for (i, tile) in tile.chunks_exact_mut(n).enumerate() {
                    let own = squares[first + i];
                    for (j, x) in tile.iter_mut().enumerate() {
                        let sum = own + squares[start + j];
                        let square = sum - (*x + *x);
                        // Close pairs far from the centre have lost their digits to cancellation.
                        *x = if square < close * sum {
                            let pairs = rows.row(first + i).iter().zip(rows.row(start + j));
                            pairs.map(|(&a, &b)| (a - b) * (a - b)).sum()
                        } else {
                            square
                        };
                    }
                }
            }
        }
    }
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
        let groups = &prepared.groups;
        let count = sums.values.rows();
        let mut kernel = vec![T::zero(); self.rows * STRIP.min(count)];
        let mut factors = match sums.radial {
            Radial::SquaredExponential => Vec::new(),
            Radial::InverseMultiquadric => vec![kernel.clone(); groups.len()],
        };
        for start in (0..count).step_by(STRIP) {
            let n = STRIP.min(count - start);
            let kernel = &mut kernel[..self.rows * n];
            match sums.radial {
                Radial::SquaredExponential => {
                    // exp(−q₁) exp(−q₂) … = exp(−(q₁ + q₂ + …)).
                    groups[0].squared_distances(self.first, self.rows, start, n, kernel);
                    for points in &groups[1..] {
                        let mut more = vec![T::zero(); kernel.len()];
                        points.squared_distances(self.first, self.rows, start, n, &mut more);
                        for (square, more) in kernel.iter_mut().zip(more) {
                            *square += more;
                        }
                    }
                    T::exp_of_negated(kernel);
                }
                Radial::InverseMultiquadric => {
                    self.inverse_multiquadric(groups, start, n, kernel, &mut factors);
                }
            }
            prepared.values.accumulate(kernel, start, self.rows, n, self.values);
            for (g, rhs) in prepared.slopes.iter().enumerate() {
                let slope = match sums.radial {
                    Radial::SquaredExponential => &*kernel,
                    Radial::InverseMultiquadric => &factors[g][..self.rows * n],
                };
                rhs.accumulate(slope, start, self.rows, n, self.slopes[g]);
            }
        }
    }

    /// k = Πᵍ tᵍ^½ and Sᵍ = k·tᵍ with tᵍ = 1/(1 + qᵍ).
    fn inverse_multiquadric(
        &self,
        groups: &[Points<'_, T>],
        start: usize,
        n: usize,
        kernel: &mut [T],
        factors: &mut [Vec<T>],
    ) {
        kernel.fill(T::one());
        for (points, factor) in groups.iter().zip(factors.iter_mut()) {
            let factor = &mut factor[..self.rows * n];
            points.squared_distances(self.first, self.rows, start, n, factor);
            for (k, t) in kernel.iter_mut().zip(factor) {
                *t = (T::one() + *t).recip();
                *k *= *t;
            }
        }
        for k in kernel.iter_mut() {
            *k = k.sqrt();
        }
        for factor in factors {
            for (t, &k) in factor.iter_mut().zip(kernel.iter()) {
                *t *= k;
            }
        }
    }
}
