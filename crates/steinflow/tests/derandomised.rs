//! What makes de-randomised particles strictly right: affine features, a unit of time that is held, and a
//! curl that is skew between particles.

use crate::common::gaussian;
use steinflow::dynamics::metric::Shape;
use steinflow::dynamics::{
    Dynamics, Langevin, Metric, Point, Sghmc, Sgnht, Sgrhmc, THETA, Terms, ThirdOrder,
};
use steinflow::field::{CurlForm, Diffusion, ProductSpace, Stein, TimeUnit};
use steinflow::integrator::{Euler, MidpointDrift, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::run::{Resampling, Samples};
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Real, Sampler, System};

fn standard(dim: usize) -> impl LogDensity<f64> {
    gaussian(vec![0.0; dim], Matrix::from_fn(dim, dim, |i, j| f64::from(u8::from(i == j))))
}

fn affine(view: View, bandwidth: Bandwidth) -> Kernel {
    Kernel { view, bandwidth, affine: 1.0, ..Kernel::default() }
}

fn variance(theta: &Matrix<f64>) -> f64 {
    let square: f64 = theta.as_slice().iter().map(|x| x * x).sum();
    square / theta.as_slice().len() as f64
}

/// ∇·(π⊗…⊗π v)/(π⊗…⊗π) on N particles at once, by central differences.
fn loss_of_mass(dynamics: &dyn Dynamics<f64>, field: Stein) -> f64 {
    let target = crate::common::tri_crescent::<f64>();
    let (count, blocks) = (4, dynamics.structure(2).blocks());
    let all: Vec<usize> = (0..blocks).collect();
    let state = random_states(count, 2 * blocks, 6);
    let theta = Matrix::from_fn(count, 2, |i, j| state.row(i)[j]);
    let mut system = System::new(&target, dynamics, field, &theta, 0).unwrap();
    let mut velocity = |state: &Matrix<f64>| {
        system.set_state(state.clone()).unwrap();
        (system.velocity(&all).unwrap(), system.evaluated().unwrap().gradient())
    };
    let (v, gradient) = velocity(&state);
    let mut sum: f64 = v.as_slice().iter().zip(gradient.as_slice()).map(|(v, g)| v * g).sum();
    let step = 1e-5;
    for i in 0..count {
        for k in 0..2 * blocks {
            let mut moved = |by: f64| {
                let mut state = state.clone();
                state.row_mut(i)[k] += by;
                velocity(&state).0.row(i)[k]
            };
            sum += (moved(step) - moved(-step)) / (2.0 * step);
        }
    }
    sum
}

#[test]
fn without_friction_the_product_of_targets_is_invariant() {
    let (friction, variance) = (0.0, 1.3);
    let sghmc = Sghmc { friction, variance };
    let third = ThirdOrder { friction, coupling: 0.7, variance, variance_u: 0.8 };
    let sgnht = Sgnht { friction, variance, thermostat_precision: 1.7 };
    let all: [&dyn Dynamics<f64>; 3] = [&sghmc, &third, &sgnht];
    for (place, dynamics) in all.into_iter().enumerate() {
        for view in [View::Joint, View::Product, View::Theta] {
            for radial in Radial::ALL {
                for affine in [0.0, 0.8] {
                    let bandwidth = Bandwidth::fixed(1.4);
                    let kernel = Kernel { radial, view, bandwidth, affine };
                    let field = Stein::new(kernel).curl(CurlForm::Symmetrised);
                    let lost = loss_of_mass(dynamics, field);
                    assert!(lost.abs() < 1e-7, "{place} {view:?} {radial:?} {affine}: {lost:e}");
                }
            }
        }
    }
    // The thermostat in the paper's form loses some.
    let lost = loss_of_mass(&sgnht, Stein::new(affine(View::Theta, Bandwidth::fixed(1.4))));
    assert!(lost.abs() > 1e-2, "{lost:e}");
}

#[test]
fn the_affine_kernel_has_the_stein_identity() {
    // E[c(1 + z·z′) f(z′) + c M(z′) z] = 0 over z′ ~ π, for every z.
    let (target, theta) =
        (crate::common::tri_crescent::<f64>(), crate::common::exact_tri_crescent(50_000, 5));
    let place = [0.4, 0.3, -0.5, 0.2, 0.6, 0.9];
    for (name, dynamics) in crate::common::catalogue() {
        let mut system = System::new(&target, &dynamics, Diffusion, &theta, 1).unwrap();
        let blocks: Vec<usize> = (0..system.structure().blocks()).collect();
        let at = system.evaluated().unwrap();
        let (drift, z) = (at.drift(), &place[..at.state.cols()]);
        let (mut sums, mut squares) = (vec![0.0; z.len()], vec![0.0; z.len()]);
        for j in 0..theta.rows() {
            let product: f64 = z.iter().zip(at.state.row(j)).map(|(a, b)| a * b).sum();
            let mut term: Vec<f64> = drift.row(j).iter().map(|f| (1.0 + product) * f).collect();
            at.operator.apply(at.coefficients.row(j), z, &blocks, Terms::All, 1.0, &mut term);
            for (k, x) in term.into_iter().enumerate() {
                (sums[k], squares[k]) = (sums[k] + x, squares[k] + x * x);
            }
        }
        let n = theta.rows() as f64;
        for (sum, square) in sums.into_iter().zip(squares) {
            let error = ((square / n - (sum / n).powi(2)) / n).sqrt();
            assert!((sum / n).abs() < 4.5 * error + 1e-12, "{name}: {} ± {error}", sum / n);
        }
    }
}

fn at_rest(target: impl LogDensity<f64>, kernel: Kernel, start: &Matrix<f64>) -> Matrix<f64> {
    let outcome = Sampler::new(target, Langevin::new(), Stein::new(kernel))
        .start_at(start.clone())
        .phase(Euler, 5000, StepSize::Constant(0.1))
        .tolerance(1e-10)
        .run()
        .unwrap();
    outcome.theta()
}

#[test]
fn svgd_at_rest_has_the_mean_and_covariance_of_a_gaussian() {
    // A kernel so wide that only its affine features are left: then Σⱼ sⱼ = 0 and Σⱼ sⱼxⱼᵀ = −(N + 1)I.
    let precision = Matrix::from_fn(2, 2, |i, j| [[2.0, -0.9], [-0.9, 1.0]][i][j]);
    let determinant = 2.0 - 0.81;
    let covariance =
        [[1.0 / determinant, 0.9 / determinant], [0.9 / determinant, 2.0 / determinant]];
    let mean = [0.3, -0.4];
    let target = gaussian(mean.to_vec(), precision);
    let n = 12;
    let theta =
        at_rest(target, affine(View::Joint, Bandwidth::fixed(1e9)), &random_states(n, 2, 3));
    for a in 0..2 {
        let found = (0..n).map(|i| theta.row(i)[a]).sum::<f64>() / n as f64;
        assert!((found - mean[a]).abs() < 1e-7, "{found}");
        for b in 0..2 {
            let products =
                (0..n).map(|i| (theta.row(i)[a] - mean[a]) * (theta.row(i)[b] - mean[b]));
            let found = products.sum::<f64>() / (n as f64 + 1.0);
            assert!((found - covariance[a][b]).abs() < 1e-6, "{found} {}", covariance[a][b]);
        }
    }

    // With the kernel that is recommended, and without its affine part, on N(0, I) in 10 dimensions.
    let start = random_states(50, 10, 4);
    let kernel = affine(View::Joint, Bandwidth::White { factor: 4.0 });
    let kept = variance(&at_rest(standard(10), kernel.clone(), &start));
    assert!((kept - 1.0).abs() < 0.025, "{kept}");
    let lost = variance(&at_rest(standard(10), Kernel { affine: 0.0, ..kernel }, &start));
    assert!(lost < 0.9, "{lost}");
}

#[test]
fn the_unit_of_time_is_the_largest_eigenvalue_and_it_is_held() {
    let theta = random_states(30, 3, 2);
    for affine in [0.0, 1.0] {
        let kernel = Kernel { affine, ..Kernel::default() };
        let h = kernel.bandwidth.of(theta.as_ref());
        let k = |i: usize, j: usize| {
            let (x, y) = (theta.row(i), theta.row(j));
            let square: f64 = x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum();
            let product: f64 = x.iter().zip(y).map(|(a, b)| a * b).sum();
            (-square / h).exp() + affine * (1.0 + product)
        };
        let mut vector: Vec<f64> = (0..30).map(|i| 1.0 + 0.1 * f64::from(i)).collect();
        let mut lambda = 0.0;
        for _ in 0..5000 {
            let image: Vec<f64> =
                (0..30).map(|i| (0..30).map(|j| k(i, j) * vector[j]).sum()).collect();
            lambda = image.iter().map(|x| x * x).sum::<f64>().sqrt();
            vector = image.into_iter().map(|x| x / lambda).collect();
        }
        lambda /= 30.0;

        let velocity = |time: TimeUnit| {
            let field = Stein::new(kernel.clone()).time_unit(time);
            let mut system = System::new(standard(3), Langevin::new(), field, &theta, 0).unwrap();
            let first = system.velocity(&[0]).unwrap();
            // Twice as far apart: a bandwidth by the particles' distances would be four times as large.
            system.set_state(Matrix::from_fn(30, 3, |i, j| 2.0 * theta.row(i)[j])).unwrap();
            system.velocity(&[0]).unwrap();
            (first, system.bandwidths()[0])
        };
        let ((by_n, follows), (by_lambda, held)) =
            (velocity(TimeUnit::Particles), velocity(TimeUnit::Eigenvalue));
        for (a, b) in by_n.as_slice().iter().zip(by_lambda.as_slice()) {
            // Power iteration stops at the sixth digit.
            assert!((a / lambda - b).abs() < 1e-4 * b.abs().max(1e-3), "{a} {b} {lambda}");
        }
        assert!((held - h).abs() < 1e-12 && (follows / h - 4.0).abs() < 1e-9, "{held} {follows}");
    }
}

/// The variance of θ in all samples of some runs without friction, from exact draws of N(0, I).
fn kept(dim: usize, dynamics: &dyn Dynamics<f64>, curl: CurlForm, runs: u64) -> f64 {
    let sum: f64 = (0..runs)
        .map(|seed| {
            let kernel = Kernel {
                view: View::Theta,
                bandwidth: Bandwidth::White { factor: 1.0 },
                ..Kernel::default()
            };
            let field = Stein::new(kernel).time_unit(TimeUnit::Eigenvalue).curl(curl);
            let mut samples = Samples::new(0, 3);
            Sampler::new(standard(dim), dynamics, field)
                .start_at(random_states(100, dim, 100 + seed))
                .resample(Resampling::Time { time: 10.0, jitter: 0.2 })
                .phase(MidpointDrift, 300, StepSize::Constant(0.3))
                .observe(samples.observer())
                .seed(seed)
                .run()
                .unwrap();
            variance(&samples.theta())
        })
        .sum();
    sum / runs as f64
}

#[test]
fn without_friction_and_with_fresh_momenta_no_variance_is_lost() {
    // The start alone is off by 4.5 % and 2 % in a run.
    let sghmc = Sghmc { friction: 0.0, variance: 1.0 };
    for (dim, runs) in [(10, 8), (50, 3)] {
        let kept = kept(dim, &sghmc, CurlForm::Paper, runs);
        assert!((kept - 1.0).abs() < 0.02, "d = {dim}: {kept}");
    }
    // Friction is what loses it.
    let lost = kept(50, &Sghmc { friction: 1.0, variance: 1.0 }, CurlForm::Paper, 1);
    assert!(lost < 0.8, "{lost}");
}

/// Gᵢ⁻¹ = 0.7 + 0.6/(1 + θᵢ²): nowhere far from 1, so that (A(zᵢ) + A(zⱼ)) kᵢⱼ stays positive.
struct Gentle;

impl<T: Real> Metric<T> for Gentle {
    fn shape(&self) -> Shape {
        Shape::Diagonal
    }

    fn evaluate(&self, at: &Point<'_, T>, values: &mut [T], derivatives: &mut [T]) {
        let share = |x: T| (T::one() + x * x).recip();
        for (value, &x) in values.iter_mut().zip(at.block(THETA)) {
            *value = T::of(0.7) + T::of(0.6) * share(x);
        }
        for (slope, &x) in derivatives.iter_mut().zip(at.block(THETA)) {
            *slope = T::of(-1.2) * x * share(x).powi(2);
        }
    }
}

/// The variance that 16 runs of a product-space sampler keep in θ, from exact draws of N(0, I).
fn check_product_space(name: &str, dynamics: &dyn Dynamics<f64>) {
    let mut averages = Vec::new();
    for seed in 0..16 {
        let field = ProductSpace::new(affine(View::Theta, Bandwidth::fixed(2.0)), 0);
        let mut samples = Samples::new(0, 1);
        Sampler::new(standard(2), dynamics, field)
            .start_at(random_states(8, 2, 40 + seed))
            .phase(SymmetricSplitting, 8000, StepSize::Constant(0.01))
            .observe(samples.observer())
            .seed(seed)
            .run()
            .unwrap();
        averages.push(variance(&samples.theta()));
    }
    let n = averages.len() as f64;
    let mean = averages.iter().sum::<f64>() / n;
    let error = (averages.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * (n - 1.0))).sqrt();
    assert!((mean - 1.0).abs() < 4.0 * error && error < 0.03, "{name}: {mean} ± {error}");
}

#[test]
fn product_space_samplers_whose_curl_varies_keep_the_target() {
    let sgnht = Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 1.0 };
    check_product_space("sgnht", &sgnht);
    check_product_space("sgrhmc", &Sgrhmc { metric: Gentle, variance: 1.0 });
}

fn velocity_in<T: Real>(
    dynamics: &dyn Dynamics<T>,
    field: Stein,
    state: &Matrix<f64>,
) -> Matrix<T> {
    let blocks = dynamics.structure(2).blocks();
    let theta = Matrix::from_fn(state.rows(), 2, |i, j| T::of(state.row(i)[j]));
    let mut system =
        System::new(crate::common::tri_crescent::<T>(), dynamics, field, &theta, 0).unwrap();
    system.set_state(state.cast()).unwrap();
    system.velocity(&(0..blocks).collect::<Vec<_>>()).unwrap()
}

#[test]
fn affine_and_symmetrised_velocities_in_single_precision() {
    fn compare<D: Dynamics<f32> + Dynamics<f64>>(dynamics: &D, blocks: usize) {
        // Above the size where work is shared, too.
        for count in [7, 300] {
            let state = random_states(count, 2 * blocks, 8);
            for view in [View::Joint, View::Product, View::Theta] {
                let kernel = affine(view, Bandwidth::White { factor: 4.0 });
                let field = Stein::new(kernel).curl(CurlForm::Symmetrised);
                let single = velocity_in::<f32>(dynamics, field.clone(), &state);
                let double = velocity_in::<f64>(dynamics, field, &state);
                let error = crate::common::relative_error(&single, &double);
                assert!(error < 1e-4, "{blocks} blocks, {count} particles, {view:?}: {error:e}");
            }
        }
    }
    compare(&Langevin::new(), 1);
    compare(&Sghmc { friction: 0.0, variance: 1.3 }, 2);
    compare(&Sgnht { friction: 0.4, variance: 1.3, thermostat_precision: 1.7 }, 3);
    compare(&Sgrhmc { metric: Gentle, variance: 1.3 }, 2);
    compare(&ThirdOrder { friction: 0.4, coupling: 0.7, variance: 1.3, variance_u: 0.8 }, 3);
}
