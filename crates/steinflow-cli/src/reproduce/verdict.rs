//! How often the verdict on a run is right: over targets whose exact draws are known, methods and seeds.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::diagnostics::{Course, EnergyDistance, StopRule, Verdict};
use steinflow::dynamics::Langevin;
use steinflow::run::{Samples, Trace};
use steinflow::{Error as LibraryError, Matrix};
use steinflow_io::RunFolder;
use steinflow_models::Model;

use super::jobs;
use crate::args::CommonArguments;
use crate::diagnose::verdict::judge;
use crate::error::Result;
use steinflow_config::Config;
use steinflow_config::Settings;
use steinflow_models::ModelSpec;

/// The settings that ship with the command.
const SETTINGS: &str = include_str!("../../../../experiments/verdict/settings.toml");

#[derive(Deserialize)]
struct Plan {
    particles: usize,
    seeds: Vec<u64>,
    target: Vec<Target>,
    run: Vec<Row>,
}

#[derive(Deserialize)]
struct Target {
    model: String,
    dim: Option<usize>,
}

impl Target {
    fn label(&self) -> String {
        self.dim.map_or_else(|| self.model.clone(), |dim| format!("{}, d = {dim}", self.model))
    }
}

/// One way to get particles.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    label: Option<String>,
    #[serde(default)]
    exact: bool,
    step_factor: Option<f64>,
    #[serde(flatten)]
    settings: Settings,
}

impl Row {
    fn label(&self) -> &str {
        self.label.as_deref().or(self.settings.method.as_deref()).unwrap_or("default")
    }
}

/// What the particles are really like.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Truth {
    /// Means and spreads off by no more than what does not matter.
    Good,
    /// By more, but no more than as many exact draws may be by chance.
    Fair,
    /// Means are right, spreads or shape are not.
    MeansRight,
    /// Means are wrong.
    Wrong,
}

impl Truth {
    const ALL: [Self; 4] = [Self::Good, Self::Fair, Self::MeansRight, Self::Wrong];

    fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::MeansRight => "means right",
            Self::Wrong => "wrong",
        }
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
    /// Energy distance to exact draws, relative to the largest that as many of those have.
    distance: f64,
    evidence: String,
}

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut plan: Plan =
        toml::from_str(SETTINGS).map_err(|error| steinflow_config::Error::Wrong {
            path: "experiments/verdict/settings.toml".into(),
            message: error.to_string(),
        })?;
    if arguments.quick {
        plan.seeds.truncate(1);
        plan.target.retain(|target| target.dim.is_none_or(|dim| dim <= 10));
    }
    let mut folder = RunFolder::create(arguments.out("verdict"), arguments.force)?;
    let mut jobs = Vec::new();
    for target in &plan.target {
        for row in &plan.run {
            jobs.extend(plan.seeds.iter().map(|&seed| (target, row, seed)));
        }
    }
    let journal = jobs::Ledger::open(&folder, SETTINGS)?;
    let mut cases: Vec<Result<Case, String>> = journal.run(
        "verdict",
        &jobs,
        |(target, row, seed)| format!("{}, {}, seed {seed}", target.label(), row.label()),
        |&(target, row, seed)| case(&plan, target, row, seed).map_err(|error| error.to_string()),
    )?;
    for of_one_method in cases.chunks_mut(plan.seeds.len()) {
        find_systematic_errors(of_one_method);
    }
    let mut csv =
        String::from("target,method,seed,verdict,truth,mean_error,variance,distance,evidence\n");
    for ((target, row, seed), case) in jobs.iter().zip(&cases) {
        let _ = write!(csv, "\"{}\",\"{}\",{seed},", target.label(), row.label());
        let _ = match case {
            Ok(case) => writeln!(
                csv,
                "{},{},{:.3},{:.3},{:.3},\"{}\"",
                case.verdict,
                case.truth.name(),
                case.mean_error,
                case.variance,
                case.distance,
                case.evidence
            ),
            Err(error) => writeln!(csv, "error,,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let good: Vec<&Case> = cases.iter().flatten().collect();
    let table = table(&good);
    folder.write("settings.toml", SETTINGS.as_bytes())?;
    folder.write("verdict.csv", csv.as_bytes())?;
    folder.write("verdict.md", table.as_bytes())?;
    let path = folder.commit()?;
    journal.delete()?;
    writeln!(std::io::stdout(), "{table}\n{}", path.display())?;
    Ok(())
}

/// What chance may do to one run it does not do to the mean of ten: where that is off, none of them is
/// good.
fn find_systematic_errors(cases: &mut [Result<Case, String>]) {
    // Runs that have run away say so themselves.
    let finite = cases.iter().flatten().filter(|case| case.distance < f64::MAX);
    let variances: Vec<f64> = finite.map(|case| case.variance).collect();
    let mean = variances.iter().sum::<f64>() / variances.len() as f64;
    if (mean - 1.0).abs() > 0.15 {
        for case in cases.iter_mut().flatten() {
            if matches!(case.truth, Truth::Good | Truth::Fair) {
                case.truth = Truth::MeansRight;
            }
        }
    }
}

fn case(plan: &Plan, target: &Target, row: &Row, seed: u64) -> Result<Case> {
    let settings = Settings {
        spec: ModelSpec { dim: target.dim, ..ModelSpec::named(&target.model) },
        seed: Some(seed),
        particles: Some(plan.particles),
        ..row.settings.clone()
    };
    let mut config = Config::resolve(settings)?;
    if let Some(factor) = row.step_factor {
        let mut phases = config.phases.clone();
        for phase in &mut phases {
            let step: f64 = phase.step_size.parse().map_err(|_| {
                LibraryError::setting("step-size", &phase.step_size, "a factor needs a number")
            })?;
            phase.step_size = (step * factor).to_string();
        }
        config = Config::resolve(Settings { phase: Some(phases), ..config.settings().clone() })?;
    }
    let model = steinflow_models::build::<f64>(config.spec())?;
    let exact = |count: usize, seed: u64| {
        model.exact_sample(count, seed).ok_or_else(|| {
            LibraryError::setting("target", &target.model, "its exact draws must be known")
        })
    };
    let (theta, diagnosis);
    if row.exact {
        theta = exact(plan.particles, 1000 + seed)?;
        let structure =
            steinflow::dynamics::Dynamics::<f64>::structure(&Langevin::new(), model.dim());
        diagnosis =
            judge(&config, &*model, (&theta, &structure), &Course::default(), None, None, None)?;
    } else {
        let mut samples = config.samples::<f64>();
        let mut trace = Trace::new(config.trace_every);
        let mut sampler = config.sampler(&*model)?.observe(trace.observer());
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
                    distance: f64::MAX,
                    evidence: "not finite".to_owned(),
                });
            }
            Err(error) => return Err(error.into()),
            Ok(outcome) => {
                theta = samples.as_ref().map_or_else(|| outcome.theta(), Samples::theta);
                let state = (&outcome.state, &outcome.structure);
                let rule = outcome.report.as_ref().map(StopRule::from);
                let warm = outcome.warm_moments.as_ref();
                let course = trace.rows().into();
                diagnosis =
                    judge(&config, &*model, state, &course, samples.as_ref(), rule.as_ref(), warm)?;
            }
        }
    }
    let truth = Measured::new(&*model, &theta, plan.particles, exact)?;
    let evidence: Vec<String> = diagnosis
        .evidence
        .iter()
        .map(|evidence| {
            let mark = if evidence.passed == Some(false) { "!" } else { "" };
            format!("{mark}{} {:.3} ({})", evidence.name, evidence.value, evidence.expected)
        })
        .collect();
    Ok(Case {
        verdict: diagnosis.verdict,
        truth: truth.verdict(),
        mean_error: truth.mean_error,
        variance: truth.variance,
        distance: truth.distance,
        evidence: evidence.join("; "),
    })
}

/// The sample against exact draws.
struct Measured {
    mean_error: f64,
    mean_bound: f64,
    density_error: f64,
    density_bound: f64,
    variance: f64,
    variance_error: f64,
    worst_variance: f64,
    worst_error: f64,
    distance: f64,
}

/// Exact draws that samples are compared with.
const REFERENCE: usize = 2000;
/// Sets of exact draws that show what distance to expect.
const REPLICATES: u64 = 30;

impl Measured {
    fn new(
        model: &dyn Model<f64>,
        theta: &Matrix<f64>,
        count: usize,
        exact: impl Fn(usize, u64) -> Result<Matrix<f64>, LibraryError>,
    ) -> Result<Self> {
        let reference = exact(REFERENCE, 0)?;
        let log_densities = |theta: &Matrix<f64>| -> Result<Vec<f64>> {
            let mut log_density = vec![0.0; theta.rows()];
            let mut score = Matrix::zeros(theta.rows(), theta.cols());
            model.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
            Ok(log_density)
        };
        let dim = theta.cols();
        let columns: Vec<Vec<f64>> = (0..dim)
            .map(|j| {
                let mut column: Vec<f64> = (0..REFERENCE).map(|i| reference.row(i)[j]).collect();
                column.sort_by(f64::total_cmp);
                column
            })
            .collect();
        // Uniform where the sample is right, whatever the tails.
        let uniform = |sample: &Matrix<f64>| {
            Matrix::from_fn(sample.rows(), dim, |i, j| {
                let below = columns[j].partition_point(|&x| x < sample.row(i)[j]);
                below as f64 / REFERENCE as f64
            })
        };
        // Draws beyond the reference, which begins the same sequence.
        let thinned = thin(theta, 1000);
        let (sample, n) = (uniform(theta), count as f64);
        let (mut mean_error, mut variances) = (0.0f64, Vec::new());
        for j in 0..dim {
            let values = || (0..sample.rows()).map(|i| sample.row(i)[j]);
            let mean = values().sum::<f64>() / sample.rows() as f64;
            let variance = values().map(|u| (u - mean).powi(2)).sum::<f64>() / sample.rows() as f64;
            mean_error = mean_error.max((mean - 0.5).abs() * 12f64.sqrt());
            variances.push(12.0 * variance);
        }
        // How thin the particles of a ridge are, and how wide particles are along all directions together:
        // variance that is off by a part changes a Gaussian's mean log density by that part of d/2.
        let (known, found) = (log_densities(&reference)?, log_densities(theta)?);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let square = known.iter().map(|x| (x - mean(&known)).powi(2)).sum::<f64>();
        let sd = (square / known.len() as f64).sqrt();
        let density_error = (mean(&found) - mean(&known)).abs() / (0.5 * dim as f64);
        let density_bound = 3.3 * sd / n.sqrt() / (0.5 * dim as f64);
        let distance = EnergyDistance::to(reference.as_ref())?;
        let usual = (1..=REPLICATES)
            .map(|seed| Ok(distance.of(exact(count, 5000 + seed)?.as_ref())?))
            .collect::<Result<Vec<f64>>>()?;
        let largest = usual.iter().copied().fold(0.0, f64::max);
        let off = |v: &f64| (v - 1.0).abs();
        let worst = variances.iter().copied().max_by(|a, b| off(a).total_cmp(&off(b)));
        Ok(Self {
            mean_error,
            density_error,
            density_bound,
            mean_bound: 3.3 / n.sqrt(),
            variance: variances.iter().sum::<f64>() / dim as f64,
            // The variance of a uniform sample's variance is 0.8/N of its square.
            variance_error: 3.3 * (0.8 / (n * dim as f64)).sqrt(),
            worst_variance: worst.unwrap_or(1.0),
            worst_error: 3.3 * (0.8 / n).sqrt(),
            distance: distance.of(thinned.as_ref())? / largest,
        })
    }

    fn verdict(&self) -> Truth {
        let spread_is_right = |errors: f64| {
            (self.variance - 1.0).abs() <= 0.12 + errors * self.variance_error
                && (self.worst_variance - 1.0).abs() <= 0.2 + errors * self.worst_error
                && self.density_error <= 0.3 + errors * self.density_bound
        };
        let means_are_right = |errors: f64| self.mean_error <= 0.15 + errors * self.mean_bound;
        if !means_are_right(1.0) {
            Truth::Wrong
        } else if !spread_is_right(1.0) || !(self.distance <= 2.0) {
            Truth::MeansRight
        } else if !means_are_right(0.0) || !spread_is_right(0.0) {
            Truth::Fair
        } else {
            Truth::Good
        }
    }
}

fn thin(matrix: &Matrix<f64>, most: usize) -> Matrix<f64> {
    let kept = matrix.rows().min(most);
    Matrix::from_fn(kept, matrix.cols(), |i, j| matrix.row(i * matrix.rows() / kept)[j])
}

/// Verdicts by what is true, and how often they mislead.
fn table(cases: &[&Case]) -> String {
    let count = |verdict: Verdict, truth: Truth| {
        cases.iter().filter(|c| c.verdict == verdict.name() && c.truth == truth).count()
    };
    let mut text = String::from("| verdict |");
    for truth in Truth::ALL {
        let _ = write!(text, " {} |", truth.name());
    }
    text.push_str("\n|---|---|---|---|---|\n");
    for verdict in Verdict::ALL {
        let _ = write!(text, "| {} |", verdict.name());
        for truth in Truth::ALL {
            let _ = write!(text, " {} |", count(verdict, truth));
        }
        text.push('\n');
    }
    let trusted: usize = Truth::ALL.iter().map(|&truth| count(Verdict::Trust, truth)).sum();
    let is_bad = |case: &Case| matches!(case.truth, Truth::MeansRight | Truth::Wrong);
    let bad = cases.iter().filter(|case| is_bad(case)).count();
    let false_trust =
        count(Verdict::Trust, Truth::MeansRight) + count(Verdict::Trust, Truth::Wrong);
    let good = cases.iter().filter(|case| case.truth == Truth::Good).count();
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let _ = writeln!(
        text,
        "\n{} runs. {trusted} were trusted, {false_trust} of them wrongly: {:.1} % of those trusted, \
         {:.1} % of the {bad} that are bad. Of the {good} good ones, {:.1} % were trusted.",
        cases.len(),
        share(false_trust, trusted),
        share(false_trust, bad),
        share(count(Verdict::Trust, Truth::Good), good),
    );
    text
}
