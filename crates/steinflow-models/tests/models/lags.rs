//! Autoregressions: the target's own past as features, against least squares and by hand.

use std::fmt::Write as _;
use std::path::PathBuf;

use steinflow::Matrix;
use steinflow_models::data::read_new_rows;
use steinflow_models::{ModelSpec, build};

use crate::support::random_points;

/// y[t] = 3 + 0.6 y[t−1] − 0.3 y[t−2] + N(0, 0.5²).
fn series(rows: usize) -> Vec<f64> {
    let noise = random_points(rows, 1, 0.5, 31);
    let mut y = vec![4.0, 4.5];
    for t in 2..rows {
        y.push(3.0 + 0.6 * y[t - 1] - 0.3 * y[t - 2] + noise.row(t)[0]);
    }
    y
}

fn write(name: &str, cells: impl Iterator<Item = String>) -> PathBuf {
    let mut text = "day,y\n".to_owned();
    for (day, cell) in cells.enumerate() {
        writeln!(text, "{},{cell}", (day * 37) % 11).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn spec(data: PathBuf, lags: usize) -> ModelSpec {
    let (noise_sd, drop) = (Some(0.5), Some(vec!["day".to_owned()]));
    let (data, lags, prior_sd) = (Some(data), Some(lags), Some(1e4));
    ModelSpec { data, lags, noise_sd, drop, prior_sd, ..ModelSpec::named("linear-regression") }
}

#[test]
fn an_autoregression_has_the_coefficients_of_least_squares() {
    const ROWS: usize = 300;
    let y = series(ROWS);
    let path = write("series.csv", y.iter().map(ToString::to_string));
    let model = build::<f64>(&spec(path.clone(), 2)).unwrap();
    assert_eq!(model.parameter_names(), ["intercept", "y[t-1]", "y[t-2]"]);
    assert_eq!(model.data_rows(), ROWS - 2);
    let found = model.shown_moments().unwrap();
    // The normal equations say that residuals are orthogonal to all features.
    let mut products = [0.0; 3];
    for t in 2..ROWS {
        let x = [1.0, y[t - 1], y[t - 2]];
        let residual = y[t] - x.iter().zip(&found.mean).map(|(x, b)| x * b).sum::<f64>();
        products.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * residual);
    }
    assert!(products.iter().all(|x| x.abs() < 1e-4), "{products:?}");
    for (found, truth) in found.mean.iter().zip([3.0, 0.6, -0.3]) {
        assert!((found - truth).abs() < 0.3, "{found} and {truth}");
    }

    // The row after the last is predicted from those before it.
    let mut cells: Vec<String> = y.iter().map(ToString::to_string).collect();
    cells.push(String::new());
    let new = write("series-new.csv", cells.into_iter());
    let fitted = model.fitted().unwrap();
    let table = read_new_rows(&new, None, fitted.recipe()).unwrap();
    assert_eq!(table.values().rows(), ROWS - 1);
    let draw = Matrix::from_vec(found.mean.clone(), 1, 3).unwrap();
    let predicted = fitted.predict(&draw, &table).unwrap();
    let [a, b, c] = found.mean[..] else { panic!("three coefficients") };
    let next = a + b * y[ROWS - 1] + c * y[ROWS - 2];
    assert!((predicted[ROWS - 2].mean - next).abs() < 1e-9);
    assert!((predicted[ROWS - 2].sd - 0.5).abs() < 1e-9);
}

#[test]
fn a_gap_leaves_out_the_rows_that_it_is_the_past_of() {
    let y = series(12);
    let cell = |(t, y): (usize, &f64)| if t == 6 { "NA".to_owned() } else { y.to_string() };
    let path = write("series-gap.csv", y.iter().enumerate().map(cell));
    let model = build::<f64>(&spec(path.clone(), 2)).unwrap();
    // Rows 2 to 5 and 9 to 11.
    assert_eq!(model.data_rows(), 7);
    let error = |spec: &ModelSpec| build::<f64>(spec).err().unwrap().to_string();
    assert!(error(&spec(path, 12)).contains("fewer --lags"));
    let words = write("series-words.csv", (0..9).map(|t| ["a", "b"][t % 2].to_owned()));
    let words = ModelSpec { noise_sd: None, ..spec(words, 1) };
    let words = ModelSpec { model: Some("logistic-regression".to_owned()), ..words };
    assert!(error(&words).contains("lags are of numbers"));
}
