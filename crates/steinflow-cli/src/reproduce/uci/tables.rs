//! Tables of the results: Markdown and LaTeX to read, CSV to compute with.

use std::fmt::Write as _;

use super::job::Found;
use super::plan::Plan;
use super::published;

/// A job and what came of it.
pub struct Cell<'a> {
    pub dataset: &'a str,
    pub method: &'a str,
    pub split: usize,
    pub result: Result<&'a Found, &'a str>,
}

/// A number of a job, and how a table shows it.
struct Metric {
    title: &'static str,
    name: &'static str,
    of: fn(&Found) -> f64,
    decimals: usize,
}

const METRICS: [Metric; 5] = [
    Metric {
        title: "Test log-likelihood (higher is better)",
        name: "log_likelihood",
        of: |found| found.scores.log_likelihood,
        decimals: 2,
    },
    Metric {
        title: "Mean squared error, in units of the target's variance",
        name: "standardised_mse",
        of: |found| found.scores.standardised_mse,
        decimals: 3,
    },
    Metric {
        title: "Share of test rows inside the 90 % interval",
        name: "coverage_90",
        of: |found| found.scores.coverage_90,
        decimals: 2,
    },
    Metric {
        title: "Continuous ranked probability score, in the target's units (lower is better)",
        name: "crps",
        of: |found| found.scores.crps,
        decimals: 3,
    },
    Metric {
        title: "Seconds of the final run, one thread (the paper: a V100)",
        name: "seconds",
        of: |found| found.seconds,
        decimals: 1,
    },
];

/// Mean and standard deviation over splits, how many there are, and how many failed.
struct Summary {
    mean: f64,
    sd: f64,
    count: usize,
    failed: usize,
}

fn summary(cells: &[Cell<'_>], dataset: &str, method: &str, metric: &Metric) -> Summary {
    let here = || cells.iter().filter(|cell| cell.dataset == dataset && cell.method == method);
    let values: Vec<f64> =
        here().filter_map(|cell| cell.result.ok()).map(|found| (metric.of)(found)).collect();
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let sd = (squares / (count as f64 - 1.0).max(1.0)).sqrt();
    Summary { mean, sd, count, failed: here().count() - count }
}

/// The data sets that have results, in the plan's order.
fn datasets<'a>(plan: &'a Plan, cells: &[Cell<'_>]) -> Vec<&'a str> {
    let names = plan.datasets.iter().map(|set| set.name.as_str());
    names.filter(|name| cells.iter().any(|cell| cell.dataset == *name)).collect()
}

pub fn markdown(plan: &Plan, cells: &[Cell<'_>]) -> String {
    let mut text = String::new();
    let datasets = datasets(plan, cells);
    for metric in &METRICS {
        let _ = write!(text, "### {}\n\n| method |", metric.title);
        for name in &datasets {
            let splits = cells.iter().filter(|cell| cell.dataset == *name).map(|cell| cell.split);
            let splits = splits.collect::<std::collections::BTreeSet<_>>().len();
            let _ = write!(text, " {name} ({splits}) |");
        }
        let _ = write!(text, "\n|---|{}\n", "---|".repeat(datasets.len()));
        for run in &plan.runs {
            let _ = write!(text, "| {} |", run.label);
            for name in &datasets {
                let found = summary(cells, name, &run.label, metric);
                let decimals = metric.decimals;
                if found.count > 0 {
                    let _ = write!(text, " {:.decimals$} ({:.decimals$})", found.mean, found.sd);
                } else {
                    text.push_str(" –");
                }
                if found.failed > 0 {
                    let _ = write!(text, ", {} failed", found.failed);
                }
                if let Some((mean, _)) = published::number(metric.name, &run.label, name) {
                    let _ = write!(text, " [{mean}]");
                }
                text.push_str(" |");
            }
            text.push('\n');
        }
        if metric.name == "log_likelihood" {
            text.push_str("| the paper's best |");
            for name in &datasets {
                match published::best(metric.name, name) {
                    Some(best) => {
                        let _ = write!(text, " [{best}] |");
                    }
                    None => text.push_str(" |"),
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(
        "Mean (standard deviation) over splits, whose number stands beside the data set; in brackets \
         the paper's value where it has one.\n",
    );
    text
}

pub fn latex(plan: &Plan, cells: &[Cell<'_>]) -> String {
    let datasets = datasets(plan, cells);
    let mut text =
        String::from("% Written by `steinflow reproduce uci`. Needs the package booktabs.\n");
    for metric in &METRICS[..2] {
        let _ = write!(
            text,
            "% {}\n\\begin{{tabular}}{{l{}}}\n\\toprule\nMethod & {} \\\\\n\\midrule\n",
            metric.title,
            "c".repeat(datasets.len()),
            datasets.join(" & ")
        );
        for run in &plan.runs {
            text.push_str(&run.label);
            for name in &datasets {
                let Summary { mean, sd, count, .. } = summary(cells, name, &run.label, metric);
                let decimals = metric.decimals;
                if count > 0 {
                    let _ = write!(text, " & ${mean:.decimals$}$ ({sd:.decimals$})");
                } else {
                    text.push_str(" & --");
                }
            }
            text.push_str(" \\\\\n");
        }
        text.push_str("\\bottomrule\n\\end{tabular}\n\n");
    }
    text
}

/// A number, or nothing.
fn shown(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Every job a line.
pub fn csv(cells: &[Cell<'_>]) -> String {
    let mut text = String::from(
        "dataset,method,split,eta,alpha,mu,validation_log_likelihood,training_log_likelihood,log_likelihood,rmse,mse,\
         standardised_mse,crps,coverage_50,coverage_90,coverage_95,seconds,shrinks,passed_over,error\n",
    );
    for cell in cells {
        let _ = write!(text, "{},\"{}\",{},", cell.dataset, cell.method, cell.split);
        let _ = match cell.result {
            Ok(found) => {
                let (chosen, s) = (&found.chosen, &found.scores);
                writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{:.2},{},{},",
                    shown(chosen.eta),
                    shown(chosen.alpha),
                    shown(chosen.mu),
                    shown(found.validation),
                    found.training,
                    s.log_likelihood,
                    s.rmse,
                    s.mse,
                    s.standardised_mse,
                    s.crps,
                    s.coverage_50,
                    s.coverage_90,
                    s.coverage_95,
                    found.seconds,
                    found.shrinks,
                    found.passed_over
                )
            }
            Err(error) => writeln!(text, "{}\"{}\"", ",".repeat(16), error.replace('"', "'")),
        };
    }
    text
}

/// Test log-likelihood of every job by iteration.
pub fn traces_csv(cells: &[Cell<'_>]) -> String {
    let mut text = String::from("dataset,method,split,step,log_likelihood\n");
    for cell in cells {
        for (step, value) in cell.result.iter().flat_map(|found| &found.trace) {
            let _ = writeln!(
                text,
                "{},\"{}\",{},{step},{value}",
                cell.dataset, cell.method, cell.split
            );
        }
    }
    text
}
