//! The kernels one by one: `cargo bench --package steinflow-bench`.

use divan::{Bencher, black_box};
use steinflow::dynamics::{Langevin, Sghmc, THETA};
use steinflow::engine::{Factor, KernelSums, kernel_sums};
use steinflow::field::{Diffusion, Stein};
use steinflow::integrator::{Integrator, SymmetricSplitting};
use steinflow::kernel::{Kernel, Radial};
use steinflow::target::PerParticle;
use steinflow::{LogDensity, Matrix, System};
use steinflow_models::Describe;
use steinflow_models::network::{Architecture, Bnn, Precisions};

fn main() {
    divan::main();
}

fn points(count: usize, dim: usize) -> Matrix<f32> {
    Matrix::from_fn(count, dim, |i, j| ((i * dim + j) as f32 * 0.7).sin())
}

fn gaussian(dim: usize) -> impl LogDensity<f32> {
    PerParticle::new(dim, |theta: &[f32], score: &mut [f32]| {
        for (s, x) in score.iter_mut().zip(theta) {
            *s = -x;
        }
        0.0
    })
}

#[divan::bench(args = [(1000, 2), (1000, 64), (20, 1506), (100, 1506)])]
fn sums(bencher: Bencher<'_, '_>, (count, dim): (usize, usize)) {
    let points = points(count, dim);
    let factors = [Factor::new(points.as_ref(), 0.01)];
    let (radial, values) = (Radial::SquaredExponential, points.as_ref());
    let sums = KernelSums { radial, factors: &factors, values, slopes: &[] };
    bencher.bench_local(|| kernel_sums(black_box(&sums)));
}

#[divan::bench(args = [(100, 2), (1000, 54), (10_000, 3)])]
fn svgd_velocity(bencher: Bencher<'_, '_>, (count, dim): (usize, usize)) {
    let field = Stein::new(Kernel::default());
    let mut system = System::new(gaussian(dim), Langevin::new(), field, &points(count, dim), 0)
        .expect("the shapes are right");
    bencher.bench_local(|| system.velocity(&[THETA]).expect("all is finite"));
}

#[divan::bench(args = [100, 10_000])]
fn noise_of_a_diffusion(bencher: Bencher<'_, '_>, count: usize) {
    let dynamics = Sghmc { friction: 1.0, variance: 1.0 };
    let mut system = System::new(gaussian(10), dynamics, Diffusion, &points(count, 10), 0)
        .expect("the shapes are right");
    bencher.bench_local(|| SymmetricSplitting.step(&mut system, 1e-3).expect("all is finite"));
}

#[divan::bench(args = [20, 100])]
fn network_gradient(bencher: Bencher<'_, '_>, particles: usize) {
    let inputs = Matrix::from_fn(100, 13, |i, j| ((i * 13 + j) as f64).sin());
    let targets: Vec<f64> = (0..100).map(|i| inputs.row(i)[0]).collect();
    let model = Bnn::<f32>::new(&Architecture::default(), &inputs, &targets, Precisions::default())
        .expect("the data is standardised");
    let theta: Matrix<f32> = model.start_sample(particles, 1).expect("they have a start").cast();
    let (mut values, mut score) = (vec![0.0; particles], Matrix::zeros(particles, model.dim()));
    bencher.bench_local(|| {
        model
            .evaluate(theta.as_ref(), None, &mut values, score.as_mut())
            .expect("the shapes are right");
    });
}
