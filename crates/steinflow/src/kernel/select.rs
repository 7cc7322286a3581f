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

/// How far from a guess the ranks are looked for first.
const NEAR: f64 = 0.02;

/// The numbers of rank `low` and `high`, counted from 0, with `high` = `low` or `low` + 1. `guess` is about
/// where they might be, or 0: a good one is quicker. May change the order of the numbers.
pub(super) fn at_ranks<T: Real>(numbers: &mut [T], low: usize, high: usize, guess: f64) -> (T, T) {
    if numbers.len() <= FEW {
        return select(numbers, low, high);
    }
    let ends = [T::of(guess * (1.0 - NEAR)), T::of(guess * (1.0 + NEAR))];
    if guess > 0.0 && ends[1].is_finite() {
        let [below, upto] = counts_below(numbers, &ends);
        if below <= low && high < upto && upto - below <= numbers.len() / 8 {
            let mut inside = gather(numbers, ends[0], ends[1], upto - below);
            return select(&mut inside, low - below, high - below);
        }
    }
    by_cuts(numbers, low, high)
}

/// Every pass counts how many numbers lie below a few cuts of the interval that holds the two ranks, and
/// goes on with the part that does. In the end the few numbers inside are looked at closely.
fn by_cuts<T: Real>(numbers: &mut [T], low: usize, high: usize) -> (T, T) {
    let (mut from, largest) = range(numbers);
    let mut to = T::infinity();
    // The numbers that are not below `from` but below `to`, after the first pass, and how many are below
    // them; `numbers` until then.
    let (mut inside, mut below_inside) = (Vec::new(), 0);
    for pass in 0..PASSES {
        let left: &[T] = if pass == 0 { numbers } else { &inside };
        let width = if to < largest { to } else { largest } - from;
        if left.len() <= FEW || !width.is_finite() || !(width > T::zero()) {
            break;
        }
        let part = width / T::of((CUTS + 1) as f64);
        let cuts: [T; CUTS] = std::array::from_fn(|k| from + part * T::of((k + 1) as f64));
        let (mut below_from, mut below_to) = (below_inside, below_inside + left.len());
        for (cut, below) in cuts.into_iter().zip(counts_below(left, &cuts)) {
            let below = below_inside + below;
            if below <= low {
                (from, below_from) = (cut, below);
            } else if below > high {
                (to, below_to) = (cut, below);
                break;
            }
        }
        let found = gather(left, from, to, below_to - below_from);
        (inside, below_inside) = (found, below_from);
    }
    match high.checked_sub(below_inside) {
        Some(high) if high < inside.len() => select(&mut inside, low - below_inside, high),
        // Too few to look for, or infinities and what is not a number, which are in no interval.
        _ => select(numbers, low, high),
    }
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
fn counts_below<T: Real, const C: usize>(numbers: &[T], cuts: &[T; C]) -> [usize; C] {
    let mut counts = [0; C];
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

/// The numbers that are not below `from` but below `to`, of which there are at most `most`.
fn gather<T: Real>(numbers: &[T], from: T, to: T, most: usize) -> Vec<T> {
    // Every number is written, and the next one over it where it does not belong: there is no branch to
    // guess.
    let mut inside = vec![T::zero(); most + 1];
    let mut count = 0;
    for &x in numbers {
        inside[count] = x;
        count += usize::from(x >= from) & usize::from(x < to);
    }
    inside.truncate(count);
    inside
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
                    // Good guesses, bad ones, and none.
                    for guess in [0.0, sorted[low], 0.99 * sorted[high], 1e-9, f64::INFINITY] {
                        let found = at_ranks(&mut numbers.clone(), low, high, guess);
                        assert_eq!(found, (sorted[low], sorted[high]));
                    }
                }
            }
        }
    }
}
