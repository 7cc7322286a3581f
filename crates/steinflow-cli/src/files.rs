//! What a run folder holds: config, particles, trace, summary and a picture, or predictions.

use steinflow::run::{Outcome, Samples, Trace};
use steinflow::{Matrix, Real};
use steinflow_io::plot::{Density, Groups, ParticlePlot, limits_of};
use steinflow_io::record::{self, Summary, column};
use steinflow_io::{Column, RunFolder, Values, write_json, write_parquet};
use steinflow_models::{Model, Units};

use crate::error::Result;
use crate::frames::Frames;
use crate::grid::log_density_grid;
use crate::network::Report;
use steinflow_config::Config;

/// What a run has found.
pub struct Found<'a, T> {
    pub outcome: &'a Outcome<T>,
    pub trace: &'a Trace,
    pub samples: Option<&'a Samples<T>>,
    pub frames: Option<&'a Frames>,
}

pub fn write<T: Real>(
    folder: &mut RunFolder,
    config: &Config,
    model: &dyn Model<T>,
    found: &Found<'_, T>,
    summary: &Summary,
    report: Option<&Report>,
) -> Result<()> {
    let &Found { outcome, trace, samples, frames } = found;
    let names = model.parameter_names();
    let units = model.units();
    let columns = particle_columns(model, units.as_ref(), outcome);
    folder.write_with(record::PARTICLES, |file| write_parquet(&columns, file))?;
    folder.write_with(record::TRACE, |file| write_parquet(&trace_columns(trace), file))?;
    if let Some(samples) = samples {
        let columns = sample_columns(&names, units.as_ref(), samples);
        folder.write_with(record::SAMPLES, |file| write_parquet(&columns, file))?;
    }
    if config.settings().points == Some(true) {
        write_points(folder, &names, model, outcome, samples)?;
    }
    // A plane has room for two.
    if let Some(frames) = frames.filter(|_| names.len() <= 2) {
        let columns = frames.columns(&names, units.as_ref(), outcome);
        folder.write_with(record::FRAMES, |file| write_parquet(&columns, file))?;
    }
    if let Some(fitted) = model.fitted() {
        folder.write_with(record::STANDARDISATION, |file| write_json(&fitted, file))?;
    }
    folder.write_with(record::SUMMARY, |file| write_json(summary, file))?;
    if let Some(report) = report {
        return report.write(folder);
    }
    // Numbers that took a while to get are worth keeping without their picture.
    match picture(config, model, outcome, &names) {
        Ok(png) => folder.write(record::PICTURE, &png)?,
        Err(error) => tell!("warning: there is no picture: {error}"),
    }
    Ok(())
}

fn numbers<T: Real>(values: impl Iterator<Item = T>) -> Values {
    if T::NAME == "f32" {
        Values::F32(values.map(|x| x.as_f64() as f32).collect())
    } else {
        Values::F64(values.map(Real::as_f64).collect())
    }
}

/// z under the names of its columns, then log π.
fn particle_columns<T: Real>(
    model: &dyn Model<T>,
    units: Option<&Units>,
    outcome: &Outcome<T>,
) -> Vec<Column> {
    let names = (&*model.parameter_names(), &*model.coordinate_names());
    let own = record::state_columns(&outcome.structure.block_names(), names);
    let shown = units.map(|units| units.show(&outcome.state));
    let shown = shown.as_ref().unwrap_or(&outcome.state);
    let state = |(j, name): (usize, String)| Column {
        name,
        values: numbers((0..shown.rows()).map(|i| shown.row(i)[j])),
    };
    let mut columns: Vec<Column> = own.into_iter().enumerate().map(state).collect();
    let values = numbers(outcome.log_density.iter().copied());
    columns.push(Column { name: column::LOG_DENSITY.to_owned(), values });
    columns
}

/// The particle (`chain`) and the collection (`draw`) of every sample, its step, then θ.
fn sample_columns<T: Real>(
    names: &[String],
    units: Option<&Units>,
    samples: &Samples<T>,
) -> Vec<Column> {
    let (theta, chains) = (samples.theta(), samples.chains().max(1));
    let theta = units.map_or_else(|| theta.clone(), |units| units.show(&theta));
    let count = |name: &str, of: &dyn Fn(usize) -> u64| Column {
        name: name.to_owned(),
        values: Values::U64((0..theta.rows()).map(of).collect()),
    };
    let mut columns = vec![
        count(column::CHAIN, &|row| (row % chains) as u64),
        count(column::DRAW, &|row| (row / chains) as u64),
        count(column::STEP, &|row| samples.steps()[row / chains]),
    ];
    columns.extend(names.iter().enumerate().map(|(j, name)| Column {
        name: name.clone(),
        values: numbers((0..theta.rows()).map(|i| theta.row(i)[j])),
    }));
    columns
}

/// Points at rest, unless they are refused.
fn write_points<T: Real>(
    folder: &mut RunFolder,
    names: &[String],
    model: &dyn Model<T>,
    outcome: &Outcome<T>,
    samples: Option<&Samples<T>>,
) -> Result<()> {
    let draws = samples.map_or_else(|| outcome.theta(), Samples::theta);
    match outcome.at_rest(model, draws.as_ref()) {
        Ok(points) => {
            let points = match model.units() {
                Some(units) => units.show(&points),
                None => points,
            };
            let column = |(j, name): (usize, &String)| Column {
                name: name.clone(),
                values: numbers((0..points.rows()).map(|i| points.row(i)[j])),
            };
            let columns: Vec<Column> = names.iter().enumerate().map(column).collect();
            folder.write_with(record::POINTS, |file| write_parquet(&columns, file))?;
        }
        Err(error) => tell!("note: there are no points at rest: {error}"),
    }
    Ok(())
}

fn trace_columns(trace: &Trace) -> Vec<Column> {
    let rows = trace.rows();
    let float = |name: &str, of: &dyn Fn(&steinflow::run::TraceRow) -> f64| Column {
        name: name.to_owned(),
        values: Values::F64(rows.iter().map(of).collect()),
    };
    let count = |name: &str, of: &dyn Fn(&steinflow::run::TraceRow) -> u64| Column {
        name: name.to_owned(),
        values: Values::U64(rows.iter().map(of).collect()),
    };
    vec![
        count(column::STEP, &|row| row.step),
        float(column::MEAN_LOG_DENSITY, &|row| row.mean_log_density),
        float(column::VELOCITY_NORM, &|row| row.velocity_norm),
        float(column::BANDWIDTH, &|row| row.bandwidth.unwrap_or(f64::NAN)),
        float(column::KSD, &|row| row.stein_discrepancy.unwrap_or(f64::NAN)),
        float(column::STEP_SIZE, &|row| row.step_size),
        count(column::GRADIENTS, &|row| row.gradients),
        float(column::SECONDS, &|row| row.seconds),
    ]
}

fn picture<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    outcome: &Outcome<T>,
    names: &[String],
) -> Result<Vec<u8>> {
    let mut points: Matrix<f64> = outcome.theta().cast();
    let units = model.units();
    if let Some(units) = &units {
        points = units.show(&points);
    }
    let caption =
        format!("{}, {} particles, {} steps", config.method, config.particles, outcome.steps);
    let limits =
        |j: usize| limits_of(&(0..points.rows()).map(|i| points.row(i)[j]).collect::<Vec<_>>());
    let grid;
    let density = match points.cols() {
        // The density is one of θ, and not of what is shown.
        _ if units.is_some() => None,
        1 => {
            let mut limits = limits(0);
            // The target as it is, not as the particles see it.
            if let Some(exact) = model.exact_moments() {
                let (mean, sd) = (exact.mean[0], exact.covariance.row(0)[0].sqrt());
                limits = (limits.0.min(mean - 4.0 * sd), limits.1.max(mean + 4.0 * sd));
            }
            grid = log_density_grid(model, &[limits], 400)?;
            Some(Density::Line { limits, log_density: grid.as_slice() })
        }
        2 => {
            let [x, y] = match model.window() {
                Some([x, y]) => [x.into(), y.into()],
                None => [limits(0), limits(1)],
            };
            grid = log_density_grid(model, &[x, y], 200)?;
            Some(Density::Plane { x, y, log_density: grid.as_ref() })
        }
        _ => None,
    };
    let parts = model.parts();
    let index: Vec<usize> = parts
        .iter()
        .flat_map(|parts| (0..points.rows()).map(|i| parts.classify(points.row(i))))
        .collect();
    let groups = parts.as_ref().map(|parts| Groups { index: &index, names: parts.names() });
    // Which crescent a particle is in can be seen; colours help where it cannot.
    let groups = groups.filter(|_| points.cols() != 2);
    let plot = ParticlePlot {
        points: points.as_ref(),
        names,
        title: config.spec().title(),
        caption: &caption,
        density,
        groups,
    };
    Ok(plot.draw()?.png()?)
}
