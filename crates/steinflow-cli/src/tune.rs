//! `steinflow tune`: step size and momentum by short pilot runs, for whoever has no wish to choose them.

mod candidates;
mod pilots;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use indicatif::ProgressBar;
use steinflow::Matrix;
use steinflow::tune::{Choice, Rung, Search, SteinJudge, rungs_within, steps_of};
use steinflow_io::RunFolder;
use steinflow_models::{Model, NETWORK};

use crate::args::{SearchArguments, TuneArguments};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::progress::bar;
use crate::sample::{free_folder, start_threads};
use crate::settings::Settings;
use crate::signals::on_signal;

pub use pilots::Judge;

use pilots::Competition;

/// Learning rates in every factor of ten.
const RATES_PER_DECADE: u32 = 2;
const DEFAULT_RUNGS: u32 = 4;

pub fn command(arguments: &TuneArguments) -> Result<ExitCode> {
    start_threads(arguments.threads)?;
    let from_file = match &arguments.config {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let task = Task::new(arguments.settings.clone().or(from_file), &arguments.search)?;
    let out = arguments.out.clone().unwrap_or_else(|| {
        free_folder(&format!("{}-{}-tuning", task.base.model, task.base.method))
    });
    let tuned = task.run_into(&out, arguments.force, arguments.quiet)?;
    report::print(&tuned, &out, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// For `steinflow sample --tune`: the config that was found; what was tried goes beside the run folder.
pub fn before_run(
    settings: Settings,
    run: Option<&Path>,
    force: bool,
    quiet: bool,
) -> Result<Config> {
    let task = Task::new(settings, &SearchArguments::default())?;
    let run = run.map_or_else(
        || free_folder(&format!("{}-{}", task.base.model, task.base.method)),
        Path::to_owned,
    );
    let mut out = run.into_os_string();
    out.push("-tuning");
    let out = PathBuf::from(out);
    let tuned = task.run_into(&out, force, quiet)?;
    if !quiet {
        tell!("tuned: {}; all that was tried is in {}", tuned.winner(), out.display());
    }
    Ok(tuned.config)
}

/// A search that is to be made.
pub struct Task {
    /// What the user has set; the model's own defaults are written down in it.
    settings: Settings,
    model: Box<dyn Model<f64>>,
    /// The run as it would be without tuning.
    pub base: Config,
    pub judge: Judge,
    pub choices: Vec<Choice>,
    pub rungs: Vec<Rung>,
}

/// What a search has found.
pub struct Tuned {
    /// The run with the winner's settings.
    pub config: Config,
    /// The task's, in the same order.
    pub choices: Vec<Choice>,
    pub judge: Judge,
    pub rungs: Vec<Rung>,
    pub search: Search,
    /// The winner.
    pub best: usize,
    /// Steps that the pilot runs have taken in all.
    pub steps: u64,
    /// What pilots were judged by, if by discrepancy.
    stein: Option<SteinJudge>,
}

impl Tuned {
    /// The discrepancy of particles as the pilots' was measured; none for another judge.
    pub fn discrepancy(&self, model: &dyn Model<f64>, theta: &Matrix<f64>) -> Result<Option<f64>> {
        let judged = self.stein.as_ref().map(|stein| stein.discrepancy(model, theta));
        Ok(judged.transpose()?)
    }

    /// The winner's settings in words.
    pub fn winner(&self) -> String {
        self.choices[self.best].to_string()
    }
}

impl Task {
    /// Checks the request before anything runs.
    pub fn new(settings: Settings, search: &SearchArguments) -> Result<Self> {
        Self::with_density(settings, search, RATES_PER_DECADE)
    }

    /// As [`Task::new`], with so many learning rates in every factor of ten.
    pub fn with_density(
        settings: Settings,
        search: &SearchArguments,
        rates_per_decade: u32,
    ) -> Result<Self> {
        let (settings, model) = Config::with_model(settings)?;
        let base = Config::resolve_on(settings.clone(), &*model)?;
        let judge = Judge::named(search.judge.as_deref(), base.model == NETWORK)?;
        let choices = candidates::all(&settings, &base, &*model, rates_per_decade)?;
        let steps = base.phase.iter().map(|phase| phase.steps).sum();
        let count = search.rungs.unwrap_or(DEFAULT_RUNGS);
        let rungs = rungs_within(choices.len(), steps, count, search.budget_steps)?;
        Ok(Self { settings, model, base, judge, choices, rungs })
    }

    /// The complete settings of a candidate, as the user would have given them.
    pub fn settings_of(&self, choice: Choice) -> Settings {
        candidates::apply(choice, &self.settings, &self.base)
    }

    /// Makes the search.
    pub fn run(self, bar: &ProgressBar) -> Result<Tuned> {
        bar.set_length(steps_of(self.choices.len(), &self.rungs));
        let Competition { search, steps, stein } = pilots::search(&self, bar)?;
        let count = self.choices.len();
        let best = search.best().ok_or(Error::AllDiverged { count })?;
        let mut settings = self.settings_of(self.choices[best]);
        if self.judge == Judge::Likelihood {
            // The run has more rows than the pilots had, and may run away where they did not.
            settings.non_finite.get_or_insert_with(|| "shrink".to_owned());
        }
        let config = Config::resolve_on(settings, &*self.model)?;
        let Self { choices, judge, rungs, .. } = self;
        Ok(Tuned { config, choices, judge, rungs, search, best, steps, stein })
    }

    /// Makes the search, and the folder that tells of it.
    fn run_into(self, out: &Path, force: bool, quiet: bool) -> Result<Tuned> {
        // Before there is a folder to see, so that whoever sees it can send a signal.
        let watch = Watch::begin();
        let mut folder = RunFolder::create(out, force)?;
        let _ = watch.unfinished.set(folder.partial_path().to_owned());
        let what = format!("tuning {} on {}", self.base.method, self.base.model);
        let bar = bar(&what, quiet);
        let tuned = self.run(&bar);
        bar.finish_and_clear();
        let tuned = tuned?;
        folder.write("config.toml", report::config(&tuned)?.as_bytes())?;
        folder.write("tried.csv", report::csv(&tuned).as_bytes())?;
        if let Some(figure) = report::figure(&tuned)? {
            folder.write("tried.png", &figure.png()?)?;
        }
        watch.end();
        folder.commit()?;
        Ok(tuned)
    }
}

/// While pilots run, a signal ends everything at once: there is nothing yet to keep.
struct Watch {
    is_on: Arc<AtomicBool>,
    /// What is to be removed.
    unfinished: Arc<OnceLock<PathBuf>>,
}

impl Watch {
    fn begin() -> Self {
        let (is_on, unfinished) = (Arc::new(AtomicBool::new(true)), Arc::new(OnceLock::new()));
        let (watched, folder) = (Arc::clone(&is_on), Arc::<OnceLock<PathBuf>>::clone(&unfinished));
        on_signal(move |code| {
            if watched.load(Ordering::Relaxed) {
                if let Some(folder) = folder.get() {
                    let _ = std::fs::remove_dir_all(folder);
                }
                tell!("stopped; nothing was written");
                std::process::exit(i32::from(code));
            }
        });
        Self { is_on, unfinished }
    }

    /// From now on signals are others' concern.
    fn end(self) {
        self.is_on.store(false, Ordering::Relaxed);
    }
}
