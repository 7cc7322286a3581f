//! Table, raw numbers and picture of the experiment.

use std::fmt::Write as _;

use steinflow::Matrix;
use steinflow_io::plot::{Figure, Key, Layer, Mark, Panel, Panels};

use super::{Cell, Found};
use crate::error::Result;
use crate::summary::short;

const GRID_COLOR: usize = 6;
const TUNED_COLOR: usize = 0;
/// What is worse than the best by more than this factor leaves the picture.
const HIGHEST: f64 = 100.0;

/// A row a target, over its seeds.
pub fn table(cells: &[Cell<'_>]) -> String {
    let mut text = String::from(
        "| target | KSD, tuned | best of the grid | tuned / best, mean (worst) | steps, tuned / grid, mean \
         (worst) | KSD without tuning |\n|---|---|---|---|---|---|\n",
    );
    for (label, found) in targets(cells) {
        let mean = |of: &dyn Fn(&Found) -> f64| {
            found.iter().map(|found| of(found)).sum::<f64>() / found.len() as f64
        };
        let worst = |of: &dyn Fn(&Found) -> f64| {
            found.iter().map(|found| of(found)).fold(f64::NEG_INFINITY, f64::max)
        };
        let defaults: Vec<f64> = found.iter().filter_map(|found| found.default_ksd).collect();
        let default = match defaults.len() {
            count if count == found.len() => short(defaults.iter().sum::<f64>() / count as f64),
            count => format!("{} of {} diverged", found.len() - count, found.len()),
        };
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let _ = writeln!(
            text,
            "| {label} | {} | {} | {:.2} ({:.2}) | {} ({}) | {default} |",
            short(mean(&Found::tuned_ksd)),
            short(mean(&Found::best)),
            mean(&Found::ratio),
            worst(&Found::ratio),
            percent(mean(&Found::cost_share)),
            percent(worst(&Found::cost_share)),
        );
    }
    for cell in cells {
        if let Err(error) = &cell.found {
            let _ = writeln!(text, "\n{}, seed {}: {error}", cell.label, cell.seed);
        }
    }
    text
}

/// The targets in order, each with what was found for its seeds; those without any are left out.
fn targets<'a>(cells: &'a [Cell<'_>]) -> Vec<(&'a str, Vec<&'a Found>)> {
    let mut targets: Vec<(&str, Vec<&Found>)> = Vec::new();
    for cell in cells {
        let Ok(found) = &cell.found else { continue };
        match targets.last_mut().filter(|(label, _)| *label == cell.label) {
            Some((_, all)) => all.push(found),
            None => targets.push((cell.label, vec![found])),
        }
    }
    targets
}

/// A row for every target and seed.
pub fn csv(cells: &[Cell<'_>]) -> String {
    let mut text = String::from(
        "target,seed,eta,alpha,ksd_tuned,ksd_best_of_grid,ratio,steps_tuned,steps_grid,share,ksd_default\n",
    );
    for cell in cells {
        let Ok(found) = &cell.found else { continue };
        let _ = writeln!(
            text,
            "\"{}\",{},{},{},{},{},{},{},{},{},{}",
            cell.label,
            cell.seed,
            number(found.tuned.eta),
            number(found.tuned.alpha),
            found.tuned_ksd(),
            found.best(),
            found.ratio(),
            found.tuned_steps,
            found.grid_steps,
            found.cost_share(),
            number(found.default_ksd),
        );
    }
    text
}

/// A row for every run of the dense grid; one that diverged has no KSD.
pub fn grid_csv(cells: &[Cell<'_>]) -> String {
    let mut text = String::from("target,seed,eta,alpha,ksd\n");
    for cell in cells {
        for point in cell.found.iter().flat_map(|found| &found.grid) {
            let values = [point.eta, point.alpha, point.ksd].map(number).join(",");
            let _ = writeln!(text, "\"{}\",{},{values}", cell.label, cell.seed);
        }
    }
    text
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// KSD over the best of the grid, by η; of several α the best is shown.
pub fn figure(cells: &[Cell<'_>]) -> Result<Option<Figure>> {
    type Lines = Vec<(Matrix<f64>, Matrix<f64>)>;
    let line = |found: &Found| {
        let mut points: Vec<[f64; 2]> = Vec::new();
        for point in &found.grid {
            let (Some(eta), Some(ksd)) = (point.eta, point.ksd) else { continue };
            let at = [eta.log10(), (ksd / found.best()).min(2.0 * HIGHEST).log10()];
            match points.last_mut() {
                Some(last) if last[0] == at[0] => last[1] = last[1].min(at[1]),
                _ => points.push(at),
            }
        }
        let tuned = [found.tuned.eta.unwrap_or(1.0).log10(), found.ratio().log10()];
        let matrix = |points: &[[f64; 2]]| Matrix::from_fn(points.len(), 2, |i, j| points[i][j]);
        (matrix(&points), matrix(&[tuned]))
    };
    let all: Vec<(&str, Lines)> = targets(cells)
        .into_iter()
        .map(|(label, found)| (label, found.into_iter().map(line).collect()))
        .collect();
    let etas = || {
        let lines = all.iter().flat_map(|(_, lines)| lines);
        lines.flat_map(|(line, _)| (0..line.rows()).map(|i| line.row(i)[0]))
    };
    let (left, right) =
        (etas().fold(f64::INFINITY, f64::min), etas().fold(-f64::INFINITY, f64::max));
    if !(left < right) {
        return Ok(None);
    }
    let panels: Vec<Panel<'_>> = all
        .iter()
        .map(|(label, lines)| {
            let grid = lines.iter().map(|(line, _)| {
                let points = line.as_ref();
                Layer::Path { points, color: GRID_COLOR, width: 1.0 }
            });
            let tuned = lines.iter().map(|(_, tuned)| {
                let points = tuned.as_ref();
                Layer::Rings { points, color: TUNED_COLOR }
            });
            let layers = grid.chain(tuned).collect();
            Panel { title: (*label).to_owned(), layers, corner: Vec::new() }
        })
        .collect();
    let figure = Panels {
        title: "What tuning finds, on all that a dense grid holds",
        caption: "a line a seed",
        names: ["log10 eta", "log10 KSD / best"],
        x: (left, right),
        y: (-0.15, HIGHEST.log10()),
        density: None,
        columns: 2,
        panels: &panels,
        legend: &[
            Key { mark: Mark::Line, color: GRID_COLOR, name: "dense grid" },
            Key { mark: Mark::Ring, color: TUNED_COLOR, name: "tuned" },
        ],
    };
    Ok(Some(figure.draw()?))
}
