//! How much of the variance of a Gaussian each method keeps, by dimension: of N(0, I) unless a plan names another.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Deserialize;
use steinflow::Matrix;

use super::study::Study;
use crate::args::CommonArguments;
use crate::error::Result;
use steinflow_config::{Config, Settings};

/// The settings that ship with the command.
const SETTINGS: &str = include_str!("../../../../experiments/collapse/settings.toml");

#[derive(Deserialize)]
struct Plan {
    particles: usize,
    dims: Vec<usize>,
    seeds: Vec<u64>,
    /// What all rows have unless they say otherwise.
    #[serde(default)]
    common: Settings,
    run: Vec<Row>,
}

/// One method with its settings; `dims` restricts it to some dimensions.
#[derive(Deserialize)]
struct Row {
    label: Option<String>,
    dims: Option<Vec<usize>>,
    #[serde(flatten)]
    settings: Settings,
}

impl Row {
    fn label(&self) -> &str {
        self.label.as_deref().or(self.settings.method.as_deref()).unwrap_or("default")
    }
}

/// A run that was made: the mean over coordinates of the variance, or what went wrong.
struct Cell {
    label: String,
    dim: usize,
    seed: u64,
    variance: Result<f64, String>,
}

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut study = Study::begin(arguments, "collapse", SETTINGS)?;
    let (csv, table) = measure("variances", SETTINGS, arguments.quick, &mut study)?;
    study.write("settings.toml", SETTINGS)?;
    study.write("collapse.csv", csv)?;
    study.write("collapse.md", &table)?;
    let path = study.publish()?;
    writeln!(std::io::stdout(), "{table}\n{}", path.display())?;
    Ok(())
}

/// The variances that the rows of a plan keep: raw, and as a table.
pub fn measure(
    name: &'static str,
    settings: &str,
    quick: bool,
    study: &mut Study,
) -> Result<(String, String)> {
    let mut plan: Plan = toml::from_str(settings).map_err(|error| {
        steinflow_config::Error::Wrong { path: "settings.toml".into(), message: error.to_string() }
    })?;
    for row in &mut plan.run {
        row.settings = std::mem::take(&mut row.settings).or(plan.common.clone());
    }
    if quick {
        // Not d = 1, where methods with noise take twenty times as many steps.
        plan.dims.retain(|&dim| dim == 10);
        plan.seeds.truncate(1);
        plan.particles = 50;
    }
    let mut jobs = Vec::new();
    // Large dimensions first, so that no core waits long at the end.
    for &dim in plan.dims.iter().rev() {
        for row in &plan.run {
            if row.dims.as_ref().is_none_or(|dims| dims.contains(&dim)) {
                jobs.extend(plan.seeds.iter().map(|&seed| (row, dim, seed)));
            }
        }
    }
    let variances = study.run(
        name,
        &jobs,
        |(row, dim, seed)| format!("{}, d = {dim}, seed {seed}", row.label()),
        |&(row, dim, seed)| {
            variance(row, dim, seed, plan.particles).map_err(|error| error.to_string())
        },
    )?;
    let cells: Vec<Cell> = jobs
        .iter()
        .zip(variances)
        .map(|(&(row, dim, seed), variance)| Cell {
            label: row.label().to_owned(),
            dim,
            seed,
            variance,
        })
        .collect();

    let mut csv = String::from("method,d,seed,variance,error\n");
    for cell in &cells {
        let (variance, error) = match &cell.variance {
            Ok(variance) => (format!("{variance:.6}"), String::new()),
            Err(error) => (String::new(), error.replace('"', "'")),
        };
        let _ =
            writeln!(csv, "\"{}\",{},{},{variance},\"{error}\"", cell.label, cell.dim, cell.seed);
    }
    Ok((csv, table(&plan, &cells)))
}

/// The mean over coordinates of the variance, relative to the exact one: of the collected samples, or of the last
/// particles.
fn variance(row: &Row, dim: usize, seed: u64, particles: usize) -> Result<f64> {
    let mut settings =
        Settings { seed: Some(seed), particles: Some(particles), ..row.settings.clone() };
    settings.spec.model.get_or_insert_with(|| "standard-normal".to_owned());
    settings.spec.dim = Some(dim);
    let config = Config::resolve(settings)?;
    let model = steinflow_models::build::<f64>(config.spec())?;
    let exact = model.exact_moments();
    let exact_variance = |j: usize| exact.as_ref().map_or(1.0, |exact| exact.covariance.row(j)[j]);
    let mut samples = config.samples::<f64>();
    let mut sampler = config.sampler(&*model)?;
    if let Some(samples) = &mut samples {
        sampler = sampler.observe(samples.observer());
    }
    let outcome = sampler.run()?;
    let theta: Matrix<f64> = samples.map_or_else(|| outcome.theta(), |samples| samples.theta());
    let count = theta.rows() as f64;
    let of_coordinate = |j: usize| {
        let mean = (0..theta.rows()).map(|i| theta.row(i)[j]).sum::<f64>() / count;
        let square = (0..theta.rows()).map(|i| (theta.row(i)[j] - mean).powi(2)).sum::<f64>();
        square / count / exact_variance(j)
    };
    Ok((0..dim).map(of_coordinate).sum::<f64>() / dim as f64)
}

/// Mean (standard deviation) over seeds, a row a method, a column a dimension.
fn table(plan: &Plan, cells: &[Cell]) -> String {
    let mut text = String::from("| method |");
    for dim in &plan.dims {
        let _ = write!(text, " d = {dim} |");
    }
    let _ = write!(text, "\n|---|{}\n", "---|".repeat(plan.dims.len()));
    let mut labels: Vec<&str> = Vec::new();
    for row in &plan.run {
        if !labels.contains(&row.label()) {
            labels.push(row.label());
        }
    }
    for label in labels {
        let _ = write!(text, "| {label} |");
        for &dim in &plan.dims {
            let of_cell = || cells.iter().filter(|cell| cell.label == label && cell.dim == dim);
            let values: Vec<f64> =
                of_cell().filter_map(|cell| cell.variance.as_ref().ok().copied()).collect();
            let failed = of_cell().count() - values.len();
            let _ = write!(text, " {}", mean_and_spread(&values));
            if failed > 0 {
                let _ = write!(text, ", {failed} failed");
            }
            text.push_str(" |");
        }
        text.push('\n');
    }
    text
}

fn mean_and_spread(values: &[f64]) -> String {
    if values.is_empty() {
        return "–".to_owned();
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread =
        (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    format!("{mean:.3} ({spread:.3})")
}
