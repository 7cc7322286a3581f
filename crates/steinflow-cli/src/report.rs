//! `steinflow report`: one HTML page about a run, or about several beside each other.

mod backdrop;
mod read;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steinflow::Matrix;
use steinflow_config::Config;
use steinflow_io::record::{FinishedRun, REPORT};
use steinflow_io::report::{Page, Run};
use steinflow_io::{WholeFile, add_to_run, is_finished_run};
use steinflow_models::{Model, NETWORK};

use crate::args::ReportArguments;
use crate::error::Result;
use crate::{fit, summary};

pub use backdrop::Backdrop;

/// Numbers of particles in a page, over all runs; each takes about eight bytes.
const MOST_NUMBERS: usize = 240_000;

/// The page of a run that another front end has made of a model that ships, with what the command says of those: exact
/// moments, the shares of a mixture's parts, how the data is fitted, and the target behind the particles. `theta` are
/// the draws of the page, `chains` at a time.
pub fn page_on_model(
    mut run: Run,
    config: &Config,
    model: &dyn Model<f64>,
    theta: &Matrix<f64>,
    chains: usize,
) -> String {
    let shown = model.units().map(|units| units.show(theta));
    summary::add_exact(&mut run.summary.moments, model);
    run.summary.parts = summary::parts(model, theta.as_ref());
    match fit::judge(config, model, shown.as_ref().unwrap_or(theta), chains) {
        Ok(None) => {}
        Ok(Some(fit)) => {
            run.summary.regression = Some(fit.regression);
            let column = |name: &str| Ok(read::column_of(&fit.csv, name).unwrap_or_default());
            run.predictions = read::predictions(&run.summary, column).unwrap_or_default();
        }
        Err(error) => {
            run.summary.warnings.push(format!("how the data is fitted cannot be said: {error}"));
        }
    }
    // Nobody asks for the density of a weight.
    if config.spec().name() != NETWORK {
        match Backdrop::new(model, &run.points) {
            Ok(Backdrop { density, marginals }) => {
                (run.density, run.marginals) = (density, marginals);
            }
            Err(error) => run.notes.push(read::no_backdrop(&error)),
        }
    }
    Page::report(vec![run]).html()
}

/// The page of a run that has just ended, in its folder. It replaces that of a run that was resumed.
pub fn write_into(run: &Path) -> Result<PathBuf> {
    let found = FinishedRun::open(run)?;
    let html = Page::report(vec![read::run(&found, MOST_NUMBERS, true)?]).html();
    add_to_run(run, REPORT, html.as_bytes(), true)?;
    Ok(found.path(REPORT))
}

pub fn command(arguments: &ReportArguments) -> Result<ExitCode> {
    let found: Vec<FinishedRun> =
        arguments.runs.iter().map(|run| FinishedRun::open(run)).collect::<Result<_, _>>()?;
    let out = match (&arguments.out, &found[..]) {
        (Some(out), _) => out.clone(),
        (None, [run]) => run.path(REPORT),
        (None, _) => found[0].folder().with_file_name("comparison.html"),
    };
    // What is put into a run's folder becomes one of the run's own files, which --force of another
    // run may replace.
    let run = out.parent().filter(|parent| is_finished_run(parent));
    // Before anything is read.
    let file = WholeFile::create(&out, arguments.force)?;
    let mut runs: Vec<Run> = Vec::new();
    for run in &found {
        runs.push(read::run(run, MOST_NUMBERS / found.len(), found.len() == 1)?);
    }
    tell_apart(&mut runs, &arguments.runs);
    let html = Page::report(runs).html();
    match (run, out.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) => add_to_run(folder, name, html.as_bytes(), arguments.force)?,
        _ => file.write(html.as_bytes())?,
    }
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Runs of the same name in several places are called by their paths.
fn tell_apart(runs: &mut [Run], given: &[PathBuf]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for ((run, path), name) in runs.iter_mut().zip(given).zip(&names) {
        if names.iter().filter(|other| *other == name).count() > 1 {
            run.name = path.display().to_string();
        }
    }
}
