//! Which interval of a coordinate to show: every particle, but not at the price of the picture.

/// Values beyond this are left out, so that differences of limits stay finite.
pub const LARGEST: f64 = 1e100;

/// At most this share of particles is left out at either end (but always one may be).
const TRIMMED_SHARE: f64 = 0.02;
/// How many widths of the core a particle may lie outside of it and still be shown.
const REACH: f64 = 3.0;
/// Empty border, as a share of the width.
const BORDER: f64 = 0.04;

/// A shown interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub low: f64,
    pub high: f64,
}

impl Window {
    /// The interval that holds the `values` and the `given` limits.
    ///
    /// The core of the values, all but 2 % at either end, is always shown. The rest is shown when it
    /// lies within three widths of the core and the given limits.
    pub fn around(values: &[f64], given: Option<(f64, f64)>) -> Self {
        let mut sorted: Vec<f64> =
            values.iter().copied().filter(|value| value.abs() <= LARGEST).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some((&first, &last)) = sorted.first().zip(sorted.last()) else {
            let (low, high) = given.unwrap_or((0.0, 1.0));
            return Self { low, high };
        };
        let (core_low, core_high) = core(&sorted);
        let (base_low, base_high) =
            given.map_or((core_low, core_high), |(a, b)| (a.min(core_low), b.max(core_high)));
        let reach = REACH * (base_high - base_low);
        // A core of no width says nothing about what is far: then everything is shown.
        let is_near =
            |value: f64| reach == 0.0 || (value >= base_low - reach && value <= base_high + reach);
        let shown_low = sorted.iter().copied().find(|&value| is_near(value)).unwrap_or(first);
        let shown_high = sorted.iter().rev().copied().find(|&value| is_near(value)).unwrap_or(last);
        Self::bordered(shown_low, shown_high, given)
    }

    /// Adds a border around the shown values, and joins the given limits as they are.
    fn bordered(low: f64, high: f64, given: Option<(f64, f64)>) -> Self {
        let magnitude = low.abs().max(high.abs());
        // Narrower than this, ticks could not be told apart in double precision.
        let least = if magnitude == 0.0 { 1.0 } else { 1e-8 * magnitude };
        let (low, high) = if high - low >= least {
            (low, high)
        } else {
            // Equal values stand in the middle of a window of width 1, or as wide as they are large.
            let half = 0.5 * if high == low { magnitude.min(1.0).max(least) } else { least };
            (0.5 * low + 0.5 * high - half, 0.5 * low + 0.5 * high + half)
        };
        if let Some((a, b)) = given {
            let border = BORDER * (b.max(high) - a.min(low));
            Self {
                low: if low < a { low - border } else { a },
                high: if high > b { high + border } else { b },
            }
        } else {
            let border = BORDER * (high - low);
            Self { low: low - border, high: high + border }
        }
    }

    pub fn width(self) -> f64 {
        self.high - self.low
    }

    pub fn contains(self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }
}

/// The smallest and the largest value after the trimming.
fn core(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len();
    // Of three or fewer particles none is an outlier.
    let trimmed =
        if count < 4 { 0 } else { ((TRIMMED_SHARE * count as f64).floor() as usize).max(1) };
    (sorted[trimmed], sorted[count - 1 - trimmed])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal_like(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i as f64 + 0.5) / count as f64 - 0.5) * 4.0).collect()
    }

    #[test]
    fn particles_outside_the_given_limits_widen_the_window() {
        let mut values = normal_like(100);
        values.push(6.0);
        let window = Window::around(&values, Some((-3.0, 3.0)));
        assert_eq!(window.low, -3.0);
        assert!(window.high > 6.0 && window.high < 7.0, "{window:?}");
    }

    #[test]
    fn one_particle_far_out_does_not_wreck_the_view() {
        for count in [4, 20, 5000] {
            let mut values = normal_like(count);
            values[0] = 1e6;
            let window = Window::around(&values, None);
            assert!(window.width() < 10.0, "{count}: {window:?}");
        }
    }

    #[test]
    fn a_distant_tenth_of_the_particles_is_shown() {
        let mut values = normal_like(90);
        values.extend([1000.0; 10]);
        assert!(Window::around(&values, None).contains(1000.0));
    }

    #[test]
    fn windows_always_have_width() {
        let cases: [&[f64]; 8] = [
            &[],
            &[0.0],
            &[5.0; 30],
            &[1e90; 3],
            &[-1e300, 1e300],
            &[1e-300, 2e-300],
            &[1.0, 1.0 + 1e-15],
            &[-1e100, 1e100],
        ];
        for values in cases {
            for given in [None, Some((-1.0, 1.0))] {
                let window = Window::around(values, given);
                assert!(
                    window.width() > 0.0 && window.width().is_finite(),
                    "{values:?} {window:?}"
                );
            }
        }
    }
}
