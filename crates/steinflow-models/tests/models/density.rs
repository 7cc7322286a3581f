//! Densities that are typed: against closed forms, also within limits.

use steinflow_models::{Density, Describe, ModelSpec, build};

use crate::families::{check_scores, long_run};
use crate::support::at;

fn spec(formula: &str, support: &str) -> ModelSpec {
    let limits = || support.split(',').map(|limit| limit.trim().to_owned()).collect();
    ModelSpec {
        density: Some(formula.to_owned()),
        support: (!support.is_empty()).then(limits),
        ..ModelSpec::named("density")
    }
}

#[test]
fn scores_are_the_gradients_of_the_log_densities() {
    for (formula, support) in [
        ("-(x^2)/2 - 2*(y - x^2)^2", ""),
        ("2*log(x) - 3*x + 4*log(p) + log(1 - p) - exp(z)^2", "x>0, 0<=p<=1, z<-1"),
        ("-log(1 + x^2)*a - a", "2 > a > 1, x > -3, x < 5"),
    ] {
        check_scores(&spec(formula, support));
    }
}

/// Gamma(3, 2), Beta(3, 5), −Exponential(1) below 2, and a normal distribution, each in its own coordinates.
#[test]
fn limits_leave_the_density_what_it_is() {
    let formula = "2*log(x) - 2*x + 2*log(p) + 4*log(1 - p) + n - (y - 1)^2/8";
    let model = build::<f64>(&spec(formula, "x > 0, 0 < p < 1, n < 2")).unwrap();
    assert_eq!(model.parameter_names(), ["x", "p", "n", "y"]);
    let beta = (3.0 * 5.0 / (64.0 * 9.0_f64)).sqrt();
    // 2000 effective draws: 0.1 and 8 % are about four of their standard errors.
    for (found, (mean, sd)) in long_run(&*model).iter().zip([
        (1.5, 0.75_f64.sqrt()),
        (0.375, beta),
        (1.0, 1.0),
        (1.0, 2.0),
    ]) {
        assert!((found.0 - mean).abs() < 0.1 * sd, "{found:?}: {mean} ± {sd}");
        assert!((found.1 / sd - 1.0).abs() < 0.08, "{found:?}: {mean} ± {sd}");
    }
}

#[test]
fn far_from_everything_limits_are_kept() {
    let model = Density::new("log(p) + log(1 - p)", &["0 < p < 1".to_owned()]).unwrap();
    let units = model.units().unwrap();
    for z in [-700.0_f64, -40.0, 0.3, 20.0] {
        let (value, score) = at(&model, &[z], None);
        // log π(z) = 2 log p(1 − p), whose slope is −2 tanh(z/2).
        assert!((score[0] + 2.0 * (z / 2.0).tanh()).abs() < 1e-3, "{z}: {score:?}");
        assert!(value.is_finite());
    }
    let x = units.show(&steinflow::Matrix::from_fn(1, 1, |_, _| -30.0_f64));
    assert!((units.hide(&x).row(0)[0] + 30.0).abs() < 1e-9);
}

#[test]
fn limits_that_cannot_be_are_said() {
    for (support, expected) in [
        ("x", "`0 < x < 1`"),
        ("x > y", "`0 < x < 1`"),
        ("0 < x > 1", "`0 < x < 1`"),
        ("z > 0", "there is no coordinate `z`"),
        ("1 < x < 0", "nothing lies above 1 and below 0"),
        ("x > inf", "there is no coordinate `inf`"),
    ] {
        let error = build::<f64>(&spec("-x^2 - y^2", support)).err().unwrap().to_string();
        assert!(error.contains(expected), "`{expected}` is not in: {error}");
    }
    let error = build::<f64>(&spec("-x^2 +) 3", "")).err().unwrap().to_string();
    assert!(error.contains("\n  -x^2 +) 3\n        ^"), "{error}");
}
