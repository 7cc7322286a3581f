//! Fields that are written in Python: a function of all particles at one instant.

use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow::dynamics::{Evaluated, Operator, Structure, Terms};
use steinflow::field::Field;
use steinflow::{MatRef, Matrix, Result};

use crate::arrays::{Number, Rows, array};
use crate::errors::from_python;

/// M = A + C, to be applied by a function.
#[pyclass(frozen)]
pub struct Acting {
    operator: Operator<f64>,
}

#[pymethods]
impl Acting {
    /// M(c) u of every row: one coefficient row c and one u for each.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        coefficients: PyReadonlyArray2<'py, f64>,
        input: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let size = self.operator.blocks() * self.operator.dim();
        let rows = input.shape()[0];
        let expected = ([rows, self.operator.width()], [rows, size]);
        if (coefficients.shape(), input.shape()) != (&expected.0[..], &expected.1[..]) {
            return Err(PyValueError::new_err(format!(
                "apply got coefficients of shape {:?} and numbers of shape {:?}, expected {:?} and {:?}",
                coefficients.shape(),
                input.shape(),
                expected.0,
                expected.1,
            )));
        }
        let (coefficients, input) = (Rows::of(&coefficients), Rows::of(&input));
        let blocks: Vec<usize> = (0..self.operator.blocks()).collect();
        let mut out = Matrix::zeros(rows, size);
        for i in 0..rows {
            let (c, u) = (coefficients.as_ref().row(i), input.as_ref().row(i));
            self.operator.apply(c, u, &blocks, Terms::All, 1.0, out.row_mut(i));
        }
        array(py, out)
    }
}

/// `function(names, state, gradient, drift, coefficients, acting) -> velocity` of all blocks, in float64.
pub struct OwnField {
    function: Py<PyAny>,
    names: Vec<&'static str>,
    acting: Py<Acting>,
}

impl OwnField {
    /// A function for particles of this structure.
    pub fn new(py: Python<'_>, function: &Py<PyAny>, structure: &Structure) -> PyResult<Self> {
        let acting = Py::new(py, Acting { operator: Operator::new(structure) })?;
        Ok(Self { function: function.clone_ref(py), names: structure.block_names(), acting })
    }
}

impl<T: Number> Field<T> for OwnField {
    fn velocity(
        &mut self,
        at: &Evaluated<'_, T>,
        moving: &[usize],
        velocity: &mut Matrix<T>,
    ) -> Result<()> {
        let dim = at.operator.dim();
        Python::attach(|py| -> PyResult<()> {
            let wide = |rows: MatRef<'_, T>| array(py, rows.copied().cast::<f64>());
            let (gradient, drift) = (at.gradient(), at.drift());
            let found = self.function.bind(py).call1((
                self.names.clone(),
                wide(at.state)?,
                wide(gradient.as_ref())?,
                wide(drift.as_ref())?,
                wide(at.coefficients)?,
                self.acting.clone_ref(py),
            ))?;
            let found: PyReadonlyArray2<'_, f64> = found.extract()?;
            let found = Rows::of(&found);
            for i in 0..velocity.rows() {
                let blocks =
                    moving.iter().map(|block| &found.as_ref().row(i)[block * dim..][..dim]);
                for (out, &v) in velocity.row_mut(i).iter_mut().zip(blocks.flatten()) {
                    *out = T::of(v);
                }
            }
            Ok(())
        })
        .map_err(from_python)
    }
}
