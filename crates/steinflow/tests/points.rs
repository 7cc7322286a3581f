//! Points at rest with equal weights: what they are worth, and when they are refused.

use crate::common::gaussian;
use steinflow::dynamics::Langevin;
use steinflow::ensemble::Options;
use steinflow::field::Stein;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::run::{Auto, Outcome, Samples};
use steinflow::{Error, LogDensity, Matrix, Real, Sampler};

/// N((5, −3), Σ) with standard deviations of 0.01 and 200 and a correlation of 0.7.
fn correlated<T: Real>() -> impl LogDensity<T> {
    let (a, b, c) = (0.01, 200.0, 0.7_f64);
    let scale = 1.0 / (1.0 - c * c);
    let precision =
        [[scale / (a * a), -c * scale / (a * b)], [-c * scale / (a * b), scale / (b * b)]];
    gaussian(vec![5.0, -3.0], Matrix::from_fn(2, 2, |i, j| precision[i][j]))
}

fn standard(dim: usize) -> impl LogDensity<f64> {
    gaussian(vec![0.0; dim], Matrix::from_fn(dim, dim, |i, j| f64::from(u8::from(i == j))))
}

fn drawn<T: Real>(target: impl LogDensity<T>, particles: usize) -> (Outcome<T>, Matrix<T>) {
    let mut samples = Samples::of_ensemble();
    let options = Options { particles: Some(particles), ..Options::default() };
    let outcome = Auto::new(target).options(options).observe(samples.observer()).run().unwrap();
    (outcome, samples.theta())
}

fn mean_and_sd<T: Real>(theta: &Matrix<T>, j: usize) -> (f64, f64) {
    let n = theta.rows() as f64;
    let column = || (0..theta.rows()).map(|i| theta.row(i)[j].as_f64());
    let mean = column().sum::<f64>() / n;
    (mean, (column().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

/// As many draws would err by 0.14 and 10 %.
fn check_moments<T: Real>() {
    let (outcome, draws) = drawn(correlated::<T>(), 50);
    for draws in [draws.as_ref(), outcome.theta().as_ref()] {
        let points = outcome.at_rest(correlated(), draws).unwrap();
        assert_eq!((points.rows(), points.cols()), (50, 2));
        for (j, mean, sd) in [(0, 5.0, 0.01), (1, -3.0, 200.0)] {
            let found = mean_and_sd(&points, j);
            assert!(((found.0 - mean) / sd).abs() < 0.02, "{found:?}");
            assert!((found.1 / sd - 1.0).abs() < 0.03, "{found:?}");
        }
    }
}

#[test]
fn points_have_mean_and_spread_in_double_precision() {
    check_moments::<f64>();
}

#[test]
fn points_have_mean_and_spread_in_single_precision() {
    check_moments::<f32>();
}

/// Few of many draws are narrower than those, and short steps would leave 0.92 of the variance.
#[test]
fn few_points_in_many_dimensions_have_the_spread() {
    let (outcome, draws) = drawn(standard(25), 60);
    let points = outcome.at_rest(standard(25), draws.as_ref()).unwrap();
    let squares: f64 = (0..25).map(|j| mean_and_sd(&points, j).1.powi(2)).sum();
    assert!((squares / 25.0 - 1.0).abs() < 0.025, "{}", squares / 25.0);
}

fn refused(result: steinflow::Result<Matrix<f64>>) -> String {
    match result {
        Err(error @ Error::Setting { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fewer_than_twice_the_dimension_are_refused() {
    let (outcome, draws) = drawn(standard(6), 11);
    let said = refused(outcome.at_rest(standard(6), draws.as_ref()));
    assert!(said.contains("11") && said.contains("12 or more"), "{said}");
    let (outcome, draws) = drawn(standard(6), 12);
    assert_eq!(outcome.at_rest(standard(6), draws.as_ref()).unwrap().rows(), 12);
}

/// Draws that are wider or narrower than the target they are said to come from.
#[test]
fn a_spread_that_draws_do_not_have_is_refused() {
    let (outcome, draws) = drawn(standard(2), 40);
    let stretched = |by: f64| {
        // In the second coordinate alone.
        let factor = |j: usize| if j == 1 { by } else { 1.0 };
        let draws = Matrix::from_fn(draws.rows(), 2, |i, j| factor(j) * draws.row(i)[j]);
        outcome.at_rest(standard(2), draws.as_ref())
    };
    for (by, spread) in [(1.3, "0."), (0.8, "1.")] {
        let said = refused(stretched(by));
        assert!(said.contains(&format!("is {spread}")) && said.contains("coordinate 2"), "{said}");
    }
    assert!(stretched(1.04).is_ok() && stretched(0.96).is_ok());
}

#[test]
fn a_run_that_has_learnt_no_coordinates_is_refused() {
    let outcome = Sampler::new(standard(2), Langevin::new(), Stein::new(Kernel::default()))
        .start_normal(20, &[0.0, 0.0], 1.0)
        .phase(Euler, 5, StepSize::Constant(0.1))
        .run()
        .unwrap();
    let said = refused(outcome.at_rest(standard(2), outcome.theta().as_ref()));
    assert!(said.contains("warm"), "{said}");
}
