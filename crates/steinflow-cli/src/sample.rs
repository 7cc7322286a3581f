//! `steinflow sample`: from settings to a run folder.

use std::path::PathBuf;
use std::process::ExitCode;

use steinflow_config::{Config, Settings};
use steinflow_io::Unfinished;
use steinflow_models::stan;

use crate::args::SampleArguments;
use crate::error::{Error, Result};
use crate::job::{Job, Start};

/// More threads than any machine that this will run on has cores.
const MOST_THREADS: usize = 1024;

pub fn command(arguments: &SampleArguments) -> Result<ExitCode> {
    start_threads(arguments.output.threads)?;
    let from_file = match &arguments.config {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let mut settings = arguments.settings.0.clone().or(from_file);
    settings.spec.name_by_what_is_given();
    if let Some(what) = stan::compiles(&settings.spec).filter(|_| !arguments.output.quiet) {
        tell!("{what}");
    }
    let config = Config::resolve(settings)?;
    let name = || format!("{}-{}", config.spec().title(), config.method);
    let out = arguments.out.clone().unwrap_or_else(|| free_folder(&name()));
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
