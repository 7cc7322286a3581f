//! A model that ships, by name.

use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steinflow::{MatRef, Matrix};
use steinflow_config::window;
use steinflow_models::data::{Table, read_new_rows};
use steinflow_models::regression::Fitted;
use steinflow_models::{Model, ModelSpec, build};

use crate::arrays::{Array2, Number, Rows, array, matrix};
use crate::config::plain;
use crate::errors::to_python;
use crate::threads::compute;

/// A model of the catalogue with its options.
#[pyclass(frozen)]
pub struct BuiltIn {
    /// What it is built from.
    pub spec: ModelSpec,
    model: Box<dyn Model<f64>>,
}

/// A number for every row of parameters and every row of a table, where the fit has such.
type ByRow = fn(&Fitted, &Matrix<f64>, &Table) -> steinflow_models::Result<Option<Matrix<f64>>>;

fn refused(error: steinflow_models::Error) -> PyErr {
    crate::errors::refused(error.into())
}

impl BuiltIn {
    /// A regression, and the data that it was made for.
    fn fit(&self) -> PyResult<Option<(Fitted, Table)>> {
        let (Some(fitted), Some(data)) = (self.model.fitted(), &self.spec.data) else {
            return Ok(None);
        };
        let folder = self.spec.data_dir.as_deref();
        let table = read_new_rows(data, folder, fitted.recipe()).map_err(refused)?;
        Ok(Some((fitted, table)))
    }

    /// A number for every row of parameters and every row of the data, under the name of what is predicted.
    fn by_row<'py>(
        &self,
        py: Python<'py>,
        shown: &PyReadonlyArray2<'py, f64>,
        numbers: ByRow,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        let Some((fitted, table)) = self.fit()? else { return Ok(found) };
        let parameters = matrix(shown);
        if let Some(all) = compute(py, || numbers(&fitted, &parameters, &table)).map_err(refused)? {
            found.set_item(fitted.target(), array(py, all)?)?;
        }
        Ok(found)
    }

    /// The model in double precision.
    pub fn model(&self) -> &dyn Model<f64> {
        &*self.model
    }

    /// The model in a precision.
    pub fn build<T: Number>(&self) -> PyResult<Box<dyn Model<T>>> {
        build::<T>(&self.spec).map_err(refused)
    }
}

#[pymethods]
impl BuiltIn {
    #[new]
    #[pyo3(signature = (name, **options))]
    fn new(name: String, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut spec = ModelSpec::named(&name);
        for (option, value) in options.into_iter().flat_map(PyDictMethods::iter) {
            let option: String = option.extract()?;
            if value.is_none() {
                continue;
            }
            let shown = value.repr()?;
            let wrong = |remedy: &str| format!("{option} is {shown}: {remedy}");
            let plain = plain(&value)
                .ok_or_else(|| PyTypeError::new_err(wrong("give a number, a word or a path")))?;
            match spec.set(&option, &plain) {
                Some(Ok(())) => {}
                Some(Err(remedy)) => return Err(PyValueError::new_err(wrong(&remedy))),
                None => {
                    let names = ModelSpec::table().into_iter().map(|option| option.name);
                    let error = steinflow::Error::unknown("option", &option, names);
                    return Err(PyTypeError::new_err(format!("model(): {error}")));
                }
            }
        }
        let model = build::<f64>(&spec).map_err(refused)?;
        Ok(Self { spec, model })
    }

    #[getter]
    fn name(&self) -> &str {
        self.spec.name()
    }

    /// The number of coordinates.
    #[getter]
    pub fn dim(&self) -> usize {
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

    /// The names of what is sampled, where that is not what is shown.
    #[getter]
    fn coordinate_names(&self) -> Vec<String> {
        self.model.coordinate_names()
    }

    /// What was made of its data, a line each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.model.notes()
    }

    /// Rows of parameters as users see them: in the units of a table, and positive where they are. None
    /// where they are shown as they are.
    fn show<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Some(units) = self.model.units() else { return Ok(None) };
        let theta = theta.as_array();
        let rows = Matrix::from_fn(theta.nrows(), theta.ncols(), |i, j| theta[[i, j]]);
        if rows.cols() != self.model.dim() {
            let (found, dim) = (rows.cols(), self.model.dim());
            let message = format!("theta has {found} columns: give {dim}, one for each parameter");
            return Err(PyValueError::new_err(message));
        }
        array(py, units.show(&rows)).map(Some)
    }

    /// The values of what a regression predicts, by name; nothing for other models.
    fn observed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        if let Some((fitted, table)) = self.fit()?
            && let Some(targets) = fitted.targets(&table).map_err(refused)?
        {
            found.set_item(fitted.target(), targets.into_pyarray(py))?;
        }
        Ok(found)
    }

    /// log p(y) of what is observed, for every row of parameters as users see them.
    fn log_likelihood<'py>(
        &self,
        py: Python<'py>,
        shown: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.by_row(py, &shown, Fitted::log_densities)
    }

    /// What is predicted, drawn once for every row of parameters as users see them.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        shown: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.by_row(py, &shown, Fitted::draws)
    }

    /// Limits that hold nearly all of the density: what it is plotted in, or its mean ± 6 standard
    /// deviations; None where neither is known.
    #[getter]
    fn window(&self) -> Option<Vec<(f64, f64)>> {
        window(&*self.model)
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
        array(py, self.model.start().draw(count, seed))
    }

    /// The mean and covariance of the parameters as users see them, where they are known.
    #[allow(clippy::type_complexity)]
    fn exact_moments<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Vec<f64>, Bound<'py, PyArray2<f64>>)>> {
        let Some(moments) = self.model.shown_moments() else { return Ok(None) };
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
    let log_density = log_density.into_pyarray(py);
    Ok((log_density.into_any(), array(py, score)?.into_any()))
}
