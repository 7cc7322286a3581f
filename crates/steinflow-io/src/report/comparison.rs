//! The words and tables of a page about several runs, and the places where its plots go.

use super::data::Run;
use super::escape::escape;
use super::text::{citation, list, plots, section};
use super::{number, table, verdict_class, verdict_in_words};
use crate::record::Scores;

pub(super) fn body(runs: &[Run]) -> String {
    let mut html = format!("<header><h1>{} runs compared</h1></header>\n<main>\n", runs.len());
    html += &section("verdicts", "Verdicts", &verdicts(runs));
    html += &section("numbers", "Numbers", &numbers(runs));
    html += &plots("course", "Course of the runs");
    if runs.iter().any(|run| !run.trace.ksd.is_empty()) {
        html += &plots("discrepancy", "Kernel Stein discrepancy");
    }
    let dashed = "<p class=\"lead\">Dashed: the density of the target, where it is known.</p>";
    html += &section("marginals", "Marginals of the coordinates that all runs have", dashed);
    let notes: Vec<String> = runs
        .iter()
        .flat_map(|run| run.notes.iter().map(move |note| format!("{}: {note}", run.name)))
        .collect();
    if !notes.is_empty() {
        html += &section("notes", "What this page leaves out", &list(&notes));
    }
    let settings: Vec<String> = runs
        .iter()
        .map(|run| {
            let (name, config) = (escape(&run.name), escape(&run.config));
            format!("<details><summary>{name}</summary><pre>{config}</pre></details>")
        })
        .collect();
    html += &section("config", "Settings", &settings.concat());
    let versions: Vec<&str> = runs.iter().map(|run| &*run.summary.steinflow_version).collect();
    html + &citation(&versions) + "</main>"
}

fn verdicts(runs: &[Run]) -> String {
    let cards = runs.iter().map(|run| {
        let name = escape(&run.name);
        let Some(diagnosis) = &run.diagnosis else {
            return format!(
                "<div class=\"verdict none\"><h3>{name}</h3><p>This run has no diagnosis; \
                 <code>steinflow diagnose RUN</code> makes one.</p></div>"
            );
        };
        let failed = diagnosis.evidence.iter().filter(|item| item.passed == Some(false));
        let failed: Vec<String> = failed
            .map(|item| {
                format!("{}: {}, expected {}", item.name, number(item.value), item.expected)
            })
            .collect();
        format!(
            "<div class=\"verdict {}\"><h3>{name}</h3><p><strong>{}.</strong> {}</p>{}</div>",
            verdict_class(diagnosis),
            escape(verdict_in_words(diagnosis)),
            escape(&diagnosis.headline),
            list(&failed)
        )
    });
    format!("<div class=\"cards\">{}</div>", cards.collect::<String>())
}

/// A row a run, and a column for everything that at least one of them has.
fn numbers(runs: &[Run]) -> String {
    type Cell = fn(&Run) -> Option<String>;
    let columns: [(&str, Cell); 13] = [
        ("model", |run| Some(run.summary.model.clone())),
        ("method", |run| Some(run.summary.method.clone())),
        ("particles", |run| Some(run.summary.particles.to_string())),
        ("samples", |run| run.summary.samples.map(|count| count.to_string())),
        ("steps", |run| Some(run.summary.steps.to_string())),
        ("ended", |run| Some(run.summary.ended.clone())),
        ("gradients", |run| Some(run.summary.gradients.to_string())),
        ("seconds", |run| Some(number(run.summary.seconds))),
        ("mean log density", |run| Some(number(run.summary.mean_log_density))),
        ("last KSD", |run| run.trace.ksd.last().map(|&(_, _, ksd)| number(ksd))),
        ("worst sd / exact", |run| worst_spread(run).map(number)),
        ("test log-likelihood", |run| test(run).map(|test| number(test.log_likelihood))),
        ("test RMSE", |run| test(run).map(|test| number(test.rmse))),
    ];
    let mut header = vec!["run"];
    let mut rows: Vec<Vec<String>> = runs.iter().map(|run| vec![run.name.clone()]).collect();
    for (name, cell) in columns {
        let cells: Vec<Option<String>> = runs.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            header.push(name);
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell.unwrap_or_else(|| number(f64::NAN)));
            }
        }
    }
    format!("<div class=\"wide\">{}</div>", table("One row a run", &header, &rows))
}

fn test(run: &Run) -> Option<&Scores> {
    run.summary.network.as_ref()?.test.as_ref()
}

/// The ratio of standard deviations that is farthest from 1.
fn worst_spread(run: &Run) -> Option<f64> {
    let ratios = run.summary.moments.iter().filter_map(|row| Some(row.sd / row.exact_sd?));
    let distance = |ratio: &f64| ratio.ln().abs();
    ratios.filter(|ratio| ratio.is_finite()).max_by(|a, b| distance(a).total_cmp(&distance(b)))
}
