//! How well a fitted network predicts rows it has not seen.

use std::io::Write;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use steinflow::{MatRef, Real};
use steinflow_io::record;
use steinflow_models::network::NetworkFit;
use steinflow_models::prediction::Predictive;

use crate::error::Result;
use crate::summary::{short, table};

/// Scores on test rows, and how they come about.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Scores(record::Scores);

impl Deref for Scores {
    type Target = record::Scores;

    fn deref(&self) -> &record::Scores {
        &self.0
    }
}

impl From<Scores> for record::Scores {
    fn from(scores: Scores) -> Self {
        scores.0
    }
}

impl Scores {
    /// Judges predictions in the target's own units; `unit` is what one standard unit is in those.
    pub fn new(predictive: &Predictive, targets: &[f64], unit: f64) -> Result<Self> {
        let mse = predictive.mse(targets)?;
        Ok(Self(record::Scores {
            rows: targets.len(),
            log_likelihood: predictive.mean_log_likelihood(targets)?,
            rmse: mse.sqrt(),
            mse,
            standardised_mse: mse / (unit * unit),
            crps: predictive.mean_crps(targets)?,
            coverage_50: predictive.coverage(targets, 0.5)?,
            coverage_90: predictive.coverage(targets, 0.9)?,
            coverage_95: predictive.coverage(targets, 0.95)?,
            pit: predictive.pit_histogram(targets, 10)?,
        }))
    }

    /// The scores of all rows from those of parts of them; none of no parts.
    pub fn combined(parts: &[Self]) -> Option<Self> {
        let first = parts.first()?;
        let rows: usize = parts.iter().map(|part| part.rows).sum();
        let mean = |of: fn(&Self) -> f64| {
            parts.iter().map(|part| part.rows as f64 * of(part)).sum::<f64>() / rows as f64
        };
        let mse = mean(|part| part.mse);
        Some(Self(record::Scores {
            rows,
            log_likelihood: mean(|part| part.log_likelihood),
            rmse: mse.sqrt(),
            mse,
            standardised_mse: mean(|part| part.standardised_mse),
            crps: mean(|part| part.crps),
            coverage_50: mean(|part| part.coverage_50),
            coverage_90: mean(|part| part.coverage_90),
            coverage_95: mean(|part| part.coverage_95),
            pit: (0..first.pit.len())
                .map(|bin| parts.iter().map(|part| part.pit[bin]).sum())
                .collect(),
        }))
    }

    /// Judges particles by the test rows of a fit; none where no rows were held back.
    pub fn of_test_rows<T: Real>(
        fit: &NetworkFit<T>,
        theta: MatRef<'_, T>,
    ) -> Result<Option<Self>> {
        let data = &fit.data;
        if data.test_targets().is_empty() {
            return Ok(None);
        }
        let predictive = fit.network.predict(theta, data.test_inputs())?;
        let scaling = data.target_scaling();
        let in_units = predictive.in_units(scaling)?;
        Self::new(&in_units, data.test_targets_in_units(), scaling.sd).map(Some)
    }

    /// Mean log-likelihood of the rows that the particles were fitted to.
    pub fn training_log_likelihood<T: Real>(
        fit: &NetworkFit<T>,
        theta: MatRef<'_, T>,
    ) -> Result<f64> {
        let (data, scaling) = (&fit.data, fit.data.target_scaling());
        let predictive = fit.network.predict(theta, data.train_inputs())?;
        let targets: Vec<f64> =
            data.train_targets().iter().map(|&target| scaling.restore(target)).collect();
        Ok(predictive.in_units(scaling)?.mean_log_likelihood(&targets)?)
    }
}

/// A table for people; `target` names what the units are of.
pub fn print_scores(scores: &record::Scores, out: &mut impl Write, target: &str) -> Result<()> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let row = |name: &str, number: String| vec![name.to_owned(), number];
    let rows = vec![
        row("log-likelihood per row", short(scores.log_likelihood)),
        row(&format!("RMSE, in units of {target}"), short(scores.rmse)),
        row("MSE, standardised", short(scores.standardised_mse)),
        row(&format!("CRPS, in units of {target}"), short(scores.crps)),
        row("inside the 50 % interval", percent(scores.coverage_50)),
        row("inside the 90 % interval", percent(scores.coverage_90)),
        row("inside the 95 % interval", percent(scores.coverage_95)),
    ];
    let count = format!("{} rows", scores.rows);
    writeln!(out, "{}", table(&["", &count], rows))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use steinflow::Matrix;

    #[test]
    fn parts_make_the_whole() {
        let means = Matrix::from_fn(3, 10, |i, j| (i as f64 * 0.3 + j as f64).sin());
        let targets: Vec<f64> = (0..10).map(|j| f64::from(j).sin() * 1.5).collect();
        let scores = |columns: std::ops::Range<usize>| {
            let part = Matrix::from_fn(3, columns.len(), |i, j| means.row(i)[columns.start + j]);
            let predictive = Predictive::new(&part, &[0.1, 0.2, 0.3]).unwrap();
            Scores::new(&predictive, &targets[columns], 2.0).unwrap()
        };
        let (whole, combined) = (scores(0..10), Scores::combined(&[scores(0..3), scores(3..10)]));
        let combined = combined.unwrap();
        assert_eq!((combined.rows, &combined.pit), (10, &whole.pit));
        let numbers = |s: &Scores| {
            [s.log_likelihood, s.rmse, s.mse, s.standardised_mse, s.crps]
                .into_iter()
                .chain([s.coverage_50, s.coverage_90, s.coverage_95])
                .collect::<Vec<_>>()
        };
        for (a, b) in numbers(&whole).into_iter().zip(numbers(&combined)) {
            assert!((a - b).abs() < 1e-12, "{whole:?} {combined:?}");
        }
        assert_eq!(Scores::combined(&[]), None);
    }
}
