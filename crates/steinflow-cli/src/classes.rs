//! Predictions of classes: what is written of them, row by row, and how good they are.

use std::fmt::Write as _;
use std::io::Write;

use steinflow_io::record::{ClassScores, Reliability, column};
use steinflow_models::prediction::reliability;

use crate::error::Result;
use crate::summary::{short, table};

/// Tenths of probability that are compared with what was seen.
const BINS: usize = 10;

/// A row a line, under the numbers `rows`: what was seen, the most probable class, the probability of each.
pub fn to_csv(
    classes: &[String],
    rows: &[usize],
    targets: Option<&[f64]>,
    probabilities: &[Vec<f64>],
) -> String {
    let quoted = |class: &str| {
        let needs_quotes = class.contains([',', '"', '\n']);
        if needs_quotes { format!("\"{}\"", class.replace('"', "\"\"")) } else { class.to_owned() }
    };
    let mut header: Vec<String> = vec![column::ROW.into()];
    header.extend(targets.map(|_| column::TARGET.into()));
    header.push("class".to_owned());
    header.extend(classes.iter().map(|class| quoted(&format!("p[{class}]"))));
    let mut text = header.join(",") + "\n";
    let name = |class: usize| classes.get(class).map_or(String::new(), |class| quoted(class));
    for (i, (own, number)) in probabilities.iter().zip(rows).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}");
        let target = targets.map(|targets| targets[i] as usize);
        for class in target.into_iter().chain(most_probable(own)) {
            let _ = write!(text, ",{}", name(class));
        }
        for probability in own {
            let _ = write!(text, ",{probability}");
        }
        text.push('\n');
    }
    text
}

/// Judges the probabilities of every row by the class that was seen.
pub fn score(probabilities: &[Vec<f64>], targets: &[f64]) -> ClassScores {
    let rows = || probabilities.iter().zip(targets);
    let mean = |sum: f64| sum / targets.len() as f64;
    let is_hit = |(own, y): (&Vec<f64>, &f64)| most_probable(own) == Some(*y as usize);
    let found = reliability(probabilities.iter().cloned(), targets, BINS).into_iter();
    ClassScores {
        rows: targets.len(),
        log_likelihood: mean(rows().map(|(own, y)| own[*y as usize].ln()).sum()),
        accuracy: mean(rows().filter(|&row| is_hit(row)).count() as f64),
        reliability: found
            .map(|bin| Reliability { count: bin.count, promised: bin.promised, seen: bin.seen })
            .collect(),
    }
}

fn most_probable(probabilities: &[f64]) -> Option<usize> {
    let classes = probabilities.iter().enumerate();
    classes.max_by(|a, b| a.1.total_cmp(b.1)).map(|(class, _)| class)
}

/// A table for people.
pub fn print_scores(scores: &ClassScores, out: &mut impl Write) -> Result<()> {
    let rows = vec![
        vec!["log-likelihood per row".to_owned(), short(scores.log_likelihood)],
        vec!["most probable class seen".to_owned(), format!("{:.0} %", 100.0 * scores.accuracy)],
        vec!["|seen − promised|, on average".to_owned(), short(scores.miscalibration())],
    ];
    writeln!(out, "{}", table(&["", &format!("{} rows", scores.rows)], rows))?;
    Ok(())
}
