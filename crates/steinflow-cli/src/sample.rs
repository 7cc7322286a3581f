//! `steinflow sample`: from settings to a run folder.

use std::path::PathBuf;
use std::process::ExitCode;

use steinflow::method::{FieldKind, Region};
use steinflow::{Real, Sampler};
use steinflow_io::Unfinished;
use steinflow_models::Model;

use crate::args::SampleArguments;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::job::{Job, Start};
use crate::settings::Settings;
use crate::tune;

/// More threads than any machine that this will run on has cores.
const MOST_THREADS: usize = 1024;

pub fn command(arguments: &SampleArguments) -> Result<ExitCode> {
    start_threads(arguments.output.threads)?;
    let from_file = match &arguments.config {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let settings = arguments.settings.clone().or(from_file);
    let config = if arguments.tune {
        let (run, force) = (arguments.out.as_deref(), arguments.force);
        tune::before_run(settings, run, force, arguments.output.quiet)?
    } else {
        Config::resolve(settings)?
    };
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| free_folder(&format!("{}-{}", config.model, config.method)));
    let job = Job {
        config,
        out: out.clone(),
        force: arguments.force,
        is_resumed: false,
        start: Start::Afresh,
        output: &arguments.output,
    };
    if !arguments.force && Unfinished::exists(&out) {
        return Err(Error::Unfinished { run: out });
    }
    job.run(|| Ok(Unfinished::open(&out)?))
}

/// Before anything is computed: threads are started once.
pub fn start_threads(count: Option<usize>) -> Result<()> {
    let Some(count) = count else { return Ok(()) };
    let refused = |message: String| Error::Threads { count, message };
    if count == 0 || count > MOST_THREADS {
        return Err(refused(format!("take 1 to {MOST_THREADS}")));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|error| refused(error.to_string()))
}

/// The sampler that a config describes, on a model in the config's precision.
pub fn sampler<'a, T: Real>(config: &Config, model: &'a dyn Model<T>) -> Result<Sampler<'a, T>> {
    let (method, parameters) = (config.method()?, config.parameters());
    let dynamics = method.build_dynamics::<T>(&parameters);
    let field = if method.field == FieldKind::Lawgd {
        let target = steinflow_models::build::<f64>(&config.model_spec()?)?;
        let window = window(&*target);
        let region = window.as_ref().map(|window| Region { target: &*target, window });
        method.build_field::<T>(config.kernel()?, &parameters, region)?
    } else {
        method.build_field::<T>(config.kernel()?, &parameters, None)?
    };
    let mut sampler = Sampler::new(model, dynamics, field);
    sampler = match (&config.start_mean, config.start_sd) {
        (Some(mean), Some(sd)) => sampler.start_normal(config.particles, mean, sd),
        _ => {
            if let Some(start) = model.start_sample(config.particles, config.seed) {
                sampler.start_at(start.cast())
            } else {
                let start = model.start();
                sampler.start_normal(config.particles, &start.mean, start.sd)
            }
        }
    };
    sampler = sampler.seed(config.seed).on_non_finite(config.policy()?);
    for (integrator, steps, step_size) in config.phases::<T>()? {
        sampler = sampler.phase(integrator, steps, step_size);
    }
    if let Some(rule) = config.preconditioner()? {
        sampler = sampler.precondition(rule);
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
    Ok(sampler)
}

/// Limits that hold nearly all of the target: what it is plotted in, or its mean ± 6 standard
/// deviations.
fn window(model: &dyn Model<f64>) -> Option<Vec<(f64, f64)>> {
    if let Some(window) = model.window() {
        return Some(window.map(Into::into).to_vec());
    }
    let exact = model.exact_moments()?;
    let around = |j: usize| {
        let (mean, sd) = (exact.mean[j], exact.covariance.row(j)[j].sqrt());
        (mean - 6.0 * sd, mean + 6.0 * sd)
    };
    Some((0..exact.mean.len()).map(around).collect())
}

/// The first folder `runs/NAME-K` that is free.
pub fn free_folder(name: &str) -> PathBuf {
    let mut k = 1;
    loop {
        let path = PathBuf::from("runs").join(format!("{name}-{k}"));
        if !path.exists() && !Unfinished::path_of(&path).exists() {
            return path;
        }
        k += 1;
    }
}
