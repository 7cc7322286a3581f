//! ∂/∂W = δ Xᵀ of a first layer with few inputs: a matrix product whose result is a register wide, which a
//! general one is not made for.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use std::array;

use pulp::{Arch, Simd, WithSimd};
use steinflow::Real;

use super::simd::LANES;

/// The most inputs that a row of data laid out for this has room for.
pub(super) const MOST: usize = LANES;

/// Adds Σₖ δ[unit][k] x[k] to every unit's row of `score`, over the first rows of data: `delta` is
/// `units × width`, and `rows` holds [`MOST`] numbers for every row of data, zeros after the inputs.
pub(super) fn add_products<T: Real>(
    delta: &[T],
    width: usize,
    rows: &[T],
    inputs: usize,
    score: &mut [T],
) {
    Arch::new().dispatch(AddProducts { delta, width, rows, inputs, score });
}

struct AddProducts<'a, T> {
    delta: &'a [T],
    width: usize,
    rows: &'a [T],
    inputs: usize,
    score: &'a mut [T],
}

impl<T: Real> WithSimd for AddProducts<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // A row of data in registers: as many sums as the registers hold, and enough of them that none
        // waits for itself.
        match T::registers::<S>(&self.rows[..MOST]).0.len() {
            1 => self.units::<S, 1, 10>(simd),
            2 => self.units::<S, 2, 5>(simd),
            4 => self.units::<S, 4, 3>(simd),
            8 => self.units::<S, 8, 1>(simd),
            _ => self.units::<S, MOST, 1>(simd),
        }
    }
}

impl<T: Real> AddProducts<'_, T> {
    #[inline(always)]
    fn units<S: Simd, const R: usize, const M: usize>(mut self, simd: S) {
        let units = self.delta.len() / self.width;
        let mut unit = 0;
        while unit + M <= units {
            self.some::<S, R, M>(simd, unit);
            unit += M;
        }
        for unit in unit..units {
            self.some::<S, R, 1>(simd, unit);
        }
    }

    #[inline(always)]
    fn some<S: Simd, const R: usize, const M: usize>(&mut self, simd: S, first: usize) {
        let rows = T::registers::<S>(self.rows).0.as_chunks::<R>().0;
        // Slices of one length that the compiler knows to be one, so that it checks no index.
        let delta: [&[T]; M] =
            array::from_fn(|unit| &self.delta[(first + unit) * self.width..][..rows.len()]);
        let mut sums = [[T::splat(simd, T::zero()); R]; M];
        for (k, x) in rows.iter().enumerate() {
            for unit in 0..M {
                let delta = T::splat(simd, delta[unit][k]);
                for part in 0..R {
                    sums[unit][part] = T::multiply_add(simd, delta, x[part], sums[unit][part]);
                }
            }
        }
        for (unit, sums) in sums.into_iter().enumerate() {
            let mut numbers = [T::zero(); MOST];
            T::registers_mut::<S>(&mut numbers).0.copy_from_slice(&sums);
            let score = &mut self.score[(first + unit) * self.inputs..][..self.inputs];
            for (score, sum) in score.iter_mut().zip(numbers) {
                *score += sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Real>(tolerance: f64) {
        for (units, width, rows, inputs) in [(1, 16, 3, 1), (7, 16, 16, 13), (50, 112, 100, 16)] {
            let delta: Vec<T> = (0..units * width).map(|i| T::of((i as f64 * 0.7).sin())).collect();
            let mut by_row = vec![T::zero(); rows * MOST];
            for (k, row) in by_row.chunks_exact_mut(MOST).enumerate() {
                for (j, x) in row[..inputs].iter_mut().enumerate() {
                    *x = T::of((k as f64 + 3.0 * j as f64).cos());
                }
            }
            let mut score = vec![T::one(); units * inputs];
            add_products(&delta, width, &by_row, inputs, &mut score);
            for unit in 0..units {
                for j in 0..inputs {
                    let products = (0..rows)
                        .map(|k| delta[unit * width + k].as_f64() * by_row[k * MOST + j].as_f64());
                    let (expected, found) =
                        (1.0 + products.sum::<f64>(), score[unit * inputs + j].as_f64());
                    assert!((found - expected).abs() < tolerance, "{unit}, {j}: {found}");
                }
            }
        }
    }

    #[test]
    fn products_agree_with_plain_sums() {
        check::<f64>(1e-12);
        check::<f32>(1e-4);
    }
}
