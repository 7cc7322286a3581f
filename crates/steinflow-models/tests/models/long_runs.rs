//! Regressions whose posteriors have neither a closed form nor few dimensions, against samplers that share nothing
//! with the library's: Metropolis's on the textbook density, and Gibbs's with the scales of a horseshoe beside it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal, StandardUniform};
use steinflow::random::{Purpose, stream};
use steinflow_models::{ModelSpec, build};

use crate::families::{data, long_run, prior, spec, textbook};
use crate::support::random_points;

fn normal(random: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(random)
}

/// Whether a move with this log ratio of densities is made.
fn accepts(log_ratio: f64, random: &mut ChaCha8Rng) -> bool {
    let level: f64 = StandardUniform.sample(random);
    level.ln() < log_ratio
}

/// Mean and standard deviation of every column.
fn moments(draws: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let count = draws.len() as f64;
    (0..draws[0].len())
        .map(|j| {
            let mean = draws.iter().map(|draw| draw[j]).sum::<f64>() / count;
            let square = draws.iter().map(|draw| (draw[j] - mean).powi(2)).sum::<f64>() / count;
            (mean, square.sqrt())
        })
        .collect()
}

fn agree(found: &[(f64, f64)], exact: &[(f64, f64)], names: &[String]) {
    for ((found, exact), name) in found.iter().zip(exact).zip(names) {
        assert!((found.0 - exact.0).abs() < 0.12 * exact.1, "{name}: {found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.1, "{name}: {found:?}, {exact:?}");
    }
}

fn columns(path: &Path, names: &[&str]) -> Vec<Vec<f64>> {
    let choices = steinflow_models::data::Choices::default();
    let table = steinflow_models::data::read_table(path, None, &choices).unwrap().0;
    let places: Vec<usize> = names.iter().map(|name| table.position(Some(name)).unwrap()).collect();
    let values = table.values();
    (0..values.rows()).map(|i| places.iter().map(|&j| values.row(i)[j]).collect()).collect()
}

/// Errors with heavy tails: their degrees of freedom are learned with the line.
#[test]
fn a_student_t_regression_is_that_of_metropolis() {
    const STEPS: usize = 200_000;
    let path = data("long-student.csv", 120);
    // Outliers, so that the degrees of freedom are few.
    let text = std::fs::read_to_string(&path).unwrap();
    let line = |(i, line): (usize, &str)| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if i % 12 == 5 {
            cells[3] = (cells[3].parse::<f64>().unwrap() + 90.0).to_string();
        }
        cells.join(",")
    };
    let lines: Vec<String> = text.lines().enumerate().map(line).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let model = build::<f64>(&spec("student-t-regression", &path, "normal")).unwrap();
    let units = model.units().unwrap();
    let rows = columns(&path, &["size", "age", "number"]);
    let log_density = |theta: &[f64]| {
        let one = steinflow::Matrix::from_vec(theta.to_vec(), 1, theta.len()).unwrap();
        let shown = units.show(&one);
        let p = shown.row(0);
        // What all rows have in common is that of a row on the line.
        let common = textbook("student-t-regression", p, &[0.0, 0.0], 0.0, p[0]);
        let of_row = |row: &Vec<f64>| {
            let z = (row[2] - p[0] - p[1] * row[0] - p[2] * row[1]) / p[3];
            common - f64::midpoint(p[4], 1.0) * (1.0 + z * z / p[4]).ln()
        };
        rows.iter().map(of_row).sum::<f64>() + prior("student-t-regression", theta)
    };
    let mut random = stream(1, Purpose::Start, 0, 0);
    let mut theta = model.start().mean;
    let (mut value, mut draws, mut spread) = (log_density(&theta), Vec::new(), vec![0.1; 5]);
    for step in 0..STEPS {
        let near: Vec<f64> =
            theta.iter().zip(&spread).map(|(x, s)| x + s * normal(&mut random)).collect();
        let there = log_density(&near);
        if accepts(there - value, &mut random) {
            (theta, value) = (near, there);
        }
        draws.push(theta.clone());
        if step + 1 == STEPS / 20 {
            // A step of the posterior's own size, from what was seen.
            spread = moments(&draws[step / 2..]).iter().map(|(_, sd)| 1.1 * sd).collect();
            draws.clear();
        }
    }
    let shown: Vec<Vec<f64>> = draws
        .iter()
        .step_by(10)
        .map(|draw| {
            let one = steinflow::Matrix::from_vec(draw.clone(), 1, draw.len()).unwrap();
            units.show(&one).row(0).to_vec()
        })
        .collect();
    let exact = moments(&shown);
    assert!(exact[4].0 < 8.0, "the outliers are seen: {:?}", exact[4]);
    agree(&long_run(&*model), &exact, &model.parameter_names());
}

/// A x = b, and the Cholesky factor of A by rows.
fn solve(a: &[Vec<f64>], b: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let dim = b.len();
    let mut factor = vec![vec![0.0_f64; dim]; dim];
    for i in 0..dim {
        for j in 0..=i {
            let rest: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let left = a[i][j] - rest;
            factor[i][j] = if i == j { left.sqrt() } else { left / factor[j][j] };
        }
    }
    let mut x = b.to_vec();
    for i in 0..dim {
        let rest: f64 = (0..i).map(|k| factor[i][k] * x[k]).sum();
        x[i] = (x[i] - rest) / factor[i][i];
    }
    back(&factor, &mut x);
    (x, factor)
}

/// x ← L⁻ᵀ x.
fn back(factor: &[Vec<f64>], x: &mut [f64]) {
    for i in (0..x.len()).rev() {
        let rest: f64 = (i + 1..x.len()).map(|k| factor[k][i] * x[k]).sum();
        x[i] = (x[i] - rest) / factor[i][i];
    }
}

/// The horseshoe as it is defined, with a scale for every coefficient: Gibbs's sampler of Makalic and Schmidt (2016,
/// arXiv:1508.03884), a step of Metropolis's for τ and σ, and the slab N(0, s²) in the precision of β.
#[test]
fn a_horseshoe_is_that_of_gibbs() {
    const FEATURES: usize = 6;
    const ROWS: usize = 40;
    const SWEEPS: usize = 120_000;
    let noise = random_points(ROWS, FEATURES + 1, 1.0, 31);
    let mut text = "a,b,c,d,e,f,y\n".to_owned();
    for i in 0..ROWS {
        let (x, rest) = noise.row(i).split_at(FEATURES);
        let y = 1.5 * x[1] + 0.45 * x[4] + rest[0];
        let cells: Vec<String> = x.iter().chain(&[y]).map(ToString::to_string).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("long-horseshoe.csv");
    std::fs::write(&path, text).unwrap();
    let spec = ModelSpec {
        data: Some(path.clone()),
        prior: Some("horseshoe".to_owned()),
        ..ModelSpec::named("linear-regression")
    };
    let model = build::<f64>(&spec).unwrap();

    let table = columns(&path, &["a", "b", "c", "d", "e", "f", "y"]);
    let count = ROWS as f64;
    let means: Vec<f64> =
        (0..=FEATURES).map(|j| table.iter().map(|row| row[j]).sum::<f64>() / count).collect();
    let sd = |j: usize| {
        (table.iter().map(|row| (row[j] - means[j]).powi(2)).sum::<f64>() / count).sqrt()
    };
    let sds: Vec<f64> = (0..=FEATURES).map(sd).collect();
    let standard = |row: &Vec<f64>| -> Vec<f64> {
        (0..=FEATURES).map(|j| (row[j] - means[j]) / sds[j]).collect()
    };
    let table: Vec<Vec<f64>> = table.iter().map(standard).collect();
    // The intercept stands last.
    let x = |row: &[f64], j: usize| if j == FEATURES { 1.0 } else { row[j] };
    let product = |i: usize, j: usize| table.iter().map(|row| x(row, i) * x(row, j)).sum::<f64>();
    let dim = FEATURES + 1;
    let gram: Vec<Vec<f64>> = (0..dim).map(|i| (0..dim).map(|j| product(i, j)).collect()).collect();
    let moment: Vec<f64> =
        (0..dim).map(|i| table.iter().map(|row| x(row, i) * row[FEATURES]).sum::<f64>()).collect();

    let slab = 1.0 / 2.5_f64.powi(2);
    let mut random = stream(2, Purpose::Start, 0, 0);
    let (mut locals, mut helpers) = (vec![1.0; FEATURES], vec![1.0; FEATURES]);
    let (mut log_tau, mut log_noise, mut draws) = (0.1_f64.ln(), 0.0_f64, Vec::new());
    let inverse_gamma =
        |rate: f64, random: &mut ChaCha8Rng| rate / Gamma::new(1.0, 1.0).unwrap().sample(random);
    // log E exp(−(τλz/s)²/2), by which the slab is normalised, over even quantiles of λ.
    let lambdas: Vec<f64> = (0..400)
        .map(|k| (0.5 * std::f64::consts::PI * (f64::from(k) + 0.5) / 400.0).tan())
        .collect();
    let normaliser = |tau: f64| {
        let share = |lambda: &f64| 1.0 / (tau * lambda * slab.sqrt()).hypot(1.0);
        (lambdas.iter().map(share).sum::<f64>() / lambdas.len() as f64).ln()
    };
    for sweep in 0..SWEEPS {
        let (tau, noise) = (log_tau.exp(), log_noise.exp());
        // β given the rest.
        let mut precision: Vec<Vec<f64>> =
            gram.iter().map(|row| row.iter().map(|x| x / noise.powi(2)).collect()).collect();
        for j in 0..dim {
            precision[j][j] += slab;
            if j < FEATURES {
                precision[j][j] += 1.0 / (tau * tau * locals[j]);
            }
        }
        let right: Vec<f64> = moment.iter().map(|x| x / noise.powi(2)).collect();
        let (mut beta, factor) = solve(&precision, &right);
        let mut own: Vec<f64> = (0..dim).map(|_| normal(&mut random)).collect();
        back(&factor, &mut own);
        beta.iter_mut().zip(own).for_each(|(b, own)| *b += own);
        // λ² and what makes it half-Cauchy.
        for j in 0..FEATURES {
            let rate = 1.0 / helpers[j] + beta[j].powi(2) / (2.0 * tau * tau);
            locals[j] = inverse_gamma(rate, &mut random);
            helpers[j] = inverse_gamma(1.0 + 1.0 / locals[j], &mut random);
        }
        let squares: f64 = table
            .iter()
            .map(|row| {
                let line: f64 = (0..dim).map(|j| x(row, j) * beta[j]).sum();
                (row[FEATURES] - line).powi(2)
            })
            .sum();
        let of_noise =
            |log: f64| -count * log - 0.5 * squares * (-2.0 * log).exp() + log - log.exp();
        let scaled: f64 = (0..FEATURES).map(|j| beta[j].powi(2) / locals[j]).sum();
        let of_tau = |log: f64| {
            let tau = log.exp();
            let half_cauchy = log - (1.0 + (tau / 0.1).powi(2)).ln();
            let count = FEATURES as f64;
            half_cauchy - count * (log + normaliser(tau)) - 0.5 * scaled / (tau * tau)
        };
        let near = log_noise + 0.2 * normal(&mut random);
        if accepts(of_noise(near) - of_noise(log_noise), &mut random) {
            log_noise = near;
        }
        for _ in 0..3 {
            let near = log_tau + normal(&mut random);
            if accepts(of_tau(near) - of_tau(log_tau), &mut random) {
                log_tau = near;
            }
        }
        if sweep >= SWEEPS / 20 {
            let unit = sds[FEATURES];
            let mut shown: Vec<f64> = (0..FEATURES).map(|j| beta[j] * unit / sds[j]).collect();
            shown.push(log_noise.exp() * unit);
            draws.push(shown);
        }
    }
    let found = long_run(&*model);
    let names = model.parameter_names();
    assert_eq!(names[FEATURES + 1], "global_scale");
    let chosen: Vec<usize> = (1..=FEATURES).chain([FEATURES + 2]).collect();
    let found: Vec<(f64, f64)> = chosen.iter().map(|&j| found[j]).collect();
    let names: Vec<String> = chosen.iter().map(|&j| names[j].clone()).collect();
    agree(&found, &moments(&draws), &names);
}
