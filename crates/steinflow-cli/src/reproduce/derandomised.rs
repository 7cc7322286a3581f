//! Where deterministic points beat draws and where not: errors of expectations by points and by gradients.
//!
//! Two laws of 5 independent coordinates with exact answers: N(0, 1), and log Γ(4), which is skewed. Points of
//! `svgd` at rest against exact draws, quasi-Monte Carlo (which must know the law), and draws of Hamiltonian
//! Monte Carlo as they are, with control variates, and thinned. The variances that are kept, and what each ingredient
//! does to them, stand beside it.

mod downstream;
mod figures;
mod rivals;
mod volume;

use std::fmt::Write as _;
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::ensemble::Options;
use steinflow::run::{Auto, Samples};
use steinflow::{LogDensity, Matrix};
use steinflow_config::{Begin, Config, Facts, Run, Settings, Start};

use super::collapse;
use super::study::Study;
use crate::args::CommonArguments;
use crate::error::Result;
use rivals::{DIM, Law};

const VARIANCES: &str = include_str!("../../../../experiments/derandomised/variances.toml");
const ABLATION: &str = include_str!("../../../../experiments/derandomised/ablation.toml");
const LAWS: [Law; 2] = [Law::Normal, Law::LogGamma];
const COUNTS: [usize; 5] = [30, 60, 120, 240, 480];
/// Effective draws that HMC and the warm-up of `svgd` are asked for, where gradients are what is compared.
const EFFECTIVE: [usize; 6] = [125, 250, 500, 1000, 2000, 4000];
/// Points of those that are asked for few of them, there.
const FEW: usize = 60;
const SEEDS: u64 = 6;
const WAYS: [&str; 6] = [
    "exact draws",
    "quasi-Monte Carlo",
    "HMC",
    "HMC + control variates",
    "HMC Stein-thinned",
    "svgd",
];
const EXPECTATIONS: [&str; 4] = ["E x", "E x²", "E eˣ", "P(x > t)"];

/// What ways are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    /// So many points, of a run of the usual length.
    Points,
    /// All draws of runs of several lengths, or [`FEW`] points after them.
    Gradients,
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Gradients => "gradients",
        }
    }

    fn sizes(self) -> &'static [usize] {
        match self {
            Self::Points => &COUNTS,
            Self::Gradients => &EFFECTIVE,
        }
    }

    /// Those that take gradients, for one.
    fn ways(self) -> &'static [&'static str] {
        match self {
            Self::Points => &WAYS,
            Self::Gradients => &WAYS[2..],
        }
    }
}

/// The mean square error of every expectation over coordinates, and what it took.
#[derive(Clone, Deserialize, Serialize)]
struct Found {
    squares: [f64; 4],
    points: usize,
    gradients: u64,
}

#[derive(Clone, Copy)]
struct Job {
    axis: Axis,
    law: Law,
    way: &'static str,
    /// Points, or effective draws.
    size: usize,
    seed: u64,
}

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut study = Study::begin(arguments, "derandomised", &format!("{VARIANCES}\n{ABLATION}"))?;
    let mut tables = String::new();
    for (name, plan) in [("variances", VARIANCES), ("ablation", ABLATION)] {
        let (csv, table) = collapse::measure(name, plan, arguments.quick, &mut study)?;
        study.write(&format!("{name}.toml"), plan)?;
        study.write(&format!("{name}.csv"), csv)?;
        study.write(&format!("{name}.md"), &table)?;
        tables.extend([&table, "\n"]);
    }
    let (sizes, seeds) = if arguments.quick { (2, 1) } else { (usize::MAX, SEEDS) };
    let mut jobs = Vec::new();
    for axis in [Axis::Points, Axis::Gradients] {
        for law in LAWS {
            for &way in axis.ways() {
                for &size in axis.sizes().iter().take(sizes) {
                    jobs.extend((0..seeds).map(|seed| Job { axis, law, way, size, seed }));
                }
            }
        }
    }
    let results: Vec<Result<Found, String>> = study.run(
        "expectations",
        &jobs,
        |&Job { axis, law, way, size, seed }| {
            format!("by {}: {}, {way}, {size}, seed {seed}", axis.name(), law.name())
        },
        |&job| measure(job).map_err(|error| error.to_string()),
    )?;
    let mut csv =
        String::from("by,law,way,size,seed,points,gradients,mean,square,exponential,tail,error\n");
    for (&Job { axis, law, way, size, seed }, result) in jobs.iter().zip(&results) {
        let _ = write!(csv, "{},{},{way},{size},{seed},", axis.name(), law.name());
        let _ = match result {
            Ok(Found { squares, points, gradients }) => {
                let [a, b, c, d] = squares.map(f64::sqrt);
                writeln!(csv, "{points},{gradients},{a:.3e},{b:.3e},{c:.3e},{d:.3e},")
            }
            Err(error) => writeln!(csv, ",,,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let rows = figures::rows(&jobs, &results);
    study.write("expectations.csv", csv)?;
    study.write("expectations.md", figures::table(&rows))?;
    for axis in [Axis::Points, Axis::Gradients] {
        study.write(&format!("by-{}.png", axis.name()), figures::draw(axis, &rows)?)?;
    }
    let counts = &COUNTS[..sizes.min(COUNTS.len())];
    let (simulations, answers) = downstream::run(&mut study, counts, seeds)?;
    study.write("simulations.csv", simulations)?;
    study.write("simulations.md", &answers)?;
    let (stretches, volumes) = volume::run(&mut study, arguments.quick)?;
    study.write("volume.csv", stretches)?;
    study.write("volume.md", &volumes)?;
    let path = study.publish()?;
    writeln!(std::io::stdout(), "{tables}{answers}\n{volumes}\n{}", path.display())?;
    Ok(())
}

fn measure(Job { axis, law, way, size, seed }: Job) -> Result<Found> {
    let (count, effective) = match axis {
        Axis::Points => (Some(size), Options::default().effective),
        Axis::Gradients => (None, size as f64),
    };
    let few = count.unwrap_or(FEW);
    let (points, gradients) = match way {
        "exact draws" => (law.draws(few, seed), 0),
        "quasi-Monte Carlo" => (law.lattice(few, seed), 0),
        "svgd" => at_rest(law.target(), few, seed, effective)?,
        _ => {
            let (draws, gradients) = hamiltonian(law.target(), seed, effective)?;
            let rows = match way {
                "HMC Stein-thinned" => rivals::thinned(&draws, &law.scores(&draws), few),
                _ => evenly(draws.rows(), count.unwrap_or(draws.rows())),
            };
            (pick(&draws, &rows), gradients)
        }
    };
    let estimates = match way {
        "HMC + control variates" => {
            rivals::controlled(&points, &law.scores(&points), &law.values(&points))
        }
        _ => rivals::averages(&law.values(&points)),
    };
    let truth = law.truth();
    let square = |k: usize| {
        let errors = (0..DIM).map(|j| (estimates[4 * j + k] - truth[k]).powi(2));
        errors.sum::<f64>() / DIM as f64
    };
    let squares = [square(0), square(1), square(2), square(3)];
    Ok(Found { squares, points: points.rows(), gradients })
}

/// Every so many of them.
fn evenly(rows: usize, count: usize) -> Vec<usize> {
    (0..count).map(|i| i * rows / count).collect()
}

fn pick(draws: &Matrix<f64>, rows: &[usize]) -> Matrix<f64> {
    Matrix::from_fn(rows.len(), draws.cols(), |i, j| draws.row(rows[i])[j])
}

/// `svgd` with the settings that the command has after a warm-up, here one of so many effective draws.
fn at_rest(
    target: impl LogDensity<f64>,
    count: usize,
    seed: u64,
    effective: f64,
) -> Result<(Matrix<f64>, u64)> {
    let settings = Settings {
        method: Some("svgd".to_owned()),
        warm_up: Some(true),
        particles: Some(count),
        seed: Some(seed),
        ..Settings::default()
    };
    let mean = vec![0.0; target.dim()];
    let facts = Facts {
        target: &target,
        is_posterior: true,
        start: Begin::Normal(steinflow_models::Start { mean, sd: 1.0 }),
        start_is_good: false,
        own_dynamics: None,
    };
    let config = Config::resolve_on(settings, &facts)?;
    let run = match config.sampler_on(&target, Start::Open, None, None)? {
        Run::Flow(sampler) => {
            Run::Flow(sampler.warm_up(Options { effective, ..Options::default() }))
        }
        other @ Run::Auto(_) => other,
    };
    let outcome = run.run()?;
    Ok((outcome.theta(), outcome.gradients * count as u64))
}

/// Draws of the ensemble with nothing but Hamiltonian moves.
fn hamiltonian(
    target: impl LogDensity<f64>,
    seed: u64,
    effective: f64,
) -> Result<(Matrix<f64>, u64)> {
    let mut samples = Samples::of_ensemble();
    let options = Options { seed, effective, bends: false, jumps: false, ..Options::default() };
    let outcome = Auto::new(target).options(options).observe(samples.observer()).run()?;
    let evaluations = outcome.report.map_or(0, |report| report.evaluations);
    Ok((samples.theta(), evaluations))
}

impl Law {
    /// log π and its score.
    fn target(self) -> impl LogDensity<f64> {
        steinflow::target::PerParticle::new(DIM, move |theta: &[f64], score: &mut [f64]| {
            score.iter_mut().zip(theta).for_each(|(s, &x)| *s = self.score(x));
            theta.iter().map(|&x| self.log_density(x)).sum()
        })
    }
}
