//! A run: target, start and settings in, a dictionary of arrays out.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyRuntimeWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steinflow::Outcome;
use steinflow::ensemble::Report;
use steinflow::method::Region;
use steinflow::run::{Samples, Trace, WarmMoments};
use steinflow_config::{Start, in_python};
use steinflow_io::{Collected, SavedRun};

use crate::arrays::{Number, array, matrix, same_precision};
use crate::checkpoint::{Checkpoint, Recorder, Save, Saveable, in_precision};
use crate::config::Config;
use crate::dynamics::Raised;
use crate::errors::{at_step, refused, to_python};
use crate::interrupt::Interrupt;
use crate::target::Target;
use crate::threads::compute;
use crate::watch::Watch;

/// Refuses particles that memory cannot hold: an allocation that fails would end the process.
pub fn require_room(count: usize, dim: usize) -> PyResult<()> {
    let fits = |numbers| Vec::<f64>::new().try_reserve_exact(numbers).is_ok();
    if count.checked_mul(dim).is_some_and(fits) {
        return Ok(());
    }
    Err(PyMemoryError::new_err(format!(
        "{count} particles in {dim} dimensions do not fit into memory: take fewer particles"
    )))
}

/// Runs what `config` describes, from the particles `init`, one a row, where they are given.
#[pyfunction]
#[pyo3(signature = (
    target, config, *, init=None, interrupt=None, progress=None, callback=None, checkpoint=None, save=None
))]
pub fn run<'py>(
    py: Python<'py>,
    target: Target<'py>,
    config: PyRef<'py, Config>,
    init: Option<&Bound<'py, PyAny>>,
    interrupt: Option<PyRef<'py, Interrupt>>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
    checkpoint: Option<PyRef<'py, Checkpoint>>,
    save: Option<Save>,
) -> PyResult<Bound<'py, PyDict>> {
    let interrupt = interrupt.map(|interrupt| interrupt.flag());
    let watch = Watch { progress, callback, step: Arc::default(), last: Instant::now() };
    let checkpoint = checkpoint.as_deref();
    let request = Request { py, target, config: &config, init, watch, checkpoint, save };
    if config.complete.is_f32 {
        request.run::<f32>(interrupt)
    } else {
        request.run::<f64>(interrupt)
    }
}

struct Request<'py, 's> {
    py: Python<'py>,
    target: Target<'py>,
    config: &'s Config,
    init: Option<&'s Bound<'py, PyAny>>,
    watch: Watch,
    checkpoint: Option<&'s Checkpoint>,
    save: Option<Save>,
}

impl<'py> Request<'py, '_> {
    fn run<T: Saveable>(
        self,
        interrupt: Option<Arc<std::sync::atomic::AtomicBool>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, config) = (self.py, &self.config.complete);
        let start = if let Some(init) = self.init {
            Start::At(matrix(&same_precision::<T>(init, "init")?))
        } else {
            require_room(config.particles, self.target.dim())?;
            self.target.start::<T>(config)?
        };
        let target = self.target.density_of::<T>(config)?;
        let target = &*target;
        let wide = if config.needs_region() {
            Some(self.target.wide_density(config.is_f32)?)
        } else {
            None
        };
        let region = match (&wide, &self.config.window) {
            (Some(target), Some(window)) => Some(Region { target: &**target, window }),
            _ => None,
        };
        let (dynamics, raised) = self.config.own_dynamics::<T>(py)?;
        let step = Arc::clone(&self.watch.step);
        let named = |error: steinflow::Error| raise(py, error, raised.as_ref(), &step);
        // Everything from here to the outcome is Rust; a target in Python takes the interpreter back
        // for as long as it runs.
        let earlier = in_precision::<T>(self.checkpoint)?;
        let mut recorder = Recorder::new(config, earlier, self.save).map_err(refused)?;
        let sampler = compute(py, || config.sampler_on(target, start, dynamics, region));
        let mut sampler = sampler.map_err(refused)?;
        for notice in config.notices(target) {
            // What cannot run there says so alone.
            sampler.check().map_err(named)?;
            let category = py.get_type::<PyRuntimeWarning>();
            PyErr::warn(py, &category, &CString::new(in_python(notice))?, 3)?;
        }
        if let Some(field) = self.config.own_field(py, target.dim())? {
            sampler = sampler.with_field(field);
        }
        let mut sampler = sampler.observe(&mut recorder).observe(self.watch);
        if let Some(earlier) = earlier {
            sampler = sampler.resume_from(earlier.checkpoint.clone());
        }
        if let Some(flag) = interrupt {
            sampler = sampler.interrupt(flag);
        }
        // On this thread: signals, and what a user has set for it (precision, error states), are its own.
        let outcome = compute(py, || sampler.run_here()).map_err(named)?;
        recorder.save(outcome.checkpoint.clone())?;
        let saved = recorder.saved(outcome.checkpoint.clone());
        let saved = SavedRun {
            trace: saved.trace.into_owned().into(),
            samples: saved.samples.map(|samples| Collected {
                steps: samples.steps.into_owned().into(),
                values: samples.values.into_owned().into(),
                ..samples
            }),
            frames: None,
            ..saved
        };
        let points = (config.settings().points == Some(true)).then(|| {
            let draws = recorder.samples.as_ref();
            let draws = draws.map_or_else(|| outcome.theta(), Samples::theta);
            compute(py, || outcome.at_rest(target, draws.as_ref()))
        });
        let answer = describe(py, outcome)?;
        match points {
            Some(Ok(points)) => answer.set_item("points", array(py, points)?)?,
            Some(Err(error @ steinflow::Error::User(_))) => return Err(named(error)),
            Some(Err(error)) => answer.set_item("no_points", error.to_string())?,
            None => {}
        }
        answer.set_item("checkpoint", T::wrap(saved))?;
        answer.set_item("trace", trace_columns(py, &recorder.trace)?)?;
        if let Some(samples) = recorder.samples {
            let (draws, chains) = (samples.steps().len(), samples.chains());
            let theta = samples.theta();
            let shape = [draws, chains, theta.cols()];
            answer.set_item("draws", theta.into_vec().into_pyarray(py).reshape(shape)?)?;
            answer.set_item("draw_steps", samples.steps().to_vec().into_pyarray(py))?;
        }
        Ok(answer)
    }
}

/// The exception for an error of the run, with the step where it is the user's own.
pub fn raise(
    py: Python<'_>,
    error: steinflow::Error,
    raised: Option<&Raised>,
    step: &AtomicU64,
) -> PyErr {
    let step = step.load(Ordering::Relaxed);
    let kept =
        raised.and_then(|raised| raised.lock().unwrap_or_else(PoisonError::into_inner).take());
    if let Some(own) = kept {
        return at_step(py, own, step);
    }
    let is_own = matches!(error, steinflow::Error::User(_));
    let exception = to_python(error);
    if is_own { at_step(py, exception, step) } else { exception }
}

fn describe<T: Number>(py: Python<'_>, outcome: Outcome<T>) -> PyResult<Bound<'_, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("ended", outcome.ended.name())?;
    if let Some(draws) = &outcome.warm_moments {
        answer.set_item("warm_up", moments(py, draws)?)?;
    }
    if let Some(report) = &outcome.report {
        answer.set_item("report", described(py, report)?)?;
    }
    answer.set_item("steps", outcome.steps)?;
    answer.set_item("gradients", outcome.gradients)?;
    answer.set_item("frozen", outcome.frozen)?;
    answer.set_item("shrinks", outcome.shrinks)?;
    answer.set_item("seconds", outcome.elapsed.as_secs_f64())?;
    answer.set_item("blocks", outcome.structure.block_names())?;
    answer.set_item("log_density", outcome.log_density.into_pyarray(py))?;
    answer.set_item("state", array(py, outcome.state)?)?;
    Ok(answer)
}

/// How an ensemble fared, by name.
fn described<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("done", report.done)?;
    let reasons: Vec<String> = report.reasons.iter().map(ToString::to_string).collect();
    found.set_item("reasons", reasons)?;
    found.set_item("draws", report.draws)?;
    found.set_item("effective", report.effective)?;
    found.set_item("rhat", report.rhat)?;
    found.set_item("drift", report.drift)?;
    found.set_item("acceptance", report.acceptance)?;
    found.set_item("step_size", report.step_size)?;
    found.set_item("modes", report.modes)?;
    found.set_item("bends", report.bends.clone())?;
    found.set_item("warm_up", report.warm_up)?;
    found.set_item("evaluations", report.evaluations)?;
    Ok(found)
}

/// Moments of the draws of a warm-up, by name.
fn moments<'py>(py: Python<'py>, draws: &WarmMoments) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("draws", draws.draws)?;
    found.set_item("mean", draws.mean.clone())?;
    found.set_item("sd", draws.sd.clone())?;
    found.set_item("standing", draws.standing.name())?;
    Ok(found)
}

fn trace_columns<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let (rows, columns) = (trace.rows(), PyDict::new(py));
    let numbers = |of: fn(&steinflow::run::TraceRow) -> f64| {
        rows.iter().map(of).collect::<Vec<_>>().into_pyarray(py)
    };
    let counts = |of: fn(&steinflow::run::TraceRow) -> u64| {
        rows.iter().map(of).collect::<Vec<_>>().into_pyarray(py)
    };
    columns.set_item("step", counts(|row| row.step))?;
    columns.set_item("mean_log_density", numbers(|row| row.mean_log_density))?;
    columns.set_item("velocity_norm", numbers(|row| row.velocity_norm))?;
    columns.set_item("bandwidth", numbers(|row| row.bandwidth.unwrap_or(f64::NAN)))?;
    columns.set_item("ksd", numbers(|row| row.stein_discrepancy.unwrap_or(f64::NAN)))?;
    columns.set_item("step_size", numbers(|row| row.step_size))?;
    columns.set_item("gradients", counts(|row| row.gradients))?;
    columns.set_item("seconds", numbers(|row| row.seconds))?;
    Ok(columns)
}
