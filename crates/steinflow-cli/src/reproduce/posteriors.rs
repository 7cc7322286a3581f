//! The default sampler and the de-randomised methods on posteriors on raw scales, against references by
//! long runs of two other samplers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::Matrix;
use steinflow::diagnostics::StopRule;
use steinflow::run::Trace;
use steinflow_config::{AUTO, Config, Settings};
use steinflow_models::ModelSpec;
use steinflow_models::posteriors::{self, Half};

use super::study::Study;
use crate::args::PartArguments;
use crate::diagnose::verdict::{Left, judge};
use crate::error::Result;
use crate::sample::start_threads;

const REFERENCES: &str = include_str!("../../../../experiments/posteriors/references.csv");
const SEEDS: [u64; 3] = [0, 1, 2];
const METHODS: [&str; 4] = [AUTO, "svgd", "sghmc-stein", "third-order-stein"];

/// Mean and standard deviation of every parameter.
pub type Reference = Vec<(String, f64, f64)>;

/// One run.
#[derive(Clone, Deserialize, Serialize)]
struct Found {
    /// The largest error of a mean, in standard deviations of the reference.
    mean_error: f64,
    /// The standard deviation that is furthest off, relative to the reference's.
    sd_ratio: f64,
    /// Evaluations of the target, of all particles together.
    evaluations: u64,
    seconds: f64,
    ended: String,
    verdict: String,
}

impl Found {
    fn is_within(&self, mean: f64, sd: f64) -> bool {
        self.mean_error <= mean && (self.sd_ratio - 1.0).abs() <= sd
    }

    /// Means within 0.1 standard deviations, standard deviations within 5 %.
    fn is_strict(&self) -> bool {
        self.is_within(0.1, 0.05)
    }

    /// Means within 0.3 standard deviations, standard deviations within 20 %.
    fn is_loose(&self) -> bool {
        self.is_within(0.3, 0.2)
    }
}

/// The posteriors that have a reference.
pub fn references() -> BTreeMap<String, Reference> {
    let mut found: BTreeMap<String, Reference> = BTreeMap::new();
    for line in REFERENCES.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [posterior, parameter, mean, sd, ..] = cells[..]
            && let (Ok(mean), Ok(sd)) = (mean.parse(), sd.parse())
        {
            let rows = found.entry(posterior.to_owned()).or_default();
            rows.push((parameter.to_owned(), mean, sd));
        }
    }
    found
}

pub fn run(arguments: &PartArguments) -> Result<()> {
    start_threads(arguments.threads)?;
    let common = &arguments.common;
    let references = references();
    arguments.check(&references.keys().map(String::as_str).collect::<Vec<_>>(), &METHODS)?;
    let mut jobs = Vec::new();
    for (name, reference) in references.iter().filter(|(name, _)| arguments.takes_target(name)) {
        for method in METHODS.into_iter().filter(|method| arguments.takes_way(method)) {
            let seeds = arguments.seeds(&SEEDS);
            let seeds = seeds.into_iter().take(if common.quick { 1 } else { usize::MAX });
            jobs.extend(seeds.map(|seed| (name, reference, method, seed)));
        }
    }
    if common.quick {
        jobs.retain(|(_, reference, method, _)| *method == AUTO && reference.len() <= 4);
    }
    let mut study = Study::begin(common, "posteriors", REFERENCES)?;
    let results = study.run(
        "posteriors",
        &jobs,
        |(name, _, method, seed)| format!("{name}, {method}, seed {seed}"),
        |(name, reference, method, seed)| {
            compare(name, reference, method, *seed).map_err(|error| error.to_string())
        },
    )?;
    let mut csv = String::from(
        "posterior,half,dim,method,seed,mean_error,sd_ratio,strict,loose,evaluations,seconds,ended,verdict,error\n",
    );
    let mut cells: Vec<(&str, &str, &Found)> = Vec::new();
    for ((name, reference, method, seed), result) in jobs.iter().zip(&results) {
        let half = match posteriors::find(name).map(|info| info.half) {
            Some(Half::Open) => "open",
            _ => "apart",
        };
        let _ = write!(csv, "{name},{half},{},{method},{seed},", reference.len());
        let _ = match result {
            Ok(found) => {
                cells.push((half, method, found));
                writeln!(
                    csv,
                    "{:.4},{:.4},{},{},{},{:.2},{},{},",
                    found.mean_error,
                    found.sd_ratio,
                    found.is_strict(),
                    found.is_loose(),
                    found.evaluations,
                    found.seconds,
                    found.ended,
                    found.verdict
                )
            }
            Err(error) => writeln!(csv, ",,,,,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let failed = results.iter().filter(|result| result.is_err()).count();
    let table = table(&cells, failed);
    study.write("posteriors.csv", csv)?;
    study.write("posteriors.md", &table)?;
    let path = if arguments.is_part() { study.publish_part()? } else { study.publish()? };
    writeln!(std::io::stdout(), "{table}\n{}", path.display())?;
    Ok(())
}

/// A run with no setting but the method and the seed, against the reference.
fn compare(name: &str, reference: &Reference, method: &str, seed: u64) -> Result<Found> {
    let settings = Settings {
        spec: ModelSpec::named(name),
        method: Some(method.to_owned()),
        seed: Some(seed),
        ..Settings::default()
    };
    let config = Config::resolve(settings)?;
    let model = steinflow_models::build::<f64>(config.spec())?;
    let (mut samples, mut trace) = (config.samples::<f64>(), Trace::new(config.trace_every));
    let mut run = config.sampler(&*model)?.observe(trace.observer());
    if let Some(samples) = &mut samples {
        run = run.observe(samples.observer());
    }
    let outcome = run.run()?;
    let rule = outcome.report.as_ref().map(StopRule::from);
    let warm = outcome.warm_moments.as_ref();
    let course = trace.rows().into();
    let left = Left {
        particles: (&outcome.state, &outcome.structure),
        course: &course,
        draws: samples.as_ref(),
        stop_rule: rule.as_ref(),
        warm_moments: warm,
        gradients: outcome.gradients,
    };
    let diagnosis = judge(&config, &*model, &left)?;
    let theta: Matrix<f64> = samples
        .filter(|samples| !samples.steps().is_empty())
        .map_or_else(|| outcome.theta(), |samples| samples.theta());
    let (mut mean_error, mut sd_ratio) = (0.0_f64, 1.0_f64);
    let count = theta.rows() as f64;
    for (j, (_, mean, sd)) in reference.iter().enumerate() {
        let column = || (0..theta.rows()).map(|i| theta.row(i)[j]);
        let own = column().sum::<f64>() / count;
        let ratio = (column().map(|x| (x - own).powi(2)).sum::<f64>() / count).sqrt() / sd;
        mean_error = mean_error.max((own - mean).abs() / sd);
        if (ratio - 1.0).abs() > (sd_ratio - 1.0).abs() {
            sd_ratio = ratio;
        }
    }
    Ok(Found {
        mean_error,
        sd_ratio,
        evaluations: outcome.report.as_ref().map_or_else(
            || outcome.gradients * config.particles as u64,
            |report| report.evaluations,
        ),
        seconds: outcome.elapsed.as_secs_f64(),
        ended: outcome.ended.name().to_owned(),
        verdict: diagnosis.verdict,
    })
}

/// Passes by method and half, as Markdown.
fn table(cells: &[(&str, &str, &Found)], failed: usize) -> String {
    let mut table = String::from(
        "| method | half | runs | strict | loose | wrong | wrong and trusted | strict and trusted | median gradients | \
         median seconds |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for method in METHODS {
        for half in ["open", "apart"] {
            let own: Vec<&Found> = cells
                .iter()
                .filter(|(its_half, its_method, _)| *its_half == half && *its_method == method)
                .map(|(_, _, found)| *found)
                .collect();
            if own.is_empty() {
                continue;
            }
            let count = |is: &dyn Fn(&Found) -> bool| own.iter().filter(|found| is(found)).count();
            let median = |of: &dyn Fn(&Found) -> f64| {
                let mut values: Vec<f64> = own.iter().map(|found| of(found)).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let trusted = |found: &Found| found.verdict == "trust";
            let _ = writeln!(
                table,
                "| {method} | {half} | {} | {} | {} | {} | {} | {} | {:.0} | {:.2} |",
                own.len(),
                count(&Found::is_strict),
                count(&|found| found.is_loose() && !found.is_strict()),
                count(&|found| !found.is_loose()),
                count(&|found| !found.is_loose() && trusted(found)),
                count(&|found| found.is_strict() && trusted(found)),
                median(&|found| found.evaluations as f64),
                median(&|found| found.seconds),
            );
        }
    }
    if failed > 0 {
        let _ = writeln!(table, "\n{failed} runs failed; `posteriors.csv` says why.");
    }
    table
}
