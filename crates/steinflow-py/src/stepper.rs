//! A sampler whose loop is the user's: scores in, particles out, and between them a state that is a value.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use steinflow::run::{self, Halted, Learnt};
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Result};
use steinflow_config::{Run, Start};

use crate::arrays::{Array2, Number, aligned_copy, array, matrix};
use crate::config::Config;
use crate::dynamics::Raised;
use crate::errors::{from_python, refused};
use crate::run::raise;
use crate::target::copy_answer;
use crate::threads::compute;

/// Where a run has halted, in the precision of its particles.
enum Kept {
    Double(Halted<f64>),
    Single(Halted<f32>),
}

/// Does the same in either precision.
macro_rules! either {
    ($kept:expr, $halted:ident => $result:expr) => {
        match $kept {
            Kept::Double($halted) => $result,
            Kept::Single($halted) => $result,
        }
    };
}

/// Particles between two steps: all that the next step depends on, but for the settings.
#[pyclass(frozen, module = "steinflow._steinflow")]
pub struct State {
    kept: Kept,
    dim: usize,
    /// The seed of every random number of the run.
    #[pyo3(get)]
    seed: u64,
    /// A number that no other state of this process has.
    id: u64,
}

/// What a preconditioner has learnt: moments, weight, and how often.
type Scales = Option<(Vec<f64>, f64, u64)>;

/// All but the particles: steps, moves of the step under way, phase, and what integrator, preconditioner,
/// field and clock remember.
type Rest = (u64, Option<usize>, usize, Vec<f64>, Scales, Vec<f64>, (f64, u64));

impl State {
    fn of(kept: Kept, dim: usize, seed: u64) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { kept, dim, seed, id: LAST.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

#[pymethods]
impl State {
    #[new]
    fn new(state: Array2<'_>, dim: usize, seed: u64, rest: Rest) -> Self {
        fn halted<T: Number>(state: Matrix<T>, rest: Rest) -> Halted<T> {
            let (step, made, phase, integrator, scales, field, clock) = rest;
            let preconditioner =
                scales.map(|(moments, weight, seen)| Learnt { moments, weight, seen });
            let state = Arc::new(state);
            Halted { state, step, made, phase, integrator, preconditioner, field, clock }
        }
        let kept = match state {
            Array2::Double(state) => Kept::Double(halted(matrix(&state), rest)),
            Array2::Single(state) => Kept::Single(halted(matrix(&state), rest)),
        };
        Self::of(kept, dim, seed)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rest: Rest = either!(&self.kept, at => {
            let scales = at.preconditioner.as_ref();
            let scales = scales.map(|learnt| (learnt.moments.clone(), learnt.weight, learnt.seen));
            let (integrator, field) = (at.integrator.clone(), at.field.clone());
            (at.step, at.made, at.phase, integrator, scales, field, at.clock)
        });
        let parts = (self.state(py)?, self.dim, self.seed, rest).into_pyobject(py)?;
        Ok((py.get_type::<Self>().into_any(), parts))
    }

    /// z = (θ, r, …) of every particle; a copy.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(either!(&self.kept, at => array(py, Matrix::clone(&at.state))?.into_any()))
    }

    /// One block of the state of every particle; a copy.
    fn block<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        fn cut<'py, T: Number>(
            py: Python<'py>,
            state: &Matrix<T>,
            first: usize,
            dim: usize,
        ) -> PyResult<Bound<'py, PyArray2<T>>> {
            if first + dim > state.cols() {
                return Err(PyValueError::new_err("there is no such block"));
            }
            let mut values = Vec::with_capacity(state.rows() * dim);
            for i in 0..state.rows() {
                values.extend_from_slice(&state.row(i)[first..first + dim]);
            }
            array(py, Matrix::from_vec(values, state.rows(), dim).expect("rows of a block"))
        }
        let first = index.saturating_mul(self.dim);
        Ok(either!(&self.kept, at => cut(py, &at.state, first, self.dim)?.into_any()))
    }

    /// Steps taken, the one under way included.
    #[getter]
    fn step(&self) -> u64 {
        either!(&self.kept, at => at.step + u64::from(at.made.is_some()))
    }
}

/// The user's function, where there is one.
type Function = Arc<Mutex<Option<Py<PyAny>>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A target that the user answers for.
struct Asked {
    function: Function,
    dim: usize,
}

impl<T: Number> LogDensity<T> for Asked {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()> {
        Python::attach(|py| {
            let function = lock(&self.function).as_ref().map(|own| own.clone_ref(py));
            let Some(function) = function else {
                let remedy = "a step of it asks for more than one gradient, and you gave one: give \
                              the sampler the function, or take the integrator `splitting` or `euler`";
                let error = Error::setting("integrator", "the one of this sampler", remedy);
                return Err(crate::errors::to_python(error));
            };
            let answer = function.bind(py).call1((aligned_copy(py, theta)?,))?;
            copy_answer(&answer, log_density, score)
        })
        .map_err(from_python)
    }
}

/// A run under way, kept so that the next step need not begin from nothing.
struct Held<T: Number> {
    stepper: run::Stepper<'static, T>,
    function: Function,
    raised: Option<Raised>,
    /// The number of the state that it is in; 0 for none.
    at: u64,
    shape: (usize, usize),
    seed: u64,
}

/// One for each precision.
#[derive(Default)]
struct Machines {
    double: Option<Held<f64>>,
    single: Option<Held<f32>>,
}

/// A number that particles are made of.
trait Kind: Number {
    fn wrap(halted: Halted<Self>) -> Kept;
    fn held(machines: &mut Machines) -> &mut Option<Held<Self>>;
}

impl Kind for f64 {
    fn wrap(halted: Halted<Self>) -> Kept {
        Kept::Double(halted)
    }
    fn held(machines: &mut Machines) -> &mut Option<Held<Self>> {
        &mut machines.double
    }
}

impl Kind for f32 {
    fn wrap(halted: Halted<Self>) -> Kept {
        Kept::Single(halted)
    }
    fn held(machines: &mut Machines) -> &mut Option<Held<Self>> {
        &mut machines.single
    }
}

/// What the user answers with: log densities and scores, or a function that gives them.
#[derive(FromPyObject)]
enum Answer {
    Given(Py<PyTuple>),
    Function(Py<PyAny>),
}

/// Takes steps from state to state.
#[pyclass(frozen)]
pub struct Stepper {
    config: Py<Config>,
    machines: Mutex<Machines>,
}

#[pymethods]
impl Stepper {
    #[new]
    fn new(config: Py<Config>) -> Self {
        Self { config, machines: Mutex::default() }
    }

    /// The names of the blocks of a state.
    fn blocks(&self, py: Python<'_>, dim: usize) -> PyResult<Vec<String>> {
        let structure = self.config.get().structure(py, dim)?;
        Ok(structure.block_names().iter().map(ToString::to_string).collect())
    }

    /// Particles before the first step, with auxiliary variables drawn from their Gaussians.
    fn init(&self, py: Python<'_>, theta: Array2<'_>, seed: u64) -> PyResult<State> {
        match theta {
            Array2::Double(theta) => self.start(py, matrix(&theta), seed),
            Array2::Single(theta) => self.start(py, matrix(&theta), seed),
        }
    }

    /// One step more.
    fn step(&self, py: Python<'_>, state: PyRef<'_, State>, answer: Answer) -> PyResult<State> {
        either!(&state.kept, at => self.go_on(py, &state, at, answer, run::Stepper::step))
    }

    /// The step under way, to its end.
    fn finish(&self, py: Python<'_>, state: PyRef<'_, State>, answer: Answer) -> PyResult<State> {
        either!(&state.kept, at => self.go_on(py, &state, at, answer, run::Stepper::finish))
    }

    /// The velocity of every particle at the end of the step under way.
    fn velocity<'py>(
        &self,
        py: Python<'py>,
        state: PyRef<'py, State>,
        answer: Answer,
    ) -> PyResult<Bound<'py, PyAny>> {
        either!(&state.kept, at => {
            let (velocity, _) = self.drive(py, &state, at, answer, run::Stepper::velocity)?;
            Ok(array(py, velocity)?.into_any())
        })
    }
}

impl Stepper {
    fn start<T: Kind>(&self, py: Python<'_>, theta: Matrix<T>, seed: u64) -> PyResult<State> {
        let dim = theta.cols();
        let mut held = self.make(py, theta, seed)?;
        let state = State::of(T::wrap(held.stepper.halted()), dim, seed);
        held.at = state.id;
        *T::held(&mut lock(&self.machines)) = Some(held);
        Ok(state)
    }

    fn make<T: Kind>(&self, py: Python<'_>, theta: Matrix<T>, seed: u64) -> PyResult<Held<T>> {
        let config = self.config.get();
        let (dynamics, raised) = config.own_dynamics::<T>(py)?;
        let (function, shape) = (Function::default(), (theta.rows(), theta.cols()));
        let target = Asked { function: Arc::clone(&function), dim: theta.cols() };
        let field = config.own_field(py, theta.cols())?;
        let mut complete = config.complete.clone();
        complete.seed = seed;
        let stepper = compute(py, || {
            match complete.sampler_on(target, Start::At(theta), dynamics, None)? {
                Run::Flow(sampler) => match field {
                    Some(field) => Ok(sampler.with_field(field).stepper()?),
                    None => Ok(sampler.stepper()?),
                },
                Run::Auto(_) => {
                    let remedy =
                        "it has a loop of its own: name a method such as svgd or sghmc-stein";
                    Err(Error::setting("method", &complete.method, remedy).into())
                }
            }
        });
        Ok(Held { stepper: stepper.map_err(refused)?, function, raised, at: 0, shape, seed })
    }

    fn go_on<T: Kind>(
        &self,
        py: Python<'_>,
        state: &State,
        at: &Halted<T>,
        answer: Answer,
        work: fn(&mut run::Stepper<'static, T>) -> Result<()>,
    ) -> PyResult<State> {
        let ((), mut held) = self.drive(py, state, at, answer, work)?;
        let next = State::of(T::wrap(held.stepper.halted()), state.dim, state.seed);
        held.at = next.id;
        *T::held(&mut lock(&self.machines)) = Some(held);
        Ok(next)
    }

    /// Does some work from a state. What it was done with is kept by nobody: another thread may be at work,
    /// or the work may have failed.
    fn drive<T: Kind, R: Send>(
        &self,
        py: Python<'_>,
        state: &State,
        at: &Halted<T>,
        answer: Answer,
        work: fn(&mut run::Stepper<'static, T>) -> Result<R>,
    ) -> PyResult<(R, Held<T>)> {
        let (shape, seed) = ((at.state.rows(), state.dim), state.seed);
        let kept = T::held(&mut lock(&self.machines)).take();
        let fits = |held: &Held<T>| (held.shape, held.seed) == (shape, seed);
        let mut held = if let Some(held) = kept.filter(fits) {
            held
        } else {
            let theta = Matrix::from_fn(shape.0, shape.1, |i, j| at.state.row(i)[j]);
            self.make(py, theta, seed)?
        };
        let (given, function) = match answer {
            Answer::Given(pair) => (Some(pair), None),
            Answer::Function(function) => (None, Some(function)),
        };
        *lock(&held.function) = function;
        let stepper = &mut held.stepper;
        let is_elsewhere = held.at != state.id;
        let found = compute(py, || {
            if is_elsewhere {
                stepper.go_to(at)?;
            }
            if let Some(given) = given {
                stepper.answer(|log_density, score| {
                    Python::attach(|py| copy_answer(given.bind(py), log_density, score))
                        .map_err(from_python)
                })?;
            }
            work(stepper)
        });
        let taken = AtomicU64::new(at.step);
        let found = found.map_err(|error| raise(py, error, held.raised.as_ref(), &taken))?;
        Ok((found, held))
    }
}
