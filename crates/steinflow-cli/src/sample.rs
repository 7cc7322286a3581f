//! `steinflow sample`: from settings to a run folder.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steinflow::run::{Ended, Samples, Trace};
use steinflow::{Real, Sampler};
use steinflow_io::RunFolder;

use crate::args::SampleArguments;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::summary::Summary;

pub fn command(arguments: &SampleArguments) -> Result<ExitCode> {
    let from_file = match &arguments.config {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let config = Config::resolve(arguments.settings.clone().or(from_file))?;
    if let Some(count) = arguments.threads {
        let refused = |message: String| Error::Threads { count, message };
        if count == 0 {
            return Err(refused("a run needs one".to_owned()));
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .build_global()
            .map_err(|error| refused(error.to_string()))?;
    }
    if config.is_f32()? { run::<f32>(&config, arguments) } else { run::<f64>(&config, arguments) }
}

fn run<T: Real>(config: &Config, arguments: &SampleArguments) -> Result<ExitCode> {
    let model = steinflow_models::build::<T>(&config.model_spec())?;
    let method = config.method()?;
    let start = model.start();
    let mean = match config.start_mean[..] {
        [] => start.mean,
        [everywhere] => vec![everywhere; model.dim()],
        _ => config.start_mean.clone(),
    };
    let parameters = config.parameters();
    let mut trace = Trace::new(config.trace_every);
    let mut samples =
        config.collect_from.map(|from| Samples::<T>::new(from, config.collect_every.unwrap_or(1)));
    let mut sampler = Sampler::new(
        &*model,
        method.dynamics.build::<T>(&parameters),
        method.field.build::<T>(config.kernel()?, &parameters),
    )
    .start_normal(config.particles, &mean, config.start_sd.unwrap_or(start.sd))
    .seed(config.seed)
    .on_non_finite(config.policy()?)
    .observe(trace.observer())
    .interrupt(interrupt_flag());
    for (integrator, steps, step_size) in config.phases::<T>()? {
        sampler = sampler.phase(integrator, steps, step_size);
    }
    if let Some(rows) = config.model_options.batch_size {
        sampler = sampler.batch_size(rows);
    }
    if let Some(budget) = config.budget() {
        sampler = sampler.budget(budget);
    }
    if let Some(tolerance) = config.tolerance {
        sampler = sampler.tolerance(tolerance);
    }
    if let Some(steps) = config.resample_every {
        sampler = sampler.resample_every(steps);
    }
    if let Some(samples) = &mut samples {
        sampler = sampler.observe(samples.observer());
    }
    sampler.check()?;
    let solve = method.field.solve_memory(&parameters, config.particles);
    if solve > 0 && !arguments.quiet {
        eprintln!(
            "{} solves an N×N system at every velocity: {} MiB",
            method.name,
            (solve >> 20) + 1
        );
    }
    // Claimed only once the request is known to be sound, and before any work is done.
    let mut folder = RunFolder::create(out(config, arguments), arguments.force)?;
    if !arguments.quiet {
        sampler = sampler.observe(Progress::new(&format!("{} on {}", config.method, config.model)));
    }
    let outcome = sampler.run()?;

    let summary = Summary::new(config, &*model, &outcome, samples.as_ref());
    let found = files::Found { outcome: &outcome, trace: &trace, samples: samples.as_ref() };
    files::write(&mut folder, config, &*model, &found, &summary)?;
    let path = folder.commit()?;
    summary.print(&path, arguments.json)?;
    if outcome.ended == Ended::Interrupted {
        eprintln!("interrupted after step {}; everything so far is kept", outcome.steps);
        return Ok(ExitCode::from(Error::INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder asked for, or the first free one named after model and method.
fn out(config: &Config, arguments: &SampleArguments) -> PathBuf {
    if let Some(out) = &arguments.out {
        return out.clone();
    }
    let name = format!("{}-{}", config.model, config.method);
    let mut k = 1;
    loop {
        let path = PathBuf::from("runs").join(format!("{name}-{k}"));
        if !path.exists() {
            return path;
        }
        k += 1;
    }
}

/// Raised by the first Ctrl-C or SIGTERM; the second ends the process at once.
fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let installed = ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Error::INTERRUPTED));
        }
    });
    if let Err(error) = installed {
        eprintln!("warning: Ctrl-C will lose the run: {error}");
    }
    flag
}
