//! `steinflow predict`: from a run folder and a table to predictions.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use steinflow::{Error as LibraryError, Real};
use steinflow_io::record::{CONFIG, FinishedRun};
use steinflow_io::{Error as IoError, WholeFile};
use steinflow_models::data::{NewRows, Standardisation, read_new_rows};
use steinflow_models::{Describe as _, NETWORK};

use crate::args::PredictArguments;
use crate::error::{Error, Result};
use crate::network::{LEVELS, Predictions, Record, Theta};
use crate::progress;
use crate::sample::start_threads;
use crate::scores::print_scores;
use steinflow_config::Settings;

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
    let run = open(&arguments.run)?;
    let record = Record::read(&run)?;
    let standardisation = record.standardisation();
    let (data, data_dir) = (&arguments.data, arguments.data_dir.as_deref());
    let table = read_new_rows(data, data_dir, &standardisation.recipe)?;
    let rows = standardisation.standardise_new(&table).map_err(steinflow_models::Error::from)?;
    let theta = Theta::read(&run)?;
    let numbers = (0..table.values().rows()).map(|row| table.number(row)).collect();
    let request = Request { arguments, record, standardisation, rows, numbers, theta, levels };
    let (predictions, count) = if request.theta.is_f32() {
        request.predict::<f32>()?
    } else {
        request.predict::<f64>()?
    };
    request.write(&predictions, count, out)
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

/// The run, if it is one of a network; otherwise what it is.
fn open(folder: &Path) -> Result<FinishedRun> {
    let not = |found: String| Error::NotANetworkRun { path: folder.to_owned(), found };
    let run = FinishedRun::open(folder).map_err(|error| match error {
        IoError::NotARun { found, .. } => not(found),
        error => error.into(),
    })?;
    match Settings::parse(&run.path(CONFIG), &run.config()?)?.spec.model {
        Some(model) if model == NETWORK => Ok(run),
        Some(model) => Err(not(format!("is a run on `{model}`, which predicts nothing"))),
        None => Err(not("does not say what it is a run on".to_owned())),
    }
}

struct Request<'a> {
    arguments: &'a PredictArguments,
    record: Record,
    standardisation: Standardisation,
    rows: NewRows,
    /// Where the rows stand in the file.
    numbers: Vec<usize>,
    theta: Theta<'a>,
    levels: Vec<f64>,
}

impl Request<'_> {
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
            &self.levels,
            &bar,
        )?;
        Ok((predictions, theta.rows()))
    }

    fn write(
        &self,
        predictions: &Predictions,
        count: usize,
        out: Option<WholeFile>,
    ) -> Result<ExitCode> {
        let csv = predictions.to_csv(&self.numbers, self.rows.targets_in_units.as_deref());
        let Some(file) = out else {
            std::io::stdout().lock().write_all(csv.as_bytes())?;
            if !self.arguments.quiet {
                self.summarise(predictions, count, &mut std::io::stderr().lock())?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        file.write(csv.as_bytes())?;
        let mut out = std::io::stdout().lock();
        if self.arguments.json {
            let summary = json!({
                "rows": self.numbers.len(),
                "target": self.standardisation.target_name,
                "predicted_with": self.predicted_with(count),
                "levels": self.levels,
                "out": self.arguments.out,
                "scores": predictions.scores,
            });
            steinflow_io::write_json(&summary, &mut out)?;
            return Ok(ExitCode::SUCCESS);
        }
        self.summarise(predictions, count, &mut out)?;
        if let Some(path) = &self.arguments.out {
            writeln!(out, "\n{}", path.display())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn predicted_with(&self, count: usize) -> String {
        format!("{count} {}", self.theta.kind())
    }

    fn summarise(
        &self,
        predictions: &Predictions,
        count: usize,
        out: &mut impl Write,
    ) -> Result<()> {
        let (rows, target) = (predictions.means.len(), &self.standardisation.target_name);
        writeln!(out, "{target} of {rows} rows, predicted with {}", self.predicted_with(count))?;
        match &predictions.scores {
            Some(scores) => {
                writeln!(out)?;
                print_scores(scores, out, target)
            }
            None => Ok(writeln!(out, "the file has no column `{target}`, so there are no scores")?),
        }
    }
}
