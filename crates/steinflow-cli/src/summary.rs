//! What a run found, against what is known: for people as tables, for programs as JSON.

use std::io::Write as _;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use steinflow::run::{Outcome, Samples};
use steinflow::{MatRef, Real};
use steinflow_io::record::{self, Diagnosis, Ensemble, Moment, Part, Summary, WarmUp};
use steinflow_models::Model;

use crate::diagnose::verdict;
use crate::error::Result;
use crate::fit;
use crate::network::{self, Report};
use steinflow_config::Config;

/// Moments, of parameters as they are shown, and shares are those of the collected samples where there are any, otherwise of the last
/// particles. A network has a summary of its own: nobody asks for the mean of a weight. A regression also has a table of
/// predictions.
pub fn summarise<T: Real>(
    config: &Config,
    model: &dyn Model<T>,
    outcome: &Outcome<T>,
    samples: Option<&Samples<T>>,
    report: Option<&Report>,
    diagnosis: Option<Diagnosis>,
) -> (Summary, Option<String>) {
    let samples = samples.filter(|samples| !samples.steps().is_empty());
    let theta = samples.map_or_else(|| outcome.theta(), Samples::theta);
    let count = theta.rows() as f64;
    let shown = model.units().map(|units| units.show(&theta));
    let shown = shown.as_ref().unwrap_or(&theta);
    let names = if report.is_some() { Vec::new() } else { model.parameter_names() };
    let moments = names.into_iter().enumerate().map(|(j, name)| {
        let values = || (0..shown.rows()).map(|i| shown.row(i)[j].as_f64());
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        Moment { name, mean, sd: variance.sqrt(), exact_mean: None, exact_sd: None }
    });
    let mut moments: Vec<Moment> = moments.collect();
    add_exact(&mut moments, model);
    let mut warnings = warnings(outcome);
    let chains = samples.map_or(theta.rows(), Samples::chains);
    let fit = fit::judge(config, model, shown, chains).unwrap_or_else(|error| {
        warnings.push(format!("how the data is fitted cannot be said: {error}"));
        None
    });
    warnings.extend(report.and_then(|report| report.trouble.clone()));
    let log_density = outcome.log_density.iter().map(|x| x.as_f64()).sum::<f64>();
    let (regression, csv) = fit.map(|fit| (fit.regression, fit.csv)).unzip();
    let summary = Summary {
        steinflow_version: env!("CARGO_PKG_VERSION").to_owned(),
        model: config.spec().title().to_owned(),
        method: config.method.clone(),
        particles: outcome.state.rows(),
        samples: samples.map(|_| theta.rows()),
        steps: outcome.steps,
        ended: outcome.ended.name().to_owned(),
        gradients: outcome.gradients,
        seconds: outcome.elapsed.as_secs_f64(),
        mean_log_density: log_density / outcome.log_density.len() as f64,
        moments,
        ensemble: outcome.report.as_ref().map(|report| Ensemble {
            done: report.done,
            reasons: report.reasons.iter().map(ToString::to_string).collect(),
            draws: report.draws,
            effective: report.effective,
            rhat: report.rhat,
            drift: report.drift,
            acceptance: report.acceptance,
            step_size: report.step_size,
            modes: report.modes,
            bends: report.bends.clone(),
            warm_up: report.warm_up,
            evaluations: report.evaluations,
        }),
        warm_up: outcome.warm_moments.as_ref().map(|draws| WarmUp {
            draws: draws.draws,
            mean: draws.mean.clone(),
            sd: draws.sd.clone(),
            standing: draws.standing.name().to_owned(),
        }),
        network: report.map(|report| report.summary.clone()),
        regression,
        parts: parts(model, theta.as_ref()),
        frozen_particles: outcome.frozen.clone(),
        step_size_halvings: outcome.shrinks,
        warnings,
        diagnosis,
    };
    (summary, csv)
}

/// Puts what is known beside what was found.
pub fn add_exact<T: Real>(moments: &mut [Moment], model: &dyn Model<T>) {
    let Some(exact) = model.shown_moments() else { return };
    for (j, moment) in moments.iter_mut().enumerate().take(exact.mean.len()) {
        moment.exact_mean = Some(exact.mean[j]);
        moment.exact_sd = Some(exact.covariance.row(j)[j].sqrt());
    }
}

/// How many of the particles are in each part of a target that has some.
pub fn parts<T: Real>(model: &dyn Model<T>, theta: MatRef<'_, T>) -> Vec<Part> {
    let Some(parts) = model.parts() else { return Vec::new() };
    let found = parts.shares().iter().zip(parts.shares_of(theta));
    let part = |(name, (&exact_share, share)): (&String, (&f64, f64))| Part {
        name: name.clone(),
        share,
        exact_share,
    };
    parts.names().iter().zip(found).map(part).collect()
}

/// What a program is told: the summary, and where the run is.
#[derive(Serialize)]
struct Told<'a> {
    folder: &'a Path,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// For people, or for programs.
pub fn print(summary: &Summary, folder: &Path, json: bool) -> Result<()> {
    let mut out = anstream::stdout().lock();
    if json {
        let told = Told { folder, summary };
        steinflow_io::write_json(&told, &mut out)?;
        writeln!(out)?;
        return Ok(());
    }
    writeln!(
        out,
        "{} on {}: {} particles, {} steps ({}), {} gradients, {:.2} s",
        summary.method,
        summary.model,
        summary.particles,
        summary.steps,
        summary.ended,
        summary.gradients,
        summary.seconds
    )?;
    if let Some(ensemble) = &summary.ensemble {
        print_ensemble(ensemble, &mut out)?;
    }
    if let Some(network) = &summary.network {
        network::print(network, &mut out)?;
    } else {
        if let Some(samples) = summary.samples {
            writeln!(out, "{samples} samples collected; moments and shares are theirs")?;
        }
        writeln!(out, "\n{}", moments_table(&summary.moments))?;
        if let Some(regression) = &summary.regression {
            fit::print(regression, &mut out)?;
        }
    }
    if !summary.parts.is_empty() {
        writeln!(out, "\n{}", parts_table(&summary.parts))?;
    }
    if !summary.frozen_particles.is_empty() {
        writeln!(out, "\nfrozen for a non-finite score: particles {:?}", summary.frozen_particles)?;
    }
    if summary.step_size_halvings > 0 {
        let halvings = summary.step_size_halvings;
        writeln!(out, "\nthe step size was halved {halvings} times for non-finite scores")?;
    }
    for warning in &summary.warnings {
        writeln!(out, "\nwarning: {warning}")?;
    }
    if let Some(diagnosis) = &summary.diagnosis {
        verdict::print_short(diagnosis, &mut out)?;
    }
    writeln!(out, "\n{}", folder.display())?;
    for (name, what) in [
        (record::PICTURE, "picture"),
        (record::PREDICTIONS_PICTURE, "picture"),
        (record::PREDICTIONS, "one row a row held back, or left out"),
        (record::STANDARDISATION, "what `steinflow predict` needs beside the particles"),
        (record::PARTICLES, "one row a particle"),
        (record::SAMPLES, "one row a collected sample"),
        (record::POINTS, "points at rest with equal weights, for expensive models"),
        (record::TRACE, "the course of the run"),
        (record::FRAMES, "the particles at 50 to 100 steps of it"),
        (record::SUMMARY, "these numbers"),
        (record::DIAGNOSIS, "the verdict and what it rests on"),
        (record::CONFIG, "run it again: steinflow sample --config"),
    ] {
        // A picture may be missing, and not every run has every file.
        if folder.join(name).exists() {
            writeln!(out, "  {name:<20} {what}")?;
        }
    }
    let page = folder.join(record::REPORT);
    match std::path::absolute(&page) {
        Ok(address) if page.exists() => writeln!(out, "\nsee it: file://{}", address.display())?,
        _ => writeln!(out, "\nsee it: steinflow report {}", folder.display())?,
    }
    Ok(())
}

/// What the ensemble says of itself.
fn print_ensemble(ensemble: &Ensemble, out: &mut impl std::io::Write) -> Result<()> {
    let Ensemble { effective, rhat, draws, evaluations, .. } = ensemble;
    if *draws == 0 {
        writeln!(out, "no draw yet: the warm-up is not over")?;
        return Ok(());
    }
    writeln!(
        out,
        "{draws} draws of each particle, worth {effective:.0} independent ones; R̂ {rhat:.3}; the target was \
         evaluated {evaluations} times in all"
    )?;
    if ensemble.modes > 1 {
        writeln!(out, "{} modes were found and are jumped between", ensemble.modes)?;
    }
    for reason in &ensemble.reasons {
        writeln!(out, "not done: {reason}")?;
    }
    Ok(())
}

fn moments_table(moments: &[Moment]) -> Table {
    /// More rows than this are for `summary.json`.
    const MOST_ROWS: usize = 12;
    let exact = moments.first().is_some_and(|row| row.exact_mean.is_some());
    let mut header = vec!["", "mean", "sd"];
    if exact {
        header.extend(["exact mean", "exact sd"]);
    }
    let number = |x: f64| {
        if x == 0.0 || (1e-3..1e6).contains(&x.abs()) {
            format!("{x:.4}")
        } else {
            format!("{x:.3e}")
        }
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in moments.iter().take(MOST_ROWS) {
        let mut cells = vec![row.name.clone(), number(row.mean), number(row.sd)];
        cells.extend([row.exact_mean, row.exact_sd].into_iter().flatten().map(number));
        rows.push(cells);
    }
    if moments.len() > MOST_ROWS {
        rows.push(vec![format!("… {} more", moments.len() - MOST_ROWS)]);
    }
    table(&header, rows)
}

fn parts_table(parts: &[Part]) -> Table {
    let percent = |x: f64| format!("{:.0} %", 100.0 * x);
    let rows = parts
        .iter()
        .map(|part| vec![part.name.clone(), percent(part.share), percent(part.exact_share)]);
    table(&["part", "share", "exact"], rows.collect())
}

/// Signs that the particles are not what was asked for.
fn warnings<T: Real>(outcome: &Outcome<T>) -> Vec<String> {
    let mut warnings = Vec::new();
    let theta = outcome.theta();
    if theta.rows() > 1 && (1..theta.rows()).all(|i| theta.row(i) == theta.row(0)) {
        warnings
            .push("all particles are at one point; start them apart with --start-sd".to_owned());
    }
    if outcome.steps == 0 {
        warnings.push("no step was taken: these are the starting particles".to_owned());
    }
    warnings
}

/// Text on the left, numbers on the right.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Four digits, or as many as a large number has.
pub fn short(x: f64) -> String {
    let digits = if x == 0.0 { 3.0 } else { 3.0 - x.abs().log10().floor() };
    if (0.0..=7.0).contains(&digits) {
        format!("{x:.0$}", digits as usize)
    } else if (-4.0..0.0).contains(&digits) {
        format!("{x:.0}")
    } else {
        format!("{x:.3e}")
    }
}
