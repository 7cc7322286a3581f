//! A run: target, start and settings in, a dictionary of arrays out.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steinflow::integrator::{self, StepSize};
use steinflow::method::Method;
use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::{Ended, Snapshot, Trace};
use steinflow::{LogDensity, Matrix, Outcome, Sampler};
use steinflow_io::{Collected, SavedRun};

use crate::arrays::{Array2, Number, array, matrix};
use crate::checkpoint::{Checkpoint, Recorder, Save, Saveable, in_precision};
use crate::dynamics::Raised;
use crate::errors::{at_step, to_python};
use crate::interrupt::Interrupt;
use crate::settings::{Motion, Settings};
use crate::target::Target;
use crate::threads::compute;
use crate::watch::Watch;

/// Draws `count` starting points from N(0, I) with the addresses that every start of the library has.
#[pyfunction]
pub fn standard_normal(
    py: Python<'_>,
    count: usize,
    dim: usize,
    seed: u64,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    require_room(count, dim)?;
    array(py, normal(count, &vec![0.0; dim], 1.0, seed))
}

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

/// Draws from N(mean, sd²·I).
pub fn normal(count: usize, mean: &[f64], sd: f64, seed: u64) -> Matrix<f64> {
    let mut theta = Matrix::zeros(count, mean.len());
    for i in 0..count {
        let row = theta.row_mut(i);
        fill_standard_normal(&mut stream(seed, Purpose::Start, 0, i as u64), row);
        row.iter_mut().zip(mean).for_each(|(x, mean)| *x = mean + sd * *x);
    }
    theta
}

/// Runs a sampler from the particles `init`, one a row.
#[pyfunction]
#[pyo3(signature = (
    target, init, settings, *, interrupt=None, progress=None, callback=None, checkpoint=None, save=None
))]
pub fn run<'py>(
    py: Python<'py>,
    target: Target<'py>,
    init: Array2<'py>,
    settings: Settings,
    interrupt: Option<PyRef<'py, Interrupt>>,
    progress: Option<Py<PyAny>>,
    callback: Option<Py<PyAny>>,
    checkpoint: Option<PyRef<'py, Checkpoint>>,
    save: Option<Save>,
) -> PyResult<Bound<'py, PyDict>> {
    let interrupt = interrupt.map(|interrupt| interrupt.flag());
    let watch = Watch { progress, callback, step: Arc::default(), last: Instant::now() };
    let checkpoint = checkpoint.as_deref();
    let request = Request { py, target, settings: &settings, watch, checkpoint, save };
    match init {
        Array2::Double(init) => request.run(&init, interrupt),
        Array2::Single(init) => request.run(&init, interrupt),
    }
}

struct Request<'py, 's> {
    py: Python<'py>,
    target: Target<'py>,
    settings: &'s Settings,
    watch: Watch,
    checkpoint: Option<&'s Checkpoint>,
    save: Option<Save>,
}

impl<'py> Request<'py, '_> {
    fn run<T: Saveable>(
        self,
        init: &PyReadonlyArray2<'py, T>,
        interrupt: Option<Arc<std::sync::atomic::AtomicBool>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, settings) = (self.py, self.settings);
        let target = self.target.density::<T>()?;
        let target = &*target;
        let region =
            if settings.needs_region()? { Some(self.target.wide_density::<T>()?) } else { None };
        let motion = settings.motion::<T>(py, region.as_deref())?;
        let raised = motion.raised.clone();
        let step = Arc::clone(&self.watch.step);
        let start = matrix(init);
        let named = |error: steinflow::Error| raise(py, error, raised.as_ref(), &step);

        let (method, sigma) = (&motion.method, motion.sigma);
        // Everything from here to the outcome is Rust; a target in Python takes the interpreter back
        // for as long as it runs.
        let sizes =
            compute(py, || step_sizes(settings, target, &start, method, sigma)).map_err(&named)?;
        let earlier = in_precision::<T>(self.checkpoint)?;
        let collect = settings.collect_from.map(|from| (from, settings.collect_every));
        let mut recorder = Recorder::new(settings.trace_every, collect, earlier, self.save);
        let phases: Vec<(u64, StepSize)> =
            settings.phases.iter().map(|phase| phase.1).zip(sizes.iter().copied()).collect();
        let mut sampler = sampler(settings, target, motion, start, &phases)?
            .observe(|at: &Snapshot<'_, T>| recorder.observe(at))
            .observe(self.watch);
        if let Some(budget) = settings.budget()? {
            sampler = sampler.budget(budget);
        }
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
        let answer = describe(py, outcome)?;
        answer.set_item("checkpoint", T::wrap(saved))?;
        answer.set_item("step_sizes", sizes.iter().map(constant).collect::<Vec<_>>())?;
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

/// The sampler of the settings with so many steps of these sizes in its phases.
pub fn sampler<'a, T: Number>(
    settings: &Settings,
    target: &'a dyn LogDensity<T>,
    motion: Motion<T>,
    start: Matrix<T>,
    phases: &[(u64, StepSize)],
) -> PyResult<Sampler<'a, T>> {
    let momentum = motion.method.dynamics.has_momentum();
    let mut sampler = Sampler::new(target, motion.dynamics, motion.field)
        .start_at(start)
        .seed(settings.seed)
        .on_non_finite(settings.policy()?);
    for ((name, ..), &(steps, size)) in settings.phases.iter().zip(phases) {
        let name = name.as_deref().unwrap_or(if momentum { "splitting" } else { "euler" });
        let integrator = integrator::named::<T>(name).map_err(to_python)?;
        sampler = sampler.phase(integrator, steps, size);
    }
    if let Some(rule) = settings.preconditioner()? {
        sampler = sampler.precondition(rule);
    }
    if let Some(rows) = settings.batch_size {
        sampler = sampler.batch_size(rows);
    }
    if let Some(tolerance) = settings.tolerance {
        sampler = sampler.tolerance(tolerance);
    }
    if let Some(steps) = settings.resample_every {
        sampler = sampler.resample_every(steps);
    }
    Ok(sampler)
}

/// The step size of a phase, if it is constant.
fn constant(size: &StepSize) -> Option<f64> {
    if let StepSize::Constant(size) = size { Some(*size) } else { None }
}

/// The schedule of every phase: the one given, or the default for the target's curvature.
fn step_sizes<T: Number>(
    settings: &Settings,
    target: &dyn LogDensity<T>,
    start: &Matrix<T>,
    method: &Method,
    sigma: f64,
) -> steinflow::Result<Vec<StepSize>> {
    let mut default = None;
    let mut sizes = Vec::new();
    for (_, _, size) in &settings.phases {
        sizes.push(match size {
            Some(text) => StepSize::parse(text)?,
            None => match default {
                Some(size) => size,
                None => *default.insert(default_step_size(target, start, method, sigma)?),
            },
        });
    }
    Ok(sizes)
}

fn default_step_size<T: Number>(
    target: &dyn LogDensity<T>,
    start: &Matrix<T>,
    method: &Method,
    sigma: f64,
) -> steinflow::Result<StepSize> {
    // A start of the wrong shape is the sampler's to refuse.
    let sound = start.rows() > 0 && start.cols() == target.dim();
    let sharpness = if sound {
        integrator::sharpness(target, start.as_ref(), spread(start), None)?
    } else {
        1.0
    };
    Ok(StepSize::Constant(method.default_step_size(sigma, sharpness)))
}

/// The standard deviation of the particles, pooled over coordinates.
pub fn spread<T: Number>(start: &Matrix<T>) -> f64 {
    let (count, dim) = (start.rows() as f64, start.cols());
    let mut sum = 0.0;
    for j in 0..dim {
        let column = || (0..start.rows()).map(|i| start.row(i)[j].as_f64());
        let mean = column().sum::<f64>() / count;
        sum += column().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    }
    (sum / dim.max(1) as f64).sqrt()
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
    let ended = match outcome.ended {
        Ended::Finished => "finished",
        Ended::AtRest => "at rest",
        Ended::OutOfTime => "out of time",
        Ended::Interrupted => "interrupted",
    };
    answer.set_item("ended", ended)?;
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
