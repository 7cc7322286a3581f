//! The `steinflow` command: arguments → config → run → folder.

#[macro_use]
mod tell;

mod args;
mod catalogues;
mod changes;
mod checkpoints;
mod classes;
mod compare;
mod data;
mod devices;
mod diagnose;
mod doctor;
mod error;
mod files;
mod fit;
mod flags;
mod frames;
#[cfg(test)]
mod fuzz;
mod grid;
mod job;
mod live;
mod memory;
mod network;
mod predict;
mod progress;
mod ranks;
mod report;
mod reproduce;
mod resume;
mod sample;
mod scores;
mod shell;
mod signals;
mod summary;
mod times;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Arguments, Command};
use error::{Error, Result, shortened};

pub use report::page_on_model;

/// Does what the command does with these arguments, the first of which is its own name.
pub fn command(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // What a decoder panics about is reported as the damaged file that it is.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !steinflow_io::is_decoding() {
            usual(info);
        }
    }));
    signals::survive_large_files();
    ranks::over_ranks(Arguments::try_parse_from(arguments), lead)
}

fn lead(arguments: Result<Arguments, clap::Error>) -> ExitCode {
    let arguments = match arguments {
        Ok(arguments) => arguments,
        // Help, or what is wrong with the arguments.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Error::USAGE));
        }
    };
    match run(arguments.command.unwrap_or_else(Command::first_run)) {
        Ok(code) => code,
        // A reader that has seen enough, such as `head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {}", shortened(&error.to_string()));
            ExitCode::from(if error.is_usage() { Error::USAGE } else { Error::FAILURE })
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Sample(arguments) => sample::command(&arguments),
        Command::Resume(arguments) => resume::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Compare(arguments) => compare::command(&arguments),
        Command::Diagnose(arguments) => diagnose::command(&arguments),
        Command::Report(arguments) => report::command(&arguments),
        Command::Verify(arguments) => verify::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
        Command::Data(arguments) => data::command(&arguments),
        Command::Devices(arguments) => devices::command(arguments.json),
        Command::Methods(arguments) => catalogues::methods(arguments.json),
        Command::Models(arguments) => catalogues::models(arguments.json),
        Command::Doctor(arguments) => doctor::command(arguments.json),
        Command::Completions(arguments) => shell::completions(arguments.shell),
        Command::Man(arguments) => shell::manual(&arguments.folder),
    }
}
