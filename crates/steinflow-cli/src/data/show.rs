//! `steinflow data show`: one set, with its columns in numbers where it is here.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use steinflow_models::data::{DataSet, Located, Place, Splits, Table, data_set, find};

use super::sketch::histogram;
use crate::error::Result;
use crate::summary::table;

pub fn command(name: &str, folder: Option<&Path>, as_json: bool) -> Result<ExitCode> {
    let set = data_set(name)?;
    let found = find(name, folder);
    let content = match &found {
        Ok(located) => Some(located.table()?),
        Err(_) => None,
    };
    let columns = content.as_ref().map(statistics);
    let mut out = std::io::stdout().lock();
    if as_json {
        let located = found.as_ref().ok();
        let shown = json!({
            "name": set.name,
            "title": set.title,
            "rows": set.rows,
            "features": set.features,
            "target": set.target,
            "target_meaning": set.target_meaning,
            "licence": set.licence,
            "citation": set.citation,
            "page": set.page,
            "splits": set.split_count(),
            "built_in": set.archives.is_empty(),
            "file": located.and_then(Located::file),
            "split_file": located.and_then(Located::split_file),
            "columns": columns,
        });
        steinflow_io::write_json(&shown, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    describe(&mut out, set)?;
    match found {
        Ok(located) => place(&mut out, &located)?,
        Err(error) => writeln!(out, "  where      {error}")?,
    }
    if let (Some(columns), Some(content)) = (columns, content) {
        numbers(&mut out, set, &columns, &content)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(out: &mut impl Write, set: &DataSet) -> Result<()> {
    let splits = match set.splits {
        Splits::Standard(count) => {
            let train = set.split(0).map_or(0, |split| split.train().len());
            format!(
                "{count} standard splits of {train} training and {} test rows",
                set.rows - train
            )
        }
        Splits::FirstRows(train) => {
            format!("the first {train} rows train, the last {} test", set.rows - train)
        }
    };
    writeln!(out, "{}: {}\n", set.name, set.title)?;
    writeln!(out, "  rows       {}", set.rows)?;
    writeln!(out, "  features   {}", set.features.len())?;
    writeln!(out, "  target     {}: {}", set.target, set.target_meaning)?;
    writeln!(out, "  splits     {splits}")?;
    writeln!(out, "  licence    {}", set.licence)?;
    writeln!(out, "  cite       {}", set.citation)?;
    writeln!(out, "  page       {}", set.page)?;
    Ok(())
}

fn place(out: &mut impl Write, located: &Located) -> Result<()> {
    match located.place() {
        Place::BuiltIn => writeln!(out, "  where      built in")?,
        Place::File(file) => writeln!(out, "  where      {}", file.display())?,
    }
    if let Some(file) = located.split_file() {
        writeln!(out, "  splits of  {}", file.display())?;
    }
    Ok(())
}

fn numbers(
    out: &mut impl Write,
    set: &DataSet,
    columns: &[Statistics],
    content: &Table,
) -> Result<()> {
    let rows = columns.iter().map(|column| {
        let numbers = [column.mean, column.sd, column.min, column.max].map(number);
        [column.name.clone()].into_iter().chain(numbers).collect()
    });
    writeln!(out, "\n{}", table(&["column", "mean", "sd", "min", "max"], rows.collect()))?;
    let target: Vec<f64> = (0..content.values().rows())
        .filter_map(|row| content.values().row(row).last().copied())
        .collect();
    writeln!(out, "\n{}", set.target_meaning)?;
    for line in histogram(&target) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A column in numbers; sd² is the mean squared deviation.
#[derive(Debug, Serialize)]
struct Statistics {
    name: String,
    mean: f64,
    sd: f64,
    min: f64,
    max: f64,
}

fn statistics(table: &Table) -> Vec<Statistics> {
    let values = table.values();
    let count = values.rows() as f64;
    let column = |j: usize| (0..values.rows()).map(move |i| values.row(i)[j]);
    let names = table.columns().iter().enumerate();
    names
        .map(|(j, name)| {
            let mean = column(j).sum::<f64>() / count;
            let variance = column(j).map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            Statistics {
                name: name.clone(),
                mean,
                sd: variance.sqrt(),
                min: column(j).fold(f64::INFINITY, f64::min),
                max: column(j).fold(f64::NEG_INFINITY, f64::max),
            }
        })
        .collect()
}

fn number(x: f64) -> String {
    if x == 0.0 || (1e-3..1e7).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.3e}") }
}
