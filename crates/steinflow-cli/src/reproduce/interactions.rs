//! What it costs and what it spoils to meet only some others in a step: SVGD by number of particles.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use steinflow::dynamics::Langevin;
use steinflow::field::Stein;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::run::Snapshot;
use steinflow::{MatRef, Matrix, Sampler};
use steinflow_io::plot::{Key, Layer, Mark, Panel, Panels};
use steinflow_models::ModelSpec;

use super::study::{Study, Way};
use crate::args::CommonArguments;
use crate::error::Result;

/// The settings that ship with the command.
const SETTINGS: &str = include_str!("../../../../experiments/interactions/settings.toml");

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Plan {
    dim: usize,
    steps: u64,
    step_size: f64,
    seeds: Vec<u64>,
    particles: Vec<usize>,
    interactions: Vec<usize>,
    most_pairs: usize,
    once_from: usize,
    long: Long,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Long {
    particles: usize,
    steps: u64,
    step_sizes: Vec<f64>,
}

/// A run: how many particles, how many others (none for all), and what came of it.
#[derive(Deserialize, Serialize)]
struct Row {
    particles: usize,
    others: Option<usize>,
    seed: u64,
    seconds_per_step: f64,
    /// Root mean square over coordinates of the error of the mean, and of the variance.
    errors: [f64; 2],
}

pub fn run(arguments: &CommonArguments) -> Result<()> {
    let mut plan: Plan = toml::from_str(SETTINGS).map_err(|error| {
        steinflow_config::Error::Wrong { path: "settings.toml".into(), message: error.to_string() }
    })?;
    if arguments.quick {
        plan.particles.retain(|&count| count <= 1000);
        plan.seeds.truncate(1);
        (plan.steps, plan.long.steps, plan.long.particles) = (20, 40, 100);
    }
    let mut ways: Vec<Option<usize>> = plan.interactions.iter().copied().map(Some).collect();
    ways.push(None);
    let mut jobs = Vec::new();
    for &particles in &plan.particles {
        let seeds = if particles >= plan.once_from { &plan.seeds[..1] } else { &plan.seeds };
        let is_short =
            |others: &&Option<usize>| particles * others.unwrap_or(particles) <= plan.most_pairs;
        for &others in ways.iter().filter(is_short) {
            jobs.extend(seeds.iter().map(|&seed| (particles, others, seed)));
        }
    }
    let mut study = Study::begin(arguments, "interactions", SETTINGS)?;
    let rows: Vec<Result<Row, String>> = study.run_in(
        Way::InTurn,
        "cost and error",
        &jobs,
        |(particles, others, seed)| format!("{particles}, meets {}, seed {seed}", name(*others)),
        |&(particles, others, seed)| {
            measure(&plan, particles, others, seed).map_err(|error| error.to_string())
        },
    )?;
    let rows = all(rows)?;
    let mut csv =
        String::from("particles,interactions,seed,seconds_per_step,mean_error,variance_error\n");
    for Row { particles, others, seed, seconds_per_step, errors } in &rows {
        let (others, [mean, variance]) = (name(*others), errors);
        let _ = writeln!(
            csv,
            "{particles},{others},{seed},{seconds_per_step:.3e},{mean:.3e},{variance:.3e}"
        );
    }
    let mut jobs = Vec::new();
    for &others in &ways {
        for &step_size in &plan.long.step_sizes {
            jobs.extend(plan.seeds.iter().map(|&seed| (others, step_size, seed)));
        }
    }
    let stays: Vec<Result<[f64; 2], String>> = study.run(
        "long runs",
        &jobs,
        |(others, size, seed)| format!("long, meets {}, step {size}, seed {seed}", name(*others)),
        |&(others, step_size, seed)| {
            stay(&plan, others, step_size, seed).map_err(|error| error.to_string())
        },
    )?;
    let mut long = String::from("interactions,step_size,seed,variance,fluctuation_of_mean\n");
    for ((others, step_size, seed), [variance, fluctuation]) in jobs.iter().zip(all(stays)?) {
        let others = name(*others);
        let _ = writeln!(long, "{others},{step_size},{seed},{variance:.5},{fluctuation:.3e}");
    }
    study.write("settings.toml", SETTINGS)?;
    study.write("interactions.csv", &csv)?;
    study.write("long.csv", &long)?;
    study.write("interactions.png", draw(&plan, &ways, &rows)?)?;
    let path = study.publish()?;
    writeln!(std::io::stdout(), "{csv}\n{long}\n{}", path.display())?;
    Ok(())
}

/// What all runs have found, or the error of the first that failed.
fn all<R>(results: Vec<Result<R, String>>) -> Result<Vec<R>> {
    let all: Result<Vec<R>, String> = results.into_iter().collect();
    Ok(all.map_err(|message| steinflow::Error::User(message.into()))?)
}

fn name(others: Option<usize>) -> String {
    others.map_or_else(|| "all".to_owned(), |others| others.to_string())
}

fn field(others: Option<usize>) -> Stein {
    let stein = Stein::new(Kernel::default());
    match others {
        Some(others) => stein.interactions(others),
        None => stein,
    }
}

/// All coordinates' means and variances.
fn moments(theta: MatRef<'_, f64>) -> (Vec<f64>, Vec<f64>) {
    let count = theta.rows() as f64;
    let of = |j: usize| {
        let values = || (0..theta.rows()).map(|i| theta.row(i)[j]);
        let mean = values().sum::<f64>() / count;
        (mean, values().map(|x| (x - mean).powi(2)).sum::<f64>() / count)
    };
    (0..theta.cols()).map(of).unzip()
}

fn root_mean_square(errors: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = errors.len() as f64;
    (errors.map(|error| error * error).sum::<f64>() / count).sqrt()
}

/// Goes to rest from a wrong start.
fn measure(plan: &Plan, particles: usize, others: Option<usize>, seed: u64) -> Result<Row> {
    let spec = ModelSpec { dim: Some(plan.dim), ..ModelSpec::named("standard-normal") };
    let model = steinflow_models::build::<f64>(&spec)?;
    let settling = plan.steps / 3;
    let outcome = Sampler::new(&*model, Langevin::new(), field(others))
        .start_normal(particles, &vec![0.5; plan.dim], 0.7)
        .phase(Euler, plan.steps - settling, StepSize::Constant(plan.step_size))
        .phase(Euler, settling, StepSize::Linear(plan.step_size, 0.01 * plan.step_size))
        .seed(seed)
        .run()?;
    let (means, variances) = moments(outcome.theta().as_ref());
    Ok(Row {
        particles,
        others,
        seed,
        seconds_per_step: outcome.elapsed.as_secs_f64() / plan.steps as f64,
        errors: [
            root_mean_square(means.into_iter()),
            root_mean_square(variances.into_iter().map(|variance| variance - 1.0)),
        ],
    })
}

/// Steps of one size for long: the variance of the particles, and the standard deviation in time of a coordinate's
/// mean, over the second half.
fn stay(plan: &Plan, others: Option<usize>, step_size: f64, seed: u64) -> Result<[f64; 2]> {
    let spec = ModelSpec { dim: Some(plan.dim), ..ModelSpec::named("standard-normal") };
    let model = steinflow_models::build::<f64>(&spec)?;
    let (mut variance, mut square, mut count) = (0.0, 0.0, 0.0);
    let (half, dim) = (plan.long.steps / 2, plan.dim as f64);
    Sampler::new(&*model, Langevin::new(), field(others))
        .start_normal(plan.long.particles, &vec![0.0; plan.dim], 1.0)
        .phase(Euler, plan.long.steps, StepSize::Constant(step_size))
        .seed(seed)
        .observe(|at: &Snapshot<'_, f64>| {
            if at.step > half {
                let (means, variances) = moments(at.state);
                variance += variances.iter().sum::<f64>() / dim;
                // The mean at rest is 0, as it is by symmetry.
                square += means.iter().map(|mean| mean * mean).sum::<f64>() / dim;
                count += 1.0;
            }
            Ok(ControlFlow::Continue(()))
        })
        .run()?;
    Ok([variance / count, (square / count).sqrt()])
}

/// log₁₀ of seconds per step and of errors by log₁₀ N.
fn draw(plan: &Plan, ways: &[Option<usize>], rows: &[Row]) -> Result<Vec<u8>> {
    type Value = fn(&Row) -> f64;
    let shown: [(&str, Value); 3] = [
        ("seconds per step", |row| row.seconds_per_step),
        ("error of mean", |row| row.errors[0]),
        ("error of variance", |row| row.errors[1]),
    ];
    let curve = |value: Value, others: Option<usize>| {
        let mut points = Vec::new();
        for &particles in &plan.particles {
            let own: Vec<f64> = rows
                .iter()
                .filter(|row| (row.particles, row.others) == (particles, others))
                .map(value)
                .collect();
            if !own.is_empty() {
                let middle = root_mean_square(own.into_iter());
                points.extend([(particles as f64).log10(), middle.log10()]);
            }
        }
        let count = points.len() / 2;
        Matrix::from_vec(points, count, 2).unwrap_or(Matrix::zeros(0, 2))
    };
    let curves: Vec<Vec<Matrix<f64>>> = shown
        .iter()
        .map(|&(_, value)| ways.iter().map(|&others| curve(value, others)).collect())
        .collect();
    let panels: Vec<Panel<'_>> = shown
        .iter()
        .zip(&curves)
        .map(|((title, _), curves)| Panel {
            title: (*title).to_owned(),
            layers: curves
                .iter()
                .enumerate()
                .map(|(color, points)| Layer::Path { points: points.as_ref(), color, width: 1.5 })
                .collect(),
            corner: Vec::new(),
        })
        .collect();
    let names: Vec<String> = ways.iter().map(|&others| format!("meets {}", name(others))).collect();
    let legend: Vec<Key<'_>> = names
        .iter()
        .enumerate()
        .map(|(color, name)| Key { mark: Mark::Line, color, name })
        .collect();
    let last = plan.particles.iter().max().map_or(3.0, |&count| (count as f64).log10());
    let figure = Panels {
        title: "SVGD whose particles meet only some others",
        caption: "N(0, I) in 3 dimensions from a wrong start; root mean square over coordinates and seeds",
        names: ["log10 of particles", "log10"],
        x: (1.9, last + 0.1),
        y: (-5.0, 1.0),
        density: None,
        columns: 3,
        panels: &panels,
        legend: &legend,
    };
    Ok(figure.draw()?.png()?)
}
