//! The HTML page about a run.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow_io::report::{Page, Points, Run, Trace};

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

/// The page as text.
#[pyfunction]
pub fn report_page(shown: Shown) -> PyResult<String> {
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
    Ok(Page::report(vec![run]).html())
}
