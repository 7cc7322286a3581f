//! Two neighbouring order statistics, without sorting.

use crate::Real;
use crate::engine::vectorised;

/// Up to this many numbers, a plain selection is as fast.
const FEW: usize = 128;
/// Where a pass over the numbers cuts the interval they are sought in.
const CUTS: usize = 7;
/// Enough for any numbers that are not spread over many orders of magnitude.
const PASSES: usize = 8;
/// The widest register holds as many numbers.
const LANES: usize = 16;

/// The numbers of rank `low` and `high`, counted from 0, with `high` = `low` or `low` + 1.
///
/// Every pass counts how many numbers lie below a few cuts of the interval that holds the two ranks, and
/// goes on with the part that does. In the end the few numbers inside are looked at closely. May change
/// the order of the numbers.
pub(super) fn at_ranks<T: Real>(numbers: &mut [T], low: usize, high: usize) -> (T, T) {
    if numbers.len() <= FEW {
        return select(numbers, low, high);
    }
    let (least, largest) = range(numbers);
    // Numbers that are not below `from` but below `to`, and how many are below each.
    let (mut from, mut to) = (least, T::infinity());
    let (mut below_from, mut below_to) = (0, numbers.len());
    for _ in 0..PASSES {
        let width = if to < largest { to } else { largest } - from;
        if below_to - below_from <= FEW || !width.is_finite() || !(width > T::zero()) {
            break;
        }
        let part = width / T::of((CUTS + 1) as f64);
        let cuts: [T; CUTS] = std::array::from_fn(|k| from + part * T::of((k + 1) as f64));
        for (cut, below) in cuts.into_iter().zip(counts_below(numbers, &cuts)) {
            if below <= low {
                (from, below_from) = (cut, below);
            } else if below > high {
                (to, below_to) = (cut, below);
                break;
            }
        }
    }
    let mut inside = Vec::with_capacity(below_to - below_from);
    gather(numbers, from, to, &mut inside);
    if high - below_from >= inside.len() {
        // Infinities and what is not a number are in no interval.
        return select(numbers, low, high);
    }
    select(&mut inside, low - below_from, high - below_from)
}

/// The least and the largest number.
fn range<T: Real>(numbers: &[T]) -> (T, T) {
    let (heads, tail) = numbers.as_chunks::<LANES>();
    let (least, largest) = vectorised(
        #[inline(always)]
        || {
            let (mut least, mut largest) = ([T::infinity(); LANES], [T::neg_infinity(); LANES]);
            for head in heads {
                for lane in 0..LANES {
                    let (x, low, high) = (head[lane], least[lane], largest[lane]);
                    least[lane] = if x < low { x } else { low };
                    largest[lane] = if x > high { x } else { high };
                }
            }
            (least, largest)
        },
    );
    let all = |lanes: [T; LANES]| lanes.into_iter().chain(tail.iter().copied());
    (all(least).fold(T::infinity(), T::min), all(largest).fold(T::neg_infinity(), T::max))
}

/// How many numbers are below each of the cuts.
fn counts_below<T: Real>(numbers: &[T], cuts: &[T; CUTS]) -> [usize; CUTS] {
    let mut counts = [0; CUTS];
    vectorised(
        #[inline(always)]
        || {
            // So few that they stay in the first cache for all cuts.
            for chunk in numbers.chunks(1 << 12) {
                for (count, &cut) in counts.iter_mut().zip(cuts) {
                    let mut below = 0_u32;
                    for &x in chunk {
                        below += u32::from(x < cut);
                    }
                    *count += below as usize;
                }
            }
        },
    );
    counts
}

/// Collects the numbers that are not below `from` but below `to`.
fn gather<T: Real>(numbers: &[T], from: T, to: T, inside: &mut Vec<T>) {
    let is_inside = |x: T| x >= from && x < to;
    vectorised(
        #[inline(always)]
        || {
            for chunk in numbers.chunks(4 * LANES) {
                // Hardly ever: most chunks are passed over at once.
                if chunk.iter().fold(false, |any, &x| any | is_inside(x)) {
                    inside.extend(chunk.iter().copied().filter(|&x| is_inside(x)));
                }
            }
        },
    );
}

fn select<T: Real>(numbers: &mut [T], low: usize, high: usize) -> (T, T) {
    let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
    let (below, &mut upper, _) = numbers.select_nth_unstable_by(high, order);
    let lower =
        if low == high { upper } else { below.iter().copied().fold(T::neg_infinity(), T::max) };
    (lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_with_a_sort() {
        let waves = |i: usize| (i as f64 * 0.7).sin().powi(2);
        let cases: [Vec<f64>; 5] = [
            (0..5000).map(waves).collect(),
            (0..1001).map(|i| waves(i) * 1e300).collect(),
            (0..600).map(|i| f64::from(i % 7)).collect(),
            vec![3.0; 700],
            (0..2000).map(|i| if i == 9 { f64::INFINITY } else { waves(i) }).collect(),
        ];
        for numbers in cases {
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            for low in [0, numbers.len() / 2 - 1, numbers.len() - 2] {
                for high in [low, low + 1] {
                    let found = at_ranks(&mut numbers.clone(), low, high);
                    assert_eq!(found, (sorted[low], sorted[high]));
                }
            }
        }
    }
}
