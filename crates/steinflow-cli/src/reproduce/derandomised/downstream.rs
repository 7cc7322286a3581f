//! Points for a model that is expensive to run: what a posterior says of an outbreak that did not happen.
//!
//! The posterior of an influenza outbreak in a boarding school gives rates of infection and recovery. The model
//! behind it asks: had every second contact been avoided from the fourth day on, how many boys would have been
//! ill at once, how many in all, and for how long? One simulation a point is what costs; the posterior's
//! gradients come before. Truth is the average over all draws of long runs.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use steinflow::ensemble::Options;
use steinflow::run::{Auto, Samples};
use steinflow::{LogDensity, Matrix};
use steinflow_models::posteriors::{self, Posterior};

use super::{at_rest, evenly, hamiltonian, pick, rivals};
use crate::error::Result;
use crate::reproduce::study::Study;

const POSTERIOR: &str = "influenza-sir";
const BOYS: f64 = 763.0;
const WAYS: [&str; 4] = ["HMC", "HMC + control variates", "HMC Stein-thinned", "svgd"];
const ANSWERS: [&str; 3] = ["ill at once", "ill in all", "days with 5 or more ill"];
/// Seeds of the long runs, and the effective draws of each.
const LONG: std::ops::Range<u64> = 100..104;
const LONG_DRAWS: f64 = 20_000.0;
const LONG_GRADIENTS: u64 = 100_000;

type Job = (&'static str, usize, u64);

/// Mean and standard deviation of every answer over the points, and the gradients that they took.
#[derive(Clone, Deserialize, Serialize)]
struct Found {
    mean: Vec<f64>,
    sd: Vec<f64>,
    gradients: u64,
}

/// Errors of the mean answers, in standard deviations of the answers: every run, and a table.
pub fn run(study: &mut Study, counts: &[usize], seeds: u64) -> Result<(String, String)> {
    let mut jobs: Vec<Job> = LONG.map(|seed| ("truth", 0, seed)).collect();
    for way in WAYS {
        for &count in counts {
            jobs.extend((0..seeds).map(|seed| (way, count, seed)));
        }
    }
    let results: Vec<Result<Found, String>> = study.run(
        "simulations",
        &jobs,
        |(way, count, seed)| format!("{POSTERIOR}, {way}, {count}, seed {seed}"),
        |&job| measure(job).map_err(|error| error.to_string()),
    )?;
    let mut csv = String::from("way,points,seed,gradients,at_once,in_all,days,error\n");
    let mut found: Vec<(Job, Found)> = Vec::new();
    for (job, result) in jobs.into_iter().zip(results) {
        match result {
            Ok(result) => found.push((job, result)),
            Err(error) => {
                let (way, count, seed) = job;
                let error = error.replace('"', "'");
                let _ = writeln!(csv, "{way},{count},{seed},,,,,\"{error}\"");
            }
        }
    }
    let long = || found.iter().filter(|(job, _)| job.0 == "truth").map(|(_, found)| found);
    let of_long = |of: fn(&Found) -> &[f64], k: usize| {
        long().map(|found| of(found)[k]).sum::<f64>() / long().count() as f64
    };
    let error = |found: &Found, k: usize| {
        (found.mean[k] - of_long(|found| &found.mean, k)) / of_long(|found| &found.sd, k)
    };
    for ((way, count, seed), found) in &found {
        let [a, b, c] = [0, 1, 2].map(|k| error(found, k));
        let _ = writeln!(csv, "{way},{count},{seed},{},{a:.3e},{b:.3e},{c:.3e},", found.gradients);
    }
    let mut table = String::from("| way | points | gradients |");
    for answer in ANSWERS {
        table.extend([" ", answer, " |"]);
    }
    table.push_str("\n|---|---|---|---|---|---|\n");
    for way in WAYS {
        for &count in counts {
            let own: Vec<&Found> = found
                .iter()
                .filter(|((other, points, _), _)| (*other, *points) == (way, count))
                .map(|(_, found)| found)
                .collect();
            let runs = own.len() as f64;
            let gradients = own.iter().map(|found| found.gradients).sum::<u64>() as f64 / runs;
            let _ = write!(table, "| {way} | {count} | {gradients:.0} |");
            for k in 0..ANSWERS.len() {
                let square = own.iter().map(|found| error(found, k).powi(2)).sum::<f64>() / runs;
                let _ = write!(table, " {:.3} |", square.sqrt());
            }
            table.push('\n');
        }
    }
    Ok((csv, table))
}

fn measure((way, count, seed): Job) -> Result<Found> {
    let info = posteriors::find(POSTERIOR).expect("it is in the set");
    let target = info.build();
    if way == "truth" {
        let mut samples = Samples::of_ensemble();
        let options = Options {
            seed,
            effective: LONG_DRAWS,
            gradients: LONG_GRADIENTS,
            ..Options::default()
        };
        let auto = Auto::new(target).options(options).observe(samples.observer());
        let outcome = auto.run()?;
        let gradients = outcome.report.map_or(0, |report| report.evaluations);
        return Ok(Found::new(&answers(&samples.theta()), None, gradients));
    }
    if way == "svgd" {
        let (points, gradients) = at_rest(target, count, seed, Options::default().effective)?;
        return Ok(Found::new(&answers(&points), None, gradients));
    }
    let (draws, gradients) = hamiltonian(info.build(), seed, Options::default().effective)?;
    let (draws, scores, white) = standardised(&target, draws)?;
    let rows = match way {
        "HMC Stein-thinned" => rivals::thinned(&white, &scores, count),
        _ => evenly(draws.rows(), count),
    };
    let answers = answers(&pick(&draws, &rows));
    let controlled = (way == "HMC + control variates")
        .then(|| rivals::controlled(&pick(&white, &rows), &pick(&scores, &rows), &answers));
    Ok(Found::new(&answers, controlled, gradients))
}

impl Found {
    fn new(answers: &Matrix<f64>, mean: Option<Vec<f64>>, gradients: u64) -> Self {
        let plain = rivals::averages(answers);
        let squares = Matrix::from_fn(answers.rows(), answers.cols(), |i, k| {
            (answers.row(i)[k] - plain[k]).powi(2)
        });
        let sd = rivals::averages(&squares).into_iter().map(f64::sqrt).collect();
        Self { mean: mean.unwrap_or(plain), sd, gradients }
    }
}

/// Draws, and their scores and themselves in units of standard deviations.
fn standardised(
    target: &Posterior,
    draws: Matrix<f64>,
) -> Result<(Matrix<f64>, Matrix<f64>, Matrix<f64>)> {
    let (rows, dim) = (draws.rows(), draws.cols());
    let (mut log_density, mut scores) = (vec![0.0; rows], Matrix::zeros(rows, dim));
    target.evaluate(draws.as_ref(), None, &mut log_density, scores.as_mut())?;
    let mean = rivals::averages(&draws);
    let sd = Found::new(&draws, None, 0).sd;
    let white = Matrix::from_fn(rows, dim, |i, j| (draws.row(i)[j] - mean[j]) / sd[j]);
    let scores = Matrix::from_fn(rows, dim, |i, j| scores.row(i)[j] * sd[j]);
    Ok((draws, scores, white))
}

/// What the model says at every point: log infection, log recovery, log first ill.
fn answers(points: &Matrix<f64>) -> Matrix<f64> {
    let rows: Vec<[f64; 3]> = (0..points.rows()).map(|i| outbreak(points.row(i))).collect();
    Matrix::from_fn(points.rows(), 3, |i, k| rows[i][k])
}

/// 60 days of s' = −βsi, i' = βsi − γi by Heun's rule, in shares of all boys.
fn outbreak(theta: &[f64]) -> [f64; 3] {
    const STEPS_A_DAY: usize = 24;
    let (infection, recovery) = (theta[0].exp(), theta[1].exp());
    let first = theta[2].exp() / BOYS;
    let (mut s, mut i) = (1.0 - first, first);
    let (mut at_once, mut days) = (i, 0.0);
    let dt = 1.0 / STEPS_A_DAY as f64;
    for step in 0..60 * STEPS_A_DAY {
        let infection = if step < 3 * STEPS_A_DAY { infection } else { 0.5 * infection };
        let rate = |s: f64, i: f64| (-infection * s * i, infection * s * i - recovery * i);
        let (ds, di) = rate(s, i);
        let (es, ei) = rate(s + dt * ds, i + dt * di);
        (s, i) = (s + 0.5 * dt * (ds + es), i + 0.5 * dt * (di + ei));
        at_once = i.max(at_once);
        if i * BOYS >= 5.0 {
            days += dt;
        }
    }
    [BOYS * at_once, BOYS * (1.0 - s), days]
}
