//! Regressions whose posteriors have many dimensions, against Gibbs's sampler, which shares nothing with the library's: the
//! scales of a horseshoe and those between groups are drawn beside what they scale.

use std::fmt::Write as _;
use std::path::PathBuf;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use steinflow::random::{Purpose, stream};
use steinflow_models::{ModelSpec, build};

use crate::families::long_run;
use crate::long_runs::{agree, columns};
use crate::metropolis::{accepts, moments, normal};
use crate::support::random_points;

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

/// One draw of N(A⁻¹b, A⁻¹).
fn draw(a: &[Vec<f64>], b: &[f64], random: &mut ChaCha8Rng) -> Vec<f64> {
    let (mut x, factor) = solve(a, b);
    let mut own: Vec<f64> = b.iter().map(|_| normal(random)).collect();
    back(&factor, &mut own);
    x.iter_mut().zip(own).for_each(|(x, own)| *x += own);
    x
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
        let beta = draw(&precision, &right, &mut random);
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

/// Intercepts and slopes that differ between schools: all coefficients given the standard deviations are normal, and those
/// given the coefficients take a step of Metropolis's.
#[test]
fn slopes_of_groups_are_those_of_gibbs() {
    const SCHOOLS: usize = 6;
    const DIM: usize = 2 + 2 * SCHOOLS;
    const SWEEPS: usize = 60_000;
    let path = crate::groups::data("gibbs-slopes.csv", 15, 0.6);
    let model = build::<f64>(&crate::groups::spec("linear-regression", "score", &path, true));
    let model = model.unwrap();
    let table: Vec<[f64; 3]> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let school = "ABCDEF".find(cells[1]).unwrap() as f64;
            [cells[0].parse().unwrap(), school, cells[2].parse().unwrap()]
        })
        .collect();
    let count = table.len() as f64;
    let scaling = |j: usize| {
        let mean = table.iter().map(|row| row[j]).sum::<f64>() / count;
        let square = table.iter().map(|row| (row[j] - mean).powi(2)).sum::<f64>() / count;
        (mean, square.sqrt())
    };
    let ((x_mean, x_sd), (y_mean, y_sd)) = (scaling(0), scaling(2));
    // 1, x, and both once more in the columns of the school.
    let rows: Vec<([f64; DIM], f64)> = table
        .iter()
        .map(|row| {
            let (x, school) = ((row[0] - x_mean) / x_sd, row[1] as usize);
            let mut all = [0.0; DIM];
            (all[0], all[1], all[2 + school], all[2 + SCHOOLS + school]) = (1.0, x, 1.0, x);
            (all, (row[2] - y_mean) / y_sd)
        })
        .collect();
    let product = |i: usize, j: usize| rows.iter().map(|(x, _)| x[i] * x[j]).sum::<f64>();
    let gram: Vec<Vec<f64>> = (0..DIM).map(|i| (0..DIM).map(|j| product(i, j)).collect()).collect();
    let moment: Vec<f64> = (0..DIM).map(|i| rows.iter().map(|(x, y)| x[i] * y).sum()).collect();

    let mut random = stream(3, Purpose::Start, 0, 0);
    // log σ, and log τ of intercepts and slopes.
    let (mut logs, mut draws) = ([0.5_f64.ln(); 3], Vec::new());
    for sweep in 0..SWEEPS {
        let precisions = logs.map(|log: f64| (-2.0 * log).exp());
        let mut a: Vec<Vec<f64>> =
            gram.iter().map(|row| row.iter().map(|x| x * precisions[0]).collect()).collect();
        for (j, row) in a.iter_mut().enumerate() {
            row[j] += match j {
                0 | 1 => 1.0 / 2.5_f64.powi(2),
                _ => precisions[1 + (j - 2) / SCHOOLS],
            };
        }
        let b: Vec<f64> = moment.iter().map(|x| x * precisions[0]).collect();
        let beta = draw(&a, &b, &mut random);
        let residual =
            |(x, y): &([f64; DIM], f64)| y - x.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>();
        let squares = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>();
        let sums = [
            (count, rows.iter().map(|row| residual(row).powi(2)).sum()),
            (SCHOOLS as f64, squares(&beta[2..2 + SCHOOLS])),
            (SCHOOLS as f64, squares(&beta[2 + SCHOOLS..])),
        ];
        for (log, (count, squares)) in logs.iter_mut().zip(sums) {
            let width = 1.2 / f64::sqrt(count);
            let density =
                |log: f64| -count * log - 0.5 * squares * (-2.0 * log).exp() + log - log.exp();
            for _ in 0..3 {
                let near = *log + width * normal(&mut random);
                if accepts(density(near) - density(*log), &mut random) {
                    *log = near;
                }
            }
        }
        if sweep >= SWEEPS / 20 {
            let slope = y_sd / x_sd;
            let mut shown = vec![y_mean + y_sd * beta[0] - slope * beta[1] * x_mean];
            shown.push(slope * beta[1]);
            for (k, unit) in [y_sd, slope].into_iter().enumerate() {
                shown.push(unit * logs[1 + k].exp());
                let own = &beta[2 + k * SCHOOLS..][..SCHOOLS];
                shown.extend(own.iter().map(|x| unit * x));
            }
            shown.push(y_sd * logs[0].exp());
            draws.push(shown);
        }
    }
    agree(&long_run(&*model), &moments(&draws), &model.parameter_names());
}
