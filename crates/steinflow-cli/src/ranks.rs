//! `mpirun -n 4 steinflow …`: rank 0 is the command, and the others help with its run or its jobs.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use steinflow_config::{Config, Run, Settings};
use steinflow_models::network::NetworkFit;
use steinflow_models::{Model, NETWORK};
use steinflow_mpi::jobs::{Notice, Taker, await_jobs};
use steinflow_mpi::{Call, Number, Session, World, await_call, dismiss, is_helper, report, serve};

use crate::args::{Arguments, Command, ReproduceArguments};
use crate::error::{Error, Result};
use crate::reproduce;
use crate::sample::start_threads;
use crate::signals::on_signal;

/// Seconds of silence after which a rank is given up, and what sets others.
const PATIENCE: f64 = 60.0;
const PATIENCE_VARIABLE: &str = "STEINFLOW_RANK_PATIENCE";

/// The sampler of a run, and what its helpers are kept by until it has ended.
pub fn sampler<'a, T: Number>(
    config: &Config,
    model: &'a dyn Model<T>,
    threads: Option<usize>,
) -> Result<(Run<'a, T>, Option<Session>)> {
    let Some(session) = Session::begin(&config.to_toml(), threads.unwrap_or(0))? else {
        return Ok((config.sampler(model)?, None));
    };
    if config.device.is_some() {
        let remedy = "ranks share the work of processors: leave it out, or run without mpirun";
        return Err(steinflow::Error::setting("device", "cuda", remedy).into());
    }
    let run = config.sampler_through(model, session.target(model))?.with_team(session.team());
    Ok((run, Some(session)))
}

/// Runs the command on rank 0, and helps on the others, who were given the same arguments.
pub fn over_ranks(
    arguments: Result<Arguments, clap::Error>,
    command: impl FnOnce(Result<Arguments, clap::Error>) -> ExitCode,
) -> ExitCode {
    let Some(_world) = World::join(patience(), give_up) else { return command(arguments) };
    if is_helper() {
        // Rank 0 decides what a signal means.
        on_signal(|_| {});
        match arguments.map(|arguments| arguments.command) {
            Ok(Some(Command::Reproduce(arguments))) => help_with_jobs(&arguments),
            _ => help_with_runs(),
        }
        return ExitCode::SUCCESS;
    }
    let code = command(arguments);
    dismiss();
    code
}

fn patience() -> Duration {
    let given = std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = given.filter(|seconds| *seconds > 0.0).unwrap_or(PATIENCE);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Any rank says this, also one that has nothing to say otherwise.
fn give_up(rank: usize) {
    let seconds = patience().as_secs_f64();
    eprintln!(
        "error: rank {rank} was not heard of for {seconds} s, and the command ends: it was stopped, or its machine is out \
         of reach. What is on the disk is kept: go on with `steinflow resume RUN`, or with the same `steinflow \
         reproduce`. Where ranks may be silent for longer, set {PATIENCE_VARIABLE}"
    );
}

fn help_with_jobs(arguments: &ReproduceArguments) {
    let reason = match reproduce::command(arguments) {
        Err(Error::Dismissed) => return,
        Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    };
    while let Notice::Jobs(..) = await_jobs() {
        Taker::default().leave(&reason);
    }
}

fn help_with_runs() {
    while let Call::Run(description, threads) = await_call() {
        if threads > 0 {
            // A second run has the threads of the first.
            let _ = start_threads(Some(threads));
        }
        let config = Settings::parse(Path::new("rank 0"), &description)
            .and_then(Config::resolve)
            .map_err(Into::into);
        let helped = config.and_then(|config| {
            if config.is_f32 { help_with::<f32>(&config) } else { help_with::<f64>(&config) }
        });
        if let Err(error) = helped {
            report(&Err(error.to_string()));
        }
    }
}

fn help_with<T: Number>(config: &Config) -> Result<()> {
    if config.model == NETWORK {
        let fit = NetworkFit::<T>::new(config.spec())?;
        report(&Ok(()));
        serve(&fit.network);
    } else {
        let model = steinflow_models::build::<T>(config.spec())?;
        report(&Ok(()));
        serve(&model);
    }
    Ok(())
}
