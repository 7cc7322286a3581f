//! Predictions of a regression: a number with its quantiles, or the probability of every class.

use std::fmt::Write as _;

use steinflow::Matrix;
use steinflow_io::record::{FinishedRun, STANDARDISATION, Scores, column};
use steinflow_models::data::read_new_rows;
use steinflow_models::regression::{Fitted, RowPrediction};

use super::{Answer, AnyScores};
use crate::args::PredictArguments;
use crate::error::Result;
use crate::network::Theta;

pub fn predict(arguments: &PredictArguments, run: &FinishedRun, levels: &[f64]) -> Result<Answer> {
    let fitted: Fitted = run.json(STANDARDISATION)?;
    let (data, data_dir) = (&arguments.data, arguments.data_dir.as_deref());
    let table = read_new_rows(data, data_dir, fitted.recipe())?;
    let targets = fitted.targets(&table)?;
    let theta = Theta::read(run)?;
    let parameters: Matrix<f64> = theta.matrix(fitted.parameters())?;
    let rows = fitted.predict(&parameters, &table)?;
    let numbers: Vec<usize> = (0..rows.len()).map(|row| table.number(row)).collect();
    let classes = fitted.classes();
    let csv = if classes.is_empty() {
        of_numbers(&rows, &numbers, targets.as_deref(), levels)
    } else {
        of_classes(&rows, &numbers, targets.as_deref(), classes)
    };
    let scores = targets.as_deref().map(|targets| {
        if classes.is_empty() {
            score(&rows, targets, fitted.target_sd())
        } else {
            score_classes(&rows, targets)
        }
    });
    Ok(Answer {
        csv,
        rows: rows.len(),
        target: fitted.target().to_owned(),
        predicted_with: format!("{} {}", parameters.rows(), theta.kind()),
        scores,
    })
}

fn of_numbers(
    rows: &[RowPrediction],
    numbers: &[usize],
    targets: Option<&[f64]>,
    levels: &[f64],
) -> String {
    let mut header: Vec<String> = vec![column::ROW.into()];
    header.extend(targets.map(|_| column::TARGET.into()));
    header.extend([column::MEAN, column::SD].map(Into::into));
    header.extend(levels.iter().copied().map(column::quantile));
    let mut text = header.join(",") + "\n";
    for (i, (row, number)) in rows.iter().zip(numbers).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}");
        let quantiles = levels.iter().map(|&level| row.quantile(level));
        let target = targets.map(|targets| targets[i]);
        for value in target.into_iter().chain([row.mean, row.sd]).chain(quantiles) {
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

fn of_classes(
    rows: &[RowPrediction],
    numbers: &[usize],
    targets: Option<&[f64]>,
    classes: &[String],
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
    for (i, (row, number)) in rows.iter().zip(numbers).enumerate() {
        let _ = write!(text, "{number}");
        let target = targets.map(|targets| targets[i] as usize);
        for class in target.into_iter().chain(row.class()) {
            let _ = write!(text, ",{}", name(class));
        }
        for probability in &row.probabilities {
            let _ = write!(text, ",{probability}");
        }
        text.push('\n');
    }
    text
}

fn mean_log_density(rows: &[RowPrediction]) -> f64 {
    rows.iter().filter_map(|row| row.log_density).sum::<f64>() / rows.len() as f64
}

fn score_classes(rows: &[RowPrediction], targets: &[f64]) -> AnyScores {
    let hits = rows.iter().zip(targets).filter(|(row, y)| row.class() == Some(**y as usize));
    AnyScores::Classes {
        rows: rows.len(),
        log_likelihood: mean_log_density(rows),
        accuracy: hits.count() as f64 / rows.len() as f64,
    }
}

fn score(rows: &[RowPrediction], targets: &[f64], unit: f64) -> AnyScores {
    const BINS: usize = 10;
    let count = rows.len() as f64;
    let mean = |of: &dyn Fn(&RowPrediction, f64) -> f64| {
        rows.iter().zip(targets).map(|(row, &y)| of(row, y)).sum::<f64>() / count
    };
    let inside = |part: f64| {
        let (low, high) = ((1.0 - part) / 2.0, f64::midpoint(1.0, part));
        mean(&|row, y| f64::from(u8::from((row.quantile(low)..=row.quantile(high)).contains(&y))))
    };
    let mut pit = vec![0; BINS];
    for (row, &y) in rows.iter().zip(targets) {
        let (below, upto) =
            (row.draws.partition_point(|x| *x < y), row.draws.partition_point(|x| *x <= y));
        // Counts have many draws that are the target itself: half of those are below it.
        let share = (below + upto) as f64 / (2 * row.draws.len()) as f64;
        pit[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    let mse = mean(&|row, y| (row.mean - y).powi(2));
    AnyScores::Numbers(Scores {
        rows: rows.len(),
        log_likelihood: mean_log_density(rows),
        rmse: mse.sqrt(),
        mse,
        standardised_mse: mse / (unit * unit),
        crps: mean(&|row, y| crps(&row.draws, y)),
        coverage_50: inside(0.5),
        coverage_90: inside(0.9),
        coverage_95: inside(0.95),
        pit,
    })
}

/// E|Y − y| − ½ E|Y − Y′| over draws in ascending order.
fn crps(draws: &[f64], y: f64) -> f64 {
    let count = draws.len() as f64;
    let distance = draws.iter().map(|x| (x - y).abs()).sum::<f64>() / count;
    let place = |k: usize| 2.0 * k as f64 - count + 1.0;
    let spread = draws.iter().enumerate().map(|(k, x)| place(k) * x).sum::<f64>();
    distance - spread / (count * count)
}

#[cfg(test)]
mod tests {
    use super::crps;

    #[test]
    fn the_score_of_draws_is_that_of_their_distribution() {
        let draws = [-1.0_f64, 0.0, 0.5, 3.0];
        let pairs = draws.iter().flat_map(|a| draws.iter().map(move |b| (a - b).abs()));
        let expected =
            draws.iter().map(|x| (x - 0.3).abs()).sum::<f64>() / 4.0 - pairs.sum::<f64>() / 32.0;
        assert!((crps(&draws, 0.3) - expected).abs() < 1e-15);
    }
}
