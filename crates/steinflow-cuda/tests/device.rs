//! The engine against the library on the host. What needs a GPU says that it was skipped, and why.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use serde_json::Value;
use steinflow::dynamics::metric::{EnergyMetric, EnergySign};
use steinflow::field::{CurlForm, TimeUnit};
use steinflow::flow::{Engine, Flow, Parts, Request};
use steinflow::integrator::{self, Euler, ImplicitDrift, Integrator, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{Method, Parameters};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{Checkpoint, NonFinitePolicy, Resampling, Saved, Snapshot, Trace};
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{Error, LogDensity, Matrix, Outcome, Real, Sampler};
use steinflow_cuda::{Cuda, devices};
use steinflow_models::Describe as _;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};
use steinflow_models::regression::LogisticRegression;
use steinflow_models::toy::{Banana, Crescent, Funnel, Gaussian, Isotropic, Ring, TriCrescent};

/// Whether there is a GPU; says once where there is none, and not by `eprintln!`, which the test harness keeps to itself.
fn has_gpu() -> bool {
    static FOUND: LazyLock<bool> = LazyLock::new(|| {
        let why = match devices() {
            Ok(found) if !found.is_empty() => return true,
            Ok(_) => "the driver finds no GPU".to_owned(),
            Err(why) => why.to_string(),
        };
        let _ = writeln!(std::io::stderr(), "skipped, all tests of this file: {why}");
        false
    });
    *FOUND
}

const DETERMINISTIC: [&str; 16] = [
    "svgd",
    "sghmc-stein",
    "sghmc-stein-alt",
    "sgnht-stein",
    "sgnht-stein-alt",
    "third-order-stein",
    "de",
    "blob",
    "sghmc-blob",
    "sgnht-blob-alt",
    "sghmc-gfsd",
    "rsvgd",
    "sgrhmc-stein",
    "sgrhmc-stein-alt",
    "sgrhmc-blob-alt",
    "sgrld-gfsd",
];

fn cuda(method: &str, kernel: &Kernel) -> Cuda {
    let method = Method::named(method).unwrap();
    Cuda::new(0, &method, &Parameters::default(), kernel.clone()).unwrap()
}

/// The particles after some steps, on the host or on a GPU.
fn after_steps<T: Real>(
    target: &dyn LogDensity<T>,
    method: &str,
    kernel: &Kernel,
    theta: &Matrix<f64>,
    (splits, steps, dt): (bool, u64, f64),
    engine: Option<Cuda>,
) -> Matrix<f64> {
    let (method, parameters) = (Method::named(method).unwrap(), Parameters::default());
    let field = method.build_field(kernel.clone(), &parameters, None).unwrap();
    let mut sampler = Sampler::new(target, method.build_dynamics(&parameters), field)
        .start_at(theta.cast())
        .check_gradient(false);
    sampler = if splits && method.dynamics.has_momentum() {
        sampler.phase(SymmetricSplitting, steps, StepSize::Constant(dt))
    } else {
        sampler.phase(Euler, steps, StepSize::Constant(dt))
    };
    if let Some(engine) = engine {
        sampler = sampler.on(engine);
    }
    sampler.run().unwrap().state.cast()
}

/// ‖a − b‖/‖b − start‖ would punish small steps; relative to the displacement of a particle is what matters.
fn error(found: &Matrix<f64>, expected: &Matrix<f64>) -> f64 {
    assert_eq!((found.rows(), found.cols()), (expected.rows(), expected.cols()));
    let pairs = found.as_slice().iter().zip(expected.as_slice());
    let off: f64 = pairs.map(|(a, b)| (a - b).powi(2)).sum();
    let size: f64 = expected.as_slice().iter().map(|b| b * b).sum();
    if off.is_nan() { f64::INFINITY } else { (off / size).sqrt() }
}

/// Three steps of 0.3: relative errors of a velocity are hardly smaller in the state.
const STEPS: (u64, f64) = (3, 0.3);

#[test]
fn steps_are_those_of_the_host() {
    if !has_gpu() {
        return;
    }
    let mut worst: f64 = 0.0;
    // Below, at and above what a block, a tile or a sample of pairs takes; one, few and many dimensions.
    for (count, dim) in [
        (2, 1),
        (3, 2),
        (100, 2),
        (257, 3),
        (1001, 1),
        (33, 6),
        (300, 8),
        (129, 17),
        (500, 54),
        (70, 130),
        // One kernel a move, with fewer and more columns than it has room for at once.
        (20, 753),
        (32, 5),
        (31, 2100),
        // K is stored.
        (257, 150),
    ] {
        let target = Isotropic::new(dim).unwrap();
        let theta = random_states(count, dim, 5);
        for (place, method) in DETERMINISTIC.into_iter().enumerate() {
            for (turn, radial) in Radial::ALL.into_iter().enumerate() {
                // Every view and both integrators with every method, spread over the shapes: each is compiled anew.
                if (count + dim + place + turn) % 3 != 0 {
                    continue;
                }
                let views = [View::Joint, View::Product, View::Theta];
                let kernel = Kernel {
                    radial,
                    view: views[(count / 2 + place + turn) % 3],
                    ..Kernel::default()
                };
                let steps = ((count + dim + place) % 2 == 0, STEPS.0, STEPS.1);
                let engine = Some(cuda(method, &kernel));
                let expected = after_steps::<f64>(&target, method, &kernel, &theta, steps, None);
                let found = after_steps::<f32>(&target, method, &kernel, &theta, steps, engine);
                let off = error(&found, &expected);
                worst = worst.max(off);
                assert!(off < 2e-5, "{method} {kernel:?} N={count} d={dim} {steps:?}: {off:e}");
            }
        }
    }
    eprintln!("worst relative error in f32: {worst:e}");
}

#[test]
fn double_precision_is_that_of_the_host() {
    if !has_gpu() {
        return;
    }
    for (count, dim) in [(2, 1), (100, 2), (300, 9), (65, 40)] {
        let target = Isotropic::new(dim).unwrap();
        let theta = random_states(count, dim, 7);
        for (place, method) in DETERMINISTIC.into_iter().enumerate() {
            for (turn, radial) in Radial::ALL.into_iter().enumerate() {
                if (dim + place + turn) % 2 != 0 {
                    continue;
                }
                let kernel = Kernel { radial, ..Kernel::default() };
                let steps = (true, STEPS.0, STEPS.1);
                let run =
                    |engine| after_steps::<f64>(&target, method, &kernel, &theta, steps, engine);
                let found = error(&run(Some(cuda(method, &kernel))), &run(None));
                assert!(found < 1e-12, "{method} {radial:?} N={count} d={dim}: {found:e}");
            }
        }
    }
}

#[test]
fn every_bandwidth_rule_is_that_of_the_host() {
    if !has_gpu() {
        return;
    }
    for rule in ["median-log", "liu-wang", "numpyro", "median", "white:2", "0.7"] {
        // All pairs, and a sample of them; fewer and more particles than pairs of a sample.
        for count in [2, 3, 256, 257, 5000, 40_000] {
            if count == 40_000 && rule != "median-log" {
                continue;
            }
            let kernel = Kernel { bandwidth: Bandwidth::parse(rule).unwrap(), ..Kernel::default() };
            let theta = random_states(count, 2, 3);
            let target = Isotropic::new(2).unwrap();
            let expected = kernel.bandwidth.of(theta.as_ref());
            let mut used = Vec::new();
            let method = Method::named("svgd").unwrap();
            let parameters = Parameters::default();
            Sampler::<f64>::new(
                target,
                method.build_dynamics(&parameters),
                method.build_field(kernel.clone(), &parameters, None).unwrap(),
            )
            .start_at(theta.clone())
            .phase(Euler, 1, StepSize::Constant(1e-9))
            .observe(|at: &Snapshot<'_, f64>| {
                used.extend_from_slice(at.bandwidths);
                Ok(ControlFlow::Continue(()))
            })
            .on(cuda("svgd", &kernel))
            .run()
            .unwrap();
            let found = used[0];
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{rule} N={count}: {found} not {expected}"
            );
        }
    }
    // Identical particles: no distance at all.
    let theta = Matrix::from_fn(50, 2, |_, j| j as f64);
    let target = Isotropic::new(2).unwrap();
    let steps = (false, 2, 0.1);
    let run =
        |engine| after_steps::<f64>(&target, "svgd", &Kernel::default(), &theta, steps, engine);
    assert!(error(&run(Some(cuda("svgd", &Kernel::default()))), &run(None)) < 1e-12);
}

/// Random particles, with what Σ over all of them is for a few.
#[test]
fn a_million_particles_and_a_hundred_thousand_dimensions() {
    if !has_gpu() {
        return;
    }
    let h = 0.5;
    let kernel = Kernel { bandwidth: Bandwidth::fixed(h), ..Kernel::default() };
    let (count, dt) = (1_000_000, 1.0);
    let theta = random_states(count, 2, 9).cast::<f32>().cast::<f64>();
    let target = Isotropic::new(2).unwrap();
    let moved = after_steps::<f32>(
        &target,
        "svgd",
        &kernel,
        &theta,
        (false, 1, dt),
        Some(cuda("svgd", &kernel)),
    );
    for i in [0, 1, 517, 499_999, 999_999] {
        let x = theta.row(i);
        let mut sum = [0.0; 2];
        for j in 0..count {
            let y = theta.row(j);
            let difference = [x[0] - y[0], x[1] - y[1]];
            let k = (-(difference[0].powi(2) + difference[1].powi(2)) / h).exp();
            for c in 0..2 {
                sum[c] += k * (2.0 / h * difference[c] - y[c]);
            }
        }
        for c in 0..2 {
            let expected = x[c] + dt * sum[c] / count as f64;
            let found = moved.row(i)[c];
            assert!(
                (found - expected).abs() < 2e-6 * (1.0 + expected.abs()),
                "particle {i}: {found} not {expected}"
            );
        }
    }
    let (dim, count) = (100_000, 20);
    let theta = random_states(count, dim, 11);
    let target = Isotropic::new(dim).unwrap();
    let kernel = Kernel::default();
    let steps = (false, 2, 0.3);
    let expected = after_steps::<f64>(&target, "svgd", &kernel, &theta, steps, None);
    let found =
        after_steps::<f32>(&target, "svgd", &kernel, &theta, steps, Some(cuda("svgd", &kernel)));
    assert!(error(&found, &expected) < 1e-5);
}

/// The published reference vectors of three steps, in single precision.
#[test]
fn reference_vectors() {
    if !has_gpu() {
        return;
    }
    let golden: Value =
        serde_json::from_str(include_str!("../../steinflow/tests/fixtures/golden.json")).unwrap();
    let number = |name: &str| golden["params"][name].as_f64().unwrap();
    let matrix = |value: &Value| -> Matrix<f64> {
        let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).unwrap();
        Matrix::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
    };
    let mut parameters = Parameters {
        friction: number("A"),
        sigma: number("sigma2").sqrt(),
        mu: number("mu"),
        gamma: number("gamma"),
        sigma_u: number("tau2").sqrt(),
        ..Parameters::default()
    };
    let (eps, case) = (number("eps"), &golden["toy2"]);
    let mut checked = 0;
    for (key, expected) in case["after_steps"].as_object().unwrap() {
        let parts: Vec<&str> = key.split('/').collect();
        let [dynamics, view, bandwidth, scheme] = parts[..] else { panic!("key {key}") };
        let is_printed = dynamics.ends_with("_logdensity");
        let sign = if is_printed { EnergySign::LogDensity } else { EnergySign::Energy };
        let (scale, offset) = (number("metric_D"), number("metric_C"));
        parameters.metric = EnergyMetric { scale, offset, sign };
        let (method, blocks): (&str, &[&str]) = match dynamics {
            "svgd" => ("svgd", &["theta"]),
            "rsvgd" | "rsvgd_logdensity" => ("rsvgd", &["theta"]),
            "sghmc" => ("sghmc-stein", &["theta", "r"]),
            "sgrhmc" | "sgrhmc_logdensity" => ("sgrhmc-stein", &["theta", "r"]),
            "sgnht" => ("sgnht-stein", &["theta", "r", "xi"]),
            "third" => ("third-order-stein", &["theta", "r", "s"]),
            other => panic!("{other}"),
        };
        let bandwidth = if bandwidth == "median" {
            Bandwidth::MedianLog
        } else {
            let listed = &case["bandwidths"][format!("{dynamics}/{view}/fixed")];
            let listed = listed.as_array().unwrap().iter();
            let mut listed: Vec<f64> = listed.filter_map(Value::as_f64).collect();
            listed.truncate(if view == "product" { listed.len() } else { 1 });
            Bandwidth::Fixed(listed)
        };
        let kernel = Kernel { view: View::parse(view).unwrap(), bandwidth, ..Kernel::default() };
        let method = Method::named(method).unwrap();
        let columns: Vec<Matrix<f64>> = blocks.iter().map(|name| matrix(&case[name])).collect();
        let (count, dim) = (columns[0].rows(), columns[0].cols());
        let state =
            Matrix::from_fn(count, blocks.len() * dim, |i, j| columns[j / dim].row(i)[j % dim]);
        let mut flow = start::<f32>(&method, &parameters, kernel, &TriCrescent, &columns[0]);
        flow.evaluate_target().unwrap();
        let saved = Saved { state: state.cast(), ..flow.save().unwrap() };
        flow.restore(&saved).unwrap();
        for step in 0..number("steps") as u64 {
            flow.begin_step(step, eps);
            match scheme {
                "euler" => Euler.step(&mut *flow, eps).unwrap(),
                _ => SymmetricSplitting.step(&mut *flow, eps).unwrap(),
            }
        }
        let found = flow.particles().unwrap().state.copied().cast();
        let off = error(&found, &matrix(expected));
        assert!(off < 1e-4, "{key}: {off:e}");
        checked += 1;
    }
    assert_eq!(checked, 66);
}

fn start<'a, T: Real>(
    method: &Method,
    parameters: &Parameters,
    kernel: Kernel,
    target: &'a dyn LogDensity<T>,
    theta: &Matrix<f64>,
) -> Box<dyn Flow<T> + 'a> {
    let dynamics = method.build_dynamics::<T>(parameters);
    let request = Request {
        structure: dynamics.structure(target.dim()),
        particles: theta.rows(),
        batch_size: None,
        preconditioner: None,
        policy: NonFinitePolicy::Stop,
        joint_accept: false,
    };
    let field = method.build_field(kernel.clone(), parameters, None).unwrap();
    let parts = Parts { target: Box::new(target), dynamics, field, theta: theta.cast(), seed: 1 };
    Cuda::new(0, method, parameters, kernel).unwrap().start(parts, &request).unwrap()
}

#[test]
fn targets_are_those_of_the_host() {
    if !has_gpu() {
        return;
    }
    let covariance = Matrix::from_fn(3, 3, |i, j| if i == j { 1.0 + i as f64 } else { 0.3 });
    let gaussian = Gaussian::new(vec![1.0, -2.0, 0.5], covariance).unwrap();
    let covariance = Matrix::from_fn(19, 19, |i, j| if i == j { 2.0 } else { 0.4 });
    let wide = Gaussian::new((0..19).map(f64::from).collect(), covariance).unwrap();
    let targets: [(&str, Box<dyn LogDensity<f64>>); 15] = [
        ("gaussian", Box::new(gaussian)),
        ("isotropic", Box::new(Isotropic::new(5).unwrap())),
        ("wide isotropic", Box::new(Isotropic::new(75).unwrap())),
        ("wide gaussian", Box::new(wide)),
        ("wide funnel", Box::new(Funnel::new(33).unwrap())),
        ("tri-crescent", Box::new(TriCrescent)),
        ("crescent", Box::new(Crescent)),
        ("banana", Box::new(Banana::default())),
        ("ring", Box::new(Ring::default())),
        ("funnel", Box::new(Funnel::new(4).unwrap())),
        ("logistic", Box::new(logistic::<f64>(37, 5))),
        ("network", Box::new(network(&[50], Activation::Relu, false, 300))),
        ("deep network", Box::new(network(&[33, 17, 5], Activation::Tanh, true, 129))),
        ("wide network", Box::new(network(&[301], Activation::Relu, false, 40))),
        ("linear network", Box::new(network(&[], Activation::Relu, true, 7))),
    ];
    for (name, target) in targets {
        let theta = random_states(77, target.dim(), 2);
        let mut flow = start(
            &Method::named("ld").unwrap(),
            &Parameters::default(),
            Kernel::default(),
            &*target,
            &theta,
        );
        flow.evaluate_target().unwrap();
        let found = flow.particles().unwrap();
        let (mut log_density, mut score) = (vec![0.0; 77], Matrix::zeros(77, target.dim()));
        target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut()).unwrap();
        let off = error(&found.score.copied(), &score);
        assert!(off < 1e-12, "{name}: {off:e}");
        for (a, b) in found.log_density.iter().zip(&log_density) {
            assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{name}: {a} not {b}");
        }
    }
}

/// A network with 13 inputs on random rows.
fn network<T: Real>(
    hidden: &[usize],
    activation: Activation,
    noise_by_input: bool,
    rows: usize,
) -> Bnn<T> {
    let inputs = random_states(rows, 13, 3);
    let targets: Vec<f64> =
        (0..rows).map(|i| inputs.row(i)[0].sin() + 0.3 * inputs.row(i)[1]).collect();
    let architecture =
        Architecture { hidden: hidden.to_vec(), activation, noise_by_input, ..Default::default() };
    Bnn::new(&architecture, &inputs, &targets, Precisions::default()).unwrap()
}

/// A short run on minibatches in learnt scales, which then are held.
fn network_run<T: Real>(method: &str, count: usize, steps: u64, on_gpu: bool) -> Matrix<f64> {
    let model = network::<T>(&[50], Activation::Relu, false, 300);
    let theta = model.start_sample(count, 1).unwrap().cast();
    let (method, parameters) = (Method::named(method).unwrap(), Parameters::default());
    let field = method.build_field(Kernel::default(), &parameters, None).unwrap();
    let mut sampler = Sampler::new(&model, method.build_dynamics(&parameters), field)
        .start_at(theta)
        .batch_size(100)
        .precondition(RootMeanSquare { hold_after: Some(4), ..RootMeanSquare::default() });
    sampler = if method.dynamics.has_momentum() {
        sampler.phase(SymmetricSplitting, steps, StepSize::Constant(0.02))
    } else {
        sampler.phase(Euler, steps, StepSize::Constant(0.02))
    };
    if on_gpu {
        sampler = sampler.on(cuda(&method.name, &Kernel::default()));
    }
    sampler.run().unwrap().state.cast()
}

#[test]
fn networks_on_minibatches_in_learnt_scales_are_those_of_the_host() {
    if !has_gpu() {
        return;
    }
    for method in ["svgd", "sghmc-stein", "sgnht-stein", "sghmc-blob"] {
        // One kernel a move, and several.
        for count in [2, 13, 40] {
            let (found, expected): (Matrix<f64>, Matrix<f64>) =
                [true, false].map(|on_gpu| network_run::<f64>(method, count, 7, on_gpu)).into();
            let off = error(&found, &expected);
            assert!(off < 1e-9, "{method} N={count}: {off:e}");
        }
        let (found, expected) =
            (network_run::<f32>(method, 20, 7, true), network_run::<f64>(method, 20, 7, false));
        let off = error(&found, &expected);
        assert!(off < 1e-4, "{method} in f32: {off:e}");
    }
}

/// The particles after ten steps of a rule with averages, all at once or in two runs.
fn rescaled<T: Real>(
    rule: &str,
    count: usize,
    dim: usize,
    on_gpu: bool,
    stop: bool,
) -> Matrix<f64> {
    let target = Isotropic::new(dim).unwrap();
    let kernel = Kernel { affine: 1.0, ..Kernel::default() };
    let run = |steps, checkpoint| {
        let (method, parameters) = (Method::named("svgd").unwrap(), Parameters::default());
        let field = method.build_field(kernel.clone(), &parameters, None).unwrap();
        let mut sampler = Sampler::<T>::new(target, method.build_dynamics(&parameters), field)
            .start_at(random_states(count, dim, 4).cast())
            .phase(integrator::named::<T>(rule).unwrap(), steps, StepSize::Constant(0.05));
        if on_gpu {
            sampler = sampler.on(cuda("svgd", &kernel));
        }
        match checkpoint {
            Some(checkpoint) => sampler.resume_from(checkpoint).run().unwrap(),
            None => sampler.run().unwrap(),
        }
    };
    let end = if stop { run(10, Some(run(4, None).checkpoint)) } else { run(10, None) };
    end.state.cast()
}

#[test]
fn rules_with_averages_and_affine_kernels_are_those_of_the_host() {
    if !has_gpu() {
        return;
    }
    for rule in ["adam", "adagrad", "rmsprop"] {
        // More particles than coordinates, fewer, and so many that moments are summed in parts.
        for (count, dim) in [(50, 3), (30, 40), (3000, 5)] {
            let found = rescaled::<f64>(rule, count, dim, true, false);
            let off = error(&found, &rescaled::<f64>(rule, count, dim, false, false));
            assert!(off < 1e-11, "{rule} N={count} d={dim}: {off:e}");
            assert_eq!(found, rescaled::<f64>(rule, count, dim, true, true), "{rule} resumed");
        }
        let found = rescaled::<f32>(rule, 300, 20, true, false);
        let off = error(&found, &rescaled::<f64>(rule, 300, 20, false, false));
        assert!(off < 2e-4, "{rule} in f32: {off:e}");
    }
    for (method, view) in [
        ("sghmc-stein", View::Joint),
        ("sghmc-stein", View::Theta),
        ("third-order-stein", View::Theta),
        ("sghmc-stein-alt", View::Joint),
    ] {
        for radial in Radial::ALL {
            let kernel = Kernel { affine: 0.7, view, radial, ..Kernel::default() };
            for (count, dim) in [(20, 3), (100, 7), (25, 40)] {
                let target = Isotropic::new(dim).unwrap();
                let theta = random_states(count, dim, 4);
                let run = |engine| {
                    after_steps::<f64>(&target, method, &kernel, &theta, (true, 4, 0.1), engine)
                };
                let off = error(&run(Some(cuda(method, &kernel))), &run(None));
                assert!(off < 1e-12, "{method} {kernel:?} N={count} d={dim}: {off:e}");
            }
        }
    }
}

/// A run in units of λ with implicit steps and a joint accept step, as it is by default after a warm-up.
fn joint(
    count: usize,
    steps: u64,
    engine: Option<Cuda>,
    from: Option<Checkpoint<f64>>,
) -> Outcome<f64> {
    let method = Method::named("sghmc-stein").unwrap();
    let (kernel, parameters) = held();
    let field = method.build_field(kernel, &parameters, None).unwrap();
    let mut sampler = Sampler::<f64>::new(TriCrescent, method.build_dynamics(&parameters), field)
        .start_at(random_states(count, 2, 6))
        .phase(ImplicitDrift, steps, StepSize::Constant(0.3))
        .resample(Resampling::Time { time: 2.0, jitter: 0.2 })
        .joint_accept();
    if let Some(engine) = engine {
        sampler = sampler.on(engine);
    }
    if let Some(checkpoint) = from {
        sampler = sampler.resume_from(checkpoint);
    }
    sampler.run().unwrap()
}

/// A kernel on θ with an affine part, and time in units of λ without friction.
fn held() -> (Kernel, Parameters) {
    let bandwidth = Bandwidth::parse("white:4").unwrap();
    let kernel = Kernel { view: View::Theta, affine: 1.0, bandwidth, ..Kernel::default() };
    let time_unit = TimeUnit::Eigenvalue;
    (kernel, Parameters { friction: 0.0, time_unit, ..Parameters::default() })
}

#[test]
fn midpoint_steps_and_time_in_units_of_lambda_are_those_of_the_host() {
    if !has_gpu() {
        return;
    }
    let target = Isotropic::new(3).unwrap();
    for (method, rule) in [
        ("sghmc-stein", "midpoint-splitting"),
        ("sgnht-stein", "midpoint-drift"),
        ("sghmc-blob", "midpoint-splitting"),
        ("sghmc-stein", "implicit-drift"),
    ] {
        // One kernel a move, pairs, and a stored K.
        for (count, time_unit) in
            [(20, TimeUnit::Particles), (20, TimeUnit::Eigenvalue), (150, TimeUnit::Eigenvalue)]
        {
            let method = Method::named(method).unwrap();
            let parameters = Parameters { time_unit, ..Parameters::default() };
            let run = |on_gpu: bool| {
                let field = method.build_field(Kernel::default(), &parameters, None).unwrap();
                let sampler =
                    Sampler::<f64>::new(target, method.build_dynamics(&parameters), field)
                        .start_at(random_states(count, 3, 5))
                        .phase(integrator::named::<f64>(rule).unwrap(), 5, StepSize::Constant(0.2));
                let engine = Cuda::new(0, &method, &parameters, Kernel::default()).unwrap();
                let sampler = if on_gpu { sampler.on(engine) } else { sampler };
                let end = sampler.run().unwrap();
                (end.state, end.gradients)
            };
            let ((found, asked), (expected, gradients)) = (run(true), run(false));
            let off = error(&found, &expected);
            assert!(off < 1e-11, "{} {rule} N={count} {time_unit:?}: {off:e}", method.name);
            assert_eq!(asked, gradients, "{} {rule}", method.name);
        }
    }
}

#[test]
fn a_joint_accept_step_is_that_of_the_host() {
    if !has_gpu() {
        return;
    }
    let method = Method::named("sghmc-stein").unwrap();
    let (kernel, parameters) = held();
    let engine = || Cuda::new(0, &method, &parameters, kernel.clone()).unwrap();
    for count in [25, 60] {
        let (found, expected) =
            (joint(count, 40, Some(engine()), None), joint(count, 40, None, None));
        let off = error(&found.state, &expected.state);
        assert!(off < 1e-7, "N={count}: {off:e}");
        assert_eq!(found.acceptance, expected.acceptance);
        assert!(found.acceptance.unwrap() > 0.0);
        let half = joint(count, 17, Some(engine()), None).checkpoint;
        assert_eq!(found.state, joint(count, 40, Some(engine()), Some(half)).state, "N={count}");
    }
}

/// Rows of random features, the class by the first.
fn logistic<T: Real>(rows: usize, features: usize) -> LogisticRegression<T> {
    let x = random_states(rows, features, 4);
    let mut text: Vec<String> = (0..features).map(|j| format!("x{j}")).collect();
    text.push("y".to_owned());
    let mut table = text.join(",") + "\n";
    for i in 0..rows {
        let mut row: Vec<String> = x.row(i).iter().map(ToString::to_string).collect();
        row.push(u8::from(x.row(i)[0] + 0.5 * x.row(i)[1] > 0.0).to_string());
        table += &(row.join(",") + "\n");
    }
    let path = std::env::temp_dir()
        .join(format!("steinflow-cuda-{rows}-{features}-{}.csv", std::process::id()));
    std::fs::write(&path, table).unwrap();
    let choices = steinflow_models::data::Choices::default();
    let (table, _) = steinflow_models::data::read_table(&path, None, &choices).unwrap();
    std::fs::remove_file(&path).unwrap();
    LogisticRegression::new(&table, None, 2.5).unwrap()
}

#[test]
fn a_regression_on_minibatches_is_that_of_the_host() {
    if !has_gpu() {
        return;
    }
    let model = logistic::<f64>(200, 7);
    let theta = random_states(60, 8, 2);
    let run = |engine: Option<Cuda>| {
        let (method, parameters) = (Method::named("sghmc-stein").unwrap(), Parameters::default());
        let field = method.build_field(Kernel::default(), &parameters, None).unwrap();
        let mut sampler = Sampler::<f64>::new(&model, method.build_dynamics(&parameters), field)
            .start_at(theta.clone())
            .batch_size(20)
            .phase(SymmetricSplitting, 5, StepSize::Constant(0.02));
        if let Some(engine) = engine {
            sampler = sampler.on(engine);
        }
        sampler.run().unwrap().state
    };
    assert!(error(&run(Some(cuda("sghmc-stein", &Kernel::default()))), &run(None)) < 1e-11);
}

#[test]
fn a_density_of_the_host_moves_particles_of_the_device() {
    if !has_gpu() {
        return;
    }
    let target = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        score.copy_from_slice(&[-theta[0], -4.0 * theta[1]]);
        -0.5 * theta[0].powi(2) - 2.0 * theta[1].powi(2)
    });
    let theta = random_states(50, 2, 2);
    let steps = (true, 10, 0.1);
    let run = |engine| {
        after_steps::<f64>(&target, "sghmc-stein", &Kernel::default(), &theta, steps, engine)
    };
    assert!(error(&run(Some(cuda("sghmc-stein", &Kernel::default()))), &run(None)) < 1e-11);
}

#[test]
fn the_same_bits_again_and_after_a_resume() {
    if !has_gpu() {
        return;
    }
    for (method, count, dim) in [
        ("ld", 100, 2),
        ("sghmc", 100, 3),
        ("svgd", 3000, 2),
        ("sghmc-stein", 500, 20),
        ("sgnht-stein", 100, 60),
        ("sghmc-stein", 20, 60),
        ("sgnht-stein", 150, 200),
        ("sgrld", 100, 2),
        ("sgrhmc-stein", 100, 3),
        ("rsvgd", 20, 60),
    ] {
        let target = Isotropic::new(dim).unwrap();
        let theta = random_states(count, dim, 5).cast::<f32>();
        let kernel = Kernel::default();
        let sampler = |steps| {
            let (method, parameters) = (Method::named(method).unwrap(), Parameters::default());
            let field = method.build_field(kernel.clone(), &parameters, None).unwrap();
            let sampler = Sampler::<f32>::new(target, method.build_dynamics(&parameters), field)
                .start_at(theta.clone())
                .seed(3)
                .on(cuda(&method.name, &kernel));
            if method.dynamics.has_momentum() {
                sampler.phase(SymmetricSplitting, steps, StepSize::Constant(0.1))
            } else {
                sampler.phase(Euler, steps, StepSize::Constant(0.1))
            }
        };
        let whole = sampler(40).run().unwrap();
        assert_eq!(whole.state, sampler(40).run().unwrap().state, "{method}");
        let half = sampler(17).run().unwrap();
        let resumed = sampler(40).resume_from(half.checkpoint).run().unwrap();
        assert_eq!(whole.state, resumed.state, "{method}");
    }
}

/// N = 20,000 chains, each for 60 units of time: means and variances of N(0, I) to 4 standard errors.
#[test]
fn diffusions_have_the_moments_of_the_target() {
    if !has_gpu() {
        return;
    }
    let count = 20_000;
    for (method, dt) in [("ld", 0.02), ("sghmc", 0.05), ("sgnht", 0.05), ("third-order", 0.05)] {
        let target = Isotropic::new(2).unwrap();
        let theta = random_states(count, 2, 8);
        let steps = (60.0 / dt) as u64;
        let end = after_steps::<f32>(
            &target,
            method,
            &Kernel::default(),
            &theta,
            (true, steps, dt),
            Some(cuda(method, &Kernel::default())),
        );
        for j in 0..2 {
            let values = || (0..count).map(|i| end.row(i)[j]);
            let mean = values().sum::<f64>() / count as f64;
            let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
            assert!(mean.abs() < 4.0 / (count as f64).sqrt(), "{method} mean {mean}");
            // The bias of the steps is of their order.
            let allowed = 4.0 * (2.0 / count as f64).sqrt() + 0.6 * dt;
            assert!((variance - 1.0).abs() < allowed, "{method} variance {variance}");
        }
    }
}

/// SVGD at rest on a Gaussian: where the host's particles are.
#[test]
fn a_long_run_comes_to_rest_where_the_host_does() {
    if !has_gpu() {
        return;
    }
    let theta = random_states(200, 2, 8);
    let spread = |engine| {
        let end = after_steps::<f64>(
            &TriCrescent,
            "sghmc-stein",
            &Kernel::default(),
            &theta,
            (true, 3000, 0.05),
            engine,
        );
        let of = |j: usize| {
            let mean = (0..200).map(|i| end.row(i)[j]).sum::<f64>() / 200.0;
            ((0..200).map(|i| (end.row(i)[j] - mean).powi(2)).sum::<f64>() / 200.0).sqrt()
        };
        [of(0), of(1)]
    };
    let (found, expected) = (spread(Some(cuda("sghmc-stein", &Kernel::default()))), spread(None));
    for j in 0..2 {
        assert!((found[j] / expected[j] - 1.0).abs() < 0.02, "{found:?} not {expected:?}");
    }
}

#[test]
fn observers_that_are_not_due_leave_the_particles_where_they_are() {
    if !has_gpu() {
        return;
    }
    let mut trace = Trace::new(25);
    let method = Method::named("svgd").unwrap();
    let parameters = Parameters::default();
    let field = method.build_field(Kernel::default(), &parameters, None).unwrap();
    Sampler::<f32>::new(TriCrescent, method.build_dynamics(&parameters), field)
        .start_normal(300, &[0.0, 0.0], 1.0)
        .phase(Euler, 100, StepSize::Constant(0.1))
        .observe(trace.observer())
        .on(cuda("svgd", &Kernel::default()))
        .run()
        .unwrap();
    let steps: Vec<u64> = trace.rows().iter().map(|row| row.step).collect();
    assert_eq!(steps, [25, 50, 75, 100]);
    assert!(trace.rows().iter().all(|row| row.velocity_norm > 0.0 && row.bandwidth.unwrap() > 0.0));
}

#[test]
fn what_is_not_finite_is_found() {
    if !has_gpu() {
        return;
    }
    let theta = Matrix::from_fn(40, 2, |i, j| (i + j) as f32);
    let method = Method::named("svgd").unwrap();
    let parameters = Parameters::default();
    let run = |policy, step| {
        let field = method.build_field(Kernel::default(), &parameters, None).unwrap();
        Sampler::<f32>::new(TriCrescent, method.build_dynamics(&parameters), field)
            .start_at(theta.clone())
            .phase(Euler, 200, StepSize::Constant(step))
            .on_non_finite(policy)
            .on(cuda("svgd", &Kernel::default()))
            .run()
    };
    let stopped = run(NonFinitePolicy::Stop, 10.0);
    assert!(matches!(stopped, Err(Error::NonFinite { .. })), "{stopped:?}");
    let shrunk = run(NonFinitePolicy::Shrink, 10.0).unwrap();
    assert!(shrunk.shrinks > 0 && shrunk.state.as_slice().iter().all(|x| x.is_finite()));
}

#[test]
fn what_does_not_run_is_refused_by_name() {
    let refuse = |name: &str, kernel: Kernel, parameters: Parameters| {
        let method = Method::named(name).unwrap();
        Cuda::new(0, &method, &parameters, kernel).unwrap_err().to_string()
    };
    for name in ["gfsf", "sge", "svgd-product", "lawgd"] {
        let text = refuse(name, Kernel::default(), Parameters::default());
        assert!(text.contains(name) && text.contains("does not run on a GPU"), "{text}");
    }
    let affine = Kernel { affine: 1.0, ..Kernel::default() };
    assert!(refuse("sgnht-stein", affine, Parameters::default()).starts_with("affine is 1"));
    let skew = Parameters { curl: CurlForm::Symmetrised, ..Parameters::default() };
    assert!(refuse("sgnht-stein", Kernel::default(), skew).starts_with("curl is symmetrised"));
}

/// Without a GPU there is one clear line; with one, too much is refused before anything is moved.
#[test]
fn too_much_or_nothing_there_is_said_at_once() {
    let sampler = Sampler::<f32>::new(
        Isotropic::new(64).unwrap(),
        Method::named("svgd").unwrap().build_dynamics(&Parameters::default()),
        steinflow::field::Stein::new(Kernel::default()),
    )
    .start_normal(4_000_000, &[0.0; 64], 1.0)
    .phase(Euler, 1, StepSize::Constant(0.1))
    .on(cuda("svgd", &Kernel::default()));
    match (devices(), sampler.check()) {
        (Err(_), Err(error)) => {
            let text = error.to_string();
            assert!(text.starts_with("device is cuda") && !text.contains('\n'), "{text}");
        }
        (Ok(found), checked) => {
            let fits = found[0].memory.0 > 20 << 30;
            assert_eq!(checked.is_ok(), fits, "{checked:?} with {:?}", found[0].memory);
        }
        (found, checked) => panic!("{found:?} but {checked:?}"),
    }
}
