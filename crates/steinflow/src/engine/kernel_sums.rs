//! Kernel sums: K·R and Sᵍ·Rᵍ for all particles, with K and Sᵍ never stored.
//!
//! K = Πᵍ φ(qᵍ) over the factors g of the kernel, with qᵍᵢⱼ the squared distance of the scaled
//! particles; the slope Sᵍ is what multiplies (Yᵢ − Yⱼ) in ∇₂k. For the squared exponential every
//! slope is K itself.
//!
//! The N×N matrix is worked off in fixed tiles. A thread takes whole bands of rows and adds the
//! tiles of a band from left to right, so the bits do not depend on how many threads there are.

use pulp::Arch;
use rayon::prelude::*;

use super::add_squared_differences;
use crate::kernel::Radial;
use crate::{MatRef, Matrix, Real};

/// Rows of a tile: what one task works on.
const BAND: usize = 32;
/// Columns of a tile: with [`BAND`], a tile of f64 fills 64 KB.
const STRIP: usize = 256;
/// Up to this many coordinates, squared distances are summed directly, which is also the more
/// accurate way; above, they come from a matrix product.
const DIRECT_COORDINATES: usize = 16;

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
    let prepared: Vec<Points<'_, T>> = sums.groups.iter().map(Points::new).collect();
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

fn chunks<T>(data: &mut [T], cols: usize) -> std::slice::ChunksMut<'_, T> {
    data.chunks_mut((BAND * cols).max(1))
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
            let mut by_coordinate = vec![T::zero(); n * d];
            for i in 0..n {
                for (k, &x) in rows.row(i).iter().enumerate() {
                    by_coordinate[k * n + i] = x;
                }
            }
            Self::Direct { rows, by_coordinate }
        } else {
            let squares = (0..n).map(|i| rows.row(i).iter().map(|&x| x * x).sum()).collect();
            Self::Product { rows, squares }
        }
    }

    /// Writes squared distances of particles `first..first + m` to `start..start + n`.
    fn squared_distances(&self, first: usize, m: usize, start: usize, n: usize, tile: &mut [T]) {
        match self {
            Self::Direct { rows, by_coordinate } => Arch::new().dispatch(
                #[inline(always)]
                || {
                    tile.fill(T::zero());
                    let count = rows.rows();
                    for (i, tile) in tile.chunks_exact_mut(n).enumerate() {
                        for (k, &x) in rows.row(first + i).iter().enumerate() {
                            let y = &by_coordinate[k * count + start..k * count + start + n];
                            add_squared_differences(tile, x, y);
                        }
                    }
                },
            ),
            Self::Product { rows, squares } => {
                let d = rows.cols();
                let a = &rows.as_slice()[first * d..(first + m) * d];
                let b = &rows.as_slice()[start * d..(start + n) * d];
                T::product_transposed(a, b, tile, m, n, d);
                for (i, tile) in tile.chunks_exact_mut(n).enumerate() {
                    let own = squares[first + i];
                    for (j, x) in tile.iter_mut().enumerate() {
                        let square = own + squares[start + j] - (*x + *x);
                        // Rounding may leave a tiny negative number; NaN must stay NaN.
                        *x = if square < T::zero() || first + i == start + j {
                            T::zero()
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
    fn sum(&mut self, sums: &KernelSums<'_, T>, groups: &[Points<'_, T>]) {
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
                    groups[0].squared_distances(self.first, self.rows, start, n, kernel);
                    T::exp_of_negated(kernel);
                }
                Radial::InverseMultiquadric => {
                    self.inverse_multiquadric(groups, start, n, kernel, &mut factors);
                }
            }
            let width = sums.values.cols();
            let rhs = &sums.values.as_slice()[start * width..(start + n) * width];
            T::accumulate_product(kernel, rhs, self.values, self.rows, width, n);
            for (g, rhs) in sums.slopes.iter().enumerate() {
                let width = rhs.cols();
                let slope = match sums.radial {
                    Radial::SquaredExponential => &*kernel,
                    Radial::InverseMultiquadric => &factors[g][..self.rows * n],
                };
                let rhs = &rhs.as_slice()[start * width..(start + n) * width];
                T::accumulate_product(slope, rhs, self.slopes[g], self.rows, width, n);
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
