//! A run folder, read back as a page shows it.

use steinflow::method::{Method, Parameters};
use steinflow_io::Values;
use steinflow_io::record::{self, FinishedRun, Summary, column};
use steinflow_io::report::{Frames, Points, Predictions, Run, Trace, evenly};

use super::Backdrop;
use crate::error::{Error, Result};
use steinflow_config::Settings;

/// More particles than this are thinned.
const MOST_POINTS: usize = 2000;
/// More steps than this are thinned.
const MOST_STEPS: usize = 1000;

/// Reads a run with about so many numbers of its particles, and what only a page about it alone shows
/// if it is `alone`.
pub fn run(run: &FinishedRun, numbers: usize, alone: bool) -> Result<Run> {
    let (summary, config) = (run.summary()?, run.config()?);
    let settings = Settings::parse(&run.path(record::CONFIG), &config)?;
    let mut notes = Vec::new();
    let points = points(run, &settings, summary.moments.len(), numbers, &mut notes)?;
    let backdrop = Backdrop::of(settings, &points).unwrap_or_else(|error| {
        notes.push(no_backdrop(&error));
        Backdrop::default()
    });
    Ok(Run {
        name: run.folder().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        diagnosis: run.diagnosis()?,
        trace: trace(run, &mut notes)?,
        frames: if alone { frames(run)? } else { None },
        predictions: if alone { predictions_of(run, &summary)? } else { None },
        marginals: backdrop.marginals,
        density: backdrop.density.filter(|_| alone),
        summary,
        config,
        points,
        notes,
    })
}

/// Why the target is not behind the particles.
pub fn no_backdrop(error: &Error) -> String {
    format!("the target itself, for it could not be evaluated: {error}")
}

fn floats(values: &Values, rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|&i| values.number(i)).collect()
}

fn counts(values: &Values, rows: &[usize]) -> Vec<u64> {
    let all = values.counts();
    rows.iter().map(|&i| all[i]).collect()
}

/// The samples where any were collected, as in `summary.json`, otherwise the particles.
fn points(
    run: &FinishedRun,
    settings: &Settings,
    parameters: usize,
    numbers: usize,
    notes: &mut Vec<String>,
) -> Result<Points> {
    let (kind, table) = match run.filled_table(record::SAMPLES)? {
        Some(samples) => ("samples", samples),
        None => ("particles", run.table(record::PARTICLES)?),
    };
    let (columns, rows) = if kind == "samples" {
        let rows = whole_draws(&table.column(column::CHAIN)?.counts());
        (table.columns_beside(&[column::CHAIN, column::DRAW, column::STEP]), rows)
    } else {
        let method = Method::named(settings.method.as_deref().unwrap_or_default())?;
        let blocks =
            method.build_dynamics::<f64>(&Parameters::default()).structure(1).blocks().max(1);
        // θ, which may be shown by more numbers than it has, and the auxiliary variables. A network has no moments.
        let mut columns = table.columns_beside(&[column::LOG_DENSITY]);
        columns.truncate(if parameters > 0 { parameters } else { columns.len() / blocks });
        (columns, evenly(table.rows(), MOST_POINTS))
    };
    let (dim, count) = (columns.len(), table.rows());
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
fn whole_draws(column: &[u64]) -> Vec<usize> {
    let chains = column.iter().max().map_or(1, |&last| last as usize + 1).min(column.len().max(1));
    let draws = column.len() / chains;
    let chosen = evenly(chains, MOST_POINTS);
    let kept = evenly(draws, (MOST_POINTS / chosen.len().max(1)).max(1));
    kept.iter().flat_map(|draw| chosen.iter().map(move |chain| draw * chains + chain)).collect()
}

fn trace(run: &FinishedRun, notes: &mut Vec<String>) -> Result<Trace> {
    let table = run.table(record::TRACE)?;
    let axes = [column::STEP, column::GRADIENTS, column::SECONDS, column::KSD];
    let [step, gradients, seconds] =
        [table.column(axes[0])?, table.column(axes[1])?, table.column(axes[2])?];
    let rows = evenly(step.len(), MOST_STEPS);
    if rows.len() < step.len() {
        notes.push(format!("{} of {} rows of the trace are shown", rows.len(), step.len()));
    }
    let mut ksd = Vec::new();
    // Runs of earlier versions have no discrepancy.
    if let Some(values) = table.find(column::KSD) {
        let (steps, gradients) = (step.counts(), gradients.counts());
        let found = values.numbers().into_iter().zip(steps.into_iter().zip(gradients));
        let found = found.filter(|(ksd, _)| ksd.is_finite());
        let found: Vec<_> = found.map(|(ksd, (step, gradients))| (step, gradients, ksd)).collect();
        ksd = evenly(found.len(), MOST_STEPS).into_iter().map(|i| found[i]).collect();
    }
    let others = table
        .columns_beside(&axes)
        .into_iter()
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

fn frames(run: &FinishedRun) -> Result<Option<Frames>> {
    let Some(table) = run.filled_table(record::FRAMES)? else { return Ok(None) };
    let indices = [column::FRAME, column::STEP, column::PARTICLE];
    let theta = table.columns_beside(&indices);
    let (frame, step) = (table.column(indices[0])?.counts(), table.column(indices[1])?.counts());
    let all: Vec<usize> = (0..table.rows()).collect();
    let mut found = Frames::default();
    for rows in all.chunk_by(|&a, &b| frame[a] == frame[b]) {
        found.steps.push(step[rows[0]]);
        found.values.push(theta.iter().map(|column| floats(&column.values, rows)).collect());
    }
    Ok(Some(found))
}

/// The predictions of a run folder.
fn predictions_of(run: &FinishedRun, summary: &Summary) -> Result<Option<Predictions>> {
    predictions(summary, |name| {
        let text = run.text(record::PREDICTIONS)?;
        let missing = || run.damaged(record::PREDICTIONS, format!("it has no column `{name}`"));
        Ok(column_of(&text, name).ok_or_else(missing)?)
    })
}

/// A column of `predictions.csv`, which has numbers alone where it is read, so that commas are ends.
pub fn column_of(text: &str, name: &str) -> Option<Vec<f64>> {
    let mut lines = text.lines();
    let place = lines.next()?.split(',').position(|own| own == name)?;
    let cell = |line: &str| {
        line.split(',').nth(place).and_then(|cell| cell.parse().ok()).unwrap_or(f64::NAN)
    };
    Some(lines.map(cell).collect())
}

/// What the columns of a table say of rows that were held back, or left out one by one. Classes are shown by their
/// scores.
pub fn predictions(
    summary: &Summary,
    column: impl Fn(&str) -> Result<Vec<f64>>,
) -> Result<Option<Predictions>> {
    let (title, target, numbers, classes) = match (&summary.network, &summary.regression) {
        (Some(own), _) => {
            let title = "Predictions for rows that were held back";
            (title, &own.target, own.test.as_ref(), own.class_test.as_ref())
        }
        (_, Some(own)) => {
            let title = "Predictions for every row from all others";
            (title, &own.target, own.left_out.as_ref(), own.left_out_classes.as_ref())
        }
        _ => return Ok(None),
    };
    let empty =
        Predictions { title: title.to_owned(), target: target.clone(), ..Predictions::default() };
    if let Some(scores) = classes {
        let bins = scores.reliability.iter().map(|bin| (bin.promised, bin.seen));
        return Ok(Some(Predictions { rows: scores.rows, reliability: bins.collect(), ..empty }));
    }
    let Some(scores) = numbers else { return Ok(None) };
    let observed = column(column::TARGET)?;
    let chosen = evenly(observed.len(), MOST_STEPS);
    let thinned = |values: &[f64]| -> Vec<f64> {
        chosen.iter().map(|&i| values.get(i).copied().unwrap_or(f64::NAN)).collect()
    };
    let found = [(0.5, scores.coverage_50), (0.9, scores.coverage_90), (0.95, scores.coverage_95)];
    Ok(Some(Predictions {
        rows: observed.len(),
        mean: thinned(&column(column::MEAN)?),
        low: thinned(&column(&column::quantile(0.05))?),
        high: thinned(&column(&column::quantile(0.95))?),
        observed: thinned(&observed),
        pit: scores.pit.clone(),
        coverage: found.into_iter().filter(|(_, found)| found.is_finite()).collect(),
        ..empty
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_samples_are_of_all_chains() {
        let chains: Vec<u64> = (0..100_000).map(|row| row % 100).collect();
        let rows = whole_draws(&chains);
        assert_eq!((rows.len(), rows[0], rows[1999]), (2000, 0, 99_999));
        assert!(rows.iter().enumerate().all(|(k, row)| row % 100 == k % 100));
        let many: Vec<u64> = (0..10_000).map(|row| row % 5000).collect();
        assert_eq!(whole_draws(&many).len(), 2000);
    }
}
