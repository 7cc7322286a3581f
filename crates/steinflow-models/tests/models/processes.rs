//! Gaussian-process regression against conditioning by hand, rows left out one by one, and a long run on a lattice.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use steinflow::Matrix;
use steinflow_models::data::read_new_rows;
use steinflow_models::{Model, ModelSpec, build};

use crate::families::{check_scores, check_units, long_run};
use crate::support::{at, random_points};

/// y = sin(x/4) on x of another scale, with a second feature that says nothing.
fn data(name: &str, rows: usize) -> PathBuf {
    let noise = random_points(rows, 3, 1.0, 41);
    let mut text = "x,z,y\n".to_owned();
    for i in 0..rows {
        let n = noise.row(i);
        let x = 20.0 + 8.0 * n[0];
        writeln!(text, "{x},{},{}", n[1], 50.0 + 6.0 * (x / 4.0).sin() + n[2]).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn spec(data: PathBuf, features: &[&str]) -> ModelSpec {
    ModelSpec {
        data: Some(data),
        features: Some(features.iter().map(|&name| name.to_owned()).collect()),
        ..ModelSpec::named("gaussian-process")
    }
}

#[test]
fn scores_and_units_are_sound() {
    let path = data("processes.csv", 25);
    for features in [&["x"][..], &["x", "z"]] {
        let spec = spec(path.clone(), features);
        check_scores(&spec);
        check_units(&spec);
    }
}

/// The inverse and the logarithm of the determinant, by elimination.
fn inverse(mut a: Vec<Vec<f64>>) -> (Vec<Vec<f64>>, f64) {
    let dim = a.len();
    let unit = |i: usize| (0..dim).map(|j| f64::from(u8::from(i == j))).collect();
    let mut inverse: Vec<Vec<f64>> = (0..dim).map(unit).collect();
    let mut log_determinant = 0.0;
    for i in 0..dim {
        let pivot = a[i][i];
        log_determinant += pivot.ln();
        for j in 0..dim {
            a[i][j] /= pivot;
            inverse[i][j] /= pivot;
        }
        for k in (0..dim).filter(|&k| k != i) {
            let factor = a[k][i];
            for j in 0..dim {
                a[k][j] -= factor * a[i][j];
                inverse[k][j] -= factor * inverse[i][j];
            }
        }
    }
    (inverse, log_determinant)
}

/// A table's columns, and the mean and standard deviation of each.
struct Columns {
    x: Vec<f64>,
    y: Vec<f64>,
    scale: [(f64, f64); 2],
}

fn columns(model: &dyn Model<f64>, path: &Path) -> Columns {
    let table = read_new_rows(path, None, model.fitted().unwrap().recipe()).unwrap();
    let column = |name: &str| {
        let j = table.position(Some(name)).unwrap();
        (0..table.values().rows()).map(|i| table.values().row(i)[j]).collect::<Vec<f64>>()
    };
    let (x, y) = (column("x"), column("y"));
    let scale = [&x, &y].map(|values| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (mean, (square / values.len() as f64).sqrt())
    });
    Columns { x, y, scale }
}

impl Columns {
    /// K of some rows in the units of the table, by parameters as they are shown.
    fn covariance(&self, rows: &[usize], [signal, length, noise]: [f64; 3]) -> Vec<Vec<f64>> {
        let entry = |i: usize, j: usize| {
            let z = (self.x[i] - self.x[j]) / length;
            let own = if i == j { noise * noise + 1e-10 * signal * signal } else { 0.0 };
            signal * signal * (-0.5 * z * z).exp() + own
        };
        rows.iter().map(|&i| rows.iter().map(|&j| entry(i, j)).collect()).collect()
    }
}

#[test]
fn the_density_is_that_of_a_multivariate_normal() {
    let path = data("processes-density.csv", 12);
    let model = build::<f64>(&spec(path.clone(), &["x"])).unwrap();
    assert_eq!(model.parameter_names(), ["signal", "length[x]", "noise"]);
    let (columns, units) = (columns(&*model, &path), model.units().unwrap());
    let theta = random_points(4, 3, 0.5, 6);
    let shown = units.show(&theta);
    let all: Vec<usize> = (0..12).collect();
    let excess: Vec<f64> = (0..4)
        .map(|i| {
            let [a, l, s] = shown.row(i) else { panic!("three") };
            let (inverse, log_determinant) = inverse(columns.covariance(&all, [*a, *l, *s]));
            let r: Vec<f64> = columns.y.iter().map(|y| y - columns.scale[1].0).collect();
            let quadratic: f64 = all
                .iter()
                .flat_map(|&i| all.iter().map(move |&j| (i, j)))
                .map(|(i, j)| r[i] * inverse[i][j] * r[j])
                .sum();
            let z = theta.row(i);
            let prior = -0.5 * (z[0] * z[0] + z[1] * z[1]) + z[2] - z[2].exp();
            at(&*model, z, None).0 + 0.5 * (quadratic + log_determinant) - prior
        })
        .collect();
    // Constants apart.
    assert!(excess.iter().all(|x| (x - excess[0]).abs() < 1e-7), "{excess:?}");
}

/// A row left out is the row predicted from all others, both by hand and by the closed form.
#[test]
fn predictions_are_those_of_conditioning() {
    const ROWS: usize = 15;
    let path = data("processes-predict.csv", ROWS);
    let model = build::<f64>(&spec(path.clone(), &["x"])).unwrap();
    let (columns, fitted) = (columns(&*model, &path), model.fitted().unwrap());
    let parameters = [6.0, 5.0, 1.2];
    let draw = Matrix::from_vec(parameters.to_vec(), 1, 3).unwrap();
    let table = read_new_rows(&path, None, fitted.recipe()).unwrap();
    let left_out = fitted.predict_left_out(&draw, &table).unwrap();
    let by_hand = |rows: &[usize], at: f64, noise: bool| {
        let (inverse, _) = inverse(columns.covariance(rows, parameters));
        let [signal, length, own] = parameters;
        let k: Vec<f64> = rows
            .iter()
            .map(|&i| signal * signal * (-0.5 * ((columns.x[i] - at) / length).powi(2)).exp())
            .collect();
        let centre = columns.scale[1].0;
        let (mut mean, mut known) = (centre, 0.0);
        for (i, &row) in rows.iter().enumerate() {
            for j in 0..rows.len() {
                mean += k[j] * inverse[i][j] * (columns.y[row] - centre);
                known += k[i] * inverse[i][j] * k[j];
            }
        }
        let noise = if noise { own * own } else { 0.0 };
        (mean, (signal * signal + noise - known).sqrt())
    };
    for (row, found) in left_out.iter().enumerate() {
        let others: Vec<usize> = (0..ROWS).filter(|&i| i != row).collect();
        let (mean, sd) = by_hand(&others, columns.x[row], true);
        assert!((found.mean - mean).abs() < 1e-5, "{row}: {} and {mean}", found.mean);
        assert!((found.sd - sd).abs() < 1e-5, "{row}: {} and {sd}", found.sd);
    }
    let new = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("processes-new.csv");
    std::fs::write(&new, "x\n17.3\n60\n").unwrap();
    let table = read_new_rows(&new, None, fitted.recipe()).unwrap();
    let found = fitted.predict(&draw, &table).unwrap();
    let all: Vec<usize> = (0..ROWS).collect();
    for (found, x) in found.iter().zip([17.3, 60.0]) {
        let (mean, sd) = by_hand(&all, x, true);
        assert!((found.mean - mean).abs() < 1e-5, "{} and {mean}", found.mean);
        assert!((found.sd - sd).abs() < 1e-5, "{} and {sd}", found.sd);
    }
    // Far from all data nothing is known but the target's mean.
    assert!((found[1].mean - columns.scale[1].0).abs() < 1e-3);
}

/// Means and spreads of the parameters by a run are those of sums over a lattice.
#[test]
fn a_run_has_the_moments_of_a_lattice() {
    const PLACES: i32 = 41;
    let path = data("processes-run.csv", 30);
    let model = build::<f64>(&spec(path, &["x"])).unwrap();
    let found = long_run(&*model);
    let units = model.units().unwrap();
    let place = |k: i32, centre: f64, width: f64| centre + width * (f64::from(k) / 20.0 - 1.0);
    let mut points = Vec::new();
    for i in 0..PLACES {
        for j in 0..PLACES {
            for k in 0..PLACES {
                points.push([place(i, 0.2, 2.6), place(j, -0.6, 2.2), place(k, -1.7, 1.7)]);
            }
        }
    }
    let theta = Matrix::from_vec(points.concat(), points.len(), 3).unwrap();
    let (mut values, mut scores) = (vec![0.0; points.len()], Matrix::zeros(points.len(), 3));
    model.evaluate(theta.as_ref(), None, &mut values, scores.as_mut()).unwrap();
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = values.iter().map(|x| (x - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let shown = units.show(&theta);
    for (j, &(mean, sd)) in found.iter().enumerate() {
        let average = |of: &dyn Fn(f64) -> f64| {
            (0..points.len()).map(|i| weights[i] * of(shown.row(i)[j])).sum::<f64>() / total
        };
        let exact = average(&|x| x);
        let spread = average(&|x| (x - exact).powi(2)).sqrt();
        assert!((mean - exact).abs() < 0.1 * spread, "{j}: {mean} and {exact} ± {spread}");
        assert!((sd / spread - 1.0).abs() < 0.1, "{j}: {sd} and {spread}");
    }
}

#[test]
fn too_many_rows_and_minibatches_are_refused() {
    let error = |rows: usize| {
        let path = data(&format!("processes-{rows}.csv"), rows);
        build::<f64>(&spec(path, &["x"])).err().map(|error| error.to_string())
    };
    assert!(error(3001).unwrap().contains("3000 at most"));
    assert_eq!(error(40), None);
    let path = data("processes-batch.csv", 20);
    let model = build::<f64>(&spec(path, &["x"])).unwrap();
    let batch = steinflow::Minibatch { indices: vec![1, 2], scale: 10.0 };
    let (mut value, mut score) = ([0.0], Matrix::zeros(1, 3));
    let refused =
        model.evaluate(Matrix::zeros(1, 3).as_ref(), Some(&batch), &mut value, score.as_mut());
    assert!(refused.unwrap_err().to_string().contains("batch-size is 2"));
}
