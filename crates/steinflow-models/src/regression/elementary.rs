//! What likelihoods have in common when they look at many rows at once: loops for whatever SIMD the machine has,
//! powers and logarithms, and sums, which have a fixed order.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::Arch;
use steinflow::Real;

/// Rows at a time: what a likelihood keeps of them stays in the first-level cache.
pub(super) const CHUNK: usize = 256;

const LANES: usize = 32;

/// Compiles a plain loop for the machine's SIMD: pass a closure marked `#[inline(always)]`.
pub(super) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}

/// Replaces every x by eˣ; beyond the largest number stands one that is nearly as large.
pub(super) fn exp<T: Real>(values: &mut [T]) {
    let most = T::max_value().ln().floor();
    vectorised(
        #[inline(always)]
        || {
            for x in values.iter_mut() {
                *x = if *x > most { most } else { *x };
            }
        },
    );
    T::exp_of_negated(values, -T::one());
}

/// log(1 + d) for 0 ≤ d ≤ 1, for use in a loop that is vectorised.
#[inline(always)]
pub(super) fn log_of_one_plus<T: Real>(d: T) -> T {
    let (one, two, half) = (T::one(), T::of(2.0), T::of(0.5));
    // 1 + d = m or 2m with m near 1, and log m = 2 artanh((m − 1)/(m + 1)).
    let is_large = d > T::of(std::f64::consts::SQRT_2 - 1.0);
    let excess = if is_large { (d - one) * half } else { d };
    let ratio = excess / (excess + two);
    let square = ratio * ratio;
    let terms: u32 = if T::epsilon() > T::of(1e-10) { 5 } else { 11 };
    let mut series = T::zero();
    for k in (0..terms).rev() {
        series = series * square + T::of(1.0 / f64::from(2 * k + 1));
    }
    let base = if is_large { T::of(std::f64::consts::LN_2) } else { T::zero() };
    base + two * ratio * series
}

/// top ← max(top, x), number by number.
pub(super) fn raise<T: Real>(top: &mut [T], values: &[T]) {
    vectorised(
        #[inline(always)]
        || {
            for (top, &x) in top.iter_mut().zip(values) {
                *top = if x > *top { x } else { *top };
            }
        },
    );
}

/// Has `row` change every η and its number in `own`, given y, and returns the sums of what it gives.
pub(super) fn sums_over_rows<T: Real, const K: usize>(
    eta: &mut [T],
    y: &[T],
    own: &mut [T],
    mut row: impl FnMut(&mut T, T, &mut T) -> [T; K],
) -> [f64; K] {
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [[T::zero(); LANES]; K];
            let (etas, last_etas) = eta.as_chunks_mut::<LANES>();
            let (ys, last_ys) = y.as_chunks::<LANES>();
            let (owns, last_owns) = own.as_chunks_mut::<LANES>();
            for ((eta, y), own) in etas.iter_mut().zip(ys).zip(owns) {
                for lane in 0..LANES {
                    let terms = row(&mut eta[lane], y[lane], &mut own[lane]);
                    for k in 0..K {
                        sums[k][lane] += terms[k];
                    }
                }
            }
            let last = last_etas.iter_mut().zip(last_ys).zip(last_owns).enumerate();
            for (lane, ((eta, &y), own)) in last {
                let terms = row(eta, y, own);
                for k in 0..K {
                    sums[k][lane] += terms[k];
                }
            }
            sums.map(|lanes| lanes.into_iter().map(Real::as_f64).sum())
        },
    )
}

/// Σ x.
pub(super) fn sum<T: Real>(values: &[T]) -> f64 {
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [0.0; LANES];
            let (chunks, rest) = values.as_chunks::<LANES>();
            for chunk in chunks {
                for lane in 0..LANES {
                    sums[lane] += chunk[lane].as_f64();
                }
            }
            sums.iter().sum::<f64>() + rest.iter().map(|x| x.as_f64()).sum::<f64>()
        },
    )
}

/// Σ log x of a chunk of positive numbers, by the product of their mantissas and the sum of their exponents.
pub(super) fn sum_of_logs<T: Real>(values: &[T]) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    debug_assert!(values.len() <= CHUNK, "more mantissas, which are below 2, would overflow");
    vectorised(
        #[inline(always)]
        || {
            let (mut product, mut exponents) = ([1.0; LANES], [0; LANES]);
            // What is not finite has a mantissa and an exponent too.
            let mut total = [0.0; LANES];
            // Of known length, without which the compiler takes one number at a time.
            let (chunks, rest) = values.as_chunks::<LANES>();
            let mut last = [T::one(); LANES];
            last[..rest.len()].copy_from_slice(rest);
            for chunk in chunks.iter().chain([&last]) {
                for lane in 0..LANES {
                    let value = chunk[lane].as_f64();
                    let bits = value.to_bits();
                    product[lane] *= f64::from_bits((bits & MANTISSA) | ONE);
                    exponents[lane] += bits >> 52;
                    total[lane] += value;
                }
            }
            // What fills the last chunk up is 1, whose exponent counts as any.
            let taken = (values.len() / LANES + 1) * LANES;
            let exponents = exponents.iter().sum::<u64>() as f64 - 1023.0 * taken as f64;
            let guard = 0.0 * total.iter().sum::<f64>();
            product.iter().product::<f64>().ln() + std::f64::consts::LN_2 * exponents + guard
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_standard_library() {
        let inputs: Vec<f64> = (-7000..7000).map(|i| f64::from(i) * 0.1).collect();
        let mut found = inputs.clone();
        exp(&mut found);
        for (x, found) in inputs.iter().zip(found) {
            assert!((found / x.exp() - 1.0).abs() < 4.0 * f64::EPSILON, "{x}: {found}");
        }
        let inputs: Vec<f32> = (-870..870i16).map(|i| f32::from(i) * 0.1).collect();
        let mut found = inputs.clone();
        exp(&mut found);
        for (x, found) in inputs.iter().zip(found) {
            assert!((f64::from(found) / f64::from(*x).exp() - 1.0).abs() < 5e-7, "{x}: {found}");
        }
        let mut edges = [1e6, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        exp(&mut edges);
        assert!(edges[0] > 1e307 && edges[1] > 1e307 && edges[2] == 0.0 && edges[3].is_nan());
        let mut edges = [1e6, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        exp(&mut edges);
        assert!(edges[0] > 1e38 && edges[1] > 1e38 && edges[2] == 0.0 && edges[3].is_nan());
    }

    #[test]
    fn logarithms_are_those_of_the_standard_library() {
        for i in 0..=10_000 {
            let d = f64::from(i) * 1e-4;
            let (found, exact) = (log_of_one_plus(d), d.ln_1p());
            assert!((found - exact).abs() <= 4.0 * f64::EPSILON * exact, "{d}: {found}");
            let narrow = f64::from(log_of_one_plus(d as f32));
            let exact = f64::from(d as f32).ln_1p();
            assert!((narrow - exact).abs() <= 3e-7 * exact, "{d}: {narrow}");
        }
        assert!((log_of_one_plus(1e-300_f64) / 1e-300 - 1.0).abs() < 1e-15);
        assert!(log_of_one_plus(f64::NAN).is_nan());
    }

    #[test]
    fn sums_of_logarithms_are_exact_for_any_numbers() {
        let values: Vec<f64> = (0..200).map(|i| 1.7_f64.powi(3 * i - 250)).collect();
        let expected: f64 = values.iter().map(|x| x.ln()).sum();
        assert!((sum_of_logs(&values) - expected).abs() < 1e-12 * expected.abs());
        assert_eq!(sum_of_logs::<f32>(&[]), 0.0);
        assert!(!sum_of_logs(&[2.0, f64::INFINITY]).is_finite());
        assert!(sum_of_logs(&[2.0, f32::NAN]).is_nan());
    }

    #[test]
    fn sums_run_over_every_row() {
        let (mut eta, y) = ([1.0; 71], [2.0; 71]);
        let sums = sums_over_rows(&mut eta, &y, &mut [0.0; 71], |eta, y, own| {
            *eta += y;
            *own = 7.0;
            [*eta, y]
        });
        assert_eq!((sums, eta), ([213.0, 142.0], [3.0; 71]));
    }
}
