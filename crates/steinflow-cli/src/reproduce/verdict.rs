//! How often the verdict on a run is right: over targets whose exact draws or moments are known, methods and
//! seeds. The verdict is not told what is known.

mod tables;
mod targets;
mod truth;

use std::fmt::Write as _;
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::Error as LibraryError;
use steinflow::diagnostics::{Course, StopRule, Verdict};
use steinflow::dynamics::{Dynamics, Langevin};
use steinflow::run::{Samples, Trace};
use steinflow_config::Settings;

use super::posteriors;
use super::study::Study;
use crate::args::VerdictArguments;
use crate::diagnose::verdict::{Left, judge_by};
use crate::error::Result;
use crate::sample::start_threads;
use targets::Target;
use truth::{Measured, Truth};

/// The settings that ship with the command.
const SETTINGS: &str = include_str!("../../../../experiments/verdict/settings.toml");

#[derive(Deserialize)]
struct Plan {
    particles: usize,
    seeds: Vec<u64>,
    target: Vec<Target>,
    run: Vec<Row>,
}

/// One way to get particles.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    label: Option<String>,
    #[serde(default)]
    exact: bool,
    step_factor: Option<f64>,
    /// Whether particles begin where the model says, also of methods that find a start by themselves.
    #[serde(default)]
    from_start: bool,
    #[serde(flatten)]
    settings: Settings,
}

impl Row {
    fn label(&self) -> &str {
        self.label.as_deref().or(self.settings.method.as_deref()).unwrap_or("default")
    }
}

/// A run that was judged.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Case {
    verdict: String,
    truth: Truth,
    /// Largest error of a mean, in standard deviations, coordinates made uniform by their exact law.
    mean_error: f64,
    /// Mean over coordinates of the variance, relative to the exact one, in the same scale.
    variance: f64,
    /// The standard error of that in a run that is as good as exact draws.
    variance_error: f64,
    /// Energy distance to exact draws, relative to the largest that as many of those have.
    distance: f64,
    /// Of run and verdict.
    seconds: f64,
    /// Evaluations of all particles that the verdict took.
    cost: f64,
    evidence: String,
}

impl Case {
    /// What the table says of the evidence: all of it where the verdict misleads, and else its headline.
    fn told(&self) -> &str {
        let is_trusted = self.verdict == Verdict::Trust.name();
        match self.truth {
            Truth::Fair => {}
            Truth::Good if is_trusted => {}
            Truth::MeansRight | Truth::Wrong if !is_trusted => {}
            _ => return &self.evidence,
        }
        self.evidence.find(". ").map_or(&self.evidence, |end| &self.evidence[..=end])
    }
}

pub fn run(arguments: &VerdictArguments) -> Result<()> {
    if let Some(path) = &arguments.rows {
        let rows = std::fs::read_to_string(path)
            .map_err(|source| steinflow_config::Error::Unreadable { path: path.clone(), source })?;
        writeln!(std::io::stdout(), "{}", tables::of(&rows))?;
        return Ok(());
    }
    let arguments = &arguments.part;
    start_threads(arguments.threads)?;
    let common = &arguments.common;
    let mut plan: Plan =
        toml::from_str(SETTINGS).map_err(|error| steinflow_config::Error::Wrong {
            path: "experiments/verdict/settings.toml".into(),
            message: error.to_string(),
        })?;
    plan.seeds = arguments.seeds(&plan.seeds);
    if common.quick {
        plan.seeds.truncate(1);
        plan.target.retain(|target| target.dim.is_none_or(|dim| dim <= 10));
    }
    let targets: Vec<String> = plan.target.iter().map(Target::label).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    arguments.check(&targets, &plan.run.iter().map(Row::label).collect::<Vec<_>>())?;
    plan.target.retain(|target| arguments.takes_target(&target.label()));
    plan.run.retain(|row| arguments.takes_way(row.label()));
    let mut jobs = Vec::new();
    let references = posteriors::references();
    for target in &plan.target {
        // Of posteriors moments are known, and no draws.
        let has_draws = !references.contains_key(&target.model);
        for row in plan.run.iter().filter(|row| has_draws || !row.exact) {
            jobs.extend(plan.seeds.iter().map(|&seed| (target, row, seed)));
        }
    }
    let mut study = Study::begin(common, "verdict", SETTINGS)?;
    let mut cases: Vec<Result<Case, String>> = study.run(
        "verdict",
        &jobs,
        |(target, row, seed)| format!("{}, {}, seed {seed}", target.label(), row.label()),
        |&(target, row, seed)| case(&plan, target, row, seed).map_err(|error| error.to_string()),
    )?;
    for of_one_method in cases.chunks_mut(plan.seeds.len().max(1)) {
        find_systematic_errors(of_one_method);
    }
    let mut csv = String::from(
        "target,method,seed,verdict,truth,mean_error,variance,distance,seconds,cost,evidence\n",
    );
    for ((target, row, seed), case) in jobs.iter().zip(&cases) {
        let _ = write!(csv, "\"{}\",\"{}\",{seed},", target.label(), row.label());
        let _ = match case {
            Ok(case) => writeln!(
                csv,
                "{},{},{:.3},{:.3},{:.3},{:.2},{:.0},\"{}\"",
                case.verdict,
                case.truth.name(),
                case.mean_error,
                case.variance,
                case.distance,
                case.seconds,
                case.cost,
                case.told().replace('"', "'")
            ),
            Err(error) => writeln!(csv, "error,,,,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let table = tables::of(&csv);
    study.write("settings.toml", SETTINGS)?;
    study.write("verdict.csv", csv)?;
    study.write("verdict.md", &table)?;
    let path = if arguments.is_part() { study.publish_part()? } else { study.publish()? };
    writeln!(std::io::stdout(), "{table}\n{}", path.display())?;
    Ok(())
}

/// What chance may do to one run it does not do to the mean of several: where that is off by more than what does
/// not matter and what chance does to so many, none of them is good.
fn find_systematic_errors(cases: &mut [Result<Case, String>]) {
    // Runs that have run away say so themselves.
    let finite = cases.iter().flatten().filter(|case| case.distance < f64::MAX);
    let variances: Vec<f64> = finite.map(|case| case.variance).collect();
    let count = variances.len() as f64;
    let mean = variances.iter().sum::<f64>() / count;
    let errors = cases.iter().flatten().map(|case| case.variance_error);
    let chance = truth::ERRORS * errors.fold(0.0, f64::max) / count.sqrt();
    if (mean - 1.0).abs() > 0.15_f64.hypot(chance) {
        for case in cases.iter_mut().flatten() {
            if matches!(case.truth, Truth::Good | Truth::Fair) {
                case.truth = Truth::MeansRight;
            }
        }
    }
}

fn case(plan: &Plan, target: &Target, row: &Row, seed: u64) -> Result<Case> {
    let begun = std::time::Instant::now();
    let mut settings =
        Settings { seed: Some(seed), particles: Some(plan.particles), ..row.settings.clone() };
    if row.from_start {
        let plain = Settings { method: Some("ld".to_owned()), ..Settings::default() };
        let start = target.prepare(plain)?.0.start();
        (settings.start_mean, settings.start_sd) = (Some(start.mean), Some(start.sd));
    }
    let (model, mut config) = target.prepare(settings)?;
    if let Some(factor) = row.step_factor {
        let mut phases = config.phases.clone();
        for phase in &mut phases {
            let step: f64 = phase.step_size.parse().map_err(|_| {
                LibraryError::setting("step-size", &phase.step_size, "a factor needs a number")
            })?;
            phase.step_size = (step * factor).to_string();
        }
        let settings = Settings { phase: Some(phases), ..config.settings().clone() };
        config = target.prepare(settings)?.1;
    }
    let references = posteriors::references();
    let reference = references.get(&target.model);
    let exact = |count: usize, seed: u64| {
        model.exact_sample(count, seed).ok_or_else(|| {
            LibraryError::setting("target", target.label(), "its exact draws must be known")
        })
    };
    let (theta, diagnosis);
    if row.exact {
        theta = exact(plan.particles, 1000 + seed)?;
        let structure = Dynamics::<f64>::structure(&Langevin::new(), model.dim());
        let left = Left {
            particles: (&theta, &structure),
            course: &Course::default(),
            draws: None,
            stop_rule: None,
            warm_moments: None,
            gradients: 0,
        };
        diagnosis = judge_by(&config, &*model, None, &left)?;
    } else {
        let mut samples = config.samples::<f64>();
        let mut trace = Trace::new(config.trace_every);
        let start = config.start(&*model);
        let mut sampler = config.sampler_on(&*model, start, None, None)?.observe(trace.observer());
        if let Some(samples) = &mut samples {
            sampler = sampler.observe(samples.observer());
        }
        match sampler.run() {
            // A run that stops for a score that is not finite has told the truth already.
            Err(LibraryError::NonFinite { .. }) => {
                return Ok(Case {
                    verdict: Verdict::Diverged.name().to_owned(),
                    truth: Truth::Wrong,
                    mean_error: f64::MAX,
                    variance: f64::MAX,
                    variance_error: 0.0,
                    distance: f64::MAX,
                    seconds: begun.elapsed().as_secs_f64(),
                    cost: 0.0,
                    evidence: "not finite".to_owned(),
                });
            }
            Err(error) => return Err(error.into()),
            Ok(outcome) => {
                let drawn = samples.as_ref().filter(|samples| !samples.steps().is_empty());
                theta = drawn.map_or_else(|| outcome.theta(), Samples::theta);
                let rule = outcome.report.as_ref().map(StopRule::from);
                let left = Left {
                    particles: (&outcome.state, &outcome.structure),
                    course: &trace.rows().into(),
                    draws: samples.as_ref(),
                    stop_rule: rule.as_ref(),
                    warm_moments: outcome.warm_moments.as_ref(),
                    gradients: outcome.gradients,
                };
                diagnosis = judge_by(&config, &*model, None, &left)?;
            }
        }
    }
    let truth = match reference {
        Some(reference) => Measured::by_reference(reference, &theta, plan.particles),
        None => Measured::new(&*model, &theta, plan.particles, exact)?,
    };
    let cost = diagnosis.evidence.iter().find(|evidence| evidence.name == "cost of this verdict");
    let evidence: Vec<String> = diagnosis
        .evidence
        .iter()
        .map(|evidence| {
            let mark = if evidence.passed == Some(false) { "!" } else { "" };
            format!("{mark}{} {:.3} ({})", evidence.name, evidence.value, evidence.expected)
        })
        .collect();
    Ok(Case {
        truth: truth.verdict(),
        mean_error: truth.mean_error,
        variance: truth.variance,
        variance_error: truth.variance_error(),
        distance: truth.distance,
        seconds: begun.elapsed().as_secs_f64(),
        cost: cost.map_or(0.0, |cost| cost.value),
        evidence: format!("{} {}", diagnosis.headline, evidence.join("; ")),
        verdict: diagnosis.verdict,
    })
}
