//! Two neighbouring order statistics, without sorting.

use crate::Real;

/// Below this many numbers, a plain selection is as fast.
const FEW: usize = 512;
const BUCKETS: usize = 1024;

/// The numbers of rank `low` and `high`, counted from 0, with `high` = `low` or `low` + 1.
///
/// One pass sorts the numbers roughly into buckets between the least and the largest, and only the few
/// of one or two buckets are looked at closely. May change the order of the numbers.
pub(super) fn at_ranks<T: Real>(numbers: &mut [T], low: usize, high: usize) -> (T, T) {
    let mut least = T::infinity();
    let mut largest = T::neg_infinity();
    for &x in &*numbers {
        least = if x < least { x } else { least };
        largest = if x > largest { x } else { largest };
    }
    let scale = T::of(BUCKETS as f64) / (largest - least);
    if numbers.len() < FEW || !scale.is_finite() || !(scale > T::zero()) {
        return select(numbers, low, high);
    }
    // Rounding is monotone: no number is in a later bucket than a larger one.
    let bucket = |x: T| ((x - least) * scale).to_usize().map_or(0, |b| b.min(BUCKETS - 1));
    let mut counts = [0_usize; BUCKETS];
    for &x in &*numbers {
        counts[bucket(x)] += 1;
    }
    let mut before = 0;
    let (mut first, mut last, mut skipped) = (None, BUCKETS - 1, 0);
    for (index, count) in counts.into_iter().enumerate() {
        if first.is_none() && before + count > low {
            (first, skipped) = (Some(index), before);
        }
        if before + count > high {
            last = index;
            break;
        }
        before += count;
    }
    let first = first.unwrap_or(0);
    let mut inside: Vec<T> =
        numbers.iter().copied().filter(|&x| (first..=last).contains(&bucket(x))).collect();
    select(&mut inside, low - skipped, high - skipped)
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
