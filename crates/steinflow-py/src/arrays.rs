//! Matrices of the library from NumPy arrays, and back.

use std::borrow::Cow;

use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PySlice;
use steinflow::{MatRef, Matrix, Real};

/// The alignment, in bytes, of arrays that JAX reads in place; it copies others.
const ALIGNMENT: usize = 64;

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

/// The rows of an array, in the array's own memory where that is in row order, and copied otherwise.
pub struct Rows<'a, T: Number> {
    values: Cow<'a, [T]>,
    shape: (usize, usize),
}

impl<'a, T: Number> Rows<'a, T> {
    /// The rows of this array.
    pub fn of(array: &'a PyReadonlyArray2<'_, T>) -> Self {
        let view = array.as_array();
        let shape = view.dim();
        let values = match view.to_slice() {
            Some(values) => Cow::Borrowed(values),
            None => view.iter().copied().collect(),
        };
        Self { values, shape }
    }

    /// The rows as the library reads them.
    pub fn as_ref(&self) -> MatRef<'_, T> {
        MatRef::new(&self.values, self.shape.0, self.shape.1).expect(FULL)
    }
}

const FULL: &str = "an array holds rows · columns entries";

/// A copy that the library owns, in row order whatever the array's layout.
pub fn matrix<T: Number>(array: &PyReadonlyArray2<'_, T>) -> Matrix<T> {
    let Rows { values, shape: (rows, cols) } = Rows::of(array);
    Matrix::from_vec(values.into_owned(), rows, cols).expect(FULL)
}

/// A copy that Python owns, aligned so that JAX need not copy it again.
///
/// The one copy on the way to a user's function is needed: JAX takes what it reads in place to be constant,
/// and a user may keep the array, but the library goes on to write into its own memory.
pub fn aligned_copy<'py, T: Number>(
    py: Python<'py>,
    rows: MatRef<'_, T>,
) -> PyResult<Bound<'py, PyAny>> {
    let (values, spare) = (rows.as_slice(), ALIGNMENT / size_of::<T>());
    let memory = PyArray1::<T>::zeros(py, values.len() + spare, false);
    let first = memory.data().align_offset(ALIGNMENT).min(spare);
    let last = first + values.len();
    memory.readwrite().as_slice_mut()?[first..last].copy_from_slice(values);
    let part = PySlice::new(py, first.cast_signed(), last.cast_signed(), 1);
    let part = memory.get_item(part)?.cast_into::<PyArray1<T>>()?;
    Ok(part.reshape([rows.rows(), rows.cols()])?.into_any())
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
