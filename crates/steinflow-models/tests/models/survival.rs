//! Times until an event, of which some are not seen: the textbook, quadrature, and what rows without events say.

use std::fmt::Write as _;
use std::path::PathBuf;

use steinflow_models::data::{read_fitted_rows, read_new_rows};
use steinflow_models::{ModelSpec, TableError, build};

use crate::families::{check_scores, check_units, long_run, mode, quadrature};
use crate::support::{at, random_points};

const ROWS: usize = 80;

/// Times by the age of a part, cut off at 30.
fn parts(name: &str) -> PathBuf {
    let noise = random_points(ROWS, 2, 1.0, 41);
    let mut text = "age,failed,hours\n".to_owned();
    for i in 0..ROWS {
        let (age, level) = (50.0 + 10.0 * noise.row(i)[0], noise.row(i)[1]);
        // −log of a probability, by the logistic curve.
        let waited = (1.0 + (-1.7 * level).exp()).ln();
        let hours = (4.0 - 0.02 * age).exp() * waited.powf(0.6);
        let failed = if hours < 30.0 { "yes" } else { "no" };
        writeln!(text, "{age},{failed},{}", hours.min(30.0)).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn spec(data: PathBuf) -> ModelSpec {
    ModelSpec {
        data: Some(data),
        event: Some("failed".to_owned()),
        ..ModelSpec::named("weibull-regression")
    }
}

#[test]
fn scores_and_units_are_sound() {
    let plain = spec(parts("survival-scores.csv"));
    let horseshoe = ModelSpec { prior: Some("horseshoe".to_owned()), ..plain.clone() };
    for spec in [plain, horseshoe] {
        check_scores(&spec);
        check_units(&spec);
    }
}

#[test]
fn the_density_is_that_of_the_textbook_with_survivors() {
    let spec = spec(parts("survival-textbook.csv"));
    let (model, path) = (build::<f64>(&spec).unwrap(), spec.data.clone().unwrap());
    assert_eq!(model.parameter_names(), ["intercept", "age", "shape"]);
    let fitted = model.fitted().unwrap();
    let table = read_fitted_rows(&path, None, fitted.recipe()).unwrap();
    let rows: Vec<Vec<f64>> = (0..ROWS).map(|i| table.values().row(i).to_vec()).collect();
    assert!((5..40).contains(&rows.iter().filter(|row| row[1] == 0.0).count()));
    let theta = random_points(4, 3, 0.5, 8);
    let shown = model.units().unwrap().show(&theta);
    let excess: Vec<f64> = (0..4)
        .map(|i| {
            let &[intercept, slope, shape] = shown.row(i) else { panic!("three parameters") };
            let term = |row: &Vec<f64>| {
                let ratio = row[2] / (intercept + slope * row[0]).exp();
                let hazard = (shape / row[2]).ln() + shape * ratio.ln();
                row[1] * hazard - ratio.powf(shape)
            };
            let (own, log_noise) = (theta.row(i), theta.row(i)[2]);
            let prior = -(own[0].powi(2) + own[1].powi(2)) / 12.5 + log_noise - log_noise.exp();
            let value = at(&*model, own, None).0 - rows.iter().map(term).sum::<f64>() - prior;
            // What the same draw says of each row, of those that survived too.
            let one = steinflow::Matrix::from_vec(shown.row(i).to_vec(), 1, 3).unwrap();
            for (row, found) in rows.iter().zip(fitted.predict(&one, &table).unwrap()) {
                assert!((found.log_density.unwrap() - term(row)).abs() < 1e-9);
            }
            value
        })
        .collect();
    assert!(excess.iter().all(|x| (x - excess[0]).abs() < 1e-8), "{excess:?}");
}

#[test]
fn a_long_run_has_the_moments_of_quadrature() {
    let model = build::<f64>(&spec(parts("survival-quadrature.csv"))).unwrap();
    let exact = quadrature(&*model, &mode(&*model), 1.0, 30);
    for (found, exact) in long_run(&*model).iter().zip(&exact) {
        assert!((found.0 - exact.0).abs() < 0.1 * exact.1, "{found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{found:?}, {exact:?}");
    }
}

#[test]
fn new_rows_need_no_event_and_wrong_times_are_named() {
    let model = build::<f64>(&spec(parts("survival-new.csv"))).unwrap();
    let fitted = model.fitted().unwrap();
    let new = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("survival-new-rows.csv");
    std::fs::write(&new, "age\n40\n60\n").unwrap();
    let table = read_new_rows(&new, None, fitted.recipe()).unwrap();
    let draws = steinflow::Matrix::from_fn(4000, 3, |_, j| [4.0, -0.02, 2.0][j]);
    let rows = fitted.predict(&draws, &table).unwrap();
    // E t = e^η Γ(1 + 1/k), and the median is e^η (log 2)^(1/k).
    let scale = (4.0_f64 - 0.8).exp();
    assert!((rows[0].mean / (scale * 0.886_226_925) - 1.0).abs() < 1e-6);
    assert!((rows[0].quantile(0.5) / (scale * 2.0_f64.ln().sqrt()) - 1.0).abs() < 0.05);

    for (text, column) in [
        ("age,failed,hours\n1,1,0\n2,0,3\n", "hours"),
        ("age,failed,hours\n1,2,1\n2,0,3\n", "failed"),
    ] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("survival-wrong.csv");
        std::fs::write(&path, text).unwrap();
        let Err(error) = build::<f64>(&spec(path)) else { panic!("{text}") };
        let steinflow_models::Error::Table(error) = error else { panic!("{error}") };
        let is_it =
            matches!(&error, TableError::NotATime { line: 2, column: at, .. } if at == column);
        assert!(is_it, "{error}");
    }
}
