//! Pilot runs, and what they are judged by.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use steinflow::run::{Outcome, Snapshot};
use steinflow::tune::{Search, SteinJudge, successive_halving};
use steinflow::{Error as LibraryError, Real};
use steinflow_models::Model;
use steinflow_models::network::NetworkFit;

use super::Task;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::memory;
use crate::sample::sampler;
use crate::scores::Scores;

/// Of the rows that train a network, those that pilot runs are judged by.
const VALIDATION_FRACTION: f64 = 0.1;

/// What particles are judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// Kernel Stein discrepancy.
    Discrepancy,
    /// Log-likelihood of rows that are held back; networks only.
    Likelihood,
}

impl Judge {
    /// Reads a judge's name, or takes what suits the model.
    pub fn named(name: Option<&str>, on_network: bool) -> Result<Self> {
        match name {
            Some("ksd") => Ok(Self::Discrepancy),
            Some("likelihood") if !on_network => Err(Error::DoesNotFit {
                option: "judge",
                what: "the model".to_owned(),
                remedy: "only `bnn` holds rows back; take ksd".to_owned(),
            }),
            Some("likelihood") => Ok(Self::Likelihood),
            Some(other) => Err(LibraryError::unknown("judge", other, ["ksd", "likelihood"]).into()),
            None if on_network => Ok(Self::Likelihood),
            None => Ok(Self::Discrepancy),
        }
    }

    /// What the scores are, the lower the better.
    pub fn title(self) -> &'static str {
        match self {
            Self::Discrepancy => "KSD",
            Self::Likelihood => "−log-likelihood",
        }
    }
}

/// A search that was made.
pub struct Competition {
    pub search: Search,
    /// Steps that were taken in all.
    pub steps: u64,
    /// What pilots were judged by, if by discrepancy.
    pub stein: Option<SteinJudge>,
}

/// Makes the search of a task.
pub fn search(task: &Task, bar: &ProgressBar) -> Result<Competition> {
    if task.base.is_f32()? { search_in::<f32>(task, bar) } else { search_in::<f64>(task, bar) }
}

fn search_in<T: Real>(task: &Task, bar: &ProgressBar) -> Result<Competition> {
    let spec = task.base.model_spec()?;
    memory::check::<T>(&task.base, task.model.dim(), task.choices.len())?;
    match task.judge {
        Judge::Discrepancy => {
            let model = steinflow_models::build::<T>(&spec)?;
            let pilots = Pilots::new(task, &*model, &*task.model, bar)?;
            let mut stein = None;
            let (search, steps) = pilots.compete(|runs| {
                let of_run = |run: &Outcome<T>| (run.theta(), run.log_density.clone());
                let pool: Vec<_> = runs.iter().map(|(_, run)| of_run(run)).collect();
                let stein = stein.get_or_insert_with(|| {
                    let pool = pool.iter().map(|(theta, density)| (theta, &density[..]));
                    SteinJudge::of_pool(model.dim(), pool)
                });
                let score = |theta| Ok(stein.discrepancy(&*model, theta)?);
                pool.iter().map(|(theta, _)| score(theta)).collect()
            })?;
            Ok(Competition { search, steps, stein })
        }
        Judge::Likelihood => {
            let seed = task.base.seed;
            let fit = NetworkFit::<T>::for_validation(&spec, VALIDATION_FRACTION, seed)?;
            let wide = NetworkFit::<f64>::for_validation(&spec, VALIDATION_FRACTION, seed)?;
            let pilots = Pilots::new(task, &fit.network, &wide.network, bar)?;
            let (search, steps) = pilots.compete(|runs| {
                let score = |run: &Outcome<T>| {
                    // Particles that predict nothing finite have lost.
                    let scores = Scores::of_test_rows(&fit, run.theta().as_ref()).ok().flatten();
                    scores.map_or(f64::NAN, |scores| -scores.log_likelihood)
                };
                Ok(runs.iter().map(|(_, run)| score(run)).collect())
            })?;
            Ok(Competition { search, steps, stein: None })
        }
    }
}

/// The candidates' runs on one model.
struct Pilots<'a, T> {
    task: &'a Task,
    model: &'a dyn Model<T>,
    configs: Vec<Config>,
    bar: &'a ProgressBar,
}

impl<'a, T: Real> Pilots<'a, T> {
    /// Resolves all candidates; `wide` is the model in the precision that settings are resolved in.
    fn new(
        task: &'a Task,
        model: &'a dyn Model<T>,
        wide: &dyn Model<f64>,
        bar: &'a ProgressBar,
    ) -> Result<Self> {
        let config = |&choice| {
            let mut config = Config::resolve_on(task.settings_of(choice), wide)?;
            // What a clock says must not decide.
            config.budget = None;
            Ok(config)
        };
        let configs = task.choices.iter().map(config).collect::<Result<_>>()?;
        Ok(Self { task, model, configs, bar })
    }

    fn compete(
        &self,
        judge: impl FnMut(&[(usize, Outcome<T>)]) -> Result<Vec<f64>>,
    ) -> Result<(Search, u64)> {
        let taken = Cell::new(0);
        let advance = |candidate, run, steps| {
            let (run, own) = self.advance(candidate, run, steps)?;
            taken.set(taken.get() + own);
            Ok(run)
        };
        let count = self.configs.len();
        let search = successive_halving(count, &self.task.rungs, |_| 0, advance, judge)?;
        Ok((search, taken.get()))
    }

    /// Takes a run to that many steps in all, and counts the new ones; none is left of one that has run
    /// away.
    fn advance(
        &self,
        candidate: usize,
        run: Option<Outcome<T>>,
        steps: u64,
    ) -> Result<(Option<Outcome<T>>, u64)> {
        let mut config = self.configs[candidate].clone();
        for phase in &mut config.phase {
            phase.steps = steps;
        }
        let taken = Arc::new(AtomicU64::new(0));
        let (counter, bar) = (Arc::clone(&taken), self.bar);
        let count = move |at: &Snapshot<'_, T>| {
            if at.step > 0 {
                counter.fetch_add(1, Ordering::Relaxed);
                bar.inc(1);
            }
            Ok(ControlFlow::Continue(()))
        };
        let mut sampler = sampler(&config, self.model)?.observe(count);
        if let Some(run) = run {
            sampler = sampler.resume_from(run.checkpoint);
        }
        let run = match sampler.run() {
            Ok(run) => Some(run),
            Err(error) if error.is_usage() => return Err(error.into()),
            Err(_) => None,
        };
        Ok((run, taken.load(Ordering::Relaxed)))
    }
}
