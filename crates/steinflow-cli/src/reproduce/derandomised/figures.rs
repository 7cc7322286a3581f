//! Errors of all ways over seeds: a table, and a figure for each axis.

use std::fmt::Write as _;

use steinflow::Matrix;
use steinflow_io::plot::{Key, Layer, Mark, Panel, Panels};

use super::{Axis, EXPECTATIONS, Found, Job, LAWS, Law, WAYS};
use crate::error::Result;

/// Draws of nutpie on the same laws: `nuts.py` makes it.
const NUTS: &str = include_str!("../../../../../experiments/derandomised/nuts.csv");
const NUTS_NAME: &str = "NUTS";
/// log₁₀ of an error that counts as none: exact up to rounding and the last steps.
const FLOOR: f64 = -4.5;

/// Root mean square errors of the four expectations over seeds.
pub struct Row {
    axis: Axis,
    law: Law,
    way: &'static str,
    points: f64,
    gradients: f64,
    errors: [f64; 4],
}

/// What the runs came to, way after way, and NUTS behind them.
pub fn rows(jobs: &[Job], results: &[Result<Found, String>]) -> Vec<Row> {
    let mut all = Vec::new();
    for axis in [Axis::Points, Axis::Gradients] {
        for law in LAWS {
            for &way in axis.ways() {
                for &size in axis.sizes() {
                    let own = |job: &Job| {
                        (job.axis, job.law, job.way, job.size) == (axis, law, way, size)
                    };
                    let found: Vec<&Found> = jobs
                        .iter()
                        .zip(results)
                        .filter_map(|(job, result)| result.as_ref().ok().filter(|_| own(job)))
                        .collect();
                    if found.is_empty() {
                        continue;
                    }
                    let mean = |of: &dyn Fn(&Found) -> f64| {
                        found.iter().map(|found| of(found)).sum::<f64>() / found.len() as f64
                    };
                    all.push(Row {
                        axis,
                        law,
                        way,
                        points: mean(&|found| found.points as f64),
                        gradients: mean(&|found| found.gradients as f64),
                        errors: [0, 1, 2, 3].map(|k| mean(&|found| found.squares[k]).sqrt()),
                    });
                }
            }
            all.extend(of_nuts(axis, law));
        }
    }
    all
}

/// Its lines are four to a row here: the expectations in their order.
fn of_nuts(axis: Axis, law: Law) -> Vec<Row> {
    let lines: Vec<Vec<&str>> = NUTS
        .lines()
        .map(|line| line.split(',').collect())
        .filter(|line: &Vec<&str>| line[0] == law.name())
        .collect();
    let number = |text: &str| text.parse().unwrap_or(f64::NAN);
    let own = lines.chunks_exact(EXPECTATIONS.len()).filter(|four| {
        // All draws of a run, or some.
        (four[0][1] == four[0][2]) == (axis == Axis::Gradients)
    });
    own.map(|four| Row {
        axis,
        law,
        way: NUTS_NAME,
        points: number(four[0][2]),
        gradients: number(four[0][3]),
        errors: [0, 1, 2, 3].map(|k| number(four[k][5])),
    })
    .collect()
}

pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for axis in [Axis::Points, Axis::Gradients] {
        let _ = write!(text, "By {}:\n\n| law | way | points | gradients |", axis.name());
        for name in EXPECTATIONS {
            let _ = write!(text, " {name} |");
        }
        text.push_str("\n|---|---|---|---|---|---|---|---|\n");
        for row in rows.iter().filter(|row| row.axis == axis) {
            let Row { law, way, points, gradients, errors, .. } = row;
            let _ = write!(text, "| {} | {way} | {points:.0} | {gradients:.0} |", law.name());
            for error in errors {
                let _ = write!(text, " {error:.4} |");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// log₁₀ of the error by log₁₀ of what is on the axis, a panel an expectation.
pub fn draw(axis: Axis, rows: &[Row]) -> Result<Vec<u8>> {
    let along = |row: &Row| match axis {
        Axis::Points => row.points.log10(),
        Axis::Gradients => row.gradients.log10(),
    };
    let ways: Vec<&str> = axis.ways().iter().copied().chain([NUTS_NAME]).collect();
    let color = |way: &str| WAYS.iter().position(|known| *known == way).unwrap_or(WAYS.len());
    let own: Vec<&Row> = rows.iter().filter(|row| row.axis == axis).collect();
    let mut lines = Vec::new();
    for law in LAWS {
        for k in 0..EXPECTATIONS.len() {
            for way in &ways {
                let places: Vec<f64> = own
                    .iter()
                    .filter(|row| row.law == law && row.way == *way)
                    .flat_map(|row| [along(row), row.errors[k].log10().max(FLOOR)])
                    .collect();
                let count = places.len() / 2;
                let points = Matrix::from_vec(places, count, 2).expect("pairs");
                lines.push((law, k, color(way), points));
            }
        }
    }
    let mut panels = Vec::new();
    for law in LAWS {
        for (k, name) in EXPECTATIONS.iter().enumerate() {
            let own = lines.iter().filter(|line| (line.0, line.1) == (law, k));
            let layers = own.map(|(_, _, color, points)| Layer::Line {
                points: points.as_ref(),
                color: *color,
                width: 1.5,
            });
            panels.push(Panel {
                title: format!("{name}, {}", law.name()),
                layers: layers.collect(),
                corner: Vec::new(),
            });
        }
    }
    let legend: Vec<Key<'_>> =
        ways.iter().map(|name| Key { mark: Mark::Line, color: color(name), name }).collect();
    let ends = own.iter().map(|row| along(row));
    let limits = ends.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
    let caption = format!(
        "root mean square error of an expectation over 5 coordinates and all seeds, by {}; errors below \
         10^{FLOOR} are drawn there",
        match axis {
            Axis::Points => "number of points",
            Axis::Gradients =>
                "gradients, warm-up included: all draws, or 60 points of those thinned or at rest",
        }
    );
    let figure = Panels {
        title: "Deterministic points against draws",
        caption: &caption,
        names: [&format!("log10 of {}", axis.name()), "log10 of error"],
        x: (limits.0 - 0.05, limits.1 + 0.05),
        y: (FLOOR - 0.1, 0.6),
        density: None,
        columns: EXPECTATIONS.len(),
        panels: &panels,
        legend: &legend,
    };
    Ok(figure.draw()?.png()?)
}
