//! How long the gradients of all particles of a network take, and how far that is from bare products
//! of the same size.
//!
//! ```text
//! cargo run --release -p steinflow-models --example network_speed
//! ```

use std::time::Instant;

use rayon::prelude::*;
use steinflow::{LogDensity, Matrix, Minibatch, Real};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};

const ROWS: usize = 1000;
const BATCH: usize = 100;
const UNITS: usize = 50;

/// The shortest of many repetitions, in microseconds: the one that other work disturbed least.
fn microseconds(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < 0.3 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best * 1e6
}

fn measure<T: Real>(activation: Activation, features: usize, particles: usize) {
    let inputs = Matrix::from_fn(ROWS, features, |i, j| ((i * (j + 2)) as f64).sin());
    let targets: Vec<f64> = (0..ROWS).map(|i| inputs.row(i)[0] * inputs.row(i)[1]).collect();
    let architecture = Architecture { hidden: vec![UNITS], activation, ..Default::default() };
    let model = Bnn::<T>::new(&architecture, &inputs, &targets, Precisions::default())
        .expect("the data is finite");
    let theta: Matrix<T> = model.start_sample(particles, 1).expect("a start").cast();
    let indices = (0..BATCH).map(|i| i * 7 % ROWS).collect();
    let batch = Minibatch { indices, scale: ROWS as f64 / BATCH as f64 };
    let (mut value, mut score) =
        (vec![T::zero(); particles], Matrix::zeros(particles, model.dim()));
    let gradient = microseconds(|| {
        model
            .evaluate(theta.as_ref(), Some(&batch), &mut value, score.as_mut())
            .expect("the shapes fit");
    });
    // The two products of the first layer, and nothing else.
    let x = vec![T::one(); features * BATCH];
    let mut hidden = vec![T::one(); particles * UNITS * BATCH];
    let products = microseconds(|| {
        score
            .as_mut_slice()
            .par_chunks_mut(model.dim())
            .zip(hidden.par_chunks_mut(UNITS * BATCH))
            .enumerate()
            .for_each(|(i, (score, hidden))| {
                let weights = &theta.row(i)[..UNITS * features];
                T::accumulate_product(weights, &x, hidden, UNITS, BATCH, features);
                let score = &mut score[..UNITS * features];
                T::product_transposed(hidden, &x, score, UNITS, features, BATCH);
            });
    });
    let flop = (4 * UNITS * features * BATCH * particles) as f64;
    println!(
        "{} {activation:?} {features:>3} features {particles:>4} particles: gradient {gradient:8.1} µs \
         ({:5.1} GFLOP/s), products alone {products:8.1} µs, ratio {:.2}",
        T::NAME,
        flop / gradient / 1e3,
        gradient / products,
    );
}

fn main() {
    // Inside the thread pool, as the steps of a long run can be: every hand-over from outside costs
    // tens of microseconds, which would hide what is measured here.
    rayon::scope(|_| {
        for (features, particles) in [(4, 20), (13, 20), (90, 20), (13, 100), (13, 1000)] {
            measure::<f32>(Activation::Relu, features, particles);
            measure::<f64>(Activation::Relu, features, particles);
        }
        measure::<f32>(Activation::Tanh, 13, 20);
        measure::<f64>(Activation::Tanh, 13, 20);
    });
}
