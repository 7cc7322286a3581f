//! Round numbers along an axis.

use super::window::Window;

/// Positions of ticks and their labels; a blank label where there is no room for one.
#[derive(Clone)]
pub struct Ticks {
    pub positions: Vec<f64>,
    pub labels: Vec<String>,
}

impl Ticks {
    /// About `wanted` ticks, but two at least, at multiples of 1, 2 or 5 times a power of ten.
    pub fn new(window: Window, wanted: usize) -> Self {
        let widest = window.width() / wanted.max(1) as f64;
        // Each try is at least a third finer, so the third has two ticks or more.
        let tries = [1.0, 0.6, 0.3].map(|share| round_step(share * widest));
        let step = tries.into_iter().find(|&step| multiples(window, step).len() >= 2);
        let step = step.unwrap_or(tries[2]);
        let positions = multiples(window, step);
        let labels = labels(&positions, step);
        Self { positions, labels }
    }

    /// These ticks, with every label or every second, third, … one, two at least: the first choice
    /// that `fits`.
    ///
    /// A coarser step instead could leave a single tick: the next after 0.2 is 0.5.
    pub fn thinned(&self, fits: impl Fn(&Self) -> bool) -> Option<Self> {
        let count = self.positions.len();
        (1..count)
            .flat_map(|every| (0..every.min(count - every)).map(move |offset| (every, offset)))
            .map(|(every, offset)| self.labelled(|i| i % every == offset))
            .find(fits)
    }

    /// These ticks with one label, in the middle.
    pub fn with_one_label(&self) -> Self {
        self.labelled(|i| i == self.positions.len() / 2)
    }

    fn labelled(&self, is_labelled: impl Fn(usize) -> bool) -> Self {
        let mut chosen = self.clone();
        for (i, label) in chosen.labels.iter_mut().enumerate() {
            if !is_labelled(i) {
                label.clear();
            }
        }
        chosen
    }
}

/// The multiples of `step` inside the window.
fn multiples(window: Window, step: f64) -> Vec<f64> {
    let first = (window.low / step).ceil();
    let count = (window.high / step).floor() - first;
    // Far from zero, a step may be too small to be told from rounding: then no ticks.
    if !(0.0..=100.0).contains(&count) {
        return Vec::new();
    }
    (0..=count as usize)
        // `+ 0.0` turns −0 into 0.
        .map(|i| (first + i as f64) * step + 0.0)
        .filter(|&position| window.contains(position))
        .collect()
}

/// The smallest round number that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999);
    factor.unwrap_or(10.0) * power
}

fn labels(positions: &[f64], step: f64) -> Vec<String> {
    let largest = positions.iter().fold(0.0_f64, |largest, position| largest.max(position.abs()));
    let step_power = step.log10().floor();
    let plain = largest < 1e5 && step_power > -5.0;
    positions
        .iter()
        .map(|&position| {
            let text = if plain {
                let decimals = (-step_power).max(0.0) as usize;
                format!("{position:.decimals$}")
            } else if position == 0.0 {
                "0".into()
            } else {
                // As many digits as tell neighbours apart.
                let digits = (position.abs().log10().floor() - step_power).clamp(0.0, 9.0) as usize;
                format!("{position:.digits$e}")
            };
            text.replace('-', "−")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels_of(low: f64, high: f64) -> Vec<String> {
        Ticks::new(Window { low, high }, 5).labels
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(labels_of(-3.5, 3.5), ["−2", "0", "2"]);
        assert_eq!(labels_of(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Ticks::new(Window { low: -1.9, high: 1.2 }, 3).labels, ["−1", "0", "1"]);
        assert_eq!(labels_of(-0.1, 3.9), ["0", "1", "2", "3"]);
        assert_eq!(labels_of(0.0, 2e7), ["0", "5e6", "1.0e7", "1.5e7", "2.0e7"]);
    }

    #[test]
    fn labels_that_do_not_fit_become_fewer() {
        let ticks = Ticks::new(Window { low: -1.45, high: -0.55 }, 5);
        let thinned = |most: usize, with_first: bool| {
            let fits = |ticks: &Ticks| {
                let count = ticks.labels.iter().filter(|label| !label.is_empty()).count();
                count <= most && (with_first || ticks.labels[0].is_empty())
            };
            ticks.thinned(fits).map(|ticks| ticks.labels)
        };
        let some = |labels: [&str; 5]| Some(labels.map(String::from).to_vec());
        assert_eq!(thinned(5, true), some(["−1.4", "−1.2", "−1.0", "−0.8", "−0.6"]));
        assert_eq!(thinned(3, true), some(["−1.4", "", "−1.0", "", "−0.6"]));
        assert_eq!(thinned(3, false), some(["", "−1.2", "", "−0.8", ""]));
        assert_eq!(thinned(1, true), None);
        assert_eq!(ticks.with_one_label().labels, ["", "", "−1.0", "", ""]);
    }

    #[test]
    fn neighbouring_labels_differ() {
        for (low, high) in [(1000.0, 1000.001), (-1e90, 1e90), (1e-9, 3e-9), (99_990.0, 100_010.0)]
        {
            let labels = labels_of(low, high);
            assert!(labels.len() >= 2, "{low} {high}: {labels:?}");
            assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
        }
    }
}
