//! A model that ships, by name.

use std::path::PathBuf;

use numpy::PyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow::{MatRef, Matrix};
use steinflow_models::{Model, ModelSpec, build};

use crate::arrays::{Array2, Number, Rows, array};
use crate::errors::to_python;
use crate::threads::compute;

/// A model of the catalogue with its options.
#[pyclass(frozen)]
pub struct BuiltIn {
    /// What it is built from.
    pub spec: ModelSpec,
    model: Box<dyn Model<f64>>,
}

/// An error of the models' crate: always a wrong request.
fn refused(error: &steinflow_models::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl BuiltIn {
    /// The model in a precision.
    pub fn build<T: Number>(&self) -> PyResult<Box<dyn Model<T>>> {
        build::<T>(&self.spec).map_err(|error| refused(&error))
    }
}

#[pymethods]
impl BuiltIn {
    #[new]
    #[pyo3(signature = (
        name, *, dim=None, data=None, target=None, prior_sd=None, noise_sd=None, condition=None
    ))]
    fn new(
        name: String,
        dim: Option<usize>,
        data: Option<PathBuf>,
        target: Option<String>,
        prior_sd: Option<f64>,
        noise_sd: Option<f64>,
        condition: Option<f64>,
    ) -> PyResult<Self> {
        let spec = ModelSpec {
            name,
            dim,
            condition,
            data,
            target,
            prior_sd,
            noise_sd,
            ..ModelSpec::default()
        };
        let model = build::<f64>(&spec).map_err(|error| refused(&error))?;
        Ok(Self { spec, model })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[getter]
    fn dim(&self) -> usize {
        self.model.dim()
    }

    #[getter]
    fn data_rows(&self) -> usize {
        self.model.data_rows()
    }

    #[getter]
    fn parameter_names(&self) -> Vec<String> {
        self.model.parameter_names()
    }

    /// Limits that hold nearly all of the density: what it is plotted in, or its mean ± 6 standard
    /// deviations; None where neither is known.
    #[getter]
    fn window(&self) -> Option<Vec<(f64, f64)>> {
        if let Some(window) = self.model.window() {
            return Some(window.map(Into::into).to_vec());
        }
        let exact = self.model.exact_moments()?;
        let around = |j: usize| {
            let (mean, sd) = (exact.mean[j], exact.covariance.row(j)[j].sqrt());
            (mean - 6.0 * sd, mean + 6.0 * sd)
        };
        Some((0..exact.mean.len()).map(around).collect())
    }

    /// Starting particles, one a row.
    fn start<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        crate::run::require_room(count, self.model.dim())?;
        if let Some(start) = self.model.start_sample(count, seed) {
            return array(py, start);
        }
        let start = self.model.start();
        array(py, crate::run::normal(count, &start.mean, start.sd, seed))
    }

    /// The mean and covariance of the density, where they are known.
    #[allow(clippy::type_complexity)]
    fn exact_moments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Vec<f64>, Bound<'py, PyArray2<f64>>)>> {
        let Some(moments) = self.model.exact_moments() else { return Ok(None) };
        Ok(Some((moments.mean, array(py, moments.covariance)?)))
    }

    /// log π and its gradient at every row of `theta`.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        theta: Array2<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        match theta {
            Array2::Double(theta) => {
                evaluate(py, &*self.build::<f64>()?, Rows::of(&theta).as_ref())
            }
            Array2::Single(theta) => {
                evaluate(py, &*self.build::<f32>()?, Rows::of(&theta).as_ref())
            }
        }
    }
}

fn evaluate<'py, T: Number>(
    py: Python<'py>,
    model: &dyn Model<T>,
    theta: MatRef<'_, T>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut log_density = vec![T::zero(); theta.rows()];
    let mut score = Matrix::zeros(theta.rows(), theta.cols());
    compute(py, || model.evaluate(theta, None, &mut log_density, score.as_mut()))
        .map_err(to_python)?;
    let log_density = numpy::IntoPyArray::into_pyarray(log_density, py);
    Ok((log_density.into_any(), array(py, score)?.into_any()))
}
