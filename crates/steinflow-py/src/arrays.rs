//! Matrices of the library from NumPy arrays, and back.

use numpy::{Element, IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use steinflow::{Matrix, Real};

/// A number that both sides know.
pub trait Number: Real + Element {}
impl Number for f32 {}
impl Number for f64 {}

/// A two-dimensional array of either precision.
#[derive(FromPyObject)]
pub enum Array2<'py> {
    /// float64.
    Double(PyReadonlyArray2<'py, f64>),
    /// float32.
    Single(PyReadonlyArray2<'py, f32>),
}

/// A copy that the library owns, in row order whatever the array's layout.
pub fn matrix<T: Number>(array: &PyReadonlyArray2<'_, T>) -> Matrix<T> {
    let view = array.as_array();
    let (rows, cols) = view.dim();
    let values = match view.as_slice() {
        Some(values) => values.to_vec(),
        None => view.iter().copied().collect(),
    };
    Matrix::from_vec(values, rows, cols).expect("an array holds rows · columns entries")
}

/// The matrix's own memory as an array.
pub fn array<T: Number>(py: Python<'_>, matrix: Matrix<T>) -> PyResult<Bound<'_, PyArray2<T>>> {
    let shape = [matrix.rows(), matrix.cols()];
    matrix.into_vec().into_pyarray(py).reshape(shape)
}

/// A second array that has to have the precision of the first.
pub fn same_precision<'py, T: Number>(
    array: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArray2<'py, T>> {
    array.extract().map_err(|_| {
        let name = if T::NAME == "f32" { "float32" } else { "float64" };
        PyTypeError::new_err(format!(
            "{what} must be a two-dimensional {name} array, as the particles are"
        ))
    })
}
