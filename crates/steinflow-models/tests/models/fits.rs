//! How a regression fits its data: rows left out against a closed form, data drawn from the fit beside what was
//! seen.

use std::fmt::Write as _;
use std::path::PathBuf;

use steinflow::run::{Auto, Samples};
use steinflow_models::data::read_new_rows;
use steinflow_models::prediction::Check;
use steinflow_models::{ModelSpec, build};

use crate::families::{data, spec};
use crate::support::random_points;

/// Without row i a conjugate regression predicts N(xᵢ·m − hᵢeᵢ/(1 − hᵢ), σ²/(1 − hᵢ)), with the residual eᵢ and
/// the leverage hᵢ = xᵢ·Λ⁻¹xᵢ/σ² of the row.
#[test]
fn rows_left_out_are_those_of_the_closed_form() {
    const ROWS: usize = 40;
    const NOISE: f64 = 12.0;
    let path = data("families-left-out.csv", ROWS);
    let noise_sd = Some(NOISE);
    let spec = ModelSpec { noise_sd, ..spec("linear-regression", &path, "normal") };
    let model = build::<f64>(&spec).unwrap();
    let (fitted, units) = (model.fitted().unwrap(), model.units().unwrap());
    let draws = units.show(&model.exact_sample(4000, 1).unwrap());
    let table = read_new_rows(&path, None, fitted.recipe()).unwrap();
    let found = fitted.leave_one_out(&draws, &table).unwrap();
    let left_out = fitted.predict_left_out(&draws, &table).unwrap();
    let exact = model.shown_moments().unwrap();
    let column = |name: &str| table.position(Some(name)).unwrap();
    let places = ["size", "age", "number"].map(column);
    let mut total = 0.0;
    for i in 0..ROWS {
        let row = table.values().row(i);
        let x = [1.0, row[places[0]], row[places[1]]];
        let mean: f64 = x.iter().zip(&exact.mean).map(|(x, m)| x * m).sum();
        let spread: f64 = (0..3)
            .flat_map(|j| (0..3).map(move |k| (j, k)))
            .map(|(j, k)| x[j] * exact.covariance.row(j)[k] * x[k])
            .sum();
        let leverage = spread / NOISE.powi(2);
        let residual = (row[places[2]] - mean) / (1.0 - leverage);
        let variance = NOISE.powi(2) / (1.0 - leverage);
        let score = -0.5 * (residual.powi(2) / variance + (std::f64::consts::TAU * variance).ln());
        // Of 4000 draws; importance weights have little spread at such leverages.
        assert!((found.scores[i] - score).abs() < 0.05, "{i}: {} and {score}", found.scores[i]);
        let own = &left_out[i];
        assert!((own.mean - row[places[2]] + residual).abs() < 0.1 * NOISE, "{i}: {}", own.mean);
        assert!((own.sd / variance.sqrt() - 1.0).abs() < 0.05, "{i}: {}", own.sd);
        let median = own.quantile(0.5);
        assert!((median - own.mean).abs() < 0.15 * NOISE, "{i}: {median}");
        assert!((own.log_density.unwrap() - found.scores[i]).abs() < 1e-9, "{i}");
        total += score;
    }
    assert!((found.total() - total).abs() < 0.3, "{} and {total}", found.total());
    assert_eq!(found.doubtful(), 0);
    assert!((found.effective_parameters() - 3.0).abs() < 1.5, "{}", found.effective_parameters());
}

/// Data that is drawn from a Poisson fit has fewer zeros than data that varies more; a fit that is right does
/// not object.
#[test]
fn checks_find_what_a_family_does_not_make() {
    let mut text = "x,count\n".to_owned();
    let noise = random_points(200, 3, 1.0, 17);
    for i in 0..noise.rows() {
        let n = noise.row(i);
        // Mostly none, seldom many.
        let count = (3.0 * (1.8 * n[1] - 1.5).exp()).floor();
        writeln!(text, "{},{count}", n[0]).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("families-checks.csv");
    std::fs::write(&path, text).unwrap();
    let checks = |model: &str| {
        let spec = ModelSpec { data: Some(path.clone()), ..ModelSpec::named(model) };
        let model = build::<f64>(&spec).unwrap();
        let mut draws = Samples::of_ensemble();
        Auto::new(&*model).observe(draws.observer()).run().unwrap();
        let fitted = model.fitted().unwrap();
        let shown = model.units().unwrap().show(&draws.theta());
        let table = read_new_rows(&path, None, fitted.recipe()).unwrap();
        fitted.checks(&shown, &table).unwrap()
    };
    let of = |checks: &[Check], name: &str| {
        checks.iter().find(|check| check.name == name).unwrap().clone()
    };
    let poisson = checks("poisson-regression");
    for name in ["sd", "share of 0"] {
        assert!(of(&poisson, name).is_odd(), "{:?}", of(&poisson, name));
    }
    let negative_binomial = checks("negative-binomial-regression");
    for name in ["mean", "share of 0"] {
        assert!(!of(&negative_binomial, name).is_odd(), "{:?}", of(&negative_binomial, name));
    }
}
