//! `steinflow predict`: from a run folder and a table to predictions.

mod regression;

pub use regression::Rows;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use steinflow::{Error as LibraryError, Real};
use steinflow_io::record::{self, CONFIG, FinishedRun};
use steinflow_io::{Error as IoError, WholeFile};
use steinflow_models::data::{NewRows, Standardisation, read_new_rows};
use steinflow_models::{Describe as _, ModelInfo, ModelSpec, NETWORK};

use crate::args::PredictArguments;
use crate::classes;
use crate::error::{Error, Result};
use crate::network::{LEVELS, Predictions, Record, Theta};
use crate::progress;
use crate::sample::start_threads;
use crate::scores::print_scores;
use crate::times;
use steinflow_config::Settings;

/// What is predicted, ready to be written.
struct Answer {
    /// A line for every row.
    csv: String,
    rows: usize,
    target: String,
    /// Of how many parameters, and what they are.
    predicted_with: String,
    scores: Option<AnyScores>,
}

/// How good the predictions are.
#[derive(Serialize)]
#[serde(untagged)]
pub enum AnyScores {
    Numbers(record::Scores),
    Classes(record::ClassScores),
    Times(record::TimeScores),
}

pub fn command(arguments: &PredictArguments) -> Result<ExitCode> {
    start_threads(arguments.threads)?;
    // Everything that can be wrong with the request, before anything is computed.
    let levels = levels(&arguments.levels)?;
    let out = match &arguments.out {
        Some(path) if path.as_os_str() != "-" => Some(WholeFile::create(path, arguments.force)?),
        _ if arguments.json => {
            let remedy = "standard output would hold both; give --out FILE";
            return Err(steinflow_config::Error::does_not_fit("json", "--out -", remedy).into());
        }
        _ => None,
    };
    let (run, model) = open(&arguments.run)?;
    let answer = if model == NETWORK {
        by_network(arguments, &run, &levels)?
    } else {
        regression::predict(arguments, &run, &levels)?
    };
    answer.write(arguments, &levels, out)
}

fn levels(given: &[f64]) -> Result<Vec<f64>> {
    if given.is_empty() {
        return Ok(LEVELS.to_vec());
    }
    for (i, &level) in given.iter().enumerate() {
        if !(level > 0.0 && level < 1.0) {
            let remedy = "give a probability between 0 and 1";
            return Err(LibraryError::setting("level", level, remedy).into());
        }
        if given[..i].contains(&level) {
            return Err(LibraryError::setting("level", level, "give it once").into());
        }
    }
    Ok(given.to_vec())
}

/// The run and its model, if it is one that predicts; otherwise what it is.
pub fn open(folder: &Path) -> Result<(FinishedRun, String)> {
    let not = |found: String| Error::CannotPredict { path: folder.to_owned(), found };
    let run = FinishedRun::open(folder).map_err(|error| match error {
        IoError::NotARun { found, .. } => not(found),
        error => error.into(),
    })?;
    let Some(model) = Settings::parse(&run.path(CONFIG), &run.config()?)?.spec.model else {
        return Err(not("does not say what it is a run on".to_owned()));
    };
    if ModelSpec::named(&model).info().is_ok_and(ModelInfo::predicts) {
        return Ok((run, model));
    }
    Err(not(format!("is a run on `{model}`, which predicts nothing")))
}

fn by_network(arguments: &PredictArguments, run: &FinishedRun, levels: &[f64]) -> Result<Answer> {
    let record = Record::read(run)?;
    let standardisation = record.standardisation();
    let (data, data_dir) = (&arguments.data, arguments.data_dir.as_deref());
    let table = read_new_rows(data, data_dir, &standardisation.recipe)?;
    let rows = standardisation.standardise_new(&table).map_err(steinflow_models::Error::from)?;
    let theta = Theta::read(run)?;
    let request = Request { arguments, record, standardisation, rows, theta, levels };
    let numbers: Vec<usize> = (0..table.values().rows()).map(|row| table.number(row)).collect();
    if !request.standardisation.classes().is_empty() {
        let (probabilities, count) = if request.theta.is_f32() {
            request.probabilities::<f32>()?
        } else {
            request.probabilities::<f64>()?
        };
        let (own, seen) = (&request.standardisation, request.rows.targets_in_units.as_deref());
        return Ok(Answer {
            csv: classes::to_csv(own.classes(), &numbers, seen, &probabilities),
            rows: numbers.len(),
            target: own.target_name.clone(),
            predicted_with: format!("{count} {}", request.theta.kind()),
            scores: seen.map(|seen| AnyScores::Classes(classes::score(&probabilities, seen))),
        });
    }
    let (predictions, count) = if request.theta.is_f32() {
        request.predict::<f32>()?
    } else {
        request.predict::<f64>()?
    };
    Ok(Answer {
        csv: predictions.to_csv(&numbers, request.rows.targets_in_units.as_deref()),
        rows: numbers.len(),
        target: request.standardisation.target_name,
        predicted_with: format!("{count} {}", request.theta.kind()),
        scores: predictions.scores.map(|scores| AnyScores::Numbers(scores.into())),
    })
}

struct Request<'a> {
    arguments: &'a PredictArguments,
    record: Record,
    standardisation: Standardisation,
    rows: NewRows,
    theta: Theta<'a>,
    levels: &'a [f64],
}

impl Request<'_> {
    /// The probability of every class of every row, and of how many particles.
    fn probabilities<T: Real>(&self) -> Result<(Vec<Vec<f64>>, usize)> {
        let network = self.record.network::<T>()?;
        let theta = self.theta.matrix::<T>(&network.parameter_names())?;
        let predictive = network.predict_classes(theta.as_ref(), &self.rows.inputs)?;
        let rows = (0..predictive.rows()).map(|row| predictive.probabilities(row));
        Ok((rows.collect(), theta.rows()))
    }

    /// The predictions, and of how many particles.
    fn predict<T: Real>(&self) -> Result<(Predictions, usize)> {
        let network = self.record.network::<T>()?;
        let theta = self.theta.matrix::<T>(&network.parameter_names())?;
        let bar = progress::bar("predicting", self.arguments.quiet);
        let predictions = Predictions::new(
            &network,
            theta.as_ref(),
            &self.rows.inputs,
            self.rows.targets_in_units.as_deref(),
            self.standardisation.target_scaling,
            self.levels,
            &bar,
        )?;
        Ok((predictions, theta.rows()))
    }
}

impl Answer {
    fn write(
        &self,
        arguments: &PredictArguments,
        levels: &[f64],
        out: Option<WholeFile>,
    ) -> Result<ExitCode> {
        let Some(file) = out else {
            std::io::stdout().lock().write_all(self.csv.as_bytes())?;
            if !arguments.quiet {
                self.summarise(&mut std::io::stderr().lock())?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        file.write(self.csv.as_bytes())?;
        let mut out = std::io::stdout().lock();
        if arguments.json {
            let summary = json!({
                "rows": self.rows,
                "target": self.target,
                "predicted_with": self.predicted_with,
                "levels": levels,
                "out": arguments.out,
                "scores": self.scores,
            });
            steinflow_io::write_json(&summary, &mut out)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.summarise(&mut out)?;
        if let Some(path) = &arguments.out {
            writeln!(out, "\n{}", path.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn summarise(&self, out: &mut impl Write) -> Result<()> {
        let Self { rows, target, predicted_with, scores, .. } = self;
        writeln!(out, "{target} of {rows} rows, predicted with {predicted_with}")?;
        match scores {
            None => writeln!(out, "without scores: the target is not known in every row")?,
            Some(AnyScores::Numbers(scores)) => {
                writeln!(out)?;
                print_scores(scores, out, target)?;
            }
            Some(AnyScores::Classes(scores)) => {
                writeln!(out)?;
                classes::print_scores(scores, out)?;
            }
            Some(AnyScores::Times(scores)) => {
                writeln!(out)?;
                times::print_scores(scores, out)?;
            }
        }
        Ok(())
    }
}
