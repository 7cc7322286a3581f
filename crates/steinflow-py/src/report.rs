//! The HTML page about a run.

use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow_cli::page_on_model;
use steinflow_io::report::{Page, Points, Run, Trace};

use crate::arrays::matrix;
use crate::built_in::BuiltIn;
use crate::config::Config;
use crate::threads::compute;

/// What a page shows, under the names that the command's files have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Shown {
    name: String,
    config: String,
    /// As in `summary.json`.
    summary: String,
    /// As in `diagnosis.json`.
    diagnosis: Option<String>,
    notes: Vec<String>,
    kind: String,
    count: usize,
    dim: usize,
    names: Vec<String>,
    columns: Vec<Vec<f64>>,
    rows: usize,
    step: Vec<u64>,
    gradients: Vec<u64>,
    seconds: Vec<f64>,
    course: Vec<(String, Vec<f64>)>,
    ksd: Vec<(u64, u64, f64)>,
}

/// A model that ships, how it was sampled, and the draws.
type OnModel<'py> = (Bound<'py, BuiltIn>, Bound<'py, Config>, PyReadonlyArray2<'py, f64>, usize);

/// The page as text. On a model that ships it has what the command says of it: `theta` are then the draws, `chains` at a
/// time.
#[pyfunction]
#[pyo3(signature = (shown, model=None))]
pub fn report_page(py: Python<'_>, shown: Shown, model: Option<OnModel<'_>>) -> PyResult<String> {
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let diagnosis = shown.diagnosis.as_deref().map(serde_json::from_str).transpose();
    let run = Run {
        name: shown.name,
        summary: serde_json::from_str(&shown.summary).map_err(wrong)?,
        diagnosis: diagnosis.map_err(wrong)?,
        config: shown.config,
        notes: shown.notes,
        points: Points {
            kind: shown.kind,
            count: shown.count,
            dim: shown.dim,
            names: shown.names,
            columns: shown.columns,
        },
        trace: Trace {
            rows: shown.rows,
            step: shown.step,
            gradients: shown.gradients,
            seconds: shown.seconds,
            columns: shown.course,
            ksd: shown.ksd,
        },
        ..Run::default()
    };
    let Some((model, config, theta, chains)) = model else {
        return Ok(Page::report(vec![run]).html());
    };
    let (theta, model, config) = (matrix(&theta), model.get(), &config.get().complete);
    Ok(compute(py, || page_on_model(run, config, model.model(), &theta, chains)))
}
