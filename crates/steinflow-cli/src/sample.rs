//! `steinflow sample`: from settings to a run folder.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steinflow::method::{FieldKind, Region};
use steinflow::run::{Ended, Trace};
use steinflow::{Real, Sampler};
use steinflow_io::RunFolder;
use steinflow_models::network::NetworkFit;
use steinflow_models::{Model, NETWORK};

use crate::args::SampleArguments;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::files;
use crate::network::Report;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::summary::Summary;

/// More threads than any machine that this will run on has cores.
const MOST_THREADS: usize = 1024;

pub fn command(arguments: &SampleArguments) -> Result<ExitCode> {
    start_threads(arguments.threads)?;
    let from_file = match &arguments.config {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let config = Config::resolve(arguments.settings.clone().or(from_file))?;
    if config.is_f32()? { run::<f32>(&config, arguments) } else { run::<f64>(&config, arguments) }
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

fn run<T: Real>(config: &Config, arguments: &SampleArguments) -> Result<ExitCode> {
    let spec = config.model_spec()?;
    let fit = (spec.name == NETWORK).then(|| NetworkFit::<T>::new(&spec)).transpose()?;
    let built;
    let model: &dyn Model<T> = if let Some(fit) = &fit {
        &fit.network
    } else {
        built = steinflow_models::build::<T>(&spec)?;
        &*built
    };
    let mut trace = Trace::new(config.trace_every);
    let mut samples = config.samples::<T>();
    let mut sampler = sampler(config, model)?.observe(trace.observer());
    if let Some(samples) = &mut samples {
        sampler = sampler.observe(samples.observer());
    }
    sampler.check()?;
    let text = config.to_toml()?;
    if !arguments.quiet {
        announce_solve(config)?;
    }
    // Claimed only once the request is known to be sound, and before any work is done.
    let mut folder = RunFolder::create(out(config, arguments), arguments.force)?;
    let interrupt = interrupt_flag(folder.partial_path().to_owned());
    sampler = sampler.interrupt(interrupt);
    if !arguments.quiet {
        sampler = sampler.observe(Progress::new(&format!("{} on {}", config.method, config.model)));
    }
    let outcome = sampler.run()?;

    let samples = samples.as_ref();
    let report = fit
        .as_ref()
        .map(|fit| Report::new(config, &spec.network, fit, &outcome, samples, arguments.quiet));
    let network = report.as_ref().map(|report| report.summary.clone());
    let summary = Summary::new(config, model, &outcome, &trace, samples, network);
    let found = files::Found { outcome: &outcome, trace: &trace, samples };
    folder.write("config.toml", text.as_bytes())?;
    files::write(&mut folder, config, model, &found, &summary, report.as_ref())?;
    let path = folder.commit()?;
    summary.print(&path, arguments.json)?;
    if outcome.ended == Ended::Interrupted {
        eprintln!("interrupted after step {}; everything so far is kept", outcome.steps);
        return Ok(ExitCode::from(Error::INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
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

/// Says what an N×N solve will take before it starts.
fn announce_solve(config: &Config) -> Result<()> {
    let method = config.method()?;
    let bytes = method.field.solve_memory(&config.parameters(), config.particles);
    if bytes > 0 {
        let mebibytes = bytes.div_ceil(1 << 20);
        eprintln!("{} solves an N×N system at every velocity: {mebibytes} MiB", method.name);
    }
    Ok(())
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

/// Raised by the first Ctrl-C or SIGTERM; the second ends the process at once and takes the
/// unfinished folder with it.
fn interrupt_flag(unfinished: PathBuf) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    let installed = ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            let _ = std::fs::remove_dir_all(&unfinished);
            std::process::exit(i32::from(Error::INTERRUPTED));
        }
        eprintln!("stopping after this step, keeping everything so far; again to give up at once");
    });
    if let Err(error) = installed {
        eprintln!("warning: Ctrl-C will lose the run: {error}");
    }
    flag
}
