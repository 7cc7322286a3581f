//! `steinflow reproduce`: tables and figures that anyone can get again from one command.

mod collapse;
mod toy;

use std::process::ExitCode;

use crate::args::{Experiment, ReproduceArguments};
use crate::error::{Error, Result};

pub fn command(arguments: &ReproduceArguments) -> Result<ExitCode> {
    match arguments.experiment {
        Experiment::Collapse => {
            if arguments.seed.is_some() {
                let remedy = "its seeds are part of its settings; drop it".to_owned();
                let what = "the experiment `collapse`".to_owned();
                return Err(Error::DoesNotFit { option: "seed", what, remedy });
            }
            collapse::run(arguments)?;
        }
        _ => toy::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
