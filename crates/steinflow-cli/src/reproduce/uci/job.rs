//! One method on one split of one data set: search inside the training rows, then a single look at
//! the test rows.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use steinflow::method::{Method, Parameter, Value};
use steinflow::run::{Observer, Snapshot};
use steinflow::{Matrix, Real};
use steinflow_models::data::{Located, RegressionData, Split, Table};
use steinflow_models::network::{Bnn, NetworkFit, NetworkSpec};
use steinflow_models::{ModelSpec, NETWORK};

use super::halving::{Rung, rank};
use super::plan::{DataSetPlan, Plan, Run};
use crate::error::{Error, Result};
use crate::scores::Scores;
use steinflow_config::{Config, Facts, Settings};

/// Points of a trace of the test log-likelihood.
const TRACE_POINTS: u64 = 20;

/// A data set, read once.
pub struct Source {
    pub name: String,
    steps: Option<u64>,
    particles: Option<usize>,
    table: Table,
    located: Located,
}

impl Source {
    pub fn new(plan: &DataSetPlan, located: &Located) -> Result<Self> {
        Ok(Self {
            name: plan.name.clone(),
            steps: plan.steps,
            particles: plan.particles,
            table: located.table()?,
            located: located.clone(),
        })
    }

    /// How many standard splits there are.
    pub fn splits(&self) -> usize {
        self.located.set().split_count()
    }
}

/// A job of the experiment.
pub struct Job<'a> {
    pub plan: &'a Plan,
    pub source: &'a Source,
    pub run: &'a Run,
    pub split: usize,
}

/// What a job has found.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Found {
    /// The hyperparameters that were chosen.
    pub chosen: Choice,
    /// Their log-likelihood on the validation rows; none without a search.
    pub validation: Option<f64>,
    /// Log-likelihood on the training rows.
    pub training: f64,
    pub scores: Scores,
    /// Test log-likelihood by iteration, for the figure only: nothing is chosen by it.
    pub trace: Vec<(u64, f64)>,
    /// Wall-clock time of the final run on one thread.
    pub seconds: f64,
    /// How often the final run had to halve its step.
    pub shrinks: u32,
    /// How many better settings ran away in the final run.
    #[serde(default)]
    pub passed_over: usize,
}

/// A point of the grid.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Choice {
    pub eta: Option<f64>,
    pub alpha: Option<f64>,
    pub mu: Option<f64>,
}

impl Job<'_> {
    /// What the job is called in the journal.
    pub fn key(&self) -> String {
        format!("{}, {}, split {}", self.source.name, self.run.label, self.split)
    }

    pub fn run(&self) -> Result<Found, String> {
        let single = self.settings(Choice::default(), None).precision.as_deref() != Some("f64");
        let found = if single { self.find::<f32>() } else { self.find::<f64>() };
        found.map_err(|error| error.to_string())
    }

    fn find<T: Real>(&self) -> Result<Found> {
        let split = self.source.located.split(self.split)?;
        let ranking = self.rank::<T>(&split)?;
        let settings = self.settings(ranking[0].0, None);
        let fit = Fit::<T>::new(&self.source.table, &split, &settings)?;
        best_that_holds(&ranking, |chosen| self.fit(&fit, chosen))
    }

    /// The final run with its scores on the test rows.
    fn fit<T: Real>(&self, fit: &Fit<T>, chosen: Choice) -> Result<Found> {
        let mut settings = self.settings(chosen, None);
        settings.non_finite.get_or_insert_with(|| "shrink".to_owned());
        let every = (self.steps() / TRACE_POINTS).max(1);
        let (mut trace, mut watching) = (Vec::new(), 0.0);
        let watch = Watch { fit, every, trace: &mut trace, seconds: &mut watching };
        let begun = Instant::now();
        let (theta, shrinks) = fit.particles(settings, Some(watch))?;
        let seconds = begun.elapsed().as_secs_f64() - watching;
        let training = Scores::training_log_likelihood(&fit.fit, theta.as_ref())?;
        let (scores, validation, passed_over) = (fit.scores(&theta)?, None, 0);
        Ok(Found { chosen, validation, training, scores, trace, seconds, shrinks, passed_over })
    }

    /// The points of the grid, best first, by successive halving on a part of the training rows, and
    /// the log-likelihood of those that went all the way.
    fn rank<T: Real>(&self, split: &Split) -> Result<Vec<(Choice, Option<f64>)>> {
        let candidates = self.candidates();
        if let [only] = candidates[..] {
            return Ok(vec![(only, None)]);
        }
        let search = &self.plan.search;
        let inner = split.hold_out(search.validation_fraction, self.split as u64)?;
        let settings = self.settings(Choice::default(), None);
        let fit = Fit::<T>::new(&self.source.table, &inner, &settings)?;
        let rungs = [&search.rungs[..], &[Rung { steps: self.steps(), keep: 0 }]].concat();
        // Schedules stretch with the length of a run, so that a longer one starts afresh.
        let score = |candidate: usize, steps| {
            let judge = || -> Result<f64> {
                let settings = self.settings(candidates[candidate], Some(steps));
                Ok(fit.scores(&fit.particles(settings, None)?.0)?.log_likelihood)
            };
            // A setting that runs away has lost.
            judge().ok()
        };
        let eta = |candidate: usize| {
            candidates.iter().position(|other| other.eta == candidates[candidate].eta).unwrap_or(0)
        };
        let ranking = rank(candidates.len(), &rungs, eta, score);
        Ok(ranking.into_iter().map(|(i, score)| (candidates[i], score)).collect())
    }

    /// All points of the grid that the method searches.
    fn candidates(&self) -> Vec<Choice> {
        let grid = &self.plan.grid;
        let values = |name: &str, values: &[f64]| -> Vec<Option<f64>> {
            if self.run.search.iter().any(|searched| searched == name) {
                values.iter().copied().map(Some).collect()
            } else {
                vec![None]
            }
        };
        let mut all = Vec::new();
        for &eta in &values("eta", &grid.eta) {
            for &alpha in &values("alpha", &grid.alpha) {
                all.extend(values("mu", &grid.mu).into_iter().map(|mu| Choice { eta, alpha, mu }));
            }
        }
        all
    }

    /// Iterations of a full run.
    fn steps(&self) -> u64 {
        let phases: u64 = self.run.settings.phase.iter().flatten().map(|phase| phase.steps).sum();
        match (phases, self.source.steps.or(self.plan.common.steps)) {
            (0, steps) => steps.unwrap_or(5000),
            // Phases are stretched in proportion where a data set has more iterations.
            (phases, None) => phases,
            (_, Some(steps)) => steps,
        }
    }

    /// The settings of one run of `steps` iterations (all of them when `None`).
    fn settings(&self, choice: Choice, steps: Option<u64>) -> Settings {
        let total = steps.unwrap_or_else(|| self.steps());
        let mut own = self.run.settings.clone();
        let mut common = self.plan.common.clone();
        common.steps = None;
        common.particles = self.source.particles.or(common.particles);
        let method = own.method.as_deref().and_then(|name| Method::named(name).ok());
        if method.is_some_and(|method| !method.field.has_kernel()) {
            (common.kernel, common.kernel_on, common.bandwidth) = (None, None, None);
        }
        if let Some(phases) = &mut own.phase {
            let planned: u64 = phases.iter().map(|phase| phase.steps).sum();
            for phase in phases {
                phase.steps = (phase.steps * total).div_ceil(planned);
            }
        } else {
            own.steps = Some(total);
        }
        own.eta = choice.eta.or(own.eta);
        own.alpha = choice.alpha.or(own.alpha);
        if let Some(mu) = choice.mu {
            own.parameters.put(Parameter::Mu, Value::Number(mu));
        }
        own.spec.model = Some(NETWORK.to_owned());
        own.seed = own.seed.or(Some(self.split as u64));
        own.or(common)
    }
}

/// The fit of the best setting. Settings at the edge of stability may run away on the full training
/// rows, which the training rows themselves show: then the next best takes their place.
fn best_that_holds(
    ranking: &[(Choice, Option<f64>)],
    mut fit: impl FnMut(Choice) -> Result<Found>,
) -> Result<Found> {
    for (passed_over, &(chosen, validation)) in ranking.iter().enumerate() {
        let is_last = passed_over + 1 == ranking.len();
        match fit(chosen) {
            Err(Error::Library(_)) if !is_last => {}
            Ok(found) if !is_last && is_lost(found.training, validation) => {}
            found => return Ok(Found { validation, passed_over, ..found? }),
        }
    }
    unreachable!("a grid has a point")
}

/// Whether a fit has run away although all its numbers are finite: it is worse on the rows it was
/// fitted to than the search's fit was on rows it had never seen, by more than luck can do.
fn is_lost(training: f64, validation: Option<f64>) -> bool {
    const NATS_PER_ROW: f64 = 0.5;
    validation.is_some_and(|validation| !(training >= validation - NATS_PER_ROW))
}

/// A network on the training rows of a split.
struct Fit<T> {
    /// What settings are resolved on.
    model: Bnn<f64>,
    fit: NetworkFit<T>,
}

impl<T: Real> Fit<T> {
    fn new(table: &Table, split: &Split, settings: &Settings) -> Result<Self> {
        let data = RegressionData::new(table, settings.spec.target.as_deref(), split)?;
        let spec = NetworkSpec::new(&ModelSpec {
            test_fraction: None,
            split: None,
            split_file: None,
            ..settings.spec.clone()
        })?;
        let (architecture, precisions) = (&spec.architecture, spec.precisions);
        let (inputs, targets) = (data.train_inputs(), data.train_targets());
        let model = Bnn::new(architecture, inputs, targets, precisions)?;
        let network = Bnn::new(architecture, inputs, targets, precisions)?;
        Ok(Self { model, fit: NetworkFit { data, network, spec } })
    }

    /// Runs the settings; returns the particles, or the samples where they are collected, and how
    /// often the step was halved.
    fn particles(
        &self,
        settings: Settings,
        watch: Option<Watch<'_, T>>,
    ) -> Result<(Matrix<T>, u32)> {
        let facts = Facts::of(&self.model, &settings.spec);
        let config = Config::resolve_on(settings, &facts)?;
        let mut samples = config.samples::<T>();
        let mut sampler = config.sampler(&self.fit.network)?;
        if let Some(samples) = &mut samples {
            sampler = sampler.observe(samples.observer());
        }
        if let Some(watch) = watch {
            sampler = sampler.observe(watch);
        }
        let outcome = sampler.run()?;
        let theta = samples.map_or_else(|| outcome.theta(), |samples| samples.theta());
        Ok((theta, outcome.shrinks))
    }

    /// Scores on the rows that were held back.
    fn scores(&self, theta: &Matrix<T>) -> Result<Scores> {
        let scores = Scores::of_test_rows(&self.fit, theta.as_ref())?;
        Ok(scores.expect("a split holds rows back"))
    }
}

/// Follows the test log-likelihood of a run.
struct Watch<'a, T> {
    fit: &'a Fit<T>,
    every: u64,
    trace: &'a mut Vec<(u64, f64)>,
    seconds: &'a mut f64,
}

impl<T: Real> Observer<T> for Watch<'_, T> {
    fn observe(&mut self, at: &Snapshot<'_, T>) -> steinflow::Result<ControlFlow<()>> {
        if at.step.is_multiple_of(self.every) {
            let begun = Instant::now();
            let theta = Matrix::from_fn(at.state.rows(), at.dim, |i, j| at.state.row(i)[j]);
            // Particles that predict nothing finite are shown by a gap.
            if let Ok(scores) = self.fit.scores(&theta) {
                self.trace.push((at.step, scores.log_likelihood));
            }
            *self.seconds += begun.elapsed().as_secs_f64();
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(chosen: Choice, training: f64) -> Found {
        let scores = r#"{ "rows": 1, "log_likelihood": 0, "rmse": 0, "mse": 0, "standardised_mse": 0,
            "crps": 0, "coverage_50": 0, "coverage_90": 0, "coverage_95": 0, "pit": [] }"#;
        Found {
            chosen,
            validation: None,
            training,
            scores: serde_json::from_str(scores).unwrap(),
            trace: Vec::new(),
            seconds: 0.0,
            shrinks: 0,
            passed_over: 0,
        }
    }

    #[test]
    fn a_fit_that_runs_away_makes_room_for_the_next() {
        let [first, second, third] =
            [1e-2, 1e-3, 1e-4].map(|eta| Choice { eta: Some(eta), ..Choice::default() });
        let ran_away = || steinflow::Error::RanAway { step: 7, step_size: 0.1, halvings: 40 };
        let ranking = [(first, Some(-1.0)), (second, Some(-1.2)), (third, Some(-1.3))];
        let choose = |training: [Option<f64>; 3]| {
            best_that_holds(&ranking, |choice| {
                let at = ranking.iter().position(|(other, _)| *other == choice).unwrap();
                training[at].map(|value| found(choice, value)).ok_or_else(|| ran_away().into())
            })
        };
        let chosen = |training| {
            let found = choose(training).unwrap();
            (found.chosen, found.validation, found.passed_over)
        };
        assert_eq!(chosen([Some(-1.1), None, None]), (first, Some(-1.0), 0));
        assert_eq!(chosen([None, Some(-0.9), None]), (second, Some(-1.2), 1));
        // Finite, but far worse on its own rows than the search was on others.
        assert_eq!(chosen([Some(-27.0), Some(f64::NAN), Some(-1.0)]), (third, Some(-1.3), 2));
        // The last is shown as it is.
        assert_eq!(chosen([None, None, Some(-9.0)]), (third, Some(-1.3), 2));
        assert!(choose([None; 3]).is_err());
    }
}
