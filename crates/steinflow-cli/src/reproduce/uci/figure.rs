//! The trace figure of a data set: test log-likelihood by iteration, a panel a method.

use steinflow::Matrix;
use steinflow_io::plot::{Figure, Key, Layer, Mark, Panel, Panels};

use super::plan::Plan;
use super::tables::Cell;
use crate::error::Result;

const SPLIT_COLOR: usize = 6;
const MEAN_COLOR: usize = 0;
/// What is lower than all but this share of the values may leave the picture.
const CUT: f64 = 0.03;

/// The traces of a method, one a split.
struct Run<'a> {
    label: &'a str,
    traces: Vec<Matrix<f64>>,
    mean: Matrix<f64>,
}

/// Draws the traces of one data set; none where no run has one.
pub fn traces(plan: &Plan, dataset: &str, cells: &[Cell<'_>]) -> Result<Option<Figure>> {
    let of_method =
        |method: &str| -> Vec<Matrix<f64>> {
            let here = cells.iter().filter(|cell| cell.dataset == dataset && cell.method == method);
            let traces = here.filter_map(|cell| Some(&cell.result.ok()?.trace));
            traces
                .filter(|trace| trace.len() > 1)
                .map(|trace| {
                    Matrix::from_fn(trace.len(), 2, |i, j| {
                        if j == 0 { trace[i].0 as f64 } else { trace[i].1 }
                    })
                })
                .collect()
        };
    let runs: Vec<Run<'_>> = plan
        .runs
        .iter()
        .map(|run| (run.label.as_str(), of_method(&run.label)))
        .filter(|(_, traces)| !traces.is_empty())
        .map(|(label, traces)| Run { label, mean: mean(&traces), traces })
        .collect();
    let all = || runs.iter().flat_map(|run| &run.traces);
    let points = || all().flat_map(|trace| (1..trace.rows()).map(|i| trace.row(i)));
    let mut values: Vec<f64> = points().map(|row| row[1]).filter(|y| y.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (Some(&highest), Some(last)) = (values.last(), points().map(|row| row[0]).reduce(f64::max))
    else {
        return Ok(None);
    };
    let lowest = values[(CUT * values.len() as f64) as usize];
    let margin = 0.05 * (highest - lowest).max(1e-6);
    let panels: Vec<Panel<'_>> = runs
        .iter()
        .map(|Run { label, traces, mean }| {
            let path = |points, color, width| Layer::Path { points, color, width };
            let splits = traces.iter().map(|trace| path(trace.as_ref(), SPLIT_COLOR, 0.7));
            let layers = splits.chain([path(mean.as_ref(), MEAN_COLOR, 1.8)]).collect();
            Panel { title: (*label).to_owned(), layers, corner: Vec::new() }
        })
        .collect();
    let legend = [
        Key { mark: Mark::Line, color: SPLIT_COLOR, name: "one split" },
        Key { mark: Mark::Line, color: MEAN_COLOR, name: "mean over splits" },
    ];
    let figure = Panels {
        title: &format!("Test log-likelihood: {dataset}"),
        caption: "by iteration, on rows that nothing was fitted to",
        names: ["iteration", "log-lik."],
        x: (0.0, last),
        y: (lowest - margin, highest + margin),
        density: None,
        columns: panels.len().min(4),
        panels: &panels,
        legend: &legend,
    };
    Ok(Some(figure.draw()?))
}

/// The mean over splits at every iteration that all of them have.
fn mean(traces: &[Matrix<f64>]) -> Matrix<f64> {
    let rows = traces.iter().map(Matrix::rows).min().unwrap_or(0);
    Matrix::from_fn(rows, 2, |i, j| {
        traces.iter().map(|trace| trace.row(i)[j]).sum::<f64>() / traces.len() as f64
    })
}
