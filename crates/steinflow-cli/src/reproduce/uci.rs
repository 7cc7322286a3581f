//! Bayesian neural networks on the UCI regression sets: the paper's tables, with its numbers beside ours.

mod figure;
mod halving;
mod job;
mod plan;
mod published;
mod tables;

use std::io::Write as _;

use steinflow_models::data::find;

use super::study::Study;
use crate::args::UciArguments;
use crate::error::Result;
use job::{Job, Source};
use plan::Plan;

pub fn run(arguments: &UciArguments) -> Result<()> {
    let plan = Plan::read(arguments)?;
    let mut sources = Vec::new();
    let mut absent = Vec::new();
    for set in &plan.datasets {
        // One that was asked for by name must be there; of all of them, those that are.
        match find(&set.name, arguments.data_dir.as_deref()) {
            Err(error) if arguments.datasets.is_empty() => absent.push((set, error)),
            found => sources.push(Source::new(set, &found?)?),
        }
    }
    for (set, error) in &absent {
        tell!("not run: {}: {error}", set.name);
    }
    let mut jobs = Vec::new();
    for source in &sources {
        for split in plan::splits(arguments, source) {
            jobs.extend(plan.runs.iter().map(|run| Job { plan: &plan, source, run, split }));
        }
    }
    let mut study = Study::begin(&arguments.common, "uci", &plan.text)?;
    let results = study.run("uci", &jobs, Job::key, Job::run)?;

    let cells: Vec<tables::Cell<'_>> = jobs
        .iter()
        .zip(&results)
        .map(|(job, result)| tables::Cell {
            dataset: &job.source.name,
            method: &job.run.label,
            split: job.split,
            result: result.as_ref().map_err(String::as_str),
        })
        .collect();
    let page = tables::markdown(&plan, &cells);
    study.write("settings.toml", &plan.text)?;
    study.write("runs.csv", tables::csv(&cells))?;
    study.write("traces.csv", tables::traces_csv(&cells))?;
    study.write("tables.md", &page)?;
    study.write("tables.tex", tables::latex(&plan, &cells))?;
    for source in &sources {
        if let Some(figure) = figure::traces(&plan, &source.name, &cells)? {
            study.write(&format!("traces-{}.png", source.name), figure.png()?)?;
            study.write(&format!("traces-{}.svg", source.name), figure.svg())?;
        }
    }
    let path = study.publish()?;
    writeln!(std::io::stdout(), "{page}\n{}", path.display())?;
    Ok(())
}
