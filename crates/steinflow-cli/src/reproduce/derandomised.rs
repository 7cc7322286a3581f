//! Where deterministic points beat draws and where not: errors of expectations by the number of points.
//!
//! Two laws of 5 independent coordinates with exact answers: N(0, 1), and log Γ(4), which is skewed. Points of
//! `svgd` at rest against exact draws, quasi-Monte Carlo (which must know the law), draws of Hamiltonian
//! Monte Carlo as they are, with control variates, and thinned. The settings of the ablation stand beside it.

mod downstream;
mod rivals;

use std::fmt::Write as _;
use std::io::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::dynamics::Langevin;
use steinflow::ensemble::Options;
use steinflow::field::Stein;
use steinflow::integrator::{Adaptive, StepSize};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::run::{Auto, Samples};
use steinflow::{LogDensity, Matrix, Sampler};
use steinflow_io::plot::{Key, Layer, Mark, Panel, Panels};

use super::collapse;
use super::study::Study;
use crate::args::CommonArguments;
use crate::error::Result;
use rivals::{DIM, Law};

const SETTINGS: &str = include_str!("../../../../experiments/derandomised/settings.toml");
const COUNTS: [usize; 5] = [30, 60, 120, 240, 480];
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

/// The mean square error of every expectation over coordinates, and the gradients that it took.
#[derive(Clone, Deserialize, Serialize)]
struct Found {
    squares: [f64; 4],
    gradients: u64,
}

type Job = (Law, &'static str, usize, u64);

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut study = Study::begin(arguments, "derandomised", SETTINGS)?;
    let (variances, table) = collapse::measure(SETTINGS, arguments.quick, &mut study)?;
    let counts = if arguments.quick { &COUNTS[..2] } else { &COUNTS };
    let seeds = if arguments.quick { 1 } else { SEEDS };
    let mut jobs: Vec<Job> = Vec::new();
    for law in [Law::Normal, Law::LogGamma] {
        for way in WAYS {
            for &count in counts {
                jobs.extend((0..seeds).map(|seed| (law, way, count, seed)));
            }
        }
    }
    let results: Vec<Result<Found, String>> = study.run(
        "expectations",
        &jobs,
        |(law, way, count, seed)| format!("{}, {way}, {count}, seed {seed}", law.name()),
        |&job| measure(job).map_err(|error| error.to_string()),
    )?;
    let mut csv =
        String::from("law,way,points,seed,gradients,mean,square,exponential,tail,error\n");
    for ((law, way, count, seed), result) in jobs.iter().zip(&results) {
        let _ = write!(csv, "{},{way},{count},{seed},", law.name());
        let _ = match result {
            Ok(Found { squares, gradients }) => {
                let [a, b, c, d] = squares.map(f64::sqrt);
                writeln!(csv, "{gradients},{a:.3e},{b:.3e},{c:.3e},{d:.3e},")
            }
            Err(error) => writeln!(csv, ",,,,,\"{}\"", error.replace('"', "'")),
        };
    }
    let figure = draw(&jobs, &results)?;
    let (simulations, answers) = downstream::run(&mut study, counts, seeds)?;
    study.write("settings.toml", SETTINGS)?;
    study.write("variances.csv", variances)?;
    study.write("variances.md", &table)?;
    study.write("expectations.csv", csv)?;
    study.write("expectations.png", figure)?;
    study.write("simulations.csv", simulations)?;
    study.write("simulations.md", &answers)?;
    let path = study.publish()?;
    writeln!(std::io::stdout(), "{table}\n{answers}\n{}", path.display())?;
    Ok(())
}

fn measure((law, way, count, seed): Job) -> Result<Found> {
    let plain = |points: &Matrix<f64>| rivals::averages(&law.values(points));
    let (estimates, gradients) = match way {
        "exact draws" => (plain(&law.draws(count, seed)), 0),
        "quasi-Monte Carlo" => (plain(&law.lattice(count, seed)), 0),
        "svgd" => {
            let (points, gradients) = at_rest(law.target(), count, seed)?;
            (plain(&points), gradients)
        }
        _ => {
            let (draws, gradients) = hamiltonian(law.target(), seed)?;
            let few = match way {
                "HMC Stein-thinned" => {
                    pick(&draws, &rivals::thinned(&draws, &law.scores(&draws), count))
                }
                _ => pick(&draws, &evenly(draws.rows(), count)),
            };
            let values = match way {
                "HMC + control variates" => {
                    rivals::controlled(&few, &law.scores(&few), &law.values(&few))
                }
                _ => plain(&few),
            };
            (values, gradients)
        }
    };
    let truth = law.truth();
    let square = |k: usize| {
        let errors = (0..DIM).map(|j| (estimates[4 * j + k] - truth[k]).powi(2));
        errors.sum::<f64>() / DIM as f64
    };
    Ok(Found { squares: [square(0), square(1), square(2), square(3)], gradients })
}

/// Every so many of them.
fn evenly(rows: usize, count: usize) -> Vec<usize> {
    (0..count).map(|i| i * rows / count).collect()
}

fn pick(draws: &Matrix<f64>, rows: &[usize]) -> Matrix<f64> {
    Matrix::from_fn(rows.len(), draws.cols(), |i, j| draws.row(rows[i])[j])
}

/// `svgd` after a warm-up, as the command has it.
fn at_rest(target: impl LogDensity<f64>, count: usize, seed: u64) -> Result<(Matrix<f64>, u64)> {
    let bandwidth = Bandwidth::White { factor: 10.0 };
    let kernel = Kernel { bandwidth, affine: 1.0, ..Kernel::default() };
    let middle = vec![0.0; target.dim()];
    let outcome = Sampler::new(target, Langevin::new(), Stein::new(kernel))
        .start_normal(count, &middle, 1.0)
        .warm_up(Options::default())
        .phase(Adaptive::<f64>::adam(), 70, StepSize::Constant(0.1))
        .phase(Adaptive::<f64>::adam(), 30, StepSize::Linear(0.01, 1e-4))
        .seed(seed)
        .run()?;
    Ok((outcome.theta(), outcome.gradients * count as u64))
}

/// Draws of the ensemble with nothing but Hamiltonian moves.
fn hamiltonian(target: impl LogDensity<f64>, seed: u64) -> Result<(Matrix<f64>, u64)> {
    let mut samples = Samples::of_ensemble();
    let options = Options { seed, bends: false, jumps: false, ..Options::default() };
    let outcome = Auto::new(target).options(options).observe(samples.observer()).run()?;
    let evaluations = outcome.report.map_or(0, |report| report.evaluations);
    Ok((samples.theta(), evaluations))
}

/// log₁₀ of the root mean square error by log₁₀ of the number of points, a panel an expectation.
fn draw(jobs: &[Job], results: &[Result<Found, String>]) -> Result<Vec<u8>> {
    /// Exact up to rounding and the last steps: below the axis.
    const FLOOR: f64 = -4.5;
    let mut curves: Vec<(usize, usize, usize, Matrix<f64>)> = Vec::new();
    for (row, law) in [Law::Normal, Law::LogGamma].into_iter().enumerate() {
        for (k, _) in EXPECTATIONS.iter().enumerate() {
            for (color, way) in WAYS.iter().enumerate() {
                let mut points = Vec::new();
                for count in COUNTS {
                    let own = jobs.iter().zip(results).filter_map(|(job, result)| {
                        let is_own = (job.0, job.1, job.2) == (law, *way, count);
                        result.as_ref().ok().filter(|_| is_own).map(|found| found.squares[k])
                    });
                    let squares: Vec<f64> = own.collect();
                    if !squares.is_empty() {
                        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
                        points.extend([(count as f64).log10(), (0.5 * mean.log10()).max(FLOOR)]);
                    }
                }
                let rows = points.len() / 2;
                let points = Matrix::from_vec(points, rows, 2).unwrap_or(Matrix::zeros(0, 2));
                curves.push((row, k, color, points));
            }
        }
    }
    let mut panels = Vec::new();
    for (row, law) in [Law::Normal, Law::LogGamma].into_iter().enumerate() {
        for (k, name) in EXPECTATIONS.iter().enumerate() {
            let own = curves.iter().filter(|curve| (curve.0, curve.1) == (row, k));
            let layers = own
                .map(|(_, _, color, points)| Layer::Path {
                    points: points.as_ref(),
                    color: *color,
                    width: 1.5,
                })
                .collect();
            panels.push(Panel {
                title: format!("{name}, {}", law.name()),
                layers,
                corner: Vec::new(),
            });
        }
    }
    let legend: Vec<Key<'_>> = WAYS
        .iter()
        .enumerate()
        .map(|(color, name)| Key { mark: Mark::Line, color, name })
        .collect();
    let figure = Panels {
        title: "Deterministic points against draws",
        caption: "root mean square error of an expectation over 5 coordinates and 6 seeds, by number of points; \
                  errors below 10^-4.5 are drawn there",
        names: ["log10 of points", "log10 of error"],
        x: (1.4, 2.75),
        y: (FLOOR - 0.1, 0.6),
        density: None,
        columns: 4,
        panels: &panels,
        legend: &legend,
    };
    Ok(figure.draw()?.png()?)
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
