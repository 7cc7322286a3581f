//! What Python asks to sample: a model that ships, or a Python function of all particles at once.

use numpy::{PyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rayon::prelude::*;
use steinflow::ensemble::Widened;
use steinflow::run::WarmMoments;
use steinflow::{LogDensity, MatMut, MatRef, Minibatch, Result};
use steinflow_config::{Config, Start};
use steinflow_models::Model;

use crate::arrays::{Number, aligned_copy};
use crate::built_in::BuiltIn;
use crate::errors::{from_python, refused};

/// Numbers of an answer that one thread copies at a time.
const COPIED: usize = 1 << 16;

/// What is asked to be sampled.
#[derive(FromPyObject)]
pub enum Target<'py> {
    /// A model that ships.
    BuiltIn(PyRef<'py, BuiltIn>),
    /// The user's.
    Function(Function),
}

impl Target<'_> {
    /// Its density in the precision of the particles.
    pub fn density<T: Number>(&self) -> PyResult<Box<dyn LogDensity<T> + '_>> {
        Ok(match self {
            Self::BuiltIn(model) => Box::new(model.build::<T>()?),
            Self::Function(function) => Box::new(function),
        })
    }

    /// Its own moments, where they are known.
    pub fn exact_moments(&self) -> PyResult<Option<WarmMoments>> {
        let Self::BuiltIn(model) = self else { return Ok(None) };
        Ok(model.build::<f64>()?.exact_moments().map(WarmMoments::from))
    }

    /// The number of coordinates.
    pub fn dim(&self) -> usize {
        match self {
            Self::BuiltIn(model) => model.dim(),
            Self::Function(function) => function.dim,
        }
    }

    /// Its density for a run: of a model that ships, the one that the config has written down.
    pub fn density_of<T: Number>(&self, config: &Config) -> PyResult<Box<dyn LogDensity<T> + '_>> {
        match self {
            Self::BuiltIn(_) => Ok(Box::new(built::<T>(config)?)),
            Self::Function(_) => self.density::<T>(),
        }
    }

    /// Where particles begin that are not given.
    pub fn start<T: Number>(&self, config: &Config) -> PyResult<Start<T>> {
        match (self, &config.start) {
            (_, Some(start)) => Ok(Start::Normal(start.clone())),
            (Self::BuiltIn(_), None) => Ok(config.start(&*built::<T>(config)?)),
            // An ensemble finds it.
            (Self::Function(_), None) => Ok(Start::Open),
        }
    }

    /// Its density in `f64`, where the particles may be in `f32`.
    pub fn wide_density(&self, is_single: bool) -> PyResult<Box<dyn LogDensity<f64> + '_>> {
        match self {
            Self::Function(function) if is_single => Ok(Box::new(Widened(function))),
            _ => self.density::<f64>(),
        }
    }
}

fn built<T: Number>(config: &Config) -> PyResult<Box<dyn Model<T>>> {
    steinflow_models::build::<T>(config.spec()).map_err(|error| refused(error.into()))
}

/// `function(theta, rows, scale) -> (log_density, score)`, called with the interpreter held; `rows`
/// are the indices of a minibatch or None.
#[derive(FromPyObject)]
pub struct Function {
    /// What is called.
    #[pyo3(attribute("function"))]
    call: Py<PyAny>,
    /// The number of coordinates.
    dim: usize,
    /// The number of rows of data; 0 where there are none.
    data_rows: usize,
    /// `names()` of its coordinates, asked for when a message needs one.
    #[pyo3(attribute("names"))]
    names: Py<PyAny>,
}

impl<T: Number> LogDensity<T> for Function {
    fn dim(&self) -> usize {
        self.dim
    }

    fn data_rows(&self) -> usize {
        self.data_rows
    }

    fn coordinate_name(&self, coordinate: usize) -> Option<String> {
        Python::attach(|py| {
            let names = self.names.bind(py).call0().ok()?;
            names.get_item(coordinate).ok()?.extract().ok()
        })
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()> {
        Python::attach(|py| {
            let points = aligned_copy(py, theta)?;
            let indices = rows.map(|rows| PyArray::from_iter(py, index_column(rows)));
            let scale = rows.map_or(1.0, |rows| rows.scale);
            let answer = self.call.bind(py).call1((points, indices, scale))?;
            copy_answer(&answer, log_density, score)
        })
        .map_err(from_python)
    }
}

/// Copies log densities and gradients into the library's memory. The gradient is one array, or several that stand beside
/// each other, as the leaves of a pytree do.
pub fn copy_answer<T: Number>(
    answer: &Bound<'_, PyAny>,
    log_density: &mut [T],
    mut score: MatMut<'_, T>,
) -> PyResult<()> {
    let wrong = || {
        let kind = answer.get_type();
        PyTypeError::new_err(format!(
            "your function returned {kind}, expected a pair: the log densities of all particles, and \
             their gradients"
        ))
    };
    let parts: Vec<_> = answer.cast::<PyTuple>().map_err(|_| wrong())?.iter().collect();
    let (count, dim) = (score.rows(), score.cols());
    match &parts[..] {
        [found, gradient] => {
            copy(found, "log density", &[count], log_density)?;
            copy(gradient, "gradient", &[count, dim], score.as_mut_slice())
        }
        [found, leaves @ ..] if !leaves.is_empty() => {
            copy(found, "log density", &[count], log_density)?;
            copy_beside(leaves, &mut score)
        }
        _ => Err(wrong()),
    }
}

fn index_column(rows: &Minibatch) -> impl Iterator<Item = i64> {
    rows.indices.iter().map(|&row| i64::try_from(row).unwrap_or(i64::MAX))
}

/// An array of the particles' precision: the user's own, or one that is made of what was found.
fn read<'py, T: Number>(
    found: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let py = found.py();
    let is_masked = found.hasattr(intern!(py, "mask"))?;
    match found.cast::<PyArrayDyn<T>>() {
        Ok(array) if array.is_aligned() && !is_masked => Ok(array.readonly()),
        _ => convert(py, found, what),
    }
}

/// Copies an array of the particles' precision into the library's memory.
fn copy<T: Number>(
    found: &Bound<'_, PyAny>,
    what: &str,
    shape: &[usize],
    out: &mut [T],
) -> PyResult<()> {
    let array = read::<T>(found, what)?;
    if array.shape() != shape {
        return Err(PyValueError::new_err(shape_message(what, array.shape(), shape)));
    }
    let view = array.as_array();
    // A slice where the memory is in row order; that of NumPy's array would be one in column order too.
    match view.as_slice() {
        Some(values) => {
            let parts = out.par_chunks_mut(COPIED).zip(values.par_chunks(COPIED));
            parts.for_each(|(out, values)| out.copy_from_slice(values));
        }
        None => out.iter_mut().zip(view).for_each(|(out, value)| *out = *value),
    }
    Ok(())
}

/// Copies arrays of rows that stand beside each other.
fn copy_beside<T: Number>(leaves: &[Bound<'_, PyAny>], out: &mut MatMut<'_, T>) -> PyResult<()> {
    let (count, dim) = (out.rows(), out.cols());
    let mut first = 0;
    for leaf in leaves {
        let array = read::<T>(leaf, "gradient")?;
        let view = array.as_array();
        let last = match view.shape() {
            [rows, width] if *rows == count && first + width <= dim => first + width,
            shape => {
                let message = shape_message("gradient", shape, &[count, dim - first]);
                return Err(PyValueError::new_err(message));
            }
        };
        for (i, row) in view.outer_iter().enumerate() {
            let out = &mut out.row_mut(i)[first..last];
            match row.to_slice() {
                Some(values) => out.copy_from_slice(values),
                None => out.iter_mut().zip(row).for_each(|(out, value)| *out = *value),
            }
        }
        first = last;
    }
    if first == dim {
        return Ok(());
    }
    Err(PyValueError::new_err(shape_message("gradient", &[count, first], &[count, dim])))
}

fn convert<'py, T: Number>(
    py: Python<'py>,
    found: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let not_an_array = |cause: PyErr| {
        let message = format!("your function returned a {what} that is not an array of numbers");
        let error = PyTypeError::new_err(message);
        error.set_cause(py, Some(cause));
        error
    };
    let tree = py.import("steinflow._tree")?;
    if tree.call_method1("has_masked", (found,))?.is_truthy()? {
        return Err(PyValueError::new_err(format!(
            "your function returned a {what} with masked entries, which have no value: fill them"
        )));
    }
    // The memory of a JAX array or a tensor on the CPU, as NumPy sees it.
    let array = tree.call_method1("numbers", (found,)).map_err(not_an_array)?;
    if let Ok(array) = array.cast::<PyArrayDyn<T>>()
        && array.is_aligned()
    {
        return Ok(array.readonly());
    }
    let dtype = array.getattr("dtype")?;
    // NumPy would make numbers of dates and of text.
    if !matches!(dtype.getattr("kind")?.extract()?, 'f' | 'i' | 'u' | 'b' | 'O') {
        return Err(PyTypeError::new_err(format!(
            "your function returned a {what} of type {dtype}, expected real numbers"
        )));
    }
    if T::NAME == "f64" && array.cast::<PyArrayDyn<f32>>().is_ok() {
        return Err(PyTypeError::new_err(format!(
            "your function returned a {what} in float32, but the particles are float64: compute in \
             float64, or pass dtype=\"float32\""
        )));
    }
    let name = if T::NAME == "f32" { "float32" } else { "float64" };
    array.call_method1("astype", (name,)).map_err(not_an_array)?.extract()
}

fn shape_message(what: &str, found: &[usize], expected: &[usize]) -> String {
    let tuple = |shape: &[usize]| match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let count = expected[0];
    if found.is_empty() {
        return format!(
            "your function returned a single {what} for {count} particles: return an array of shape \
             {}, one row for each particle",
            tuple(expected)
        );
    }
    format!(
        "your function returned a {what} of shape {}, expected {} for {count} particles",
        tuple(found),
        tuple(expected)
    )
}
