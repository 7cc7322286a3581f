//! Gradients allocate nothing once their buffers are warm. In a binary of its own, because
//! the count is of the whole process.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steinflow::{LogDensity, Matrix, Minibatch};
use steinflow_models::Describe;
use steinflow_models::data::Table;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};
use steinflow_models::regression::LogisticRegression;

#[global_allocator]
static COUNTER: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_warm_gradient_allocates_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    // Inside the pool: handing work to it from outside has a queue that grows now and then.
    pool.install(|| {
        for (features, activation) in [(13, Activation::Relu), (90, Activation::Tanh)] {
            let architecture =
                Architecture { hidden: vec![50, 10], activation, ..Default::default() };
            let inputs = Matrix::from_fn(500, features, |i, j| ((i * (j + 2)) as f64).sin());
            let targets: Vec<f64> = (0..500).map(|i| inputs.row(i)[0]).collect();
            let model =
                Bnn::<f32>::new(&architecture, &inputs, &targets, Precisions::default()).unwrap();
            let theta: Matrix<f32> = model.start_sample(20, 1).unwrap().cast();
            let batch = Minibatch { indices: (0..100).collect(), scale: 5.0 };
            let (mut values, mut score) = (vec![0.0; 20], Matrix::zeros(20, model.dim()));
            let mut evaluate = || {
                model.evaluate(theta.as_ref(), Some(&batch), &mut values, score.as_mut()).unwrap();
            };
            let allocations = allocations_of_200(&mut evaluate);
            assert!(allocations <= 10, "a network of {features} features: {allocations}");
        }

        let row = |i: usize| format!("{},{},{}", (i as f64).sin(), (i as f64).cos(), i % 2);
        let rows: Vec<String> = (0..3000).map(row).collect();
        let csv = format!("a,b,y\n{}", rows.join("\n"));
        let table = Table::from_reader(csv.as_bytes(), "test.csv").unwrap();
        let model = LogisticRegression::<f32>::new(&table, None, 1.0).unwrap();
        let theta = Matrix::from_fn(50, 3, |i, j| ((i + 7 * j) as f32).cos());
        let batch = Minibatch { indices: (0..1500).collect(), scale: 2.0 };
        for rows in [None, Some(&batch)] {
            let (mut values, mut score) = (vec![0.0; 50], Matrix::zeros(50, 3));
            let mut evaluate =
                || model.evaluate(theta.as_ref(), rows, &mut values, score.as_mut()).unwrap();
            let allocations = allocations_of_200(&mut evaluate);
            assert!(allocations <= 10, "logistic regression: {allocations}");
        }
    });
}

/// Allocations of 200 calls, after as many to warm up. A thread that had nothing to do meanwhile makes
/// its first buffers later, so that a few must be allowed.
fn allocations_of_200(call: &mut dyn FnMut()) -> usize {
    for _ in 0..200 {
        call();
    }
    let region = Region::new(COUNTER);
    for _ in 0..200 {
        call();
    }
    let change = region.change();
    change.allocations + change.reallocations
}
