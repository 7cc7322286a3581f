//! The description of a run, from keyword arguments.

use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use steinflow::dynamics::{Dynamics, Structure};
use steinflow::integrator::StepSize;
use steinflow::settings::{Kind, Setting, Value};
use steinflow::{LogDensity, Matrix};
use steinflow_config::{
    Begin, Config as Complete, Facts, OwnDynamics as Own, Phase, Settings, in_python,
};
use steinflow_models::{ModelSpec, Start};

use crate::arrays::{Array2, Number, Rows};
use crate::dynamics::{OwnDynamics, Raised};
use crate::errors::refused;
use crate::field::OwnField;
use crate::target::Target;
use crate::threads::compute;

/// A complete and checked run, but for its target and particles that are given.
#[pyclass(frozen)]
pub struct Config {
    /// What every front end has.
    pub complete: Complete,
    /// The user's own (A, C).
    pub dynamics: Option<Py<PyAny>>,
    /// The user's own field, in place of the method's.
    pub field: Option<Py<PyAny>>,
    /// Limits for fields that need a grid.
    pub window: Option<Vec<(f64, f64)>>,
}

#[pymethods]
impl Config {
    /// Fills in what the keyword arguments leave open. Without `init`, particles of a function start
    /// around `centre` with the spread `sd`.
    #[staticmethod]
    #[pyo3(signature = (
        settings, target, *, init=None, centre=None, sd=1.0, posterior=false, dynamics=None, field=None,
        window=None
    ))]
    fn resolve(
        py: Python<'_>,
        settings: &Bound<'_, PyDict>,
        target: Target<'_>,
        init: Option<Array2<'_>>,
        centre: Option<Vec<f64>>,
        sd: f64,
        posterior: bool,
        dynamics: Option<Py<PyAny>>,
        field: Option<Py<PyAny>>,
        window: Option<Vec<(f64, f64)>>,
    ) -> PyResult<Self> {
        let mut settings = read(settings)?;
        let own_dynamics = match &dynamics {
            Some(own) => {
                let variance = OwnDynamics::read(own.bind(py))?.momentum_variance();
                Some(Own { sigma: variance.map(|variance| variance.max(0.0).sqrt()) })
            }
            None => None,
        };
        let given = init.as_ref().map(|init| match init {
            Array2::Double(init) => wide(&Rows::of(init)),
            Array2::Single(init) => wide(&Rows::of(init)),
        });
        if let Some(given) = &given {
            settings.particles = Some(given.rows());
        }
        let complete = match &target {
            Target::BuiltIn(model) => {
                settings.spec = model.spec.clone();
                let (settings, model) = Complete::with_model(settings).map_err(refused)?;
                let mut facts = Facts { own_dynamics, ..Facts::of(&*model, &settings.spec) };
                if let Some(given) = given {
                    facts.start = Begin::Given(given);
                }
                compute(py, || Complete::resolve_on(settings, &facts))
            }
            Target::Function(_) => {
                let single = settings.precision.as_deref() == Some("f32");
                let density = target.wide_density(single)?;
                let mean = centre.unwrap_or_else(|| vec![0.0; density.dim()]);
                let start = given.map_or(Begin::Normal(Start { mean, sd }), Begin::Given);
                let facts = Facts {
                    target: &*density,
                    is_posterior: posterior,
                    start,
                    start_is_good: false,
                    own_dynamics,
                };
                compute(py, || Complete::resolve_on(settings, &facts))
            }
        };
        let complete = complete.map_err(refused)?;
        if field.is_some() && complete.method == "auto" {
            let remedy = "it has no field of its own to replace: name a method such as svgd";
            return Err(refused(steinflow::Error::setting("method", "auto", remedy).into()));
        }
        Ok(Self { complete, dynamics, field, window })
    }

    /// The run with so many steps more in its last phase, and a budget in place of its own.
    #[pyo3(signature = (more_steps, budget=None))]
    fn longer(&self, py: Python<'_>, more_steps: u64, budget: Option<f64>) -> PyResult<Self> {
        let mut complete = self.complete.clone();
        let last = complete.phases.last().map(|phase| StepSize::parse(&phase.step_size));
        if more_steps > 0 && !matches!(last, Some(Ok(StepSize::Constant(_)))) {
            return Err(PyValueError::new_err(
                "the last phase has a schedule, which says nothing about further steps: pass phases \
                 with all the steps, or a constant step size",
            ));
        }
        let total = complete.steps().saturating_add(more_steps);
        complete.set_steps(total).map_err(refused)?;
        if budget.is_some() {
            complete.set_budget(budget).map_err(refused)?;
        }
        let copy = |own: Option<&Py<PyAny>>| own.map(|own| own.clone_ref(py));
        let (dynamics, field) = (copy(self.dynamics.as_ref()), copy(self.field.as_ref()));
        Ok(Self { complete, dynamics, field, window: self.window.clone() })
    }

    /// The settings as a TOML file has them, complete.
    #[getter]
    fn toml(&self) -> String {
        self.complete.to_toml()
    }

    /// The settings that a run must share with the one it goes on from: all but its length and stop
    /// rules.
    #[getter]
    fn identity(&self) -> String {
        let mut settings = self.complete.settings().clone();
        for phase in settings.phase.iter_mut().flatten() {
            phase.steps = 0;
        }
        (settings.budget, settings.tolerance, settings.trace_every) = (None, None, None);
        settings.to_toml()
    }

    #[getter]
    fn method(&self) -> &str {
        &self.complete.method
    }

    #[getter]
    fn particles(&self) -> usize {
        self.complete.particles
    }

    /// Whether particles move by each other alone, without noise.
    #[getter]
    fn is_deterministic(&self) -> bool {
        self.complete.is_interacting() && !self.complete.is_random()
    }
}

/// Dynamics of the user's own, and where an exception in them is kept.
type OwnAndRaised<T> = (Option<Box<dyn Dynamics<T>>>, Option<Raised>);

impl Config {
    /// The user's own dynamics, if there are any.
    pub fn own_dynamics<T: Number>(&self, py: Python<'_>) -> PyResult<OwnAndRaised<T>> {
        let Some(own) = &self.dynamics else { return Ok((None, None)) };
        let own = OwnDynamics::read(own.bind(py))?;
        let raised = own.raised();
        Ok((Some(Box::new(own)), Some(raised)))
    }

    /// The user's own field, if there is one, for a target of `dim` coordinates.
    pub fn own_field(&self, py: Python<'_>, dim: usize) -> PyResult<Option<OwnField>> {
        let own = self.field.as_ref();
        own.map(|own| OwnField::new(py, own, &self.structure(py, dim)?)).transpose()
    }

    /// The blocks of the state, for a target of `dim` coordinates.
    pub fn structure(&self, py: Python<'_>, dim: usize) -> PyResult<Structure> {
        match &self.dynamics {
            Some(own) => Ok(Dynamics::<f64>::structure(&OwnDynamics::read(own.bind(py))?, dim)),
            None => Ok(self.complete.dynamics::<f64>().structure(dim)),
        }
    }
}

fn wide<T: Number>(rows: &Rows<'_, T>) -> Matrix<f64> {
    let rows = rows.as_ref();
    Matrix::from_fn(rows.rows(), rows.cols(), |i, j| rows.row(i)[j].as_f64())
}

/// The names that differ from those of flags and configs.
const PYTHON_NAMES: [(&str, &str); 1] = [("phases", "phase")];

/// Words of other packages, and what to write instead.
const FAMILIAR: [(&[&str], &str); 8] = [
    (&["random_seed", "rng_key", "key", "random_state", "rng_seed"], "seed, a whole number"),
    (
        &["chains", "num_chains", "num_particles", "n_particles"],
        "particles: those of auto are chains",
    ),
    (
        &["draws", "num_samples", "n_samples", "iter_sampling"],
        "effective, for how many effective draws auto goes on; methods with steps have collect_from",
    ),
    (
        &["tune", "warmup", "num_warmup", "iter_warmup", "burn_in", "burnin"],
        "nothing for auto, which warms up by itself, and warm_up=True or False for other methods",
    ),
    (&["learning_rate", "lr", "epsilon"], "step_size"),
    (&["num_steps", "n_steps", "num_iterations", "n_iter", "iterations"], "steps"),
    (&["cores", "n_jobs"], "nothing: all cores are used, or as many as RAYON_NUM_THREADS says"),
    (&["progressbar", "progress_bar"], "progress"),
];

/// The settings among keyword arguments; those that are None are left open.
fn read(given: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::default();
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let own = PYTHON_NAMES.iter().find(|(python, _)| *python == name);
        let own = own.map_or(name.as_str(), |(_, own)| own);
        if value.is_none() {
            continue;
        }
        if ModelSpec::table().iter().any(|option| option.name == own) {
            return Err(PyTypeError::new_err(format!(
                "sample() has no setting {name}: it is an option of a model, which \
                 steinflow.model(name, {name}=...) takes"
            )));
        }
        let shown = value.repr()?.to_string();
        let plain = plain(&value)
            .ok_or_else(|| PyTypeError::new_err(format!("{name} is {shown}: {}", expected(own))))?;
        match settings.set(own, &plain) {
            Some(Ok(())) => {}
            Some(Err(remedy)) => {
                let message = format!("{name} is {}: {remedy}", shortened(&shown));
                return Err(PyValueError::new_err(in_python(&message)));
            }
            None => {
                if let Some((_, ours)) = FAMILIAR.iter().find(|(words, _)| words.contains(&own)) {
                    let message = format!("sample() has no setting {name}: here it is {ours}");
                    return Err(PyTypeError::new_err(message));
                }
                let names = run_settings().into_iter().map(|setting| setting.name);
                let error = steinflow::Error::unknown("setting", &name, names);
                return Err(PyTypeError::new_err(format!("sample(): {error}")));
            }
        }
    }
    Ok(settings)
}

fn shortened(text: &str) -> String {
    const MOST: usize = 80;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST).chain("…".chars()).collect()
}

/// What to give instead, for a value that is nothing a setting can be.
fn expected(name: &str) -> &'static str {
    let kind = run_settings().into_iter().find(|setting| setting.name == name);
    match kind.map(|setting| setting.kind) {
        Some(Kind::Count | Kind::Counts) => "give a whole number, zero or more",
        Some(Kind::Number | Kind::Numbers) => "give a number",
        _ => "give its name",
    }
}

/// A number, a word, a path, or several of them.
pub fn plain(value: &Bound<'_, PyAny>) -> Option<Value> {
    if value.is_none() {
        // A part of a phase that is left open.
        return Some(Value::Text(Phase::OPEN.to_owned()));
    }
    if value.is_instance_of::<PyBool>() {
        return value.extract().ok().map(Value::Switch);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Some(Value::Text(text.to_string()));
    }
    // Arrays of one element pass for numbers, and are none.
    let is_scalar = !value.hasattr("shape").unwrap_or(false)
        || value.getattr("shape").and_then(|shape| shape.len()).is_ok_and(|axes| axes == 0);
    if is_scalar {
        if let Ok(count) = value.extract::<u64>() {
            return Some(Value::Count(count));
        }
        if let Ok(number) = value.extract::<f64>() {
            return Some(Value::Number(number));
        }
        if value.hasattr("__fspath__").unwrap_or(false) {
            let path: PathBuf = value.extract().ok()?;
            return path.to_str().map(|path| Value::Text(path.to_owned()));
        }
    }
    if value.cast::<PyDict>().is_ok() {
        return None;
    }
    let items = value.try_iter().ok()?;
    items.map(|item| plain(&item.ok()?)).collect::<Option<Vec<_>>>().map(Value::List)
}

/// What a run takes beside the model's options.
fn run_settings() -> Vec<Setting> {
    let of_model: Vec<&str> = ModelSpec::table().iter().map(|setting| setting.name).collect();
    let mut all = Settings::table();
    all.retain(|setting| !of_model.contains(&setting.name));
    all
}

fn described(settings: Vec<Setting>) -> Vec<(String, &'static str, &'static str)> {
    let row = |setting: Setting| {
        let kind = match setting.kind {
            Kind::Count => "int",
            Kind::Number => "float",
            Kind::Text => "str",
            Kind::NumberOrWord => "float | str",
            Kind::NumbersOrWord => "float | str | Sequence[float]",
            Kind::Path => "str | PathLike[str]",
            Kind::Switch => "bool",
            Kind::Counts => "Sequence[int]",
            Kind::Numbers => "float | Sequence[float]",
            Kind::Words => "str | Sequence[str]",
            Kind::Phases => "Sequence[tuple[str | None, int, float | str | None]]",
        };
        let own = PYTHON_NAMES.iter().find(|(_, own)| *own == setting.name);
        let name = own.map_or(setting.name, |(python, _)| python);
        (name.to_owned(), kind, setting.help)
    };
    settings.into_iter().map(row).collect()
}

/// What `sample` takes by keyword: name, type, and what it does.
#[pyfunction]
pub fn settings() -> Vec<(String, &'static str, &'static str)> {
    described(run_settings())
}

/// What `model` takes by keyword: name, type, and what it does.
#[pyfunction]
pub fn model_options() -> Vec<(String, &'static str, &'static str)> {
    let mut options = ModelSpec::table();
    options.retain(|option| option.name != "model");
    described(options)
}
