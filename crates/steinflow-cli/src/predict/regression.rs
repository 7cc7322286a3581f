//! Predictions of a regression: a number with its quantiles, or the probability of every class.

use std::fmt::Write as _;

use steinflow::Matrix;
use steinflow_io::record::{FinishedRun, STANDARDISATION, Scores, column};
use steinflow_models::data::{Table, read_new_rows};
use steinflow_models::regression::{Fitted, RowPrediction};

use super::{Answer, AnyScores};
use crate::args::PredictArguments;
use crate::classes;
use crate::error::Result;
use crate::network::Theta;
use crate::times;

pub fn predict(arguments: &PredictArguments, run: &FinishedRun, levels: &[f64]) -> Result<Answer> {
    let fitted: Fitted = run.json(STANDARDISATION)?;
    let (data, data_dir) = (&arguments.data, arguments.data_dir.as_deref());
    let table = read_new_rows(data, data_dir, fitted.recipe())?;
    let theta = Theta::read(run)?;
    let parameters: Matrix<f64> = theta.matrix(fitted.parameters())?;
    let rows = Rows::new(&fitted, fitted.predict(&parameters, &table)?, &table)?;
    Ok(Answer {
        csv: rows.to_csv(levels),
        rows: rows.predictions.len(),
        target: fitted.target().to_owned(),
        predicted_with: format!("{} {}", parameters.rows(), theta.kind()),
        scores: rows.scores(),
    })
}

/// The rows of a table and what is predicted for them.
pub struct Rows<'a> {
    fitted: &'a Fitted,
    predictions: Vec<RowPrediction>,
    numbers: Vec<usize>,
    targets: Option<Vec<f64>>,
}

impl<'a> Rows<'a> {
    pub fn new(fitted: &'a Fitted, predictions: Vec<RowPrediction>, table: &Table) -> Result<Self> {
        let numbers = (0..predictions.len()).map(|row| table.number(row)).collect();
        Ok(Self { fitted, predictions, numbers, targets: fitted.targets(table)? })
    }

    fn probabilities(&self) -> Vec<Vec<f64>> {
        self.predictions.iter().map(|row| row.probabilities.clone()).collect()
    }

    pub fn to_csv(&self, levels: &[f64]) -> String {
        let classes = self.fitted.classes();
        let times: Option<Vec<f64>> = self
            .targets
            .as_ref()
            .filter(|_| self.fitted.is_survival())
            .map(|targets| targets.iter().map(|time| time.abs()).collect());
        let targets = times.as_deref().or(self.targets.as_deref());
        if classes.is_empty() {
            return of_numbers(&self.predictions, &self.numbers, targets, levels);
        }
        classes::to_csv(classes, &self.numbers, targets, &self.probabilities())
    }

    /// How good they are, where the targets are known.
    pub fn scores(&self) -> Option<AnyScores> {
        let targets = self.targets.as_deref()?;
        if !self.fitted.classes().is_empty() {
            return Some(AnyScores::Classes(classes::score(&self.probabilities(), targets)));
        }
        if self.fitted.is_survival() && targets.iter().any(|&time| time < 0.0) {
            let log_likelihood = mean_log_density(&self.predictions);
            let scores = times::score(&self.predictions, targets, log_likelihood);
            return Some(AnyScores::Times(scores));
        }
        Some(score(&self.predictions, targets, self.fitted.target_sd()))
    }
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

fn mean_log_density(rows: &[RowPrediction]) -> f64 {
    rows.iter().filter_map(|row| row.log_density).sum::<f64>() / rows.len() as f64
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
