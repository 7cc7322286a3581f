//! Quantiles with linear interpolation between order statistics.

/// The quantile at `level` in [0, 1]; NaN of nothing.
pub(crate) fn quantile(values: &[f64], level: f64) -> f64 {
    of_owned(values.to_vec(), level)
}

/// The middle of the values.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    of_owned(values, 0.5)
}

fn of_owned(mut values: Vec<f64>, level: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    values.sort_unstable_by(f64::total_cmp);
    let place = level * (values.len() - 1) as f64;
    let (below, part) = (values[place as usize], place.fract());
    // Not below + part·(above − below) alone: −∞ − −∞ is no number.
    if part == 0.0 { below } else { (1.0 - part) * below + part * values[place as usize + 1] }
}

#[cfg(test)]
mod tests {
    use super::{median, quantile};

    #[test]
    fn quantiles_interpolate_and_bear_infinities() {
        let values = [3.0, 1.0, 2.0, f64::NEG_INFINITY];
        assert_eq!(quantile(&values, 1.0), 3.0);
        assert_eq!(quantile(&values, 0.5), 1.5);
        assert_eq!(quantile(&values, 0.1), f64::NEG_INFINITY);
        assert_eq!(median(vec![5.0, 7.0]), 6.0);
        assert!(median(Vec::new()).is_nan());
    }
}
