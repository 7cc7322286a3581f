//! The `steinflow` command: arguments → config → run → folder.

#[macro_use]
mod tell;

mod args;
mod catalogues;
mod changes;
mod checkpoints;
mod data;
mod diagnose;
mod error;
mod files;
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
mod report;
mod reproduce;
mod resume;
mod sample;
mod scores;
mod signals;
mod summary;
mod verify;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches};

use args::{Arguments, Command};
use error::{Error, Result, shortened};
use verify::VerifyArguments;

fn main() -> ExitCode {
    // What a decoder panics about is reported as the damaged file that it is.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !steinflow_io::is_decoding() {
            usual(info);
        }
    }));
    signals::survive_large_files();
    let parser = Arguments::command().subcommand(VerifyArguments::command());
    let given = parser.get_matches();
    let done = match given.subcommand() {
        Some(("verify", own)) => parsed(own).and_then(|own| verify::command(&own)),
        _ => parsed::<Arguments>(&given).and_then(|own| run(own.command.unwrap_or_default())),
    };
    match done {
        Ok(code) => code,
        // A reader that has seen enough, such as `head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            tell!("error: {}", shortened(&error.to_string()));
            ExitCode::from(if error.is_usage() { Error::USAGE } else { Error::FAILURE })
        }
    }
}

/// What clap has found to be right already.
fn parsed<A: FromArgMatches>(given: &ArgMatches) -> Result<A> {
    A::from_arg_matches(given).map_err(|error| error.exit())
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Sample(arguments) => sample::command(&arguments),
        Command::Resume(arguments) => resume::command(&arguments),
        Command::Predict(arguments) => predict::command(&arguments),
        Command::Diagnose(arguments) => diagnose::command(&arguments),
        Command::Report(arguments) => report::command(&arguments),
        Command::Reproduce(arguments) => reproduce::command(&arguments),
        Command::Data(arguments) => data::command(&arguments),
        Command::Methods(arguments) => catalogues::methods(arguments.json),
        Command::Models(arguments) => catalogues::models(arguments.json),
    }
}
