//! The words and tables of a page about one run, and the places where its plots go.

use std::fmt::Write as _;

use super::data::Run;
use super::escape::escape;
use super::{number, table, verdict_class, verdict_in_words};
use crate::record::{
    Check, ClassScores, Diagnosis, Evidence, Network, Regression, Scores, Spread, TimeScores,
};

/// More moments than this are in `summary.json`.
const MOST_MOMENTS: usize = 50;

const CITATION: &str = "\
The Steinflow developers. Steinflow, version 0.2.0. https://github.com/steinflow/steinflow

Zheyang Shen, Markus Heinonen and Samuel Kaski. De-randomizing MCMC dynamics with the diffusion Stein \
operator. Advances in Neural Information Processing Systems 34 (NeurIPS 2021). arXiv:2110.03768";

pub(super) fn body(run: &Run, is_live: bool) -> String {
    let mut html = format!("<header id=\"now\">{}</header>\n<main>\n", now(run, is_live));
    // What a model says of the world comes before what its parameters are.
    if let Some(predictions) = &run.predictions {
        let dashed = "<p class=\"lead\">Dashed: where perfect predictions would be.</p>";
        html += &section("predictions", &predictions.title, dashed);
    }
    let dim = run.points.dim;
    if run.frames.is_some() || dim == 2 {
        let title = if run.frames.is_some() { "Particles over time" } else { "Particles" };
        html += &plots("animation", title);
    }
    html += &section("numbers", "Numbers", &numbers(run));
    html += &section("marginals", "Marginals", dashed(run));
    // A pair of coordinates is what the animation shows.
    if dim > 2 || (dim == 2 && run.points.kind == "samples") {
        html += &plots("pairs", "Pairs");
    }
    html += &plots("course", "Course of the run");
    if !run.trace.ksd.is_empty() {
        html += &plots("discrepancy", "Kernel Stein discrepancy");
    }
    if !run.notes.is_empty() {
        html += &section("notes", "What this page leaves out", &list(&run.notes));
    }
    let again = "<p>Run it again with <code>steinflow sample --config config.toml</code>.</p>";
    let config = format!("<pre>{}</pre>{again}", escape(&run.config));
    html += &section("config", "Settings", &config);
    html + &citation(&[&run.summary.steinflow_version]) + "</main>"
}

/// What the run is and whether to trust it.
pub(super) fn now(run: &Run, is_live: bool) -> String {
    let summary = &run.summary;
    let mut html = format!("<h1>{}</h1>", escape(&run.name));
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<p class=\"lead\">{} on {}: {} particles, {} steps ({}), {} gradients, {} s, mean log \
         density {}.</p>",
        escape(&summary.method),
        escape(&summary.model),
        summary.particles,
        summary.steps,
        escape(&summary.ended),
        summary.gradients,
        number(summary.seconds),
        number(summary.mean_log_density),
    );
    html += &match &run.diagnosis {
        Some(diagnosis) => verdict(diagnosis),
        None if is_live => {
            "<p class=\"verdict none\" id=\"status\"><strong>Under way.</strong> The page follows the \
             run and stops when it ends.</p>"
                .to_owned()
        }
        None => "<p class=\"verdict none\"><strong>No verdict.</strong> This run has no diagnosis; \
                 <code>steinflow diagnose RUN</code> makes one.</p>"
            .to_owned(),
    };
    for warning in &summary.warnings {
        let _ = write!(html, "<p class=\"warning\">Warning: {}</p>", escape(warning));
    }
    html
}

fn verdict(diagnosis: &Diagnosis) -> String {
    let mut html = format!(
        "<div class=\"verdict {}\"><p><strong>{}.</strong> {}</p>",
        verdict_class(diagnosis),
        escape(verdict_in_words(diagnosis)),
        escape(&diagnosis.headline)
    );
    if !diagnosis.advice.is_empty() {
        html += "<p>What to try next:</p>";
        html += &list(&diagnosis.advice);
    }
    html += "</div>";
    if !diagnosis.evidence.is_empty() {
        html += &evidence(&diagnosis.evidence);
    }
    html
}

fn evidence(evidence: &[Evidence]) -> String {
    let rows: Vec<Vec<String>> = evidence
        .iter()
        .map(|item| {
            let passed = match item.passed {
                Some(true) => "✓ passed",
                Some(false) => "✗ failed",
                None => "–",
            };
            let (value, expected) = (number(item.value), item.expected.clone());
            vec![item.name.clone(), value, expected, passed.to_owned(), item.meaning.clone()]
        })
        .collect();
    let header = ["", "found", "expected", "", "what it means"];
    let (tests, failed) = (
        evidence.iter().filter(|item| item.passed.is_some()).count(),
        evidence.iter().filter(|item| item.passed == Some(false)).count(),
    );
    // Folded, for it is longer than all that people come for.
    format!(
        "<details class=\"evidence\"><summary>What it rests on: {tests} tests, {failed} failed</summary>{}</details>",
        table("Evidence", &header, &rows)
    )
}

/// Moments and shares, and how a model predicts.
pub(super) fn numbers(run: &Run) -> String {
    let summary = &run.summary;
    let mut html = String::from("<div class=\"tables\">");
    if !summary.moments.is_empty() {
        let exact = summary.moments.iter().any(|row| row.exact_mean.is_some());
        let mut header = vec!["", "mean", "sd"];
        if exact {
            header.extend(["exact mean", "exact sd", "sd / exact"]);
        }
        let rows = summary.moments.iter().take(MOST_MOMENTS).map(|row| {
            let mut cells = vec![row.name.clone(), number(row.mean), number(row.sd)];
            if exact {
                let [mean, sd] = [row.exact_mean, row.exact_sd].map(|x| x.unwrap_or(f64::NAN));
                cells.extend([mean, sd, row.sd / sd].map(number));
            }
            cells
        });
        let of = match summary.samples {
            Some(samples) => format!("Moments of {samples} collected samples"),
            None => format!("Moments of {} particles", summary.particles),
        };
        html += &table(&of, &header, &rows.collect::<Vec<_>>());
    }
    if !summary.parts.is_empty() {
        let rows = summary.parts.iter();
        let rows: Vec<_> = rows
            .map(|part| vec![part.name.clone(), percent(part.share), percent(part.exact_share)])
            .collect();
        html += &table("Shares of the target's parts", &["", "found", "exact"], &rows);
    }
    if let Some(network) = &summary.network {
        html += &network_tables(network);
    }
    if let Some(regression) = &summary.regression {
        html += &regression_tables(regression);
    }
    html += "</div>";
    if summary.moments.len() > MOST_MOMENTS {
        let more = summary.moments.len() - MOST_MOMENTS;
        let _ = write!(html, "<p>{more} more coordinates are in <code>summary.json</code>.</p>");
    }
    html
}

fn network_tables(network: &Network) -> String {
    let layers: Vec<String> = network.layers.iter().map(ToString::to_string).collect();
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let spread = |spread: Spread| format!("{} ± {}", number(spread.mean), number(spread.sd));
    let mut rows = vec![
        row("layers", layers.join(" – ")),
        row("activation", network.activation.clone()),
        row("target", network.target.clone()),
        row("sd of the weights", spread(network.weight_sd)),
        row("rows trained", network.training_rows.to_string()),
        row("rows held back", network.held_back_rows.to_string()),
        row("predicted with", network.predicted_with.clone()),
    ];
    // Classes have none.
    if network.noise_sd.mean.is_finite() {
        rows.insert(3, row("sd of the noise", spread(network.noise_sd)));
    }
    let mut html = table("The network", &["", ""], &rows);
    if let Some(test) = &network.test {
        html += &scores_table(&format!("Scores on {} rows held back", test.rows), test);
    }
    if let Some(test) = &network.class_test {
        html += &class_scores_table(&format!("Scores on {} rows held back", test.rows), test);
    }
    html + &checks_table(&network.checks)
}

fn scores_table(title: &str, scores: &Scores) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = [
        row("log-likelihood per row", number(scores.log_likelihood)),
        row("RMSE", number(scores.rmse)),
        row("CRPS", number(scores.crps)),
        row("inside the 50 % interval", percent(scores.coverage_50)),
        row("inside the 90 % interval", percent(scores.coverage_90)),
        row("inside the 95 % interval", percent(scores.coverage_95)),
    ];
    table(title, &["", ""], &rows)
}

fn class_scores_table(title: &str, scores: &ClassScores) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = [
        row("log-likelihood per row", number(scores.log_likelihood)),
        row("most probable class seen", percent(scores.accuracy)),
        row("|seen − promised|, on average", number(scores.miscalibration())),
    ];
    table(title, &["", ""], &rows)
}

fn time_scores_table(title: &str, scores: &TimeScores) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = [
        row("events seen", format!("{} of {}", scores.events, scores.rows)),
        row("log-likelihood per row", number(scores.log_likelihood)),
        row("inside the 50 % interval", percent(scores.coverage_50)),
        row("inside the 90 % interval", percent(scores.coverage_90)),
        row("inside the 95 % interval", percent(scores.coverage_95)),
    ];
    table(title, &["", ""], &rows)
}

/// Rows predicted from all others, how far to trust that, and data drawn from the fit.
fn regression_tables(regression: &Regression) -> String {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let (score, error) = (number(regression.log_score), number(regression.standard_error));
    let mut rows = vec![
        row("log score", format!("{score} ± {error}")),
        row("parameters in use", number(regression.effective_parameters)),
        row("doubtful rows (Pareto k above 0.7)", regression.doubtful_rows.to_string()),
    ];
    rows.extend(regression.largest_shape.map(|shape| row("largest Pareto k", number(shape))));
    let title = format!("Each of {} rows predicted from all others", regression.rows);
    let mut html = table(&title, &["", ""], &rows);
    let title = "Scores of those predictions";
    html += &regression.left_out.as_ref().map_or(String::new(), |own| scores_table(title, own));
    let classes = regression.left_out_classes.as_ref();
    html += &classes.map_or(String::new(), |own| class_scores_table(title, own));
    let times = regression.left_out_times.as_ref();
    html += &times.map_or(String::new(), |own| time_scores_table(title, own));
    html + &checks_table(&regression.checks)
}

fn checks_table(checks: &[Check]) -> String {
    let check = |check: &Check| {
        let [low, high] = check.drawn.map(number);
        let drawn = format!("{low} to {high}");
        vec![check.name.clone(), number(check.seen), drawn, percent(check.share_above)]
    };
    let rows: Vec<_> = checks.iter().map(check).collect();
    let header = ["", "data", "drawn from the fit (90 %)", "above the data"];
    if rows.is_empty() {
        return String::new();
    }
    table("The data beside data that the fit draws", &header, &rows)
}

pub(super) fn citation(versions: &[&str]) -> String {
    let mut versions = versions.to_vec();
    versions.sort_unstable();
    versions.dedup();
    let text = CITATION.split("\n\n").map(|paragraph| format!("<p>{}</p>", escape(paragraph)));
    let html = format!(
        "<p>Run by steinflow {}; page by steinflow {}.</p><p>Please cite the software and the paper \
         whose method it implements:</p><blockquote>{}</blockquote>",
        escape(&versions.join(", ")),
        env!("CARGO_PKG_VERSION"),
        text.collect::<String>()
    );
    section("cite", "Versions, and how to cite", &html)
}

pub(super) fn section(id: &str, title: &str, content: &str) -> String {
    format!("<section><h2>{}</h2><div id=\"{id}\">{content}</div></section>\n", escape(title))
}

/// A section that the script fills.
pub(super) fn plots(id: &str, title: &str) -> String {
    section(id, title, "")
}

/// What the dashed lines of marginals are.
fn dashed(run: &Run) -> &'static str {
    match run.points.dim {
        _ if run.marginals.is_empty() => "",
        1 | 2 => "<p class=\"lead\">Dashed: the density of the target.</p>",
        _ => "<p class=\"lead\">Dashed: the density of the target, by exact draws from it.</p>",
    }
}

pub(super) fn list(items: &[String]) -> String {
    let items: Vec<String> =
        items.iter().map(|item| format!("<li>{}</li>", escape(item))).collect();
    format!("<ul>{}</ul>", items.concat())
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", 100.0 * share) } else { number(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_citation_is_that_of_the_repository() {
        let file = include_str!("../../../../CITATION.cff");
        let field = |name: &str| {
            let line = file.lines().find_map(|line| line.trim().strip_prefix(name));
            line.unwrap().trim().trim_start_matches("- ").to_owned()
        };
        let fields = ["version:", "repository-code:", "- name:", "value:", "collection-title:"];
        for value in fields.map(field) {
            assert!(CITATION.contains(&value), "{value}");
        }
        let titles = file.lines().filter_map(|line| line.trim().strip_prefix("title: "));
        assert!(titles.count() == 2);
        for name in ["Shen", "Heinonen", "Kaski", "De-randomizing MCMC dynamics"] {
            assert!(CITATION.contains(name) && file.contains(name), "{name}");
        }
    }
}
