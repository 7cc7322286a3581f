//! Parquet files of particles.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use steinflow_io::{Column, Values};

/// A column in one of the types that a table has.
#[derive(FromPyObject)]
enum Numbers<'py> {
    Double(PyReadonlyArray1<'py, f64>),
    Single(PyReadonlyArray1<'py, f32>),
    Count(PyReadonlyArray1<'py, u64>),
}

/// Writes named columns, in the order of `names`.
#[pyfunction]
pub fn write_parquet(
    path: PathBuf,
    names: Vec<String>,
    columns: HashMap<String, Bound<'_, PyAny>>,
) -> PyResult<()> {
    let read = |name: String| -> PyResult<Column> {
        let column = columns.get(&name).ok_or_else(|| {
            PyValueError::new_err(format!("there is no column `{name}` to write"))
        })?;
        let values = match column.extract::<Numbers<'_>>()? {
            Numbers::Double(values) => Values::F64(values.as_array().to_vec()),
            Numbers::Single(values) => Values::F32(values.as_array().to_vec()),
            Numbers::Count(values) => Values::U64(values.as_array().to_vec()),
        };
        Ok(Column { name, values })
    };
    let columns = names.into_iter().map(read).collect::<PyResult<Vec<_>>>()?;
    let named = |error: std::io::Error| PyOSError::new_err(format!("{}: {error}", path.display()));
    let file = File::create(&path).map_err(named)?;
    steinflow_io::write_parquet(&columns, file)
        .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
}
