//! The network's gradient allocates nothing once its buffers are warm. In a binary of its own, because
//! the count is of the whole process.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steinflow::{LogDensity, Matrix, Minibatch};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};

#[global_allocator]
static COUNTER: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_warm_gradient_allocates_nothing() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    // Inside the pool: handing work to it from outside has a queue that grows now and then.
    pool.install(|| {
        for (features, activation) in [(13, Activation::Relu), (90, Activation::Tanh)] {
            let architecture = Architecture { hidden: vec![50, 10], activation };
            let inputs = Matrix::from_fn(500, features, |i, j| ((i * (j + 2)) as f64).sin());
            let targets: Vec<f64> = (0..500).map(|i| inputs.row(i)[0]).collect();
            let model =
                Bnn::<f32>::new(&architecture, &inputs, &targets, Precisions::default()).unwrap();
            let theta: Matrix<f32> = model.start_sample(20, 1).unwrap().cast();
            let batch = Minibatch { indices: (0..100).collect(), scale: 5.0 };
            let (mut values, mut score) = (vec![0.0; 20], Matrix::zeros(20, model.dim()));
            let mut evaluate = |times: usize| {
                for _ in 0..times {
                    model
                        .evaluate(theta.as_ref(), Some(&batch), &mut values, score.as_mut())
                        .unwrap();
                }
            };
            evaluate(200);
            let region = Region::new(COUNTER);
            evaluate(200);
            let change = region.change();
            // A thread that had nothing to do while warming up makes its first buffers here.
            assert!(change.allocations + change.reallocations <= 10, "{change:?}");
        }
    });
}
