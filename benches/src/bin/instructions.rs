//! Repeats one kernel a given number of times on one thread, for callgrind to count.
//!
//! `cargo xtask instructions` runs it twice and takes the difference, so that setting up does not count.

use std::process::ExitCode;

use steinflow::engine::{Factor, KernelSums, kernel_sums};
use steinflow::kernel::Radial;
use steinflow::{LogDensity, Matrix};
use steinflow_models::Describe;
use steinflow_models::network::{Architecture, Bnn, Precisions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kernel, repeats) = match &arguments[..] {
        [kernel, repeats] => (kernel.as_str(), repeats.parse().unwrap_or(1)),
        _ => ("", 0),
    };
    if let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(1).build_global() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    match kernel {
        "kernel-sums" => kernel_sums_of_points(repeats),
        "network-gradient" => network_gradient(repeats),
        _ => {
            eprintln!("usage: instructions kernel-sums|network-gradient REPEATS");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// 512 points in 64 dimensions.
fn kernel_sums_of_points(repeats: usize) {
    let points = Matrix::from_fn(512, 64, |i, j| ((i * 64 + j) as f32).sin());
    let factors = [Factor::new(points.as_ref(), 0.01)];
    for _ in 0..repeats {
        let (radial, values) = (Radial::SquaredExponential, points.as_ref());
        let sums = KernelSums { radial, factors: &factors, values, slopes: &[] };
        std::hint::black_box(kernel_sums(&sums));
    }
}

/// 20 particles, 13 inputs, 50 units, 100 rows.
fn network_gradient(repeats: usize) {
    let inputs = Matrix::from_fn(100, 13, |i, j| ((i * 13 + j) as f64).sin());
    let targets: Vec<f64> = (0..100).map(|i| inputs.row(i)[0]).collect();
    let model = Bnn::<f32>::new(&Architecture::default(), &inputs, &targets, Precisions::default())
        .expect("the data is standardised");
    let theta: Matrix<f32> = model.start_sample(20, 1).expect("networks have a start").cast();
    let (mut values, mut score) = (vec![0.0; 20], Matrix::zeros(20, model.dim()));
    for _ in 0..repeats {
        model
            .evaluate(theta.as_ref(), None, &mut values, score.as_mut())
            .expect("the shapes are right");
    }
}
