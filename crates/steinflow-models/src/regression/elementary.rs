//! What likelihoods have in common when they look at many rows at once: loops for whatever SIMD the machine has,
//! powers and logarithms, and sums, which have a fixed order.

// A body that is not inlined into its dispatcher is compiled without the SIMD it was chosen for.
#![allow(clippy::inline_always)]

use pulp::Arch;
use steinflow::Real;

/// Rows at a time: what a likelihood keeps of them stays in the first-level cache.
pub(super) const CHUNK: usize = 512;

/// Running sums that fill several registers.
pub(super) const LANES: usize = 32;

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

/// Writes e^(−|x|) for the x of every η.
pub(super) fn write_decays<T: Real>(eta: &[T], decays: &mut [T], x: impl Fn(T) -> T) {
    vectorised(
        #[inline(always)]
        || decays.iter_mut().zip(eta).for_each(|(decay, &eta)| *decay = x(eta).abs()),
    );
    T::exp_of_negated(decays, T::one());
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

/// Joins what the lanes have, halves with halves: one after the other they would wait for each other longer than the
/// loop before took.
#[inline(always)]
fn join<N: Copy>(mut lanes: [N; LANES], both: impl Fn(N, N) -> N) -> N {
    let mut count = LANES;
    while count > 1 {
        count /= 2;
        for lane in 0..count {
            lanes[lane] = both(lanes[lane], lanes[lane + count]);
        }
    }
    lanes[0]
}

/// How many of the first numbers are the same.
pub(super) fn count_equal<T: Real>(values: &[T]) -> usize {
    vectorised(
        #[inline(always)]
        || {
            let is_first = |x: &T| *x == values[0];
            let (chunks, _) = values.as_chunks::<LANES>();
            let all = |chunk: &&[T; LANES]| chunk.iter().fold(true, |all, x| all & is_first(x));
            let whole = LANES * chunks.iter().take_while(all).count();
            whole + values[whole..].iter().take_while(|x| is_first(x)).count()
        },
    )
}

/// Replaces terms, line after line for some rows, by their shares e^term/Σ e^term of the sum over lines, and returns
/// Σ log Σ e^term. A line fills up its last lanes.
pub(super) fn shares<T: Real>(terms: &mut [[T; LANES]], rows: usize) -> f64 {
    let blocks = rows.div_ceil(LANES);
    // What fills up is the one share there is, and adds log 1.
    for (k, line) in terms.chunks_exact_mut(blocks).enumerate() {
        let with = if k == 0 { T::zero() } else { T::neg_infinity() };
        line.as_flattened_mut()[rows..].fill(with);
    }
    if terms.len() == 2 * blocks {
        let (first, second) = terms.split_at_mut(blocks);
        return shares_of_two(first, second);
    }
    let tops = vectorised(
        #[inline(always)]
        || {
            let mut tops = [T::zero(); LANES];
            for first in 0..blocks {
                let mut top = [T::neg_infinity(); LANES];
                for line in terms[first..].iter().step_by(blocks) {
                    for lane in 0..LANES {
                        top[lane] = if line[lane] > top[lane] { line[lane] } else { top[lane] };
                    }
                }
                for line in terms[first..].iter_mut().step_by(blocks) {
                    for lane in 0..LANES {
                        line[lane] = top[lane] - line[lane];
                    }
                }
                for lane in 0..LANES {
                    tops[lane] += top[lane];
                }
            }
            tops
        },
    );
    T::exp_of_negated(terms.as_flattened_mut(), T::one());
    let mut totals = [[T::one(); LANES]; CHUNK / LANES];
    vectorised(
        #[inline(always)]
        || {
            for (first, total) in totals[..blocks].iter_mut().enumerate() {
                let mut sum = [T::zero(); LANES];
                for line in terms[first..].iter().step_by(blocks) {
                    for lane in 0..LANES {
                        sum[lane] += line[lane];
                    }
                }
                let mut part = [T::zero(); LANES];
                for lane in 0..LANES {
                    part[lane] = T::one() / sum[lane];
                }
                for line in terms[first..].iter_mut().step_by(blocks) {
                    for lane in 0..LANES {
                        line[lane] *= part[lane];
                    }
                }
                *total = sum;
            }
        },
    );
    sum(tops) + sum_of_logs(&totals.as_flattened()[..rows])
}

/// The same for two lines, with one exponential: that of the smaller term less the larger one.
fn shares_of_two<T: Real>(first: &mut [[T; LANES]], second: &mut [[T; LANES]]) -> f64 {
    let (mut tops, mut products) = ([T::zero(); LANES], [T::one(); LANES]);
    vectorised(
        #[inline(always)]
        || {
            for (first, second) in first.iter_mut().zip(&mut *second) {
                for lane in 0..LANES {
                    let (a, b) = (first[lane], second[lane]);
                    tops[lane] += if b > a { b } else { a };
                    first[lane] = b - a;
                    second[lane] = (b - a).abs();
                }
            }
        },
    );
    T::exp_of_negated(second.as_flattened_mut(), T::one());
    vectorised(
        #[inline(always)]
        || {
            for (first, second) in first.iter_mut().zip(&mut *second) {
                for lane in 0..LANES {
                    let (is_second, decay) = (first[lane] > T::zero(), second[lane]);
                    let total = T::one() + decay;
                    products[lane] *= total;
                    let larger = T::one() / total;
                    let smaller = decay * larger;
                    first[lane] = if is_second { smaller } else { larger };
                    second[lane] = if is_second { larger } else { smaller };
                }
            }
        },
    );
    sum(tops) + sum_of_logs(&products)
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
            let mut totals = [0.0; K];
            for (total, lanes) in totals.iter_mut().zip(sums) {
                *total = sum(lanes);
            }
            totals
        },
    )
}

/// Σ x of the lanes.
#[inline(always)]
fn sum<T: Real>(lanes: [T; LANES]) -> f64 {
    let mut wide = [0.0; LANES];
    for lane in 0..LANES {
        wide[lane] = lanes[lane].as_f64();
    }
    join(wide, |a, b| a + b)
}

/// Σ log x of a chunk of positive numbers, by their products.
pub(super) fn sum_of_logs<T: Real>(values: &[T]) -> f64 {
    debug_assert!(values.len() <= CHUNK, "more mantissas, which are below 2, would overflow");
    // Of few numbers a lane, which are mostly far from the largest.
    let products = vectorised(
        #[inline(always)]
        || {
            let mut products = [1.0; LANES];
            for chunk in filled_up(values) {
                for lane in 0..LANES {
                    products[lane] *= chunk[lane].as_f64();
                }
            }
            products
        },
    );
    if products.iter().all(|product| product.is_normal()) {
        return sum_of_logs_by_parts(&products);
    }
    sum_of_logs_by_parts(values)
}

/// By lanes, the last of them filled up by 1: of known length, without which the compiler takes one at a time.
#[inline(always)]
fn filled_up<T: Real>(values: &[T]) -> impl Iterator<Item = [T; LANES]> {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut last = [T::one(); LANES];
    last[..rest.len()].copy_from_slice(rest);
    chunks.iter().copied().chain([last])
}

/// The same by the product of their mantissas and the sum of their exponents.
fn sum_of_logs_by_parts<T: Real>(values: &[T]) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    vectorised(
        #[inline(always)]
        || {
            let (mut product, mut exponents) = ([1.0; LANES], [0; LANES]);
            // What is not finite has a mantissa and an exponent too.
            let mut total = [0.0; LANES];
            for chunk in filled_up(values) {
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
            let exponents = join(exponents, |a, b| a + b) as f64 - 1023.0 * taken as f64;
            let guard = 0.0 * join(total, |a, b| a + b);
            join(product, |a, b| a * b).ln() + std::f64::consts::LN_2 * exponents + guard
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
    fn sums_of_logarithms_outlast_their_products() {
        for x in [1e300_f64, 1e-300] {
            let expected = 500.0 * x.ln();
            assert!((sum_of_logs(&[x; 500]) / expected - 1.0).abs() < 1e-13, "{x}");
        }
    }

    #[test]
    fn shares_are_those_of_one_row_after_the_other() {
        for (lines, rows) in [(1, 40_usize), (2, 1), (2, 32), (2, 511), (3, 33), (7, 512)] {
            let term = |k: usize, row: usize| ((k * 31 + row * 7) as f64).sin() * 300.0;
            let blocks = rows.div_ceil(LANES);
            let mut terms = vec![[f64::NAN; LANES]; lines * blocks];
            for (k, line) in terms.chunks_exact_mut(blocks).enumerate() {
                let line = line.as_flattened_mut()[..rows].iter_mut();
                line.enumerate().for_each(|(row, own)| *own = term(k, row));
            }
            let (found, mut expected) = (shares(&mut terms, rows), 0.0);
            for row in 0..rows {
                let own = || (0..lines).map(|k| term(k, row));
                let top = own().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = own().map(|x| (x - top).exp()).sum();
                expected += top + total.ln();
                for (k, x) in own().enumerate() {
                    let (share, exact) =
                        (terms[k * blocks + row / LANES][row % LANES], (x - top).exp() / total);
                    assert!((share - exact).abs() < 1e-14, "{lines}, {rows}, {k}, {row}: {share}");
                }
            }
            assert!((found - expected).abs() < 1e-12 * rows as f64 * 300.0, "{lines}, {rows}");
        }
    }

    #[test]
    fn equal_numbers_are_counted_up_to_the_first_other() {
        for (equal, rows) in [(1, 1), (1, 40), (31, 64), (32, 64), (70, 71), (71, 71)] {
            let values: Vec<f32> = (0..rows).map(|i| if i == equal { 2.0 } else { 1.0 }).collect();
            assert_eq!(count_equal(&values), equal, "{rows}");
        }
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
