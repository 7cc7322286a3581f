//! Posterior predictive checks: whether data that the fit would draw looks like the data that was seen
//! (Gelman, Meng and Stern 1996, Statistica Sinica 6). Where of some data only a bound is known, what is beyond it is drawn
//! too (Gelman, Van Mechelen, Verbeke, Heitjan and Meulders 2005, Biometrics 61).

use std::cmp::Ordering;

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
    /// A statistic of data sets that were drawn, beside that of the data: one set of it for all of them, or, where a part of
    /// it is drawn too, one for each.
    fn new(
        name: impl Into<String>,
        statistic: impl Fn(&[f64]) -> f64,
        seen: &[Vec<f64>],
        drawn: &[Vec<f64>],
    ) -> Self {
        let of = |sets: &[Vec<f64>]| sets.iter().map(|set| statistic(set)).collect::<Vec<f64>>();
        let (seen, mut all) = (of(seen), of(drawn));
        let above = |(drawn, seen): (&f64, &f64)| match drawn.total_cmp(seen) {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        };
        let above = all.iter().zip(seen.iter().cycle()).map(above).sum::<f64>();
        all.sort_by(f64::total_cmp);
        let place = |level: f64| all[((all.len() - 1) as f64 * level).round() as usize];
        let drawn = [place(0.05), place(0.95)];
        Self { name: name.into(), seen: mean(&seen), drawn, share_above: above / all.len() as f64 }
    }

    /// What is looked at where the target is a number.
    pub fn of_numbers(seen: &[Vec<f64>], drawn: &[Vec<f64>]) -> Vec<Self> {
        let number = |(name, statistic)| Self::new(name, statistic, seen, drawn);
        OF_NUMBERS.into_iter().map(number).collect()
    }

    /// What is looked at where the target has classes: the share of each.
    pub fn of_classes(classes: &[String], seen: &[Vec<f64>], drawn: &[Vec<f64>]) -> Vec<Self> {
        let class = |(k, name)| Self::share(format!("share of {name}"), k as f64, seen, drawn);
        classes.iter().enumerate().map(class).collect()
    }

    /// The share of one value.
    pub(crate) fn share(name: String, value: f64, seen: &[Vec<f64>], drawn: &[Vec<f64>]) -> Self {
        let share = |y: &[f64]| y.iter().filter(|&&y| y == value).count() as f64 / y.len() as f64;
        Self::new(name, share, seen, drawn)
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

/// Name and statistic.
const OF_NUMBERS: [(&str, Statistic); 4] =
    [("mean", mean), ("sd", sd), ("smallest", smallest), ("largest", largest)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_is_placed_among_what_is_drawn() {
        let sets: Vec<Vec<f64>> =
            (0..100).map(|i| vec![f64::from(i), f64::from(i) + 2.0]).collect();
        let of = |seen: f64| Check::new("mean", mean, &[vec![seen]], &sets);
        let middle = of(50.0);
        assert_eq!((middle.seen, middle.drawn), (50.0, [6.0, 95.0]));
        // 50 are above, and one is the same.
        assert!((middle.share_above - 0.505).abs() < 1e-12 && !middle.is_odd());
        assert!(of(200.0).is_odd() && of(-5.0).is_odd());
        // Each beside its own.
        let above: Vec<Vec<f64>> = (0..100).map(|i| vec![f64::from(i) + 1.5]).collect();
        assert_eq!(Check::new("mean", mean, &above, &sets).share_above, 0.0);
        let seen = [vec![0.0, 1.0, 1.0, 2.0]];
        let found = Check::of_classes(&["a".into(), "b".into()], &seen, &[vec![1.0; 4]]);
        assert_eq!(found.iter().map(|c| c.seen).collect::<Vec<_>>(), [0.25, 0.5]);
        assert_eq!(found[1].share_above, 1.0);
    }
}
