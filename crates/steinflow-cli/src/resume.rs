//! `steinflow resume`: goes on from the newest good checkpoint of a run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steinflow::run::Ended;
use steinflow_io::record::{CHECKPOINT, CONFIG, FinishedRun};
use steinflow_io::{CheckpointFile, Unfinished, is_finished_run};
use toml::Table;

use crate::args::ResumeArguments;
use crate::changes::{changed_inputs, changes, inputs};
use crate::error::{Error, Result};
use crate::job::{Job, Start};
use crate::sample::start_threads;
use steinflow_config::Config;
use steinflow_config::Settings;

pub fn command(arguments: &ResumeArguments) -> Result<ExitCode> {
    start_threads(arguments.output.threads)?;
    let run = place(&arguments.run)?;
    if !run.exists() && !Unfinished::path_of(&run).exists() {
        return Err(nothing(&run, "nothing is there; give the folder of a `steinflow sample`"));
    }
    // Held until the end, so that nobody else goes on with the run meanwhile.
    let unfinished = match Unfinished::find(&run)? {
        // Its process was killed after the folder was in its place.
        Some(unfinished) if unfinished.has_become(&run) => {
            unfinished.remove();
            None
        }
        // Without settings, one was killed while it was removing it.
        found => found.filter(|unfinished| unfinished.config().is_some()),
    };
    // A run that was not finished goes before the folder of one that was.
    let (file, beside) = match &unfinished {
        Some(unfinished) => (newest(unfinished), unfinished.config()),
        None => (Some(ended(&run)?), Some(run.join(CONFIG)).filter(|path| path.is_file())),
    };
    let has_ended = unfinished.is_none();
    let claim = |place: &Path| unfinished.map_or_else(|| Ok(Unfinished::open(place)?), Ok);
    let Some(file) = file else {
        return begin_again(arguments, &run, beside, claim);
    };
    let config = arguments.config.as_ref().or(beside.as_ref());
    let settings = match config {
        Some(path) => Settings::read(path)?,
        None => Settings::parse(&run, file.config())?,
    };
    let config = resolve(arguments, settings)?;
    let changes = changes_since(&file, &config)?;
    if !changes.is_empty() && arguments.branch.is_none() {
        return Err(Error::Changed { run, step: file.step(), changes });
    }
    let total = config.steps();
    if has_ended && arguments.branch.is_none() {
        if config.flow().is_some() && file.step() == total {
            let found = format!("it is finished after {total} steps; --steps asks for more");
            return Err(nothing(&run, &found));
        }
        if config.flow().is_none() && has_stopped_by_itself(&run)? {
            let found = "it is finished; --branch and a --config with more effective draws go on";
            return Err(nothing(&run, found));
        }
    }
    if !arguments.output.quiet {
        if config.flow().is_some() {
            tell!("going on from step {} of {total}", file.step());
        } else {
            tell!("going on from move {}", file.step());
        }
    }
    let (start, output) = (Start::From(file), &arguments.output);
    match &arguments.branch {
        None => {
            let out = run.clone();
            let job = Job { config, out, force: true, is_resumed: true, start, output };
            job.run(|| claim(&run))
        }
        Some(branch) => {
            drop(claim);
            if Unfinished::exists(branch) {
                return Err(Error::Unfinished { run: branch.clone() });
            }
            let out = branch.clone();
            let job = Job { config, out, force: false, is_resumed: false, start, output };
            job.run(|| Ok(Unfinished::open(branch)?))
        }
    }
}

/// Whether the ensemble of a run that has ended was content, or had spent its gradients.
fn has_stopped_by_itself(run: &Path) -> Result<bool> {
    let ended = FinishedRun::open(run)?.summary()?.ended;
    Ok([Ended::Finished, Ended::Unsettled].iter().any(|by_itself| by_itself.name() == ended))
}

fn nothing(run: &Path, found: &str) -> Error {
    Error::NothingToResume { run: run.to_owned(), found: found.to_owned() }
}

/// Without a checkpoint that can be used, the first step is the place to go on from.
fn begin_again(
    arguments: &ResumeArguments,
    run: &Path,
    config: Option<PathBuf>,
    claim: impl FnOnce(&Path) -> Result<Unfinished>,
) -> Result<ExitCode> {
    let Some(path) = config.filter(|_| arguments.branch.is_none()) else {
        return Err(nothing(run, "it has no checkpoint to branch from"));
    };
    let config = resolve(arguments, Settings::read(&path)?)?;
    tell!("there is no checkpoint that can be used: beginning with the first step");
    let (out, output, start) = (run.to_owned(), &arguments.output, Start::Afresh);
    let job = Job { config, out, force: true, is_resumed: true, start, output };
    job.run(|| claim(run))
}

/// What would make other numbers than the run's own settings and files.
fn changes_since(file: &CheckpointFile, config: &Config) -> Result<Vec<String>> {
    let wrong = |message: String| steinflow_config::Error::Wrong { path: CONFIG.into(), message };
    let table = |text: &str| text.parse::<Table>().map_err(|error| wrong(error.to_string()));
    let mut changes = changes(&table(file.config())?, &table(&config.to_toml())?);
    changes.extend(changed_inputs(file.inputs(), &inputs(config)));
    Ok(changes)
}

/// The place of the run, also where the folder of the unfinished one is given.
fn place(given: &Path) -> Result<PathBuf> {
    // `.` and the like have a name of their own.
    let own: PathBuf = match given.file_name() {
        // Without a slash at the end.
        Some(_) => given.components().collect(),
        None => given.canonicalize().map_err(|error| nothing(given, &error.to_string()))?,
    };
    let name = own.file_name().unwrap_or_default().to_string_lossy();
    Ok(match name.strip_suffix(".unfinished") {
        Some(name) if !name.is_empty() && !is_finished_run(&own) => own.with_file_name(name),
        _ => own,
    })
}

/// The newest good checkpoint of an unfinished run.
fn newest(unfinished: &Unfinished) -> Option<CheckpointFile> {
    let (newest, wrong) = unfinished.newest();
    for error in wrong {
        tell!("warning: {error}");
    }
    newest
}

/// Where a run has ended.
fn ended(run: &Path) -> Result<CheckpointFile> {
    if !is_finished_run(run) {
        return Err(nothing(run, "it had not begun; give its `steinflow sample` again"));
    }
    let again = "its checkpoint is missing or damaged; make the run again with its config.toml";
    if !run.join(CHECKPOINT).exists() {
        return Err(nothing(run, again));
    }
    CheckpointFile::open(run.join(CHECKPOINT)).map_err(|error| {
        tell!("warning: {error}");
        nothing(run, again)
    })
}

/// The run, with what `resume` may change.
fn resolve(arguments: &ResumeArguments, settings: Settings) -> Result<Config> {
    let mut config = Config::resolve(settings)?;
    if let Some(steps) = arguments.steps {
        config.set_steps(steps)?;
    }
    match arguments.budget {
        Some(0.0) => config.set_budget(None)?,
        Some(budget) => config.set_budget(Some(budget))?,
        None => {}
    }
    if let Some(tolerance) = arguments.tolerance {
        config.set_tolerance(tolerance)?;
    }
    Ok(config)
}
