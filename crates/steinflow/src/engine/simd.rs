//! The inner loops over pairs of particles, compiled for whatever SIMD the machine has.
//!
//! Plain loops inside a [`WithSimd`] body: the compiler vectorises them once per instruction set,
//! and the choice is made at run time. All sums have a fixed order.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::{Arch, Simd, WithSimd};

use crate::Real;

/// The widest register holds as many numbers.
const LANES: usize = 16;

/// a·b + c, fused where the instruction set has it; a software fused multiply-add would be slow.
#[inline(always)]
fn multiply_add<T: Real, S: Simd>(a: T, b: T, c: T) -> T {
    if S::IS_SCALAR { a * b + c } else { a.mul_add(b, c) }
}

/// Compiles a plain loop for the machine's SIMD: pass a closure marked `#[inline(always)]`.
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}

/// tile[i][j] = Σₖ (x[i][k] − y[k][j])², for `n` columns and y given coordinate by coordinate.
pub(super) fn squared_distances<T: Real>(x: &[T], y: &[&[T]], n: usize, tile: &mut [T]) {
    Arch::new().dispatch(SquaredDistances { x, y, n, tile });
}

struct SquaredDistances<'a, T> {
    x: &'a [T],
    y: &'a [&'a [T]],
    n: usize,
    tile: &'a mut [T],
}

impl<T: Real> WithSimd for SquaredDistances<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { x, y, n, tile } = self;
        for (x, tile) in x.chunks_exact(y.len()).zip(tile.chunks_exact_mut(n)) {
            let mut start = 0;
            while start + 4 * LANES <= n {
                squares_of_block::<T, S, { 4 * LANES }>(x, y, start, tile);
                start += 4 * LANES;
            }
            while start + LANES <= n {
                squares_of_block::<T, S, LANES>(x, y, start, tile);
                start += LANES;
            }
            if start < n && n >= LANES {
                // The last block overlaps the one before it, and finds the same squares again.
                squares_of_block::<T, S, LANES>(x, y, n - LANES, tile);
            } else {
                for start in start..n {
                    squares_of_block::<T, S, 1>(x, y, start, tile);
                }
            }
        }
    }
}

/// Squared distances to `B` neighbours, whose sums stay in registers while the coordinates pass by.
#[inline(always)]
fn squares_of_block<T: Real, S: Simd, const B: usize>(
    x: &[T],
    y: &[&[T]],
    start: usize,
    tile: &mut [T],
) {
    let mut sums = [T::zero(); B];
    for (&x, y) in x.iter().zip(y) {
        let y = &y[start..start + B];
        for lane in 0..B {
            let difference = x - y[lane];
            sums[lane] = multiply_add::<T, S>(difference, difference, sums[lane]);
        }
    }
    tile[start..start + B].copy_from_slice(&sums);
}

/// out[i] = |x − y|² for x = point `first + i` and y = point `second + i` of `count` points given coordinate
/// by coordinate.
pub(crate) fn squared_distances_of_pairs<T: Real>(
    columns: &[T],
    count: usize,
    first: usize,
    second: usize,
    out: &mut [T],
) {
    Arch::new().dispatch(SquaredDistancesOfPairs { columns, count, first, second, out });
}

struct SquaredDistancesOfPairs<'a, T> {
    columns: &'a [T],
    count: usize,
    first: usize,
    second: usize,
    out: &'a mut [T],
}

impl<T: Real> WithSimd for SquaredDistancesOfPairs<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        // Sums that stay in registers while the coordinates pass by.
        const BLOCK: usize = 64;
        let Self { columns, count, first, second, out } = self;
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let at = block * BLOCK;
            let mut sums = [T::zero(); BLOCK];
            for column in columns.chunks_exact(count) {
                let (x, y) = (&column[first + at..], &column[second + at..]);
                match (x.first_chunk::<BLOCK>(), y.first_chunk::<BLOCK>()) {
                    (Some(x), Some(y)) => {
                        for lane in 0..BLOCK {
                            let difference = x[lane] - y[lane];
                            sums[lane] = multiply_add::<T, S>(difference, difference, sums[lane]);
                        }
                    }
                    _ => {
                        for (sum, (&x, &y)) in sums.iter_mut().zip(x.iter().zip(y)) {
                            *sum = multiply_add::<T, S>(x - y, x - y, *sum);
                        }
                    }
                }
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

/// products[j] ← own + others[j] − 2 products[j]; tells whether any is below `close` times own +
/// others[j].
pub(super) fn squares_from_products<T: Real>(
    own: T,
    others: &[T],
    close: T,
    products: &mut [T],
) -> bool {
    vectorised(
        #[inline(always)]
        || {
            let mut any = false;
            for (x, &other) in products.iter_mut().zip(others) {
                let sum = own + other;
                *x = sum - (*x + *x);
                any |= *x < close * sum;
            }
            any
        },
    )
}

/// out[j] = |x − yⱼ|² for rows yⱼ that begin `stride` entries apart.
pub(crate) fn squared_distances_to_rows<T: Real>(
    x: &[T],
    rows: &[T],
    stride: usize,
    out: &mut [T],
) {
    Arch::new().dispatch(SquaredDistancesToRows { x, rows, stride, out });
}

struct SquaredDistancesToRows<'a, T> {
    x: &'a [T],
    rows: &'a [T],
    stride: usize,
    out: &'a mut [T],
}

impl<T: Real> WithSimd for SquaredDistancesToRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let (x_heads, x_tail) = self.x.as_chunks::<LANES>();
        for (row, out) in self.rows.chunks(self.stride).zip(self.out) {
            let (heads, tail) = row[..self.x.len()].as_chunks::<LANES>();
            let mut sums = [T::zero(); LANES];
            for (x, y) in x_heads.iter().zip(heads) {
                for lane in 0..LANES {
                    let difference = x[lane] - y[lane];
                    sums[lane] = multiply_add::<T, S>(difference, difference, sums[lane]);
                }
            }
            let pairs = x_tail.iter().zip(tail);
            let mut total: T = pairs.map(|(&x, &y)| (x - y) * (x - y)).sum();
            if !x_heads.is_empty() {
                for sum in sums {
                    total += sum;
                }
            }
            *out = total;
        }
    }
}

/// Σ x², in `f64` over short sums that are not.
pub(crate) fn sum_of_squares<T: Real>(values: &[T]) -> f64 {
    const SHORT: usize = 1024;
    values.chunks(SHORT).map(|some| squared_norm(some).as_f64()).sum()
}

/// out[i][c] += Σⱼ tile[i][j] · columns[c][j], for tiles of `n` columns.
pub(super) fn add_products<T: Real>(tile: &[T], columns: &[&[T]], n: usize, out: &mut [T]) {
    Arch::new().dispatch(AddProducts { tile, columns, n, out });
}

struct AddProducts<'a, T> {
    tile: &'a [T],
    columns: &'a [&'a [T]],
    n: usize,
    out: &'a mut [T],
}

impl<T: Real> WithSimd for AddProducts<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let width = self.columns.len();
        for (tile, out) in self.tile.chunks_exact(self.n).zip(self.out.chunks_exact_mut(width)) {
            for (column, out) in self.columns.iter().zip(out) {
                *out += dot::<T, S>(tile, column);
            }
        }
    }
}

/// |x|².
pub(crate) fn squared_norm<T: Real>(x: &[T]) -> T {
    Arch::new().dispatch(SquaredNorm(x))
}

struct SquaredNorm<'a, T>(&'a [T]);

impl<T: Real> WithSimd for SquaredNorm<'_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> T {
        dot::<T, S>(self.0, self.0)
    }
}

/// Whether all numbers are finite.
pub(crate) fn all_finite<T: Real>(values: &[T]) -> bool {
    vectorised(
        #[inline(always)]
        || values.iter().fold(true, |all, x| all & x.is_finite()),
    )
}

/// Σⱼ aⱼ bⱼ: running sums that fill several registers, then their sum.
#[inline(always)]
fn dot<T: Real, S: Simd>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 32;
    let mut sums = [T::zero(); LANES];
    let (heads_a, tail_a) = a.as_chunks::<LANES>();
    let (heads_b, tail_b) = b.as_chunks::<LANES>();
    for (a, b) in heads_a.iter().zip(heads_b) {
        for lane in 0..LANES {
            sums[lane] = multiply_add::<T, S>(a[lane], b[lane], sums[lane]);
        }
    }
    let mut total: T = tail_a.iter().zip(tail_b).map(|(&a, &b)| a * b).sum();
    for sum in sums {
        total += sum;
    }
    total
}

/// exp(−rate·x), which must not overflow, with 0 where the result would be subnormal.
///
/// exp(y) = 2ⁿ·exp(r) with n = round(y·log₂e) and |r| ≤ ½ log 2; exp(r) by its Taylor polynomial,
/// even and odd powers apart so that they are computed side by side. Error: at most 2 ulp, as the
/// tests below measure over the whole range.
macro_rules! exp_of_negated {
    ($name:ident, $operation:ident, $real:ident, magic: $magic:expr, mantissa: $mantissa:expr,
     bias: $bias:expr, smallest: $smallest:expr, ln2: ($high:expr, $low:expr),
     even: [$($even:expr),*], odd: [$($odd:expr),*]) => {
        pub(super) fn $name(values: &mut [$real], rate: $real) {
            Arch::new().dispatch($operation(values, -rate));
        }

        struct $operation<'a>(&'a mut [$real], $real);

        impl WithSimd for $operation<'_> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, _simd: S) {
                for x in self.0.iter_mut() {
                    let y = self.1 * *x;
                    // Adding 1.5·2^mantissa rounds to an integer and leaves it in the low bits.
                    let shifted = y * std::f64::consts::LOG2_E as $real + $magic;
                    let n = shifted - $magic;
                    let r = multiply_add::<$real, S>(-n, $low, multiply_add::<$real, S>(-n, $high, y));
                    let square = r * r;
                    let mut even: $real = 0.0;
                    $(even = multiply_add::<$real, S>(even, square, $even);)*
                    let mut odd: $real = 0.0;
                    $(odd = multiply_add::<$real, S>(odd, square, $odd);)*
                    let power = $real::from_bits(shifted.to_bits().wrapping_add($bias) << $mantissa);
                    let value = multiply_add::<$real, S>(odd, r, even) * power;
                    *x = if y < $smallest { 0.0 } else { value };
                }
            }
        }
    };
}

exp_of_negated!(
    exp_of_negated_f64, ExpOfNegatedF64, f64,
    magic: 6_755_399_441_055_744.0, mantissa: 52, bias: 1023, smallest: -708.0,
    ln2: (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10),
    even: [
        1.0 / 479_001_600.0, 1.0 / 3_628_800.0, 1.0 / 40_320.0, 1.0 / 720.0, 1.0 / 24.0, 0.5, 1.0
    ],
    odd: [
        1.0 / 6_227_020_800.0, 1.0 / 39_916_800.0, 1.0 / 362_880.0, 1.0 / 5_040.0, 1.0 / 120.0,
        1.0 / 6.0, 1.0
    ]
);

exp_of_negated!(
    exp_of_negated_f32, ExpOfNegatedF32, f32,
    magic: 12_582_912.0, mantissa: 23, bias: 127, smallest: -87.0,
    ln2: (0.693_359_4, -2.121_944_4e-4),
    even: [1.0 / 720.0, 1.0 / 24.0, 0.5, 1.0],
    odd: [1.0 / 5_040.0, 1.0 / 120.0, 1.0 / 6.0, 1.0]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_the_standard_library() {
        let inputs: Vec<f64> = (0..200_000).map(|i| f64::from(i) * 3.5e-3).collect();
        let mut ours = inputs.clone();
        exp_of_negated_f64(&mut ours, 1.0);
        for (&x, &ours) in inputs.iter().zip(&ours) {
            let exact = (-x).exp();
            assert!((ours - exact).abs() <= 2.0 * f64::EPSILON * exact, "exp(-{x}) = {ours}");
        }
        let inputs: Vec<f32> = (0..60_000u16).map(|i| f32::from(i) * 1.45e-3).collect();
        let mut ours = inputs.clone();
        exp_of_negated_f32(&mut ours, 1.0);
        for (&x, &ours) in inputs.iter().zip(&ours) {
            let exact = (-f64::from(x)).exp();
            let tolerance = 2.0 * f64::from(f32::EPSILON) * exact;
            assert!((f64::from(ours) - exact).abs() <= tolerance, "exp(-{x}) = {ours}");
        }
    }

    #[test]
    fn exp_at_the_edges() {
        let mut values = [0.0, -0.0, 708.0, 709.0, 1e308, f64::INFINITY, f64::NAN];
        exp_of_negated_f64(&mut values, 1.0);
        assert_eq!(values[..2], [1.0, 1.0]);
        assert!(values[2] > 0.0);
        assert_eq!(values[3..6], [0.0, 0.0, 0.0]);
        assert!(values[6].is_nan());
        let mut values = [0.0, 88.0, 1e38, f32::INFINITY, f32::NAN];
        exp_of_negated_f32(&mut values, 1.0);
        assert_eq!(values[..4], [1.0, 0.0, 0.0, 0.0]);
        assert!(values[4].is_nan());
    }
}
