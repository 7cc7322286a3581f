//! A run folder, read back as a page shows it.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use steinflow::method::{Method, Parameters};
use steinflow_io::report::{Diagnosis, Frames, Points, Predictions, Run, Summary, Trace, evenly};
use steinflow_io::{Column, Values, read_parquet};

use super::Backdrop;
use crate::error::{Error, Result};
use steinflow_config::Settings;

/// More particles than this are thinned.
const MOST_POINTS: usize = 2000;
/// More steps than this are thinned.
const MOST_STEPS: usize = 1000;
/// Rows of a table that stand before θ: `chain, draw, step` or `frame, step, particle`.
const INDICES: usize = 3;

/// Reads a run with about so many numbers of its particles, and what only a page about it alone shows
/// if it is `alone`.
pub fn run(folder: &Path, numbers: usize, alone: bool) -> Result<Run> {
    let summary: Summary = json(folder, "summary.json")?
        .ok_or_else(|| damaged(&folder.join("summary.json"), &"it is not there"))?;
    let path = folder.join("config.toml");
    let config = fs::read_to_string(&path).map_err(|error| damaged(&path, &error))?;
    let settings = Settings::parse(&path, &config)?;
    let mut notes = Vec::new();
    let points = points(folder, &settings, numbers, &mut notes)?;
    let backdrop = Backdrop::of(settings, &points).unwrap_or_else(|error| {
        notes.push(format!("the target itself, for it could not be evaluated: {error}"));
        Backdrop::default()
    });
    Ok(Run {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        diagnosis: json::<Diagnosis>(folder, "diagnosis.json")?,
        trace: trace(folder, &mut notes)?,
        frames: if alone { frames(folder)? } else { None },
        predictions: if alone { predictions(folder, &summary)? } else { None },
        marginals: backdrop.marginals,
        density: backdrop.density.filter(|_| alone),
        summary,
        config,
        points,
        notes,
    })
}

fn damaged(path: &Path, message: &dyn Display) -> Error {
    Error::RunDamaged { path: path.to_owned(), message: message.to_string() }
}

fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    let path = folder.join(name);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(|error| damaged(&path, &error))?;
    serde_json::from_str(&text).map(Some).map_err(|error| damaged(&path, &error))
}

fn table(folder: &Path, name: &str) -> Result<Option<Vec<Column>>> {
    let path = folder.join(name);
    Ok(if path.exists() { Some(read_parquet(path)?) } else { None })
}

fn is_empty(columns: &[Column]) -> bool {
    columns.first().is_none_or(|column| column.values.is_empty())
}

fn floats(values: &Values, rows: &[usize]) -> Vec<f64> {
    let value = |&i: &usize| match values {
        Values::F64(values) => values[i],
        Values::F32(values) => f64::from(values[i]),
        Values::U64(values) => values[i] as f64,
    };
    rows.iter().map(value).collect()
}

fn counts(values: &Values, rows: &[usize]) -> Vec<u64> {
    match values {
        Values::U64(values) => rows.iter().map(|&i| values[i]).collect(),
        other => floats(other, rows).into_iter().map(|x| x as u64).collect(),
    }
}

/// The samples where any were collected, as in `summary.json`, otherwise the particles.
fn points(
    folder: &Path,
    settings: &Settings,
    numbers: usize,
    notes: &mut Vec<String>,
) -> Result<Points> {
    let samples = table(folder, "samples.parquet")?.filter(|columns| !is_empty(columns));
    let (kind, columns, rows) = if let Some(mut columns) = samples {
        let theta = columns.split_off(INDICES.min(columns.len()));
        let rows = whole_draws(columns.first().map(|chains| &chains.values));
        ("samples", theta, rows)
    } else {
        let path = folder.join("particles.parquet");
        let mut columns = table(folder, "particles.parquet")?
            .ok_or_else(|| damaged(&path, &"it is not there"))?;
        let method = Method::named(settings.method.as_deref().unwrap_or_default())?;
        let blocks =
            method.build_dynamics::<f64>(&Parameters::default()).structure(1).blocks().max(1);
        // θ, the auxiliary variables, log π.
        columns.truncate(columns.len().saturating_sub(1) / blocks);
        let count = columns.first().map_or(0, |column| column.values.len());
        ("particles", columns, evenly(count, MOST_POINTS))
    };
    let (dim, count) = (columns.len(), columns.first().map_or(0, |column| column.values.len()));
    let shown = (numbers / rows.len().max(1)).clamp(1, dim.max(1)).min(dim);
    if rows.len() < count {
        notes.push(format!("{} of {count} {kind} are shown, evenly spaced", rows.len()));
    }
    if shown < dim {
        notes.push(format!("the first {shown} of {dim} coordinates are shown"));
    }
    let kept = &columns[..shown];
    Ok(Points {
        kind: kind.to_owned(),
        count,
        dim,
        names: kept.iter().map(|column| column.name.clone()).collect(),
        columns: kept.iter().map(|column| floats(&column.values, &rows)).collect(),
    })
}

/// Rows of evenly spaced draws, each with all of its chains as long as there are not too many: every
/// k-th row could be of one chain alone.
fn whole_draws(chains: Option<&Values>) -> Vec<usize> {
    let Some(Values::U64(column)) = chains else { return Vec::new() };
    let chains = column.iter().max().map_or(1, |&last| last as usize + 1).min(column.len().max(1));
    let draws = column.len() / chains;
    let chosen = evenly(chains, MOST_POINTS);
    let kept = evenly(draws, (MOST_POINTS / chosen.len().max(1)).max(1));
    kept.iter().flat_map(|draw| chosen.iter().map(move |chain| draw * chains + chain)).collect()
}

fn trace(folder: &Path, notes: &mut Vec<String>) -> Result<Trace> {
    let path = folder.join("trace.parquet");
    let columns =
        table(folder, "trace.parquet")?.ok_or_else(|| damaged(&path, &"it is not there"))?;
    let find = |name: &str| {
        let column = columns.iter().find(|column| column.name == name);
        let values = column.map(|column| &column.values);
        values.ok_or_else(|| damaged(&path, &format!("it has no column `{name}`")))
    };
    let (step, gradients, seconds) = (find("step")?, find("gradients")?, find("seconds")?);
    let rows = evenly(step.len(), MOST_STEPS);
    if rows.len() < step.len() {
        notes.push(format!("{} of {} rows of the trace are shown", rows.len(), step.len()));
    }
    let mut ksd = Vec::new();
    if let Ok(values) = find("ksd") {
        let all: Vec<usize> = (0..step.len()).collect();
        let (steps, gradients) = (counts(step, &all), counts(gradients, &all));
        let found = floats(values, &all).into_iter().zip(steps.into_iter().zip(gradients));
        let found = found.filter(|(ksd, _)| ksd.is_finite());
        let found: Vec<_> = found.map(|(ksd, (step, gradients))| (step, gradients, ksd)).collect();
        ksd = evenly(found.len(), MOST_STEPS).into_iter().map(|i| found[i]).collect();
    }
    let others = columns
        .iter()
        .filter(|column| !["step", "gradients", "seconds", "ksd"].contains(&&*column.name))
        .map(|column| (column.name.clone(), floats(&column.values, &rows)))
        // A diffusion has no bandwidth.
        .filter(|(_, values)| values.iter().any(|x| x.is_finite()))
        .collect();
    Ok(Trace {
        rows: step.len(),
        step: counts(step, &rows),
        gradients: counts(gradients, &rows),
        seconds: floats(seconds, &rows),
        columns: others,
        ksd,
    })
}

fn frames(folder: &Path) -> Result<Option<Frames>> {
    let Some(columns) = table(folder, "frames.parquet")?.filter(|columns| !is_empty(columns))
    else {
        return Ok(None);
    };
    let [frame, step, _, theta @ ..] = &columns[..] else { return Ok(None) };
    let all: Vec<usize> = (0..step.values.len()).collect();
    let (frame, step) = (counts(&frame.values, &all), counts(&step.values, &all));
    let mut found = Frames::default();
    for rows in all.chunk_by(|&a, &b| frame[a] == frame[b]) {
        found.steps.push(step[rows[0]]);
        found.values.push(theta.iter().map(|column| floats(&column.values, rows)).collect());
    }
    Ok(Some(found))
}

/// What `predictions.csv` says of rows that were held back: numbers alone, so that commas are ends.
fn predictions(folder: &Path, summary: &Summary) -> Result<Option<Predictions>> {
    let path = folder.join("predictions.csv");
    let Some((network, test)) =
        summary.network.as_ref().and_then(|network| Some((network, network.test.as_ref()?)))
    else {
        return Ok(None);
    };
    let text = fs::read_to_string(&path).map_err(|error| damaged(&path, &error))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let rows: Vec<Vec<f64>> = lines
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
        .collect();
    let chosen = evenly(rows.len(), MOST_STEPS);
    let column = |name: &str| -> Result<Vec<f64>> {
        let place = header.iter().position(|own| *own == name);
        let place = place.ok_or_else(|| damaged(&path, &format!("it has no column `{name}`")))?;
        let cell = |&i: &usize| rows[i].get(place).copied().unwrap_or(f64::NAN);
        Ok(chosen.iter().map(cell).collect())
    };
    let found = [(0.5, test.coverage_50), (0.9, test.coverage_90), (0.95, test.coverage_95)];
    Ok(Some(Predictions {
        rows: rows.len(),
        target: network.target.clone(),
        observed: column("target")?,
        mean: column("mean")?,
        low: column("q0.05")?,
        high: column("q0.95")?,
        pit: test.pit.clone(),
        coverage: found.into_iter().filter_map(|(level, found)| Some((level, found?))).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_samples_are_of_all_chains() {
        let chains = Values::U64((0..100_000).map(|row| row % 100).collect());
        let rows = whole_draws(Some(&chains));
        assert_eq!((rows.len(), rows[0], rows[1999]), (2000, 0, 99_999));
        assert!(rows.iter().enumerate().all(|(k, row)| row % 100 == k % 100));
        let many = Values::U64((0..10_000).map(|row| row % 5000).collect());
        assert_eq!(whole_draws(Some(&many)).len(), 2000);
    }
}
