//! Step size and momentum by short pilot runs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use numpy::PyReadonlyArray2;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use steinflow::integrator::{self, StepSize};
use steinflow::method::Parameter;
use steinflow::run::{Outcome, Snapshot};
use steinflow::tune::{
    Choice, Rung, Search, SteinJudge, choices, learning_rates, rungs_within, steps_of,
    successive_halving,
};
use steinflow::{LogDensity, Matrix};

use crate::arrays::{Array2, Number, matrix};
use crate::errors::{SamplingError, from_python, to_python};
use crate::interrupt::Interrupt;
use crate::run::{raise, sampler, spread};
use crate::settings::Settings;
use crate::target::Target;
use crate::threads::compute;

/// Learning rates in every factor of ten, as the command has.
const RATES_PER_DECADE: u32 = 2;

/// Searches what the settings leave open, from the particles `init`, one a row.
#[pyfunction]
#[pyo3(signature = (target, init, settings, *, rungs, budget_steps=None, interrupt=None, progress=None))]
pub fn tune<'py>(
    py: Python<'py>,
    target: Target<'py>,
    init: Array2<'py>,
    settings: Settings,
    rungs: u32,
    budget_steps: Option<u64>,
    interrupt: Option<PyRef<'py, Interrupt>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let interrupt = interrupt.map(|interrupt| interrupt.flag()).unwrap_or_default();
    let request = Request { py, settings: &settings, rungs, budget_steps, interrupt, progress };
    match init {
        Array2::Double(init) => request.run(&target, &init),
        Array2::Single(init) => request.run(&target, &init),
    }
}

struct Request<'py, 's> {
    py: Python<'py>,
    settings: &'s Settings,
    rungs: u32,
    budget_steps: Option<u64>,
    interrupt: Arc<AtomicBool>,
    progress: Option<Py<PyAny>>,
}

/// A point of the grid as the parts of a sampler take it.
struct Candidate {
    choice: Choice,
    step_size: StepSize,
    parameters: BTreeMap<String, f64>,
}

impl<'py> Request<'py, '_> {
    fn run<T: Number>(
        &self,
        target: &Target<'py>,
        init: &PyReadonlyArray2<'py, T>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let target = target.density::<T>()?;
        let target = &*target;
        let start = matrix(init);
        let candidates = self.candidates(target, &start)?;
        let [(_, steps, _)] = &self.settings.phases[..] else {
            let message = "phases state their steps: leave them out, and give steps, to tune";
            return Err(PyValueError::new_err(message));
        };
        let rungs = rungs_within(candidates.len(), *steps, self.rungs, self.budget_steps)
            .map_err(to_python)?;
        let (search, taken) = self.compete(target, &start, &candidates, &rungs)?;
        let count = candidates.len();
        let best = search.best().ok_or_else(|| {
            SamplingError::new_err(format!(
                "all {count} pilot runs diverged, down to the shortest step: start closer to the mode \
                 with init, standardise the target, or take precondition=\"rms\""
            ))
        })?;
        let answer = self.describe(&search, &candidates)?;
        let found = PyDict::new(self.py);
        if let (Some(_), StepSize::Constant(size)) =
            (candidates[best].choice.eta, candidates[best].step_size)
        {
            found.set_item("step_size", size)?;
        }
        for (name, value) in &candidates[best].parameters {
            found.set_item(name, value)?;
        }
        answer.set_item("found", found)?;
        answer.set_item("steps", taken)?;
        Ok(answer)
    }

    fn candidates<T: Number>(
        &self,
        target: &dyn LogDensity<T>,
        start: &Matrix<T>,
    ) -> PyResult<Vec<Candidate>> {
        let settings = self.settings;
        // Of the first of several phases, which are refused later.
        let size = settings.phases.first().and_then(|(_, _, size)| size.as_deref());
        let searched = [Parameter::Friction, Parameter::Mu, Parameter::Gamma];
        let set: Vec<Parameter> = searched
            .into_iter()
            .filter(|parameter| settings.has_parameter(parameter.name()))
            .collect();
        let rates = if size.is_some() {
            Vec::new()
        } else {
            let sharpness = || integrator::sharpness(target, start.as_ref(), spread(start), None);
            let sharpness = compute(self.py, sharpness).map_err(to_python)?;
            learning_rates(sharpness, start.rows(), RATES_PER_DECADE)
        };
        let all = choices(&settings.method()?, &rates, &set).map_err(to_python)?;
        let motion = settings.motion::<T>(self.py, None)?;
        let (method, sigma) = (motion.method, motion.sigma);
        let given = size.map(StepSize::parse).transpose().map_err(to_python)?;
        let candidate = |choice: Choice| {
            let size = choice.step_size(&method, sigma).map(StepSize::Constant).or(given);
            let step_size = size.unwrap_or(StepSize::Constant(0.0));
            let mut parameters = BTreeMap::new();
            if let Some(alpha) = choice.alpha {
                let StepSize::Constant(epsilon) = step_size else {
                    let message = "momentum decay needs a constant step size: give friction, or a number \
                                   as step_size";
                    return Err(PyValueError::new_err(message));
                };
                parameters.insert("friction".to_owned(), alpha * sigma * sigma / epsilon);
            }
            parameters.extend(choice.mu.map(|mu| ("mu".to_owned(), mu)));
            parameters.extend(choice.gamma.map(|gamma| ("gamma".to_owned(), gamma)));
            Ok(Candidate { choice, step_size, parameters })
        };
        all.into_iter().map(candidate).collect()
    }

    fn compete<T: Number>(
        &self,
        target: &dyn LogDensity<T>,
        start: &Matrix<T>,
        candidates: &[Candidate],
        rungs: &[Rung],
    ) -> PyResult<(Search, u64)> {
        let (taken, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let total = steps_of(candidates.len(), rungs);
        let advance = |index: usize, run: Option<Outcome<T>>, steps| -> PyResult<Option<_>> {
            let Candidate { step_size, parameters, .. } = &candidates[index];
            let motion = self.settings.motion_with::<T>(self.py, None, parameters)?;
            let raised = motion.raised.clone();
            let phases = [(steps, *step_size)];
            let mut pilot = sampler(self.settings, target, motion, start.clone(), &phases)?
                .interrupt(Arc::clone(&self.interrupt))
                .observe(self.observer(Arc::clone(&taken), total, begun));
            if let Some(run) = run {
                pilot = pilot.resume_from(run.checkpoint);
            }
            let run = compute(self.py, || pilot.run_here());
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(PyKeyboardInterrupt::new_err("tuning was interrupted"));
            }
            match run {
                Ok(run) => Ok(Some(run)),
                // A setting that runs away has lost; what the user's own code raises has not.
                Err(error) if error.is_usage() || matches!(error, steinflow::Error::User(_)) => {
                    Err(raise(self.py, error, raised.as_ref(), &taken))
                }
                Err(_) => Ok(None),
            }
        };
        let mut stein = None;
        let judge = |runs: &[(usize, Outcome<T>)]| -> PyResult<Vec<f64>> {
            compute(self.py, || {
                let thetas: Vec<Matrix<T>> = runs.iter().map(|(_, run)| run.theta()).collect();
                let stein = stein.get_or_insert_with(|| {
                    let densities = runs.iter().map(|(_, run)| &run.log_density[..]);
                    SteinJudge::of_pool(start.cols(), thetas.iter().zip(densities))
                });
                let score = |theta| stein.discrepancy(target, theta).map_err(to_python);
                thetas.iter().map(score).collect()
            })
        };
        let search = successive_halving(candidates.len(), rungs, |_| 0, advance, judge)?;
        Ok((search, taken.load(Ordering::Relaxed)))
    }

    /// Counts steps, lets signals through and moves the bar.
    fn observer<T: Number>(
        &self,
        taken: Arc<AtomicU64>,
        total: u64,
        begun: Instant,
    ) -> impl FnMut(&Snapshot<'_, T>) -> steinflow::Result<ControlFlow<()>> + use<T> {
        let progress = self.progress.as_ref().map(|progress| progress.clone_ref(self.py));
        let mut last = Instant::now();
        move |at| {
            let count = taken.fetch_add(u64::from(at.step > 0), Ordering::Relaxed) + 1;
            if last.elapsed() >= crate::watch::TICK || at.step == at.total_steps {
                last = Instant::now();
                Python::attach(|py| {
                    py.check_signals()?;
                    match &progress {
                        Some(progress) => progress
                            .call1(py, (count.min(total), total, begun.elapsed().as_secs_f64()))
                            .map(|_| ()),
                        None => Ok(()),
                    }
                })
                .map_err(from_python)?;
            }
            Ok(ControlFlow::Continue(()))
        }
    }

    /// A dictionary for every candidate in every round.
    fn describe(&self, search: &Search, candidates: &[Candidate]) -> PyResult<Bound<'py, PyDict>> {
        let tried = PyList::empty(self.py);
        for trial in &search.trials {
            let row = PyDict::new(self.py);
            for (name, value) in candidates[trial.candidate].choice.values() {
                row.set_item(name, value)?;
            }
            row.set_item("round", trial.rung + 1)?;
            row.set_item("steps", trial.steps)?;
            row.set_item("ksd", trial.score)?;
            row.set_item("fate", trial.fate.name())?;
            tried.append(row)?;
        }
        let answer = PyDict::new(self.py);
        answer.set_item("tried", tried)?;
        Ok(answer)
    }
}
