//! The fields beyond Stein's: naive twins, exact laws, and known biases.

use std::ops::ControlFlow;

use crate::common::{gaussian, golden, matrix, number, relative_error, tri_crescent};
use steinflow::dynamics::{Langevin, Riemannian, Sghmc};
use steinflow::field::{Draw, Estimator, Field, LogRatio, ProductSpace, Stein};
use steinflow::integrator::{Euler, Integrator, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::method::{Method, Parameters};
use steinflow::run::{Samples, Snapshot};
use steinflow::testing::{dense_matrices, random_states};
use steinflow::{Error, LogDensity, Matrix, Sampler, System};

const H: f64 = 1.3;

fn kernel() -> Kernel {
    Kernel { bandwidth: Bandwidth::fixed(H), ..Kernel::default() }
}

/// k and ∇₂k of the squared exponential over the joint state.
fn pair(z: &[f64], other: &[f64]) -> (f64, Vec<f64>) {
    let square: f64 = z.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
    let k = (-square / H).exp();
    (k, z.iter().zip(other).map(|(a, b)| 2.0 / H * (a - b) * k).collect())
}

/// u by plain loops, and for the solve by Gaussian elimination.
fn naive_estimate(states: &Matrix<f64>, estimator: Estimator) -> Matrix<f64> {
    let (n, size) = (states.rows(), states.cols());
    let k = |i: usize, j: usize| pair(states.row(i), states.row(j)).0;
    let kappa: Vec<f64> = (0..n).map(|i| (0..n).map(|j| k(i, j)).sum()).collect();
    let mut u = Matrix::zeros(n, size);
    for i in 0..n {
        for j in 0..n {
            let (_, gradient) = pair(states.row(i), states.row(j));
            let weight = match estimator {
                Estimator::Blob => 1.0 / kappa[i] + 1.0 / kappa[j],
                Estimator::KernelDensity => 1.0 / kappa[i],
                Estimator::SteinGradient { .. } => 1.0,
            };
            for (u, g) in u.row_mut(i).iter_mut().zip(gradient) {
                *u += weight * g;
            }
        }
    }
    let Estimator::SteinGradient { regulariser, .. } = estimator else { return u };
    let mut system: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let row = (0..n).map(|j| k(i, j) + if i == j { regulariser } else { 0.0 });
            row.chain(u.row(i).to_vec()).collect()
        })
        .collect();
    for pivot in 0..n {
        for row in 0..n {
            if row != pivot {
                let factor = system[row][pivot] / system[pivot][pivot];
                for column in pivot..n + size {
                    system[row][column] -= factor * system[pivot][column];
                }
            }
        }
    }
    Matrix::from_fn(n, size, |i, j| system[i][n + j] / system[i][i])
}

#[test]
fn log_ratio_fields_equal_their_naive_twins() {
    let memory_limit = u64::MAX;
    let estimators = [
        Estimator::Blob,
        Estimator::KernelDensity,
        Estimator::SteinGradient { regulariser: 0.0, memory_limit },
        Estimator::SteinGradient { regulariser: 0.05, memory_limit },
    ];
    for (name, dynamics) in crate::common::catalogue() {
        for estimator in estimators {
            for starred in [false, true] {
                let field = if starred {
                    LogRatio::starred(kernel(), estimator)
                } else {
                    LogRatio::new(kernel(), estimator)
                };
                let theta = random_states(12, 2, 3);
                let mut system = System::new(tri_crescent(), &dynamics, field, &theta, 7).unwrap();
                let structure = system.structure().clone();
                let blocks: Vec<usize> = (0..structure.blocks()).collect();
                let velocity = system.velocity(&blocks).unwrap();
                let at = system.evaluated().unwrap();
                let (gradient, curl_divergence) = (at.gradient(), at.curl_divergence());
                let states = Matrix::from_fn(12, at.state.cols(), |i, j| at.state.row(i)[j]);
                let u = naive_estimate(&states, estimator);
                let expected = Matrix::from_fn(12, states.cols(), |i, row| {
                    let (a, c) = dense_matrices(&structure, &at.coefficients.row(i)[1..]);
                    let sum = |of: &dyn Fn(usize) -> f64| (0..states.cols()).map(of).sum::<f64>();
                    let gradient = gradient.row(i);
                    if starred {
                        curl_divergence.row(i)[row]
                            + sum(&|j| (a.row(row)[j] + c.row(row)[j]) * gradient[j])
                            + sum(&|j| a.row(row)[j] * u.row(i)[j])
                    } else {
                        sum(&|j| (a.row(row)[j] + c.row(row)[j]) * (gradient[j] + u.row(i)[j]))
                    }
                });
                let error = relative_error(&velocity, &expected);
                assert!(error < 1e-9, "{name} {estimator:?} starred {starred}: {error:e}");
            }
        }
    }
}

#[test]
fn coinciding_particles_and_memory_are_refused_by_the_solve() {
    let theta = Matrix::from_fn(5, 2, |i, j| if i < 2 { 0.5 } else { (i * 2 + j) as f64 });
    let run = |regulariser, memory_limit| {
        let field = LogRatio::new(kernel(), Estimator::SteinGradient { regulariser, memory_limit });
        System::new(tri_crescent::<f64>(), Langevin::new(), field, &theta, 0)?.velocity(&[0])
    };
    let error = run(0.0, 1 << 30).unwrap_err();
    assert!(matches!(error, Error::SingularKernel { particles: 5, .. }), "{error}");
    assert!(error.to_string().contains("sge"), "{error}");
    run(0.01, 1 << 30).unwrap();
    let error = run(0.01, 399).unwrap_err();
    assert!(matches!(error, Error::TooMuchMemory { bytes: 400, limit: 399, .. }), "{error}");
    assert!(error.is_usage());
    run(0.01, 400).unwrap();
}

#[test]
fn spos_meets_its_reference_vectors() {
    let golden = golden();
    let strength = number(&golden["params"]["spos_sigma2"]);
    for name in ["gaussian3", "toy2"] {
        let case = &golden[name];
        let theta = matrix(&case["theta"]);
        let kernel =
            Kernel { bandwidth: Bandwidth::fixed(number(&case["spos"]["h"])), ..Kernel::default() };
        let target = || crate::common::target::<f64>(&golden, name);
        let field = ProductSpace::spos(kernel.clone(), strength);
        let mut system = System::new(target(), Langevin::new(), field, &theta, 0).unwrap();
        let error =
            relative_error(&system.velocity(&[0]).unwrap(), &matrix(&case["spos"]["drift"]));
        assert!(error < 1e-10, "{name}: {error:e}");

        // The covariance of the noise between particles, from many draws of one coordinate.
        let expected = matrix(&case["spos"]["noise_cov_particles"]);
        let mut exact = ProductSpace::spos_exact(kernel, strength, 0);
        let n = theta.rows();
        let mut system =
            System::new(target(), Langevin::new(), Stein::new(Kernel::default()), &theta, 0)
                .unwrap();
        let at = system.evaluated().unwrap();
        let draws: u32 = 40_000;
        let mut sums = Matrix::<f64>::zeros(n, n);
        for index in 0..draws {
            let mut noise = Matrix::zeros(n, theta.cols());
            // √(2 dt) = 1.
            let draw = Draw { seed: 1, index: u64::from(index) };
            exact.add_noise(&at, &[0], 0.5, draw, &mut noise).unwrap();
            for i in 0..n {
                for j in 0..n {
                    sums.row_mut(i)[j] += noise.row(i)[0] * noise.row(j)[0];
                }
            }
        }
        for i in 0..n {
            for j in 0..n {
                let found = sums.row(i)[j] / f64::from(draws);
                let variance = expected.row(i)[i] * expected.row(j)[j] + expected.row(i)[j].powi(2);
                let error = (found - expected.row(i)[j]) / (variance / f64::from(draws)).sqrt();
                assert!(error.abs() < 4.5, "{name} ({i}, {j}): {found}, {error} standard errors");
            }
        }
    }
}

/// Time averages of `of(θ)` over particles and steps, one per replicate, started from π itself.
fn replicates<const M: usize>(
    particles: usize,
    replicates: u64,
    steps: u64,
    step: f64,
    target: impl Fn() -> Box<dyn LogDensity<f64>>,
    exact: impl Fn(usize, u64) -> Matrix<f64>,
    field: impl Fn() -> Box<dyn Field<f64>>,
    of: impl Fn(&[f64]) -> [f64; M] + Sync,
) -> [(f64, f64); M] {
    let mut averages: Vec<[f64; M]> = Vec::new();
    for seed in 0..replicates {
        let (mut sums, mut count) = ([0.0; M], 0.0);
        Sampler::new(target(), Langevin::new(), field())
            .start_at(exact(particles, seed))
            .phase(Euler, steps, StepSize::Constant(step))
            .seed(seed)
            .observe(|at: &Snapshot<'_, f64>| {
                for i in 0..at.state.rows() {
                    count += 1.0;
                    for (sum, x) in sums.iter_mut().zip(of(at.state.row(i))) {
                        *sum += x;
                    }
                }
                Ok(ControlFlow::Continue(()))
            })
            .run()
            .unwrap();
        averages.push(sums.map(|sum| sum / count));
    }
    let n = replicates as f64;
    std::array::from_fn(|m| {
        let mean = averages.iter().map(|a| a[m]).sum::<f64>() / n;
        let variance = averages.iter().map(|a| (a[m] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    })
}

fn assert_within<const M: usize>(found: [(f64, f64); M], exact: [f64; M], what: &str) {
    for ((mean, error), exact) in found.into_iter().zip(exact) {
        let deviation = (mean - exact).abs() / error;
        assert!(deviation < 4.0, "{what}: {mean} ± {error}, exactly {exact}");
    }
}

#[test]
fn the_product_space_sampler_keeps_pi_for_every_number_of_particles() {
    let rho: f64 = 0.8;
    let target = || -> Box<dyn LogDensity<f64>> {
        let scale = 1.0 / (1.0 - rho * rho);
        let precision = Matrix::from_fn(2, 2, |i, j| if i == j { scale } else { -rho * scale });
        Box::new(gaussian(vec![0.0, 0.0], precision))
    };
    let exact = |n: usize, seed: u64| {
        let normal = random_states(n, 2, 1000 + seed);
        Matrix::from_fn(n, 2, |i, j| {
            let z = normal.row(i);
            if j == 0 { z[0] } else { rho * z[0] + (1.0 - rho * rho).sqrt() * z[1] }
        })
    };
    let moments = |x: &[f64]| [x[0], x[1], x[0] * x[0], x[1] * x[1], x[0] * x[1]];
    let product = || -> Box<dyn Field<f64>> { Box::new(ProductSpace::new(kernel(), 0)) };
    let crescent = || -> Box<dyn LogDensity<f64>> { Box::new(tri_crescent()) };
    for (n, steps) in [(2, 3000), (10, 1000), (100, 150)] {
        let found = replicates(n, 16, steps, 0.02, target, exact, product, moments);
        assert_within(found, [0.0, 0.0, 1.0, 1.0, rho], &format!("Gaussian, N = {n}"));
        let start = crate::common::exact_tri_crescent;
        let found = replicates(n, 16, steps, 0.01, crescent, start, product, |x| {
            [x[0], x[1], x[0] * x[0], x[1] * x[1]]
        });
        let mean_y = 0.267_203_860_915_589_06;
        let exact = [0.0, mean_y, 1.068_815_443_662_356_3, 2.814_018_763_378_469 + mean_y * mean_y];
        assert_within(found, exact, &format!("tri-crescent, N = {n}"));
    }
    // Without the noise it is SVGD, and the same check sees the collapse.
    let stein = || -> Box<dyn Field<f64>> { Box::new(Stein::new(kernel())) };
    let [.., (square, error), _, _] = replicates(10, 16, 2000, 0.05, target, exact, stein, moments);
    assert!(square + 4.0 * error < 1.0, "SVGD keeps {square} ± {error} of the variance");
}

#[test]
fn spos_is_biased_and_its_correction_is_not() {
    // Three particles on N(0, 1): independent noise leaves about 0.6 of the variance.
    let target = || -> Box<dyn LogDensity<f64>> {
        Box::new(gaussian(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0)))
    };
    let exact = |n: usize, seed: u64| random_states(n, 1, 50 + seed);
    let variance = |field: &dyn Fn() -> Box<dyn Field<f64>>| {
        replicates(3, 16, 8000, 0.02, target, exact, field, |x| [x[0] * x[0]])[0]
    };
    let (biased, error) = variance(&|| Box::new(ProductSpace::spos(kernel(), 0.2)));
    assert!(biased + 4.0 * error < 0.8, "SPOS: {biased} ± {error}");
    let (corrected, error) = variance(&|| Box::new(ProductSpace::spos_exact(kernel(), 0.2, 0)));
    assert!((corrected - 1.0).abs() < 4.0 * error, "corrected: {corrected} ± {error}");
}

#[test]
fn product_space_works_for_a_metric_where_it_can_and_says_where_it_cannot() {
    use steinflow::dynamics::metric::{EnergyMetric, Shape};
    use steinflow::dynamics::{Metric, Point, Sgnht};
    /// g = 1 + tanh²(θ₀)/10: hardly varies, so Ã stays positive.
    struct Gentle;
    impl Metric for Gentle {
        fn shape(&self) -> Shape {
            Shape::Scalar
        }
        fn evaluate(&self, at: &Point<'_, f64>, values: &mut [f64], derivatives: &mut [f64]) {
            let t = at.state[0].tanh();
            values[0] = 1.0 + 0.1 * t * t;
            if let Some(slope) = derivatives.first_mut() {
                *slope = 0.2 * t * (1.0 - t * t);
            }
        }
    }
    let step = |mut system: System<'_, f64>| Euler.step(&mut system, 0.01);
    let theta = Matrix::from_fn(4, 2, |i, j| (i + 2 * j) as f64);
    let product = || ProductSpace::new(kernel(), 0);
    let gentle = Riemannian { metric: Gentle };
    step(System::new(tri_crescent(), gentle, product(), &theta, 0).unwrap()).unwrap();
    // Particles so close that k ≈ 1, with metrics far apart: 2√(g₁g₂) < g₁ + g₂.
    let theta = Matrix::from_fn(2, 2, |i, j| if j == 1 { 0.6 * i as f64 } else { 0.0 });
    let wide = Kernel { bandwidth: Bandwidth::fixed(1e3), ..Kernel::default() };
    let steep = Riemannian { metric: EnergyMetric::default() };
    let system = System::new(tri_crescent(), steep, ProductSpace::new(wide, 0), &theta, 0).unwrap();
    let error = step(system).unwrap_err();
    assert!(matches!(error, Error::IndefiniteNoise), "{error}");
    // A curl that varies is symmetrised.
    let thermostat = Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 1.0 };
    step(System::new(tri_crescent(), thermostat, product(), &theta, 0).unwrap()).unwrap();
}

/// Ã of A = g·I has one N×N factor for all coordinates; written as a diagonal it has a dense one of
/// all coordinates. The same noise must come of both, and its covariance must be 2Ã.
#[test]
fn scalar_and_dense_noise_of_a_varying_metric_agree() {
    use steinflow::dynamics::{Block, Dynamics, Point, Structure, THETA};
    struct Varying {
        block: Block,
    }
    fn g(theta: &[f64]) -> f64 {
        1.0 + 0.1 * theta[0].tanh().powi(2)
    }
    impl Dynamics<f64> for Varying {
        fn structure(&self, dim: usize) -> Structure {
            Structure::new(dim).diffusion(THETA, self.block.clone())
        }
        fn coefficients(&self, at: &Point<'_, f64>, coefficients: &mut [f64]) {
            coefficients.fill(g(at.state));
        }
    }
    let (n, dt) = (6, 0.3);
    let theta = random_states(n, 2, 4);
    let noise = |block: Block, index: u64| {
        let field = ProductSpace::new(kernel(), 0);
        let mut system = System::new(tri_crescent(), Varying { block }, field, &theta, 0).unwrap();
        let at = system.evaluated().unwrap();
        let mut noise = Matrix::zeros(n, 2);
        let draw = Draw { seed: 3, index };
        ProductSpace::new(kernel(), 0).add_noise(&at, &[0], dt, draw, &mut noise).unwrap();
        noise
    };
    let count = 20_000;
    let mut covariance = Matrix::<f64>::zeros(n, n);
    for index in 0..count {
        let scalar = noise(Block::ScalarCoefficient(0), index);
        if index < 20 {
            let dense = noise(Block::DiagonalCoefficients(0), index);
            assert!(relative_error(&scalar, &dense) < 1e-10);
        }
        for i in 0..n {
            for j in 0..n {
                covariance.row_mut(i)[j] += scalar.row(i)[1] * scalar.row(j)[1] / count as f64;
            }
        }
    }
    for i in 0..n {
        for j in 0..n {
            let k = pair(theta.row(i), theta.row(j)).0;
            let exact = 2.0 * dt * k * (g(theta.row(i)) + g(theta.row(j))) / (2.0 * n as f64);
            let size = 2.0 * dt * 1.1 / n as f64;
            // Four standard errors of a covariance of normals of this size.
            let tolerance = 4.0 * size * (2.0 / count as f64).sqrt();
            assert!((covariance.row(i)[j] - exact).abs() < tolerance, "({i}, {j})");
        }
    }
}

#[test]
fn momentum_resampling_makes_thousands_of_samples_from_fifty_particles() {
    // Blob* with little friction is nearly Hamiltonian between resamplings.
    let method = Method::named("sghmc-blob-alt").unwrap();
    let parameters = Parameters { friction: 0.01, ..Parameters::default() };
    let covariance = [[1.0, 1.6], [1.6, 4.0]];
    let determinant = covariance[0][0] * covariance[1][1] - covariance[0][1] * covariance[1][0];
    let precision = Matrix::from_fn(2, 2, |i, j| {
        if i == j {
            covariance[1 - i][1 - i] / determinant
        } else {
            -covariance[0][1] / determinant
        }
    });
    let mut samples = Samples::<f64>::new(1000, 60);
    Sampler::new(
        gaussian(vec![0.0, 0.0], precision),
        method.build_dynamics(&parameters),
        method.build_field(Kernel::default(), &parameters, None).unwrap(),
    )
    .start_normal(50, &[0.0, 0.0], 1.0)
    .phase(SymmetricSplitting, 7000, StepSize::Constant(0.05))
    .resample_every(30)
    .observe(samples.observer())
    .run()
    .unwrap();
    let theta = samples.theta();
    assert_eq!((samples.chains(), samples.steps().len(), theta.rows()), (50, 101, 5050));
    let mut distinct: Vec<u64> = (0..theta.rows()).map(|i| theta.row(i)[0].to_bits()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() >= 5000, "{} distinct", distinct.len());
    let n = theta.rows() as f64;
    let mean = [0, 1].map(|j| (0..theta.rows()).map(|i| theta.row(i)[j]).sum::<f64>() / n);
    for a in 0..2 {
        for b in 0..2 {
            let sum: f64 = (0..theta.rows())
                .map(|i| (theta.row(i)[a] - mean[a]) * (theta.row(i)[b] - mean[b]))
                .sum();
            let ratio = sum / n / covariance[a][b];
            assert!((ratio - 1.0).abs() < 0.05, "covariance ({a}, {b}) is off by {ratio}");
        }
    }
}

#[test]
fn resampling_needs_something_to_resample() {
    let run = |every| {
        Sampler::new(tri_crescent::<f64>(), Langevin::new(), Stein::new(kernel()))
            .resample_every(every)
            .run()
            .unwrap_err()
            .to_string()
    };
    assert!(run(10).contains("no auxiliary variable"), "{}", run(10));
    let error = Sampler::new(
        tri_crescent::<f64>(),
        Sghmc { friction: 1.0, variance: 1.0 },
        Stein::new(kernel()),
    )
    .resample_every(0)
    .run();
    assert!(error.unwrap_err().is_usage());
}

#[test]
fn deep_ensembles_find_modes() {
    let method = Method::named("de").unwrap();
    let parameters = Parameters::default();
    let target =
        gaussian(vec![1.0, -2.0], Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j))));
    let outcome = Sampler::<f64>::new(
        target,
        method.build_dynamics(&parameters),
        method.build_field(Kernel::default(), &parameters, None).unwrap(),
    )
    .start_normal(5, &[0.0, 0.0], 3.0)
    .phase(SymmetricSplitting, 2000, StepSize::Constant(0.05))
    .run()
    .unwrap();
    for i in 0..5 {
        let theta = outcome.theta();
        assert!((theta.row(i)[0] - 1.0).abs() < 1e-6 && (theta.row(i)[1] + 2.0).abs() < 1e-6);
    }
}
