//! `steinflow reproduce`: tables that anyone can get again from one command.

mod collapse;
mod jobs;
mod uci;

use std::process::ExitCode;

use crate::args::{Experiment, ReproduceArguments};
use crate::error::Result;

pub fn command(arguments: &ReproduceArguments) -> Result<ExitCode> {
    match &arguments.experiment {
        Experiment::Collapse(arguments) => collapse::run(arguments)?,
        Experiment::Uci(arguments) => uci::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
