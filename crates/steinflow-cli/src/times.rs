//! Predictions of times until an event, of which some are only known to be longer: how good they are.

use std::io::Write;

use steinflow_io::record::TimeScores;
use steinflow_models::regression::RowPrediction;

use crate::error::Result;
use crate::summary::{short, table};

/// Judges the draws of every row by its time, which has a minus sign where the event was not seen.
pub fn score(rows: &[RowPrediction], targets: &[f64], log_likelihood: f64) -> TimeScores {
    let inside = |part: f64| {
        let row = |(row, y): (&RowPrediction, &f64)| {
            let below = row.draws.partition_point(|x| *x < y.abs()) as f64;
            share_inside(part, below / row.draws.len() as f64, *y > 0.0)
        };
        rows.iter().zip(targets).map(row).sum::<f64>() / rows.len() as f64
    };
    TimeScores {
        rows: rows.len(),
        events: targets.iter().filter(|y| **y > 0.0).count(),
        log_likelihood,
        coverage_50: inside(0.5),
        coverage_90: inside(0.9),
        coverage_95: inside(0.95),
    }
}

/// Whether a time that this share of the draws is below lies inside the central interval of a probability, or how probable
/// that is of a time that is longer.
fn share_inside(part: f64, below: f64, is_event: bool) -> f64 {
    let (low, high) = ((1.0 - part) / 2.0, f64::midpoint(1.0, part));
    match below {
        below if is_event => f64::from(u8::from((low..=high).contains(&below))),
        below if below < high => (high - below.max(low)) / (1.0 - below),
        _ => 0.0,
    }
}

/// A table for people.
pub fn print_scores(scores: &TimeScores, out: &mut impl Write) -> Result<()> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let row = |name: &str, number: String| vec![name.to_owned(), number];
    let rows = vec![
        row("events seen", scores.events.to_string()),
        row("log-likelihood per row", short(scores.log_likelihood)),
        row("inside the 50 % interval", percent(scores.coverage_50)),
        row("inside the 90 % interval", percent(scores.coverage_90)),
        row("inside the 95 % interval", percent(scores.coverage_95)),
    ];
    writeln!(out, "{}", table(&["", &format!("{} rows", scores.rows)], rows))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever times stop being followed, rows of an honest prediction are inside as often as it says.
    #[test]
    fn times_that_were_not_seen_count_by_how_probable_the_interval_is() {
        let places = || (0..10_000).map(|i| (f64::from(i) + 0.5) / 10_000.0);
        for end in [0.02, 0.3, 0.8, 0.97] {
            let row = |place: f64| share_inside(0.9, place.min(end), place < end);
            let share = places().map(row).sum::<f64>() / 10_000.0;
            assert!((share - 0.9).abs() < 1e-3, "{end}: {share}");
        }
        assert_eq!(share_inside(0.9, 1.0, false), 0.0);
    }
}
