//! `steinflow diagnose`, and the verdict that every run ends with.

mod distances;
mod foreign;
mod past_run;
pub mod verdict;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use steinflow::Matrix;
use steinflow_io::record::{DIAGNOSIS, Diagnosis, Table};
use steinflow_io::{add_to_run, parquet_memory, write_json};
use steinflow_models::Model;
use steinflow_models::memory::available;

use crate::args::DiagnoseArguments;
use crate::error::{Error, Result};
use crate::sample::start_threads;
use crate::summary::{short, table};
use distances::{DistanceRow, SteinRow};
use past_run::PastRun;
use verdict::Left;

/// All that is known of a run.
#[derive(Serialize)]
struct Examined {
    run: PathBuf,
    #[serde(flatten)]
    verdict: Diagnosis,
    stein_discrepancies: Vec<SteinRow>,
    distances: Vec<DistanceRow>,
}

/// A coordinate's moments over runs that differ in their seed.
#[derive(Serialize)]
struct MomentRow {
    name: String,
    mean: f64,
    mean_standard_error: f64,
    sd: f64,
    sd_standard_error: f64,
}

pub fn command(arguments: &DiagnoseArguments) -> Result<ExitCode> {
    start_threads(arguments.threads)?;
    if let (Some(file), Some(model)) = (&arguments.draws, &arguments.model) {
        foreign::judge(file, model, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs: Vec<PastRun> =
        arguments.runs.iter().map(|run| PastRun::read(run)).collect::<Result<_>>()?;
    for (run, path) in runs.iter().zip(&arguments.runs).skip(1) {
        if run.model.parameter_names() != runs[0].model.parameter_names() {
            let (path, first) = (path.display(), arguments.runs[0].display());
            let remedy = format!("it has other parameters than {first}; diagnose it by itself");
            return Err(steinflow::Error::setting("run", path, remedy).into());
        }
    }
    let reference = arguments
        .reference
        .as_deref()
        .map(|path| read_reference(path, &*runs[0].model))
        .transpose()?;
    let mut examined = Vec::new();
    for (run, path) in runs.iter().zip(&arguments.runs) {
        let left = Left {
            particles: (&run.state, &run.structure),
            course: &run.course,
            draws: run.draws.as_ref(),
            stop_rule: run.stop_rule.as_ref(),
            warm_moments: run.warm_moments.as_ref(),
            gradients: run.gradients,
        };
        let verdict = verdict::judge(&run.config, &*run.model, &left)?;
        let mut bytes = Vec::new();
        write_json(&verdict, &mut bytes)?;
        add_to_run(path, DIAGNOSIS, &bytes, true)?;
        let sample = run.sample();
        let mut found = Vec::new();
        if let Some(reference) = &reference {
            let name = arguments.reference.as_ref().map(|path| path.display().to_string());
            found.push(distances::between(&sample, reference, name.unwrap_or_default())?);
        }
        if let Some(exact) = run.model.exact_sample(2 * sample.rows().clamp(500, 1000), 0) {
            // Two halves: one to compare with, and one to show what exact draws would have.
            let half = exact.rows() / 2;
            let part = |from: usize, count: usize| {
                Matrix::from_fn(count, exact.cols(), |i, j| exact.row(from + i)[j])
            };
            let (reference, others) = (part(0, half), part(half, sample.rows().min(half)));
            found.push(distances::between(&sample, &reference, "exact draws".to_owned())?);
            let what = "as many exact draws, to these".to_owned();
            found.push(distances::between(&others, &reference, what)?);
        }
        for (other, path) in runs.iter().zip(&arguments.runs).take(examined.len()) {
            found.push(distances::between(&sample, &other.sample(), path.display().to_string())?);
        }
        examined.push(Examined {
            run: path.clone(),
            verdict,
            stein_discrepancies: distances::stein(run, arguments)?,
            distances: found,
        });
    }
    let moments = if runs.len() > 1 { moments(&runs) } else { Vec::new() };
    print(arguments, &examined, &moments)?;
    Ok(ExitCode::SUCCESS)
}

/// Points of a Parquet or CSV file whose columns are the model's parameters.
fn read_reference(path: &Path, model: &dyn Model<f64>) -> Result<Matrix<f64>> {
    let shown = PointFile::open("reference", path)?.columns(&model.parameter_names())?;
    Ok(model.units().map_or_else(|| shown.clone(), |units| units.hide(&shown)))
}

/// A Parquet or CSV file.
enum PointFile {
    Parquet(Table),
    Csv(Box<steinflow_models::data::Table>),
}

impl PointFile {
    fn open(what: &'static str, path: &Path) -> Result<Self> {
        if !path.exists() {
            let remedy = "there is no such file; give a Parquet or CSV file";
            return Err(steinflow::Error::setting(what, path.display(), remedy).into());
        }
        if path.extension().is_none_or(|extension| extension != "parquet") {
            let table = steinflow_models::data::Table::read(path);
            return Ok(Self::Csv(Box::new(table.map_err(steinflow_models::Error::from)?)));
        }
        let needed = parquet_memory(path)?;
        if let Some(free) = available().filter(|&free| needed > free) {
            return Err(Error::TableTooLarge { path: path.to_owned(), needed, free });
        }
        Ok(Self::Parquet(Table::open(path)?))
    }

    fn columns(&self, names: &[String]) -> Result<Matrix<f64>> {
        match self {
            Self::Parquet(table) => Ok(table.matrix(names)?),
            Self::Csv(table) => {
                let column = |name: &String| {
                    table.position(Some(name)).map_err(steinflow_models::Error::from)
                };
                let columns: Vec<usize> = names.iter().map(column).collect::<Result<_, _>>()?;
                let values = table.values();
                Ok(Matrix::from_fn(values.rows(), names.len(), |i, j| values.row(i)[columns[j]]))
            }
        }
    }
}

fn moments(runs: &[PastRun]) -> Vec<MomentRow> {
    let samples: Vec<Matrix<f64>> = runs.iter().map(PastRun::shown).collect();
    let over_runs = |of: &dyn Fn(&Matrix<f64>) -> f64| {
        let values: Vec<f64> = samples.iter().map(of).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (square / n).sqrt())
    };
    let mean_of = |sample: &Matrix<f64>, j: usize| {
        (0..sample.rows()).map(|i| sample.row(i)[j]).sum::<f64>() / sample.rows() as f64
    };
    let names = runs[0].model.parameter_names().into_iter().enumerate();
    names
        .map(|(j, name)| {
            let (mean, mean_standard_error) = over_runs(&|sample| mean_of(sample, j));
            let (sd, sd_standard_error) = over_runs(&|sample| {
                let mean = mean_of(sample, j);
                let square = (0..sample.rows()).map(|i| (sample.row(i)[j] - mean).powi(2));
                (square.sum::<f64>() / sample.rows() as f64).sqrt()
            });
            MomentRow { name, mean, mean_standard_error, sd, sd_standard_error }
        })
        .collect()
}

fn print(
    arguments: &DiagnoseArguments,
    examined: &[Examined],
    moments: &[MomentRow],
) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if arguments.json {
        let all = serde_json::json!({ "runs": examined, "moments": moments });
        write_json(&all, &mut out)?;
        return Ok(());
    }
    for Examined { run, verdict, stein_discrepancies, distances } in examined {
        writeln!(out, "{}\n", run.display())?;
        verdict::print(verdict, &mut out)?;
        let rows = stein_discrepancies.iter().map(|row| {
            let SteinRow { operator, kernel, bandwidth, squared_u, squared_v, p_value } = row;
            let numbers = [*squared_u, *squared_v, *p_value, *bandwidth].map(short);
            [vec![format!("{operator}, {kernel}")], numbers.to_vec()].concat()
        });
        let header = ["KSD²", "U", "V", "p-value", "bandwidth"];
        writeln!(out, "\n{}", table(&header, rows.collect()))?;
        if !distances.is_empty() {
            let rows = distances.iter().map(|row| {
                let numbers = [row.energy, row.squared_mmd, row.sliced_wasserstein].map(short);
                [vec![row.to.clone()], numbers.to_vec()].concat()
            });
            let header = ["distance to", "energy", "MMD²", "sliced W₂"];
            writeln!(out, "\n{}", table(&header, rows.collect()))?;
        }
        writeln!(out)?;
    }
    if !moments.is_empty() {
        let rows = moments.iter().map(|row| {
            let with_error = |x, error| format!("{} ± {}", short(x), short(error));
            let (mean, sd) = (
                with_error(row.mean, row.mean_standard_error),
                with_error(row.sd, row.sd_standard_error),
            );
            vec![row.name.clone(), mean, sd]
        });
        let title = format!("over {} runs", examined.len());
        writeln!(out, "{}", table(&[&title, "mean ± s.e.", "sd ± s.e."], rows.collect()))?;
    }
    Ok(())
}
