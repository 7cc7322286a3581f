//! What many seeds of one sampler have in common: counts, means and ranges.

use std::fmt::Write as _;

use steinflow::method::Method;

use super::samples::Cell;
use crate::summary::table;

/// All seeds of one sampler.
pub struct Tally {
    pub label: String,
    /// The name of the method in the catalogue; none for exact samples.
    pub method: Option<String>,
    pub in_paper: bool,
    /// Seeds.
    pub runs: usize,
    /// Seeds whose particles ran away; all else is over the others.
    pub failed: usize,
    /// Seeds in which every crescent was found.
    pub found_all: usize,
    /// Seeds in which no particle is outside of the middle crescent.
    pub stayed: usize,
    /// By crescent, from the lowest.
    pub shares: Vec<Range>,
    pub distance: Range,
}

/// Mean, least and largest of some values; NaN where there are none.
pub struct Range {
    pub mean: f64,
    pub least: f64,
    pub most: f64,
}

impl Range {
    fn of(values: &[f64]) -> Self {
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            least: values.iter().copied().fold(f64::NAN, f64::min),
            most: values.iter().copied().fold(f64::NAN, f64::max),
        }
    }

    fn percent(&self) -> String {
        let [mean, least, most] = [self.mean, self.least, self.most].map(|x| 100.0 * x);
        if mean.is_nan() { "–".to_owned() } else { format!("{mean:.0} ({least:.0}–{most:.0})") }
    }

    fn decimal(&self) -> String {
        let Self { mean, least, most } = self;
        if mean.is_nan() { "–".to_owned() } else { format!("{mean:.3} ({least:.3}–{most:.3})") }
    }
}

/// One tally for every label, in the order of the cells; `found` is the least share of a crescent
/// that counts as found.
pub fn tallies(cells: &[Cell<'_>], found: f64) -> Vec<Tally> {
    let mut labels: Vec<&str> = Vec::new();
    for cell in cells {
        if !labels.contains(&cell.label) {
            labels.push(cell.label);
        }
    }
    labels.into_iter().map(|label| Tally::of(label, cells, found)).collect()
}

impl Tally {
    fn of(label: &str, cells: &[Cell<'_>], found: f64) -> Self {
        let own: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.label == label).collect();
        let verdicts: Vec<_> =
            own.iter().filter_map(|cell| cell.found.as_ref().ok()).map(|(_, v)| v).collect();
        let crescents = verdicts.first().map_or(3, |verdict| verdict.shares.len());
        let shares = (0..crescents).map(|k| {
            Range::of(&verdicts.iter().map(|verdict| verdict.shares[k]).collect::<Vec<_>>())
        });
        let middle = crescents / 2;
        Self {
            label: label.to_owned(),
            method: own.iter().find_map(|cell| cell.row?.settings.method.clone()),
            in_paper: own.iter().any(|cell| cell.row.is_some_and(|row| row.in_paper)),
            runs: own.len(),
            failed: own.len() - verdicts.len(),
            found_all: verdicts.iter().filter(|v| v.shares.iter().all(|&s| s >= found)).count(),
            stayed: verdicts.iter().filter(|v| v.shares[middle] == 1.0).count(),
            shares: shares.collect(),
            distance: Range::of(&verdicts.iter().map(|v| v.distance).collect::<Vec<_>>()),
        }
    }

    /// Particles without noise, which the paper's claim is about.
    pub fn is_deterministic(&self) -> bool {
        let method = self.method.as_deref().and_then(|name| Method::named(name).ok());
        method.is_some_and(|method| !method.field.is_random())
    }

    /// The method that the paper says explores.
    pub fn is_explorer(&self) -> bool {
        self.method.as_deref() == Some("sgrhmc-stein")
    }

    /// All of the particles of every seed are in the middle crescent.
    pub fn always_stays(&self) -> bool {
        self.stayed == self.runs
    }

    /// Every seed finds all crescents.
    pub fn always_finds_all(&self) -> bool {
        self.found_all == self.runs
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = vec![
            self.label.clone(),
            format!("{}/{}", self.found_all, self.runs),
            format!("{}/{}", self.stayed, self.runs),
        ];
        cells.extend(self.shares.iter().map(Range::percent));
        cells.push(self.distance.decimal());
        cells.push(if self.failed == 0 { String::new() } else { self.failed.to_string() });
        cells
    }
}

const HEADER: [&str; 8] = [
    "method",
    "all three",
    "only the middle",
    "lower %",
    "middle %",
    "upper %",
    "energy distance",
    "ran away",
];

pub fn markdown(tallies: &[Tally]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADER.join(" | "), "---|".repeat(HEADER.len()));
    for tally in tallies {
        let _ = writeln!(text, "| {} |", tally.cells().join(" | "));
    }
    text
}

pub fn terminal(tallies: &[Tally]) -> String {
    table(&HEADER, tallies.iter().map(Tally::cells).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::judge::Verdict;
    use super::*;
    use steinflow::Matrix;

    #[test]
    fn seeds_are_counted_for_what_they_found() {
        let cell = |seed: u64, found: Option<[f64; 3]>| Cell {
            label: "method",
            row: None,
            seed,
            found: found.map_or(Err("ran away".to_owned()), |shares| {
                let verdict = Verdict { shares: shares.to_vec(), distance: shares[0] };
                Ok((Matrix::zeros(1, 2), verdict))
            }),
        };
        let cells = [
            cell(1, Some([0.0, 1.0, 0.0])),
            cell(2, Some([0.3, 0.4, 0.3])),
            cell(3, Some([0.09, 0.5, 0.41])),
            cell(4, None),
        ];
        let found = tallies(&cells, 0.1);
        assert_eq!(found.len(), 1);
        let tally = &found[0];
        assert_eq!((tally.runs, tally.failed, tally.found_all, tally.stayed), (4, 1, 1, 1));
        assert_eq!((tally.shares[0].least, tally.shares[0].most), (0.0, 0.3));
        assert!((tally.shares[0].mean - 0.13).abs() < 1e-12);
        assert!(!tally.always_stays() && !tally.always_finds_all());
        // Nothing to take a mean of.
        let text = markdown(&tallies(&cells[3..], 0.1));
        assert!(text.contains("| – |") && !text.contains("NaN"), "{text}");
    }
}
