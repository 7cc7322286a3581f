//! The laws that the recipe rests on, for every dynamics, and proof that they can fail.

use crate::common::{dynamics, gaussian, golden, tri_crescent};
use proptest::prelude::*;
use steinflow::dynamics::metric::{EnergyMetric, Shape};
use steinflow::dynamics::{
    Block, Dynamics, Langevin, Metric, Point, R, Riemannian, Sgnht, Sgrhmc, Structure, THETA,
};
use steinflow::field::{CurlForm, Diffusion, Field, Stein};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::testing::{
    Form, check_diffusion, check_divergence, check_score, check_stein_identity, check_structure,
    dense_velocity, random_states,
};
use steinflow::{LogDensity, Matrix, System};

/// The dynamics of the catalogue, and others that use every shape of block.
fn under_test() -> Vec<(String, Box<dyn Dynamics<f64>>)> {
    let others: [(&str, Box<dyn Dynamics<f64>>); 5] = [
        ("diagonal metric", Box::new(Sgrhmc { metric: Wavy, variance: 1.3 })),
        ("diagonal Langevin", Box::new(Riemannian { metric: Wavy })),
        ("full metric", Box::new(Sgrhmc { metric: Tilted, variance: 0.8 })),
        ("full Langevin", Box::new(Riemannian { metric: Tilted })),
        ("constant full", Box::new(Swirl)),
    ];
    let others = others.into_iter().map(|(name, dynamics)| (name.to_owned(), dynamics));
    crate::common::catalogue().into_iter().chain(others).collect()
}

/// gᵢ = 1.5 + sin(θᵢ + Σθ/2).
struct Wavy;
impl Metric for Wavy {
    fn shape(&self) -> Shape {
        Shape::Diagonal
    }
    fn evaluate(&self, at: &Point<'_, f64>, values: &mut [f64], derivatives: &mut [f64]) {
        let theta = at.block(THETA);
        let sum: f64 = theta.iter().sum();
        for (value, x) in values.iter_mut().zip(theta) {
            *value = 1.5 + (x + 0.5 * sum).sin();
        }
        for (slope, x) in derivatives.iter_mut().zip(theta) {
            *slope = 1.5 * (x + 0.5 * sum).cos();
        }
    }
}

/// G⁻¹ = 0.5·I + u uᵀ with u = (1 + θ₀/2, sin θ₁, sin θ₂, …): full, and different everywhere.
struct Tilted;
impl Metric for Tilted {
    fn shape(&self) -> Shape {
        Shape::Full
    }
    fn evaluate(&self, at: &Point<'_, f64>, values: &mut [f64], derivatives: &mut [f64]) {
        let (theta, dim) = (at.block(THETA), at.dim);
        let u = |i: usize| if i == 0 { 1.0 + 0.5 * theta[0] } else { theta[i].sin() };
        let slope = |i: usize| if i == 0 { 0.5 } else { theta[i].cos() };
        for i in 0..dim {
            for j in 0..dim {
                values[i * dim + j] = u(i) * u(j) + if i == j { 0.5 } else { 0.0 };
            }
        }
        if !derivatives.is_empty() {
            for k in 0..dim {
                for i in 0..dim {
                    for j in 0..dim {
                        let left = if i == k { slope(i) * u(j) } else { 0.0 };
                        let right = if j == k { u(i) * slope(j) } else { 0.0 };
                        derivatives[(k * dim + i) * dim + j] = left + right;
                    }
                }
            }
        }
    }
}

/// Constant full blocks everywhere, and a curl within θ.
struct Swirl;
impl Dynamics<f64> for Swirl {
    fn structure(&self, dim: usize) -> Structure {
        let band = |i: usize, j: usize| 1.0 / (1.0 + (i as f64 - j as f64).abs());
        let lopsided = |i: usize, j: usize| band(i, j) + 0.3 * i as f64 - 0.2 * j as f64;
        Structure::new(dim)
            .auxiliary("r", 0.2, 1.4)
            .diffusion(THETA, Block::Full(Matrix::from_fn(dim, dim, band)))
            .diffusion(R, Block::Diagonal((0..dim).map(|i| 0.5 + i as f64).collect()))
            .curl(THETA, THETA, Block::Full(Matrix::from_fn(dim, dim, lopsided)))
            .curl(R, THETA, Block::Full(Matrix::from_fn(dim, dim, lopsided)))
    }
}

fn correlated_gaussian() -> impl LogDensity<f64> {
    let precision = Matrix::from_fn(2, 2, |i, j| [[2.0, -0.9], [-0.9, 1.0]][i][j]);
    gaussian(vec![0.3, -0.4], precision)
}

#[test]
fn scores_and_local_laws() {
    let states = |blocks: usize| random_states(7, 2 * blocks, 11);
    check_score(&tri_crescent::<f64>(), states(1).as_ref()).unwrap();
    check_score(&correlated_gaussian(), states(1).as_ref()).unwrap();
    for (name, dynamics) in under_test() {
        let states = states(dynamics.structure(2).blocks());
        for target in [&tri_crescent::<f64>() as &dyn LogDensity<f64>, &correlated_gaussian()] {
            check_divergence(&target, &dynamics, states.as_ref()).expect(&name);
            check_structure(&target, &dynamics, states.as_ref()).expect(&name);
            check_diffusion(&target, &dynamics, states.as_ref()).expect(&name);
        }
    }
}

/// A dynamics whose author forgot ∇·(A + C).
struct WithoutDivergence<D>(D);
impl<D: Dynamics<f64>> Dynamics<f64> for WithoutDivergence<D> {
    fn structure(&self, dim: usize) -> Structure {
        self.0.structure(dim)
    }
    fn coefficients(&self, at: &Point<'_, f64>, coefficients: &mut [f64]) {
        self.0.coefficients(at, coefficients);
    }
}

#[test]
fn stein_identity_holds_and_breaks_without_the_divergence() {
    let (target, theta) = (tri_crescent::<f64>(), crate::common::exact_tri_crescent(100_000, 5));
    let places = [[0.4, 0.3, -0.5, 0.2, 0.6, 0.9], [2.0, 0.8, 0.0, 0.1, 0.8, 1.1]];
    for (name, dynamics) in under_test() {
        for z in &places {
            let z = &z[..2 * dynamics.structure(2).blocks()];
            let found = check_stein_identity(&target, &dynamics, &theta, z, 2.0, 4.0);
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(found.standard_error > 0.0 && found.standard_error < 0.05, "{name}: {found:?}");
        }
    }
    let metric = EnergyMetric::default();
    let forgetful: [(&str, Box<dyn Dynamics<f64>>, usize); 3] = [
        ("riemannian", Box::new(WithoutDivergence(Riemannian { metric })), 1),
        ("sgrhmc", Box::new(WithoutDivergence(Sgrhmc { metric: Wavy, variance: 1.0 })), 2),
        (
            "sgnht",
            Box::new(WithoutDivergence(Sgnht {
                friction: 1.0,
                variance: 1.0,
                thermostat_precision: 1.0,
            })),
            3,
        ),
    ];
    for (name, dynamics, blocks) in forgetful {
        let broken = places.iter().any(|z| {
            check_stein_identity(&target, &dynamics, &theta, &z[..2 * blocks], 2.0, 4.0).is_err()
        });
        assert!(broken, "{name}: the identity did not notice the missing divergence");
        let states = random_states(5, 2 * blocks, 3);
        check_divergence(&target, &dynamics, states.as_ref()).expect_err(name);
    }
}

#[test]
fn a_negative_diffusion_is_refused() {
    struct Negative;
    impl Dynamics<f64> for Negative {
        fn structure(&self, dim: usize) -> Structure {
            Structure::new(dim).diffusion(THETA, Block::ScalarCoefficient(0))
        }
        fn coefficients(&self, at: &Point<'_, f64>, coefficients: &mut [f64]) {
            coefficients[0] = at.block(THETA)[0];
        }
    }
    let theta = Matrix::from_fn(3, 2, |i, _| if i == 2 { -0.5 } else { 1.0 });
    let mut system = System::new(tri_crescent(), Negative, Diffusion, &theta, 0).unwrap();
    let error = system.velocity(&[0]).unwrap_err().to_string();
    assert!(error.contains("`theta` at particle 2 (found -0.5)"), "{error}");
}

#[test]
fn identity_in_every_dress_is_svgd_to_the_last_bit() {
    struct Unit(Shape);
    impl Metric for Unit {
        fn shape(&self) -> Shape {
            self.0
        }
        fn evaluate(&self, at: &Point<'_, f64>, values: &mut [f64], _derivatives: &mut [f64]) {
            for (i, value) in values.iter_mut().enumerate() {
                let on_diagonal = self.0 != Shape::Full || i % (at.dim + 1) == 0;
                *value = if on_diagonal { 1.0 } else { 0.0 };
            }
        }
    }
    let identity = Matrix::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 0.0 });
    let theta = random_states(300, 2, 4);
    let svgd = svgd_written_out(&theta, 1.7);
    let dresses: [Box<dyn Dynamics<f64>>; 6] = [
        Box::new(Langevin::new()),
        Box::new(Langevin::preconditioned(Block::Diagonal(vec![1.0, 1.0]))),
        Box::new(Langevin::preconditioned(Block::Full(identity))),
        Box::new(Riemannian { metric: Unit(Shape::Scalar) }),
        Box::new(Riemannian { metric: Unit(Shape::Diagonal) }),
        Box::new(Riemannian { metric: Unit(Shape::Full) }),
    ];
    for (dress, dynamics) in dresses.into_iter().enumerate() {
        let kernel = Kernel { bandwidth: Bandwidth::fixed(1.7), ..Kernel::default() };
        let field = Stein::new(kernel);
        let mut system = System::new(tri_crescent(), dynamics, field, &theta, 0).unwrap();
        let velocity = system.velocity(&[0]).unwrap();
        assert_eq!(velocity.as_slice(), svgd.as_slice(), "dress {dress}");
    }
}

/// Liu and Wang's update on the engine's primitive: (1/N) [K (S − Y) + (K 1) Y], Y = 2X/h.
fn svgd_written_out(theta: &Matrix<f64>, h: f64) -> Matrix<f64> {
    use steinflow::engine::{Factor, KernelSums, kernel_sums};
    let n = theta.rows();
    let mean: Vec<f64> =
        (0..2).map(|j| (0..n).map(|i| theta.row(i)[j]).sum::<f64>() / n as f64).collect();
    let centred = Matrix::from_fn(n, 2, |i, j| theta.row(i)[j] - mean[j]);
    let y = Matrix::from_fn(n, 2, |i, j| centred.row(i)[j] * (2.0 / h));
    let mut score = Matrix::zeros(n, 2);
    tri_crescent::<f64>()
        .evaluate(theta.as_ref(), None, &mut vec![0.0; n], score.as_mut())
        .unwrap();
    let rhs =
        Matrix::from_fn(n, 3, |i, j| if j == 2 { 1.0 } else { score.row(i)[j] - y.row(i)[j] });
    let (sums, _) = kernel_sums(&KernelSums {
        radial: Radial::SquaredExponential,
        factors: &[Factor::new(centred.as_ref(), h.recip())],
        values: rhs.as_ref(),
        slopes: &[],
    });
    let share = 1.0 / n as f64;
    Matrix::from_fn(n, 2, |i, j| (sums.row(i)[j] + sums.row(i)[2] * y.row(i)[j]) * share)
}

#[test]
fn one_particle_follows_the_drift() {
    let theta = Matrix::from_fn(1, 2, |_, j| 0.3 + j as f64);
    for (name, dynamics) in under_test() {
        let blocks: Vec<usize> = (0..dynamics.structure(2).blocks()).collect();
        let mut system = System::new(tri_crescent(), dynamics, Diffusion, &theta, 0).unwrap();
        let drift = system.velocity(&blocks).unwrap();
        let mut stein = Matrix::zeros(1, drift.cols());
        let at = system.evaluated().unwrap();
        Stein::new(Kernel::default()).velocity(&at, &blocks, &mut stein).unwrap();
        for (a, b) in stein.as_slice().iter().zip(drift.as_slice()) {
            assert!((a - b).abs() <= 1e-15 * (1.0 + b.abs()), "{name}: {a} against {b}");
        }
    }
}

#[test]
fn two_svgd_particles_rest_where_theory_says() {
    // On N(0, 1) at ±√(h/4 · log(1 + 4/h)).
    let h = 0.7f64;
    let place = (h / 4.0 * (1.0 + 4.0 / h).ln()).sqrt();
    let theta = Matrix::from_fn(2, 1, |i, _| if i == 0 { place } else { -place });
    let kernel = Kernel { bandwidth: Bandwidth::fixed(h), ..Kernel::default() };
    let standard = gaussian(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0));
    let mut system = System::new(standard, Langevin::new(), Stein::new(kernel), &theta, 0).unwrap();
    let velocity = system.velocity(&[0]).unwrap();
    assert!(velocity.as_slice().iter().all(|v| v.abs() < 1e-15), "{velocity:?}");
}

#[test]
fn velocities_do_not_change_under_translation() {
    let precision = Matrix::from_fn(2, 2, |i, j| [[2.0, -0.9], [-0.9, 1.0]][i][j]);
    let golden = golden();
    for name in ["svgd", "sghmc", "sgnht", "third"] {
        let velocity = |offset: f64| {
            let target = gaussian::<f64>(vec![offset, -offset], precision.clone());
            let theta = random_states(40, 2, 8);
            let theta = Matrix::from_fn(40, 2, |i, j| {
                theta.row(i)[j] + if j == 0 { offset } else { -offset }
            });
            let (dynamics, _) = dynamics::<f64>(&golden, name);
            let field = Stein::new(Kernel::default());
            let mut system = System::new(target, dynamics, field, &theta, 2).unwrap();
            let blocks: Vec<usize> = (0..system.structure().blocks()).collect();
            system.velocity(&blocks).unwrap()
        };
        let error = crate::common::relative_error(&velocity(1000.0), &velocity(0.0));
        assert!(error < 1e-11, "{name}: {error:e}");
    }
}

#[test]
fn far_from_the_origin_single_precision_keeps_the_differences() {
    // Particles on a grid that f32 holds exactly, here and at 1000, in 20 coordinates: only the
    // distances decide, and without centring they would drown.
    let velocity = |offset: f64| {
        let precision = Matrix::from_fn(20, 20, |i, j| f64::from(u8::from(i == j)));
        let target = gaussian::<f32>(vec![offset; 20], precision);
        let states = random_states(60, 20, 8);
        let theta = Matrix::from_fn(60, 20, |i, j| {
            ((states.row(i)[j] * 64.0).round() / 64.0 + offset) as f32
        });
        let field = Stein::new(Kernel::default());
        System::new(target, Langevin::new(), field, &theta, 0).unwrap().velocity(&[0]).unwrap()
    };
    let error = crate::common::relative_error(&velocity(1000.0), &velocity(0.0).cast());
    assert!(error < 1e-6, "{error:e}");
}

#[test]
fn identical_particles_get_a_finite_velocity() {
    let theta = Matrix::from_fn(10, 2, |_, j| j as f64);
    for rule in Bandwidth::RULES {
        let kernel = Kernel { bandwidth: Bandwidth::parse(rule).unwrap(), ..Kernel::default() };
        let mut system =
            System::new(tri_crescent(), Langevin::new(), Stein::new(kernel), &theta, 0).unwrap();
        let velocity = system.velocity(&[0]).unwrap();
        // `white` does not look at the particles: 4(8/9)³/log 10.
        let expected = if rule == "white" { 4.0 * (8f64 / 9.0).powi(3) / 10f64.ln() } else { 1.0 };
        assert!((system.bandwidths()[0] - expected).abs() < 1e-12, "{rule}");
        assert!(velocity.as_slice().iter().all(|v: &f64| v.is_finite()));
    }
    // Six of ten particles coincide: 15 of 45 pairs for i<j, 46 of 100 with the diagonal; eight of
    // ten make the median itself zero, and the mean square takes over.
    let theta = Matrix::from_fn(10, 1, |i, _| if i < 8 { 0.0 } else { 3.0 });
    let standard = gaussian(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0));
    let kernel = Kernel { bandwidth: Bandwidth::Median, ..Kernel::default() };
    let mut system = System::new(standard, Langevin::new(), Stein::new(kernel), &theta, 0).unwrap();
    system.velocity(&[0]).unwrap();
    let mean_square: f64 = 16.0 * 9.0 / 45.0;
    assert!((system.bandwidths()[0] - mean_square).abs() < 1e-12);
}

#[test]
fn many_coordinates_equal_the_dense_double_loop_on_any_number_of_threads() {
    // Enough particles and coordinates for all that is shared out to be, and for half of a symmetric
    // kernel matrix to be computed.
    let (count, dim) = (280, 60);
    let precision = Matrix::from_fn(dim, dim, |i, j| f64::from(u8::from(i == j)));
    let target = gaussian(vec![0.1; dim], precision);
    let theta = random_states(count, dim, 9);
    for (place, (name, dynamics)) in crate::common::catalogue().into_iter().enumerate() {
        // One profile each: it is slow by a double loop.
        let radial = Radial::ALL[place % 2];
        let h = 2.0 * dim as f64;
        let bandwidth = Bandwidth::fixed(h);
        let kernel = Kernel { radial, bandwidth, affine: 0.01, ..Kernel::default() };
        let blocks: Vec<usize> = (0..dynamics.structure(dim).blocks()).collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let field = Stein::new(kernel.clone()).curl(CurlForm::Symmetrised);
            let mut system = System::new(&target, &dynamics, field, &theta, 4).unwrap();
            let velocity = pool.install(|| system.velocity(&blocks).unwrap());
            (system, velocity)
        };
        let (mut system, velocity) = on(1);
        assert_eq!(velocity.as_slice(), on(5).1.as_slice(), "{name} {radial:?}");
        let structure = system.structure().clone();
        let at = system.evaluated().unwrap();
        let seen = vec![Some(h); blocks.len()];
        let form = Form { symmetrised: true, starred: false };
        let expected = dense_velocity(&structure, &at, &kernel, &seen, form);
        let error = crate::common::relative_error(&velocity, &expected);
        assert!(error < 1e-12, "{name} {radial:?}: {error:e}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn structured_velocity_equals_the_dense_double_loop(
        seed in 0u64..1_000_000,
        which in any::<prop::sample::Index>(),
        radial in prop::sample::select(Radial::ALL.to_vec()),
        view in 0usize..3,
        starred in any::<bool>(),
        symmetrised in any::<bool>(),
        affine in prop::sample::select(vec![0.0, 0.6]),
        count in 2usize..40,
    ) {
        let mut all = under_test();
        let (name, dynamics) = all.swap_remove(which.index(all.len()));
        let blocks = dynamics.structure(2).blocks();
        let view = [View::Joint, View::Product, View::Theta][view];
        let h = [1.1, 0.7, 1.9];
        let (bandwidth, per_block): (_, Vec<Option<f64>>) = match view {
            View::Joint => (Bandwidth::fixed(h[0]), vec![Some(h[0]); blocks]),
            View::Product => {
                (Bandwidth::Fixed(h[..blocks].to_vec()), h[..blocks].iter().copied().map(Some).collect())
            }
            View::Theta => {
                (Bandwidth::fixed(h[0]), (0..blocks).map(|b| (b == 0).then_some(h[0])).collect())
            }
        };
        let kernel = Kernel { radial, view, bandwidth, affine };
        let field =
            if starred { Stein::starred(kernel.clone()) } else { Stein::new(kernel.clone()) };
        let field = field.curl(if symmetrised { CurlForm::Symmetrised } else { CurlForm::Paper });
        let theta = random_states(count, 2, seed);
        let mut system = System::new(tri_crescent(), dynamics, field, &theta, seed).unwrap();
        let all: Vec<usize> = (0..blocks).collect();
        let velocity = system.velocity(&all).unwrap();
        let structure = system.structure().clone();
        let at = system.evaluated().unwrap();
        let expected = dense_velocity(&structure, &at, &kernel, &per_block, Form { starred, symmetrised });
        let error = crate::common::relative_error(&velocity, &expected);
        prop_assert!(error < 1e-12, "{} {:?}: {:e}", name, view, error);
    }
}
