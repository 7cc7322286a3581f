//! The affine part c(1 + x·y) of a kernel: features 1 and x.
//!
//! Their Stein identities are E s = 0 and E s xᵀ = −I, the exact mean and covariance of a Gaussian
//! ([Liu and Wang 2018](https://arxiv.org/abs/1810.11693)), which a radial kernel meets only roughly. Sums
//! with it are linear work: by the moments Σⱼ rⱼ and Σⱼ rⱼxⱼᵀ where there are few coordinates, and by bands
//! of x·y where there are many.

use rayon::prelude::*;

use crate::{MatRef, Matrix, Real};

/// Rows that one task works on.
const BAND: usize = 64;

/// c(1 + x·y) of the particles as they are, over their first coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine<'a, T> {
    /// c.
    pub strength: T,
    /// The particles, not centred: a kernel whose centre moved along would not be one.
    pub points: MatRef<'a, T>,
    /// How many coordinates it sees.
    pub seen: usize,
}

impl<T: Real> Affine<'_, T> {
    /// x of one particle.
    fn point(&self, i: usize) -> &[T] {
        &self.points.row(i)[..self.seen]
    }

    /// c(1 + xᵢ·xⱼ).
    pub(crate) fn value(&self, i: usize, j: usize) -> T {
        let product: T = self.point(i).iter().zip(self.point(j)).map(|(&x, &y)| x * y).sum();
        self.strength * (T::one() + product)
    }

    /// Adds Σⱼ c(1 + xᵢ·xⱼ) rⱼ to every row i of `out`.
    pub(crate) fn add_sums(&self, rhs: MatRef<'_, T>, out: &mut Matrix<T>) {
        if self.seen <= self.points.rows() {
            self.add_by_moments(rhs, out);
        } else {
            self.add_by_bands(rhs, out);
        }
    }

    fn add_by_moments(&self, rhs: MatRef<'_, T>, out: &mut Matrix<T>) {
        let (count, width, features) = (rhs.rows(), rhs.cols(), 1 + self.seen);
        let mut known = vec![T::one(); count * features];
        for (i, row) in known.chunks_exact_mut(features).enumerate() {
            row[1..].copy_from_slice(self.point(i));
        }
        let mut moments = vec![T::zero(); features * width];
        T::transposed_product(&known, rhs.as_slice(), &mut moments, features, width, count);
        for moment in &mut moments {
            *moment *= self.strength;
        }
        let bands = out.as_mut_slice().par_chunks_mut(BAND * width);
        bands.zip(known.par_chunks(BAND * features)).for_each(|(out, known)| {
            let rows = known.len() / features;
            T::accumulate_product(known, &moments, out, rows, width, features);
        });
    }

    fn add_by_bands(&self, rhs: MatRef<'_, T>, out: &mut Matrix<T>) {
        let (count, width, stride) = (rhs.rows(), rhs.cols(), self.points.cols());
        let points = self.points.as_slice();
        out.as_mut_slice().par_chunks_mut(BAND * width).enumerate().for_each(|(band, out)| {
            let rows = out.len() / width;
            let own = &points[band * BAND * stride..];
            let mut kernel = vec![T::zero(); rows * count];
            T::product_of_strips(own, stride, points, stride, &mut kernel, rows, count, self.seen);
            for entry in &mut kernel {
                *entry = self.strength * (T::one() + *entry);
            }
            T::accumulate_product(&kernel, rhs.as_slice(), out, rows, width, count);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    #[test]
    fn sums_equal_a_double_loop() {
        // Few coordinates, many, and not all of them seen; more rows than a band has.
        for (count, columns, seen) in [(70, 5, 5), (70, 12, 6), (70, 90, 90), (3, 8, 4)] {
            let (points, rhs) = (random_states(count, columns, 1), random_states(count, 7, 2));
            let affine = Affine { strength: 0.7, points: points.as_ref(), seen };
            let mut out = random_states(count, 7, 3);
            let expected = Matrix::from_fn(count, 7, |i, k| {
                let sum: f64 = (0..count).map(|j| affine.value(i, j) * rhs.row(j)[k]).sum();
                out.row(i)[k] + sum
            });
            affine.add_sums(rhs.as_ref(), &mut out);
            for (a, b) in out.as_slice().iter().zip(expected.as_slice()) {
                assert!((a - b).abs() < 1e-11, "{a} against {b}");
            }
            let (x, y) = (points.row(0), points.row(1));
            let product: f64 = x[..seen].iter().zip(y).map(|(x, y)| x * y).sum();
            assert!((affine.value(0, 1) - 0.7 * (1.0 + product)).abs() < 1e-13);
        }
    }
}
