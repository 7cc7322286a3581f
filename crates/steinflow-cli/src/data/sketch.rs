//! A histogram in text.

const BINS: usize = 12;
const WIDTH: usize = 40;

/// One line a bin: from where, how many, and a bar.
pub fn histogram(values: &[f64]) -> Vec<String> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let counts = counts(values, low, high);
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts
        .iter()
        .enumerate()
        .map(|(bin, &count)| {
            let from = low + (high - low) * bin as f64 / BINS as f64;
            // A value that is there is seen.
            let bar = (count * WIDTH).div_ceil(most);
            format!("{from:>10.4} {count:>7} {}", "█".repeat(bar)).trim_end().to_owned()
        })
        .collect()
}

fn counts(values: &[f64], low: f64, high: f64) -> [usize; BINS] {
    let mut counts = [0; BINS];
    for value in values {
        let bin = (value - low) / (high - low) * BINS as f64;
        counts[(bin as usize).min(BINS - 1)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let values: Vec<f64> = (0..=24).map(f64::from).collect();
        let counts = counts(&values, 0.0, 24.0);
        assert_eq!(counts.iter().sum::<usize>(), 25);
        // The largest value belongs to the last bin.
        assert_eq!((counts[0], counts[BINS - 1]), (2, 3));
        assert_eq!(histogram(&values).len(), BINS);
        // One value, no width.
        assert!(histogram(&[3.0, 3.0])[0].contains('█'));
    }
}
