//! Mixtures in the order of their means, against a naive sum and what components far apart must come to.

use std::path::PathBuf;

use steinflow::random::{Purpose, stream};
use steinflow_models::{ModelSpec, build};

use crate::families::{check_scores, check_units, data, long_run};
use crate::support::{at, random_points};

fn spec(data: PathBuf, components: usize, features: &[&str]) -> ModelSpec {
    ModelSpec {
        data: Some(data),
        components: Some(components),
        target: Some("number".to_owned()),
        features: Some(features.iter().map(|&name| name.to_owned()).collect()),
        ..ModelSpec::named("mixture-regression")
    }
}

#[test]
fn scores_and_units_are_sound() {
    let path = data("mixtures.csv", 40);
    for (components, features) in [(2, &[][..]), (3, &["size", "age"])] {
        let spec = spec(path.clone(), components, features);
        check_scores(&spec);
        check_units(&spec);
    }
}

/// log π of shown parameters is the sum over rows of the log of the components' sum, but for the prior.
#[test]
fn the_likelihood_is_that_of_the_components() {
    const ROWS: usize = 30;
    let path = data("mixtures-naive.csv", ROWS);
    let model = build::<f64>(&spec(path.clone(), 2, &["size"])).unwrap();
    let (fitted, units) = (model.fitted().unwrap(), model.units().unwrap());
    assert_eq!(
        model.parameter_names(),
        ["intercept", "size", "shift[2]", "noise[1]", "noise[2]", "weight[2]"]
    );
    let table = steinflow_models::data::read_new_rows(&path, None, fitted.recipe()).unwrap();
    let column = |name: &str| table.position(Some(name)).unwrap();
    let (size, number) = (column("size"), column("number"));
    let theta = random_points(5, 6, 0.6, 8);
    let shown = units.show(&theta);
    let excess: Vec<f64> = (0..5)
        .map(|i| {
            let [a, b, shift, first, second, weight] = shown.row(i) else { panic!("six") };
            let likelihood: f64 = (0..ROWS)
                .map(|row| {
                    let x = table.values().row(row);
                    let normal =
                        |mean: f64, sd: f64| (-0.5 * ((x[number] - mean) / sd).powi(2)).exp() / sd;
                    let mean = a + b * x[size];
                    let parts = (1.0 - weight) * normal(mean, *first)
                        + weight * normal(mean + shift, *second);
                    parts.ln()
                })
                .sum();
            let z = theta.row(i);
            let lognormal = |x: f64| -0.5 * ((x + 2.0_f64.ln()) / 0.75).powi(2);
            let prior = -(z[0].powi(2) + z[1].powi(2)) / (2.0 * 2.5 * 2.5)
                + (z[2] - z[2].exp())
                + lognormal(z[3])
                + lognormal(z[4])
                + 2.0 * (weight * (1.0 - weight)).ln();
            at(&*model, z, None).0 - likelihood - prior
        })
        .collect();
    assert!(excess.iter().all(|x| (x - excess[0]).abs() < 1e-8), "{excess:?}");
}

/// Components that share no row are each as if alone: means of their rows with the standard errors of those, and
/// shares by counts.
#[test]
fn components_far_apart_are_as_if_alone() {
    use rand_distr::{Distribution, StandardNormal};
    let mut random = stream(3, Purpose::Start, 0, 0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let first: Vec<f64> = (0..80).map(|_| 10.0 + normal()).collect();
    let second: Vec<f64> = (0..120).map(|_| 30.0 + 2.0 * normal()).collect();
    let lines: Vec<String> = first.iter().chain(&second).map(ToString::to_string).collect();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mixtures-apart.csv");
    std::fs::write(&path, format!("number\n{}\n", lines.join("\n"))).unwrap();
    let spec = ModelSpec { features: None, ..spec(path, 2, &[]) };
    let model = build::<f64>(&spec).unwrap();
    let found = long_run(&*model);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let sd = |values: &[f64]| {
        let centre = mean(values);
        let squares = values.iter().map(|x| (x - centre).powi(2)).sum::<f64>();
        (squares / values.len() as f64).sqrt()
    };
    let (low, high) = (mean(&first), mean(&second));
    let errors = [sd(&first) / 80.0_f64.sqrt(), sd(&second) / 120.0_f64.sqrt()];
    // The prior of the mean is two standard deviations of the target wide, and moves it by little.
    assert!((found[0].0 - low).abs() < 0.3 * errors[0], "{:?} and {low}", found[0]);
    assert!((found[0].1 / errors[0] - 1.0).abs() < 0.1, "{:?} and {errors:?}", found[0]);
    let both = (errors[0].powi(2) + errors[1].powi(2)).sqrt();
    assert!((found[1].0 - (high - low)).abs() < 0.3 * both, "{:?}", found[1]);
    assert!((found[1].1 / both - 1.0).abs() < 0.1, "{:?} and {both}", found[1]);
    // Beta(2 + 120, 2 + 80).
    let (a, b) = (122.0_f64, 82.0_f64);
    let spread = (a * b / ((a + b).powi(2) * (a + b + 1.0))).sqrt();
    assert!((found[4].0 - a / (a + b)).abs() < 0.1 * spread, "{:?}", found[4]);
    assert!((found[4].1 / spread - 1.0).abs() < 0.05, "{:?}", found[4]);
}

#[test]
fn one_component_is_refused() {
    let path = data("mixtures-one.csv", 10);
    let error = build::<f64>(&spec(path, 1, &[])).err().unwrap().to_string();
    assert!(error.contains("components is 1") && error.contains("linear-regression"), "{error}");
}
