//! What the verdict must not say of our own models: there is no mode that exact draws miss, and every gradient
//! is its log density's.

use steinflow::diagnostics::{find_wrong_gradient, search_modes};
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Real};
use steinflow_models::toy::{
    Banana, Crescent, Funnel, Gaussian, GaussianMixture, Ring, TriCrescent,
};
use steinflow_models::{Model, posteriors};

fn with_exact_draws<T: Real>() -> Vec<(&'static str, Box<dyn Model<T>>)> {
    vec![
        ("gaussian", Box::new(Gaussian::correlated())),
        ("standard-normal", Box::new(Gaussian::standard(20).unwrap())),
        ("ill-conditioned", Box::new(Gaussian::ill_conditioned(50, 1e4).unwrap())),
        ("mixture", Box::new(GaussianMixture::default())),
        ("tri-crescent", Box::new(TriCrescent)),
        ("crescent", Box::new(Crescent)),
        ("banana", Box::new(Banana::default())),
        ("ring", Box::new(Ring::default())),
        ("funnel", Box::new(Funnel::default())),
    ]
}

#[test]
fn exact_draws_miss_no_mode() {
    for (name, model) in with_exact_draws::<f64>() {
        for seed in 0..10 {
            let draws = model.exact_sample(200, seed).unwrap();
            let search = search_modes(&*model, draws.as_ref(), seed).unwrap();
            assert_eq!(search.unvisited, None, "{name}, seed {seed}, weight {}", search.weight);
        }
    }
}

fn check_gradient<T: Real>(name: &str, target: &(impl LogDensity<T> + ?Sized), at: &Matrix<f64>) {
    let fault = find_wrong_gradient(target, at.cast::<T>().as_ref()).unwrap();
    assert!(fault.is_none(), "{name}: {}", fault.unwrap());
}

#[test]
fn no_gradient_is_taken_for_a_wrong_one() {
    for (name, model) in with_exact_draws::<f64>() {
        check_gradient(name, &*model, &model.exact_sample(200, 7).unwrap());
    }
    for (name, model) in with_exact_draws::<f32>() {
        check_gradient(name, &*model, &model.exact_sample(200, 7).unwrap());
    }
    for info in posteriors::all() {
        let posterior = info.build();
        let dim = LogDensity::<f64>::dim(&posterior);
        for seed in 0..5 {
            check_gradient::<f64>(info.name, &posterior, &random_states(50, dim, seed));
        }
    }
}
