//! Every name of the catalogue builds in both precisions, and options that do not fit are errors.

use std::fs;
use std::path::PathBuf;

use steinflow::{LogDensity, Matrix, Real};
use steinflow_models::data::Table;
use steinflow_models::regression::DEFAULT_PRIOR_SD;
use steinflow_models::toy::{Banana, Gaussian, GaussianMixture, Ring};
use steinflow_models::{Error, Model, ModelInfo, ModelSpec, build, catalogue};

use crate::support::csv_text;

fn named(name: &str) -> ModelSpec {
    ModelSpec::named(name)
}

fn error(spec: &ModelSpec) -> Error {
    build::<f64>(spec).err().unwrap_or_else(|| panic!("{spec:?} was built"))
}

/// A CSV file in the test's own folder.
fn data_file(name: &str, binary: bool) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, csv_text(30, binary)).unwrap();
    path
}

/// All that can be built by name and data: a Stan program is the user's.
fn models() -> impl Iterator<Item = &'static ModelInfo> {
    catalogue().iter().filter(|info| !info.takes("program"))
}

fn build_all<T: Real>() -> Vec<Box<dyn Model<T>>> {
    // Nearly all regressions accept a target of 0 and 1.
    let data = data_file(&format!("catalogue_{}.csv", T::NAME), true);
    models()
        .map(|info| {
            let spec = ModelSpec {
                data: info.takes("data").then(|| data.clone()),
                // Times are above 0.
                target: info.takes("event").then(|| "height".to_owned()),
                ..named(info.name)
            };
            build::<T>(&spec).unwrap()
        })
        .collect()
}

fn describe_themselves<T: Real>() {
    for (model, info) in build_all::<T>().iter().zip(models()) {
        let (dim, name) = (model.dim(), info.name);
        assert_eq!(model.parameter_names().len(), dim, "{name}");
        let start = model.start();
        assert!(start.mean.len() == dim && start.sd > 0.0, "{name}");
        let solvable = !info.takes("data") && name != "density";
        assert_eq!(model.window().is_some(), dim == 2 && solvable, "{name}");
        assert_eq!(model.data_rows(), if info.takes("data") { 30 } else { 0 }, "{name}");
        assert_eq!(model.exact_moments().is_some(), solvable, "{name}");
        assert_eq!(model.exact_sample(2, 0).map(|sample| sample.rows()), solvable.then_some(2));
        assert_eq!(model.parts().is_some(), ["mixture", "tri-crescent"].contains(&name), "{name}");
    }
}

#[test]
fn every_model_builds_and_describes_itself() {
    describe_themselves::<f64>();
    describe_themselves::<f32>();
    let names: Vec<&str> = catalogue().iter().map(|info| info.name).collect();
    assert_eq!(
        names,
        [
            "gaussian",
            "standard-normal",
            "mixture",
            "tri-crescent",
            "crescent",
            "banana",
            "funnel",
            "ring",
            "linear-regression",
            "student-t-regression",
            "mixture-regression",
            "logistic-regression",
            "multinomial-regression",
            "ordinal-regression",
            "poisson-regression",
            "negative-binomial-regression",
            "weibull-regression",
            "gaussian-process",
            "bnn",
            "density",
            "stan"
        ]
    );
    assert_eq!(build::<f64>(&named("tri-crescent")).unwrap().start().sd, 0.1);
}

#[test]
fn the_dimension_is_chosen_where_it_can_be() {
    for (info, dim) in catalogue().iter().filter(|info| info.takes("dim")).zip([7, 3, 5]) {
        let spec = ModelSpec { dim: Some(dim), ..named(info.name) };
        assert_eq!(build::<f32>(&spec).unwrap().dim(), dim);
    }
    let gaussian = build::<f64>(&ModelSpec { dim: Some(3), ..named("gaussian") }).unwrap();
    let covariance = gaussian.exact_moments().unwrap().covariance;
    assert_eq!(covariance.row(0), [1.0, 0.8, 0.8 * 0.8]);

    for (name, dim, remedy) in [
        ("gaussian", 0, "from 1 to 2000"),
        ("gaussian", 2001, "from 1 to 2000"),
        ("funnel", 1, "at least 2"),
        ("ring", 2, "it always has 2 coordinates"),
        ("linear-regression", 2, "number of features"),
    ] {
        let error = error(&ModelSpec { dim: Some(dim), ..named(name) });
        let message = error.to_string();
        assert!(message.contains(&format!("dim is {dim}")), "{message}");
        assert!(message.contains(remedy), "{message}");
        assert!(error.is_usage());
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let message = error(&named("tricrescent")).to_string();
    assert!(message.contains("no model `tricrescent`, did you mean `tri-crescent`?"), "{message}");
}

#[test]
fn regressions_need_data() {
    for name in ["linear-regression", "logistic-regression"] {
        let error = error(&named(name));
        assert!(matches!(&error, Error::DataRequired { model } if model == name));
        assert!(error.to_string().contains("--data"), "{error}");
    }
}

#[test]
fn options_that_do_not_fit_are_errors() {
    let data = data_file("options.csv", true);
    for (option, spec) in [
        ("data", ModelSpec { data: Some("a.csv".into()), ..named("banana") }),
        ("target", ModelSpec { target: Some("y".into()), ..named("gaussian") }),
        ("prior-sd", ModelSpec { prior_sd: Some(1.0), ..named("ring") }),
        ("noise-sd", ModelSpec { noise_sd: Some(1.0), ..named("funnel") }),
        (
            "noise-sd",
            ModelSpec {
                noise_sd: Some(1.0),
                data: Some(data.clone()),
                ..named("logistic-regression")
            },
        ),
    ] {
        let error = error(&spec);
        assert!(
            matches!(&error, Error::OptionNotTaken { option: found, .. } if *found == option),
            "{error}"
        );
    }
    for (name, value) in
        [("prior-sd", -1.0), ("prior-sd", f64::NAN), ("prior-sd", 1e-200), ("noise-sd", 0.0)]
    {
        let mut spec = ModelSpec { data: Some(data.clone()), ..named("linear-regression") };
        match name {
            "prior-sd" => spec.prior_sd = Some(value),
            _ => spec.noise_sd = Some(value),
        }
        let message = error(&spec).to_string();
        assert!(message.contains(&format!("{name} is {value}: give a positive")), "{message}");
    }
}

#[test]
fn options_reach_the_model() {
    let data = data_file("reach.csv", false);
    let spec = |prior_sd, noise_sd| ModelSpec {
        data: Some(data.clone()),
        target: Some("height".into()),
        prior_sd: Some(prior_sd),
        noise_sd: Some(noise_sd),
        ..named("linear-regression")
    };
    let variance = |prior_sd, noise_sd| {
        // The noise is in units of the target.
        let sd = Table::read(&data).unwrap().scaling(0).unwrap().sd;
        let model = build::<f64>(&spec(prior_sd, sd * noise_sd)).unwrap();
        assert_eq!(model.parameter_names(), ["intercept", "weight", "offset", "outcome"]);
        model.exact_moments().unwrap().covariance.row(0)[0]
    };
    // The intercept is orthogonal to standardised features: 1/(n/σ² + 1/s²) with n = 30.
    for (prior_sd, noise_sd) in [(1.0_f64, 1.0_f64), (0.2, 1.0), (1.0, 3.0)] {
        let exact = 1.0 / (30.0 / noise_sd.powi(2) + 1.0 / prior_sd.powi(2));
        assert!((variance(prior_sd, noise_sd) / exact - 1.0).abs() < 1e-10);
    }
}

#[test]
fn defaults_are_the_published_ones() {
    let data = Some(data_file("defaults.csv", true));
    let spec = ModelSpec { data, noise_sd: Some(1.0), ..named("linear-regression") };
    let explicit = ModelSpec { prior_sd: Some(DEFAULT_PRIOR_SD), ..spec.clone() };
    let moments = |spec: &ModelSpec| build::<f64>(spec).unwrap().exact_moments();
    assert_eq!(moments(&spec), moments(&explicit));
}

#[test]
fn regressions_say_what_their_prior_is_of() {
    for info in catalogue().iter().filter(|info| info.name.ends_with("regression")) {
        assert!(info.formula.contains("for standardised features"), "{info:?}");
        assert!(info.formula.contains("prior-sd"), "{info:?}");
    }
}

#[test]
fn toys_reject_parameters_without_a_density() {
    let identity = |dim: usize| Matrix::from_fn(dim, dim, |i, j| f64::from(u8::from(i == j)));
    let mixture = |weight, dim| {
        let components =
            vec![(1.0, vec![0.0; 2], identity(2)), (weight, vec![0.0; dim], identity(dim))];
        GaussianMixture::new(components).err()
    };
    for (error, words) in [
        (Banana::new(0.0, 1.0).err(), "sd is 0"),
        (Banana::new(1.0, f64::INFINITY).err(), "bend is inf"),
        (Ring::new(-1.0, 1.0).err(), "radius is -1"),
        (Ring::new(1.0, f64::NAN).err(), "width is NaN"),
        (Gaussian::standard(0).err(), "dim is 0"),
        (Gaussian::autoregressive(2, 1.0).err(), "correlation is 1"),
        (Gaussian::ill_conditioned(2, 0.5).err(), "condition is 0.5"),
        (Gaussian::ill_conditioned(1, 2.0).err(), "dim is 1"),
        (Gaussian::new(vec![0.0; 3], identity(2)).err(), "2 × 2 entries, expected 3 × 3"),
        (Gaussian::new(vec![f64::NAN], identity(1)).err(), "mean is NaN"),
        (GaussianMixture::new(Vec::new()).err(), "at least 1 component"),
        (mixture(0.0, 2), "weight is 0"),
        (mixture(f64::NAN, 2), "weight is NaN"),
        (mixture(1.0, 3), "3 coordinates, expected 2"),
    ] {
        let error = error.expect(words);
        assert!(error.to_string().contains(words), "`{words}` is not in: {error}");
        assert!(error.is_usage());
    }
    assert!(mixture(1.0, 2).is_none());
}
