//! `steinflow resume`: goes on from the newest good checkpoint of a run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steinflow_io::record::{CHECKPOINT, CONFIG};
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
    let run = place(&arguments.run);
    if !run.exists() && !Unfinished::path_of(&run).exists() {
        let found = "nothing is there; give the folder of a `steinflow sample`".to_owned();
        return Err(Error::NothingToResume { run, found });
    }
    // Held until the end, so that nobody else goes on with the run meanwhile.
    let unfinished = Unfinished::open(&run)?;
    let Some(found) = find(&run, &unfinished)? else {
        return begin_again(arguments, run, unfinished);
    };
    let (file, config) = (&found.file, arguments.config.as_ref().or(found.config.as_ref()));
    let settings = match config {
        Some(path) => Settings::read(path)?,
        None => Settings::parse(&run, file.config())?,
    };
    let config = resolve(arguments, settings)?;
    let changes = changes_since(file, &config)?;
    if !changes.is_empty() && arguments.branch.is_none() {
        return Err(Error::Changed { run, step: file.step(), changes });
    }
    let total = config.steps();
    if found.has_ended && file.step() == total && arguments.branch.is_none() {
        let found = format!("it is finished after {total} steps; --steps asks for more");
        return Err(Error::NothingToResume { run, found });
    }
    if !arguments.output.quiet {
        tell!("going on from step {} of {total}", file.step());
    }
    let (start, output) = (Start::From(found.file), &arguments.output);
    match &arguments.branch {
        None => {
            let job = Job { config, out: run, force: true, is_resumed: true, start, output };
            job.run(|| Ok(unfinished))
        }
        Some(branch) => {
            drop(unfinished);
            if Unfinished::exists(branch) {
                return Err(Error::Unfinished { run: branch.clone() });
            }
            let out = branch.clone();
            let job = Job { config, out, force: false, is_resumed: false, start, output };
            job.run(|| Ok(Unfinished::open(branch)?))
        }
    }
}

/// Without a checkpoint that can be used, the first step is the place to go on from.
fn begin_again(
    arguments: &ResumeArguments,
    run: PathBuf,
    unfinished: Unfinished,
) -> Result<ExitCode> {
    let path = unfinished.path().join(CONFIG);
    if !path.is_file() || arguments.branch.is_some() {
        let found = "it had not begun; give its `steinflow sample` again".to_owned();
        return Err(Error::NothingToResume { run, found });
    }
    let config = resolve(arguments, Settings::read(&path)?)?;
    tell!("there is no checkpoint that can be used: beginning with the first step");
    let output = &arguments.output;
    let start = Start::Afresh;
    let job = Job { config, out: run, force: true, is_resumed: true, start, output };
    job.run(|| Ok(unfinished))
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
fn place(given: &Path) -> PathBuf {
    let name = given.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".unfinished") {
        Some(name) if !name.is_empty() => given.with_file_name(name),
        // Without a slash at the end.
        _ => given.components().collect(),
    }
}

/// What there is to go on from.
struct Found {
    file: CheckpointFile,
    /// Whether it is of the run as it ended.
    has_ended: bool,
    /// The config.toml beside it.
    config: Option<PathBuf>,
}

/// The newest good checkpoint. One of an unfinished run goes before the folder of an ended one,
/// unless that is where this very run has come to.
fn find(run: &Path, unfinished: &Unfinished) -> Result<Option<Found>> {
    let (newest, wrong) = unfinished.newest();
    let mut ended = None;
    if is_finished_run(run) && run.join(CHECKPOINT).exists() {
        match CheckpointFile::open(run.join(CHECKPOINT)) {
            Ok(file) => ended = Some(file),
            Err(error) => tell!("warning: {error}"),
        }
    }
    if let (Some(new), Some(old)) = (&newest, &ended)
        && (new.config() != old.config() || new.step() > old.step())
    {
        ended = None;
    }
    let has_ended = ended.is_some();
    if has_ended {
        // Its process was killed after the folder was in its place.
        unfinished.forget_checkpoints()?;
    }
    for error in wrong {
        tell!("warning: {error}");
    }
    let Some(file) = ended.or(newest) else {
        if is_finished_run(run) && unfinished.checkpoints().is_empty() {
            let found = "its checkpoint is missing or damaged; make the run again with its \
                         config.toml"
                .to_owned();
            return Err(Error::NothingToResume { run: run.to_owned(), found });
        }
        return Ok(None);
    };
    let folder = if has_ended { run } else { unfinished.path() };
    let config = Some(folder.join(CONFIG)).filter(|path| path.is_file());
    Ok(Some(Found { file, has_ended, config }))
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
