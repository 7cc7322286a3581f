//! `mpirun -n 4 steinflow …`: rank 0 is the command, and the others help with its run.

use steinflow::Real;
use steinflow_config::{Config, Run};
use steinflow_models::Model;

use crate::error::Result;

/// The sampler of a run, and what its helpers are kept by until it has ended.
#[cfg(not(feature = "mpi"))]
pub fn sampler<'a, T: Real>(
    config: &Config,
    model: &'a dyn Model<T>,
    _threads: Option<usize>,
) -> Result<(Run<'a, T>, ())> {
    Ok((config.sampler(model)?, ()))
}

#[cfg(feature = "mpi")]
pub use with_mpi::{over_ranks, sampler};

#[cfg(feature = "mpi")]
mod with_mpi {
    use std::path::Path;
    use std::process::ExitCode;

    use steinflow_config::Settings;
    use steinflow_models::NETWORK;
    use steinflow_models::network::NetworkFit;
    use steinflow_mpi::{Call, Session, World, await_call, dismiss, report, serve};

    use super::{Config, Model, Real, Result, Run};
    use crate::sample::start_threads;
    use crate::signals::on_signal;

    /// The sampler of a run, and what its helpers are kept by until it has ended.
    pub fn sampler<'a, T: Real>(
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

    /// Runs the command on rank 0, and helps on the others.
    pub fn over_ranks(command: impl FnOnce() -> ExitCode) -> ExitCode {
        let Some(world) = World::join() else { return command() };
        if world.rank() > 0 {
            help();
            return ExitCode::SUCCESS;
        }
        let code = command();
        dismiss();
        code
    }

    fn help() {
        // Rank 0 decides what a signal means.
        on_signal(|_| {});
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

    fn help_with<T: Real>(config: &Config) -> Result<()> {
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
}
