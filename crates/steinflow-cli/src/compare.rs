//! `steinflow compare`: which of several fits predicts best rows that it has not seen.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use steinflow::Real;
use steinflow_config::Settings;
use steinflow_io::record::{CONFIG, FinishedRun, STANDARDISATION};
use steinflow_models::data::read_fitted_rows;
use steinflow_models::network::NetworkFit;
use steinflow_models::prediction::{LARGEST_SHAPE, LeaveOneOut};
use steinflow_models::regression::Fitted;
use steinflow_models::{Describe as _, Error as ModelError, ModelSpec, NETWORK};

use crate::args::CompareArguments;
use crate::error::{Error, Result};
use crate::network::Theta;
use crate::predict::open;
use crate::sample::start_threads;
use crate::summary::{short, table};

/// A fit, and how well it predicts.
struct Scored {
    run: PathBuf,
    model: String,
    target: String,
    /// Where its rows stand in their file.
    rows: Vec<usize>,
    scores: LeaveOneOut,
}

pub fn command(arguments: &CompareArguments) -> Result<ExitCode> {
    start_threads(arguments.threads)?;
    let mut all = arguments.runs.iter().map(|run| score(run)).collect::<Result<Vec<_>>>()?;
    for pair in all.windows(2) {
        pair[0].check(&pair[1])?;
    }
    all.sort_by(|a, b| b.scores.total().total_cmp(&a.scores.total()));
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let list: Vec<_> = all.iter().map(|one| one.to_json(&all[0])).collect();
        steinflow_io::write_json(&list, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (target, rows) = (&all[0].target, all[0].rows.len());
    writeln!(out, "log p({target}) of {rows} rows, each predicted from all others; best first\n")?;
    let header = ["", "model", "sum", "±", "behind", "±", "parameters in use", "doubtful rows"];
    writeln!(out, "{}", table(&header, all.iter().map(|one| one.cells(&all[0])).collect()))?;
    let doubtful: usize = all.iter().map(|one| one.scores.doubtful()).sum();
    if doubtful > 0 {
        writeln!(
            out,
            "\na doubtful row (Pareto k above {LARGEST_SHAPE}) decides so much that its score is a guess: hold such \
             rows back and predict them"
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn score(folder: &Path) -> Result<Scored> {
    let (run, model) = open(folder)?;
    let spec = Settings::parse(&run.path(CONFIG), &run.config()?)?.spec;
    let theta = Theta::read(&run)?;
    let (target, rows, scores) = if model != NETWORK {
        by_regression(&run, &spec, &theta)?
    } else if theta.is_f32() {
        by_network::<f32>(&spec, &theta)?
    } else {
        by_network::<f64>(&spec, &theta)?
    };
    Ok(Scored { run: folder.to_owned(), model, target, rows, scores })
}

type Found = (String, Vec<usize>, LeaveOneOut);

fn by_regression(run: &FinishedRun, spec: &ModelSpec, theta: &Theta<'_>) -> Result<Found> {
    let fitted: Fitted = run.json(STANDARDISATION)?;
    let Some(data) = &spec.data else {
        return Err(ModelError::DataRequired { model: spec.name().to_owned() }.into());
    };
    let table = read_fitted_rows(data, spec.data_dir.as_deref(), fitted.recipe())?;
    let scores = fitted.leave_one_out(&theta.matrix(fitted.parameters())?, &table)?;
    let rows = (0..table.values().rows()).map(|row| table.number(row)).collect();
    Ok((fitted.target().to_owned(), rows, scores))
}

fn by_network<T: Real>(spec: &ModelSpec, theta: &Theta<'_>) -> Result<Found> {
    let NetworkFit { data, network, .. } = NetworkFit::<T>::new(spec)?;
    let theta = theta.matrix::<T>(&network.parameter_names())?;
    let (inputs, targets) = (data.train_inputs(), data.train_targets_in_units());
    let scores = if data.standardisation().classes().is_empty() {
        let predictive = network.predict(theta.as_ref(), inputs)?;
        predictive.in_units(data.target_scaling())?.leave_one_out(targets)?
    } else {
        network.predict_classes(theta.as_ref(), inputs)?.leave_one_out(targets)?
    };
    Ok((data.standardisation().target_name.clone(), data.train_rows().to_vec(), scores))
}

impl Scored {
    /// Whether another says something about the same.
    fn check(&self, other: &Self) -> Result<()> {
        let difference = if self.target != other.target {
            format!("one predicts `{}`, the other `{}`", self.target, other.target)
        } else if self.rows != other.rows {
            let (a, b) = (self.rows.len(), other.rows.len());
            format!("they were fitted to different rows, {a} and {b}")
        } else {
            return Ok(());
        };
        Err(Error::NotComparable { a: self.run.clone(), b: other.run.clone(), difference })
    }

    fn cells(&self, best: &Self) -> Vec<String> {
        let (behind, error) = best.scores.difference(&self.scores);
        let numbers = [self.scores.total(), self.scores.standard_error(), behind, error];
        let mut cells = vec![self.run.display().to_string(), self.model.clone()];
        cells.extend(numbers.map(|x| if x == 0.0 { String::new() } else { short(x) }));
        cells.push(short(self.scores.effective_parameters()));
        cells.push(self.scores.doubtful().to_string());
        cells
    }

    fn to_json(&self, best: &Self) -> serde_json::Value {
        let (behind, error) = best.scores.difference(&self.scores);
        json!({
            "run": self.run,
            "model": self.model,
            "target": self.target,
            "rows": self.rows.len(),
            "log_score": self.scores.total(),
            "standard_error": self.scores.standard_error(),
            "behind": behind,
            "standard_error_behind": error,
            "effective_parameters": self.scores.effective_parameters(),
            "doubtful_rows": self.scores.doubtful(),
            "largest_shape": self.scores.shapes.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}
