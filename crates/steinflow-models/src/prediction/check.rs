//! Posterior predictive checks: whether data that the fit would draw looks like the data that was seen
//! (Gelman, Meng and Stern 1996, Statistica Sinica 6).

/// A statistic of the data, and of data that the fit draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What it is.
    pub name: String,
    /// Of the data.
    pub seen: f64,
    /// Between these lie 90 % of those drawn.
    pub drawn: [f64; 2],
    /// The share of those drawn that are above, ties by half: near 0 or 1 the fit does not make such data.
    pub share_above: f64,
}

impl Check {
    /// Of data that was seen, and of data sets that were drawn.
    pub fn new<'a>(
        name: impl Into<String>,
        statistic: impl Fn(&[f64]) -> f64,
        seen: &[f64],
        drawn: impl Iterator<Item = &'a [f64]>,
    ) -> Self {
        let seen = statistic(seen);
        let mut all: Vec<f64> = drawn.map(statistic).collect();
        all.sort_by(f64::total_cmp);
        let place = |level: f64| all[((all.len() - 1) as f64 * level).round() as usize];
        let (below, upto) =
            (all.partition_point(|x| *x < seen), all.partition_point(|x| *x <= seen));
        let above = all.len() as f64 - 0.5 * (below + upto) as f64;
        let drawn = [place(0.05), place(0.95)];
        Self { name: name.into(), seen, drawn, share_above: above / all.len() as f64 }
    }

    /// Whether the fit hardly makes such data.
    pub fn is_odd(&self) -> bool {
        !(0.01..=0.99).contains(&self.share_above)
    }
}

fn mean(y: &[f64]) -> f64 {
    y.iter().sum::<f64>() / y.len() as f64
}

fn sd(y: &[f64]) -> f64 {
    let centre = mean(y);
    (y.iter().map(|y| (y - centre).powi(2)).sum::<f64>() / y.len() as f64).sqrt()
}

fn smallest(y: &[f64]) -> f64 {
    y.iter().copied().fold(f64::INFINITY, f64::min)
}

fn largest(y: &[f64]) -> f64 {
    y.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

type Statistic = fn(&[f64]) -> f64;

/// What is looked at where the target is a number: name and statistic.
pub(crate) const OF_NUMBERS: [(&str, Statistic); 4] =
    [("mean", mean), ("sd", sd), ("smallest", smallest), ("largest", largest)];

/// The share of a value.
pub(crate) fn share_of(value: f64) -> impl Fn(&[f64]) -> f64 {
    move |y| y.iter().filter(|&&y| y == value).count() as f64 / y.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_placed_among_what_is_drawn() {
        let sets: Vec<Vec<f64>> =
            (0..100).map(|i| vec![f64::from(i), f64::from(i) + 2.0]).collect();
        let of = |seen: f64| Check::new("mean", mean, &[seen], sets.iter().map(Vec::as_slice));
        let middle = of(50.0);
        assert_eq!((middle.seen, middle.drawn), (50.0, [6.0, 95.0]));
        // 50 are above, and one is the same.
        assert!((middle.share_above - 0.505).abs() < 1e-12 && !middle.is_odd());
        assert!(of(200.0).is_odd() && of(-5.0).is_odd());
        assert_eq!(share_of(1.0)(&[0.0, 1.0, 1.0, 2.0]), 0.5);
    }
}
