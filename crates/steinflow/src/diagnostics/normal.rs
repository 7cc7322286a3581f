//! The standard normal.

use std::f64::consts::FRAC_1_SQRT_2;

/// P(Z < z).
pub(super) fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// The z below which a share `p` of the probability lies, by bisection: no tail is too far.
pub(super) fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if distribution(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.001, -3.090_232), (1e-9, -5.997_807)] {
            assert!((quantile(p) - z).abs() < 1e-6, "{p}: {}", quantile(p));
        }
    }
}
