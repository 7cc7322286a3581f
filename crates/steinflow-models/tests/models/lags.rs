//! Autoregressions: the target's own past as features, against least squares and by hand.

use std::fmt::Write as _;
use std::path::PathBuf;

use steinflow::Matrix;
use steinflow_models::data::read_new_rows;
use steinflow_models::{ModelSpec, build};

use crate::families::{long_run, solve};
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

/// Under a wide prior the coefficients given σ are least squares', and σ, under Exponential(1) in standard deviations of
/// the target, is summed over.
#[test]
fn an_autoregression_that_learns_its_noise_is_that_of_quadrature() {
    const ROWS: usize = 120;
    let y = series(ROWS);
    let path = write("series-noise.csv", y.iter().map(ToString::to_string));
    let wide = ModelSpec { noise_sd: None, prior_sd: Some(100.0), ..spec(path, 2) };
    let model = build::<f64>(&wide).unwrap();
    let x = |t: usize| [1.0, y[t - 1], y[t - 2]];
    let sum = |of: &dyn Fn(usize) -> f64| (2..ROWS).map(of).sum::<f64>();
    let gram: Vec<Vec<f64>> =
        (0..3).map(|i| (0..3).map(|j| sum(&|t| x(t)[i] * x(t)[j])).collect()).collect();
    let estimate = solve(gram.clone(), (0..3).map(|i| sum(&|t| x(t)[i] * y[t])).collect());
    let line = |t: usize| x(t).iter().zip(&estimate).map(|(x, b)| x * b).sum::<f64>();
    let squares = sum(&|t| (y[t] - line(t)).powi(2));
    let count = (ROWS - 2) as f64;
    let mean = sum(&|t| y[t]) / count;
    let unit = (sum(&|t| (y[t] - mean).powi(2)) / count).sqrt();
    // Σ w, Σ wσ and Σ wσ² over a grid of log σ.
    let mut sums = [0.0; 3];
    for k in 0..4000 {
        let log = (squares / count).ln() / 2.0 + (f64::from(k) - 2000.0) / 4000.0;
        let sigma = log.exp();
        let centre = -0.5 * count * (1.0 + (squares / count).ln());
        let weight =
            (3.0 - count) * log - 0.5 * squares / (sigma * sigma) - sigma / unit + log - centre;
        for (power, sum) in [1.0, sigma, sigma * sigma].into_iter().zip(&mut sums) {
            *sum += weight.exp() * power;
        }
    }
    let (noise, square) = (sums[1] / sums[0], sums[2] / sums[0]);
    let mut exact: Vec<(f64, f64)> = (0..3)
        .map(|j| {
            let mut own = vec![0.0; 3];
            own[j] = 1.0;
            (estimate[j], (square * solve(gram.clone(), own)[j]).sqrt())
        })
        .collect();
    exact.push((noise, (square - noise * noise).sqrt()));
    for (j, (found, exact)) in long_run(&*model).iter().zip(&exact).enumerate() {
        // 2000 effective draws: about four of their standard errors.
        assert!((found.0 - exact.0).abs() < 0.1 * exact.1, "{j}: {found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.06, "{j}: {found:?}, {exact:?}");
    }
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
