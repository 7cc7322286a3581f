//! `steinflow reproduce`: tables and figures that anyone can get again from one command.

mod collapse;
mod derandomised;
mod interactions;
mod posteriors;
mod study;
mod toy;
mod uci;
mod verdict;

use std::process::ExitCode;

use crate::args::{Experiment, ReproduceArguments};
use crate::error::Result;

pub fn command(arguments: &ReproduceArguments) -> Result<ExitCode> {
    match &arguments.experiment {
        Experiment::Collapse(arguments) => collapse::run(arguments)?,
        Experiment::Derandomised(arguments) => derandomised::run(arguments)?,
        Experiment::Interactions(arguments) => interactions::run(arguments)?,
        Experiment::Toy(arguments) => toy::run("toy", toy::FIGURES, arguments)?,
        Experiment::Table1(arguments) => toy::run("table1", &["table1"], arguments)?,
        Experiment::Samples(arguments) => toy::run("samples", &["samples"], arguments)?,
        Experiment::Traces(arguments) => toy::run("traces", &["traces"], arguments)?,
        Experiment::Evolution(arguments) => toy::run("evolution", &["evolution"], arguments)?,
        Experiment::Posteriors(arguments) => posteriors::run(arguments)?,
        Experiment::Uci(arguments) => uci::run(arguments)?,
        Experiment::Verdict(arguments) => verdict::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
