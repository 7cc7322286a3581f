//! Dynamics (A, C) that are written in Python: blocks, and functions for what varies.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow::Matrix;
use steinflow::dynamics::{Auxiliary, Block, Dynamics, Point, Structure};

use crate::arrays::Number;

/// What an exception in a function of the dynamics leaves behind, as the library asks for numbers
/// and not for errors.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// A Python object with the attributes of `steinflow.Dynamics`.
pub struct OwnDynamics {
    auxiliaries: Vec<Auxiliary>,
    diffusion: Vec<(usize, Block)>,
    curl: Vec<(usize, usize, Block)>,
    stages: Option<Vec<Vec<usize>>>,
    reads_density: bool,
    coefficients: Option<Py<PyAny>>,
    diffusion_divergence: Option<Py<PyAny>>,
    curl_divergence: Option<Py<PyAny>>,
    raised: Raised,
}

/// A block as Python describes it: what it is, and its numbers.
#[derive(FromPyObject)]
struct GivenBlock(String, Vec<f64>);

impl GivenBlock {
    fn read(self) -> PyResult<Block> {
        let Self(kind, numbers) = self;
        let index = || numbers.first().map_or(0, |&k| k as usize);
        Ok(match kind.as_str() {
            "scalar" => Block::Scalar(numbers.first().copied().unwrap_or(0.0)),
            "diagonal" => Block::Diagonal(numbers),
            "full" => {
                let dim = numbers.len().isqrt();
                let matrix = Matrix::from_vec(numbers, dim, dim);
                Block::Full(matrix.ok_or_else(|| {
                    PyValueError::new_err("a full block of A or C must be a square matrix")
                })?)
            }
            "scalar-coefficient" => Block::ScalarCoefficient(index()),
            "diagonal-coefficients" => Block::DiagonalCoefficients(index()),
            "full-coefficients" => Block::FullCoefficients(index()),
            other => return Err(PyValueError::new_err(format!("there is no block `{other}`"))),
        })
    }
}

/// The names of auxiliary variables live as long as the program, each once.
fn interned(name: &str) -> &'static str {
    static NAMES: OnceLock<Mutex<BTreeSet<&'static str>>> = OnceLock::new();
    let names = NAMES.get_or_init(Mutex::default);
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

impl OwnDynamics {
    /// Reads the parts of a `steinflow.Dynamics`.
    pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            object.getattr(name)?.extract().map_err(Into::into)
        };
        let auxiliaries: Vec<(String, f64, f64)> = object.getattr("auxiliaries")?.extract()?;
        let diffusion: Vec<(usize, GivenBlock)> = object.getattr("diffusion_blocks")?.extract()?;
        let curl: Vec<(usize, usize, GivenBlock)> = object.getattr("curl_blocks")?.extract()?;
        Ok(Self {
            auxiliaries: auxiliaries
                .into_iter()
                .map(|(name, mean, variance)| Auxiliary { name: interned(&name), mean, variance })
                .collect(),
            diffusion: diffusion
                .into_iter()
                .map(|(block, value)| Ok((block, value.read()?)))
                .collect::<PyResult<_>>()?,
            curl: curl
                .into_iter()
                .map(|(row, column, value)| Ok((row, column, value.read()?)))
                .collect::<PyResult<_>>()?,
            stages: object.getattr("stages")?.extract()?,
            reads_density: object.getattr("reads_density")?.extract()?,
            coefficients: function("coefficients")?,
            diffusion_divergence: function("diffusion_divergence")?,
            curl_divergence: function("curl_divergence")?,
            raised: Raised::default(),
        })
    }

    /// Where an exception in one of the functions is kept.
    pub fn raised(&self) -> Raised {
        Arc::clone(&self.raised)
    }

    /// The variance of the first auxiliary variable, if there is one.
    pub fn momentum_variance(&self) -> Option<f64> {
        self.auxiliaries.first().map(|auxiliary| auxiliary.variance)
    }

    /// Calls `function(blocks…, log_density=…, score=…)` for one particle and takes its numbers; after
    /// an exception they are NaN, which ends the step, and the run then raises what was kept.
    fn call<T: Number>(&self, function: Option<&Py<PyAny>>, at: &Point<'_, T>, out: &mut [T]) {
        let Some(function) = function else { return };
        let result = Python::attach(|py| -> PyResult<()> {
            let blocks = at.state.chunks_exact(at.dim);
            let blocks: Vec<_> = blocks.map(|block| PyArray1::from_slice(py, block)).collect();
            let score = PyArray1::from_slice(py, at.score);
            let arguments = (blocks, at.log_density.as_f64(), score, out.len(), T::NAME);
            let found = function.bind(py).call1(arguments)?;
            let found: PyReadonlyArray1<'_, f64> = found.extract()?;
            for (out, &value) in out.iter_mut().zip(found.as_array()) {
                *out = T::of(value);
            }
            Ok(())
        });
        if let Err(error) = result {
            out.fill(T::nan());
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised.get_or_insert(error);
        }
    }
}

impl<T: Number> Dynamics<T> for OwnDynamics {
    fn structure(&self, dim: usize) -> Structure {
        let mut structure = Structure::new(dim);
        for auxiliary in &self.auxiliaries {
            structure = structure.auxiliary(auxiliary.name, auxiliary.mean, auxiliary.variance);
        }
        for (block, value) in &self.diffusion {
            structure = structure.diffusion(*block, value.clone());
        }
        for (row, column, value) in &self.curl {
            structure = structure.curl(*row, *column, value.clone());
        }
        if let Some(stages) = &self.stages {
            let stages: Vec<&[usize]> = stages.iter().map(Vec::as_slice).collect();
            structure = structure.split(&stages);
        }
        if self.reads_density { structure } else { structure.coefficients_ignore_density() }
    }

    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        self.call(self.coefficients.as_ref(), at, coefficients);
    }

    fn diffusion_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        self.call(self.diffusion_divergence.as_ref(), at, out);
    }

    fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        self.call(self.curl_divergence.as_ref(), at, out);
    }
}
