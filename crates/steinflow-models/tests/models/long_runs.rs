//! Regressions whose posteriors have neither a closed form nor few dimensions, against Metropolis's sampler on the
//! textbook density, which shares nothing with the library's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use steinflow_models::{Model, ModelSpec, build};

use crate::families::{data, long_run, prior, spec, textbook};
use crate::metropolis::{metropolis, moments};
use crate::support::random_points;

pub fn agree(found: &[(f64, f64)], exact: &[(f64, f64)], names: &[String]) {
    for ((found, exact), name) in found.iter().zip(exact).zip(names) {
        assert!((found.0 - exact.0).abs() < 0.12 * exact.1, "{name}: {found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.1, "{name}: {found:?}, {exact:?}");
    }
}

pub fn columns(path: &Path, names: &[&str]) -> Vec<Vec<f64>> {
    let choices = steinflow_models::data::Choices::default();
    let table = steinflow_models::data::read_table(path, None, &choices).unwrap().0;
    let places: Vec<usize> = names.iter().map(|name| table.position(Some(name)).unwrap()).collect();
    let values = table.values();
    (0..values.rows()).map(|i| places.iter().map(|&j| values.row(i)[j]).collect()).collect()
}

/// Compares a long run with Metropolis's on a density of the parameters as they are shown and as they are sampled; returns
/// the moments of what is shown.
fn compare(model: &dyn Model<f64>, log_density: impl Fn(&[f64], &[f64]) -> f64) -> Vec<(f64, f64)> {
    let units = model.units().unwrap();
    let show = |theta: &[f64]| {
        let one = steinflow::Matrix::from_vec(theta.to_vec(), 1, theta.len()).unwrap();
        units.show(&one).row(0).to_vec()
    };
    let of_theta = |theta: &[f64]| log_density(&show(theta), theta);
    let draws = metropolis(of_theta, &model.start().mean, 200_000, 1);
    let exact = moments(&draws.iter().map(|draw| show(draw)).collect::<Vec<_>>());
    agree(&long_run(model), &exact, &model.parameter_names());
    exact
}

/// Errors with heavy tails: their degrees of freedom are learned with the line.
#[test]
fn a_student_t_regression_is_that_of_metropolis() {
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
    let rows = columns(&path, &["size", "age", "number"]);
    let exact = compare(&*model, |p, theta| {
        // What all rows have in common is that of a row on the line.
        let common = textbook("student-t-regression", p, &[0.0, 0.0], 0.0, p[0]);
        let of_row = |row: &Vec<f64>| {
            let z = (row[2] - p[0] - p[1] * row[0] - p[2] * row[1]) / p[3];
            common - f64::midpoint(p[4], 1.0) * (1.0 + z * z / p[4]).ln()
        };
        rows.iter().map(of_row).sum::<f64>() + prior("student-t-regression", theta)
    });
    assert!(exact[4].0 < 8.0, "the outliers are seen: {:?}", exact[4]);
}

#[test]
fn a_multinomial_regression_of_three_classes_is_that_of_metropolis() {
    const NAME: &str = "multinomial-regression";
    let path = data("long-multinomial.csv", 120);
    let model = build::<f64>(&spec(NAME, &path, "normal")).unwrap();
    // Indicators against the first level, `blue`.
    let rows = columns(&path, &["size", "age", "class[green]", "class[red]"]);
    compare(&*model, |p, theta| {
        let of_row = |row: &Vec<f64>| textbook(NAME, p, &row[..2], 0.0, row[2] + 2.0 * row[3]);
        rows.iter().map(of_row).sum::<f64>() + prior(NAME, theta)
    });
}

/// Two lines that share their slope, of which either may be that of a row.
#[test]
fn a_mixture_with_a_feature_is_that_of_metropolis() {
    let noise = random_points(90, 2, 1.0, 41);
    let mut text = "x,y\n".to_owned();
    for i in 0..noise.rows() {
        let [x, e] = noise.row(i) else { panic!("two") };
        let level = if i % 3 == 0 { 14.0 } else { 10.0 };
        writeln!(text, "{x},{}", level + 2.0 * x + 0.8 * e).unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("long-mixture.csv");
    std::fs::write(&path, text).unwrap();
    let spec = ModelSpec { data: Some(path.clone()), ..ModelSpec::named("mixture-regression") };
    let model = build::<f64>(&spec).unwrap();
    let rows = columns(&path, &["x", "y"]);
    let exact = compare(&*model, |p, theta| {
        let [intercept, slope, shift, first, second, share] = p[..] else { panic!("six") };
        let of_row = |row: &Vec<f64>| {
            let residual = row[1] - intercept - slope * row[0];
            let normal = |z: f64, sd: f64| (-0.5 * (z / sd).powi(2)).exp() / sd;
            let other = normal(residual - shift, second);
            ((1.0 - share) * normal(residual, first) + share * other).ln()
        };
        let lognormal = |x: f64| -0.5 * ((x + 2.0_f64.ln()) / 0.75).powi(2);
        let prior = -(theta[0].powi(2) + theta[1].powi(2)) / (2.0 * 2.5 * 2.5)
            + (theta[2] - theta[2].exp())
            + lognormal(theta[3])
            + lognormal(theta[4])
            + 2.0 * (share * (1.0 - share)).ln();
        rows.iter().map(of_row).sum::<f64>() + prior
    });
    assert!((exact[2].0 - 4.0).abs() < 1.0, "both lines are seen: {:?}", exact[2]);
}
