//! A joint accept step: what it conserves, and what it is for.

use steinflow::dynamics::{Sghmc, ThirdOrder};
use steinflow::field::{Stein, TimeUnit};
use steinflow::integrator::{ImplicitDrift, Integrator, StepSize};
use steinflow::kernel::{Bandwidth, Kernel, View};
use steinflow::run::{Resampling, Samples};
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Real, Sampler, System};

const FRICTIONLESS: Sghmc = Sghmc { friction: 0.0, variance: 1.0 };

fn field(affine: f64) -> Stein {
    let (view, bandwidth) = (View::Theta, Bandwidth::fixed(2.0));
    Stein::new(Kernel { view, bandwidth, affine, ..Kernel::default() })
        .time_unit(TimeUnit::Eigenvalue)
}

fn gaussian<T: Real>() -> impl LogDensity<T> {
    PerParticle::new(2, |theta: &[T], score: &mut [T]| {
        score.copy_from_slice(&[-theta[0], -theta[1]]);
        -T::of(0.5) * (theta[0] * theta[0] + theta[1] * theta[1])
    })
}

/// −Σ(θ⁴/4 + r²/2) of all particles.
fn energy(system: &System<'_, f64>) -> f64 {
    let squares: f64 = (0..system.state().rows())
        .flat_map(|i| system.state().row(i)[2..].to_vec())
        .map(|r| r * r / 2.0)
        .sum();
    squares - system.log_density().iter().sum::<f64>()
}

fn quartic() -> impl LogDensity<f64> {
    PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        score.copy_from_slice(&[-theta[0].powi(3), -theta[1].powi(3)]);
        -0.25 * (theta[0].powi(4) + theta[1].powi(4))
    })
}

/// A system of 5 particles at rows of (θ, r).
fn system_at(state: &Matrix<f64>, affine: f64) -> System<'static, f64> {
    let theta = Matrix::from_fn(5, 2, |i, j| state.row(i)[j]);
    let mut system = System::new(quartic(), FRICTIONLESS, field(affine), &theta, 1).unwrap();
    // λ is that of the start, and the same for every neighbour.
    system.evaluate_target().unwrap();
    system.velocity(&[0]).unwrap();
    system.set_state(state.clone()).unwrap();
    system
}

/// log |det| by elimination.
fn log_determinant(mut rows: Vec<Vec<f64>>) -> f64 {
    let mut sum = 0.0;
    for k in 0..rows.len() {
        let by_size = |&a: &usize, &b: &usize| rows[a][k].abs().total_cmp(&rows[b][k].abs());
        let pivot = (k..rows.len()).max_by(by_size).unwrap();
        rows.swap(k, pivot);
        sum += rows[k][k].abs().ln();
        for i in k + 1..rows.len() {
            let factor = rows[i][k] / rows[k][k];
            for j in k..rows.len() {
                rows[i][j] -= factor * rows[k][j];
            }
        }
    }
    sum
}

/// How far the volume that a step keeps is from the determinant of its Jacobian, by differences, and that.
fn volume_error(dt: f64, affine: f64, exact: bool) -> (f64, f64) {
    let start = random_states(5, 4, 3);
    let mut base = system_at(&start, affine);
    if !exact {
        base.exact_volume_up_to(0);
    }
    let memory_of = |state: &Matrix<f64>| {
        // λ is held from the same start for all.
        let mut system = system_at(&start, affine);
        system.set_state(state.clone()).unwrap();
        ImplicitDrift.step(&mut system, dt).unwrap();
        system.state().as_slice().to_vec()
    };
    ImplicitDrift.step(&mut base, dt).unwrap();
    let step = 1e-5;
    let jacobian = (0..20)
        .map(|k| {
            let moved = |by: f64| {
                let mut state = start.clone();
                state.as_mut_slice()[k] += by;
                memory_of(&state)
            };
            let (up, down) = (moved(step), moved(-step));
            up.iter().zip(down).map(|(a, b)| (a - b) / (2.0 * step)).collect()
        })
        .collect();
    let exact = log_determinant(jacobian);
    ((base.log_volume() - exact).abs(), exact.abs())
}

#[test]
fn the_volume_of_a_step_is_its_determinant_up_to_third_order() {
    for affine in [0.0, 1.0] {
        let (coarse, size) = volume_error(0.2, affine, false);
        let (fine, _) = volume_error(0.1, affine, false);
        assert!(size > 0.01, "volumes must change for this to say anything: {size}");
        // ε³: a factor of 8, and 1e-8 of differences.
        assert!(coarse < 0.03 * size && fine < coarse / 6.0 + 1e-8, "{coarse}, {fine} of {size}");
    }
}

#[test]
fn the_volume_of_a_step_of_few_particles_is_its_determinant() {
    for affine in [0.0, 1.0] {
        for dt in [0.3, 0.6] {
            let ((exact, size), (first, _)) =
                (volume_error(dt, affine, true), volume_error(dt, affine, false));
            // Steps so long that the divergence alone would not do; 1e-7 of differences.
            assert!(first > 1e-5 && exact < 1e-7, "{dt}: {exact}, {first} of {size}");
        }
    }
}

#[test]
fn energy_less_volume_is_conserved_and_energy_is_not() {
    for affine in [0.0, 0.5] {
        let drift = |steps: u32| {
            let mut system = system_at(&random_states(5, 4, 3), affine);
            system.evaluate_target().unwrap();
            let before = energy(&system);
            for _ in 0..steps {
                ImplicitDrift.step(&mut system, 2.0 / f64::from(steps)).unwrap();
            }
            system.evaluate_target().unwrap();
            let gained = energy(&system) - before;
            (gained, gained - system.log_volume())
        };
        let ((gained, coarse), (_, fine)) = (drift(20), drift(40));
        assert!(gained.abs() > 0.1, "{gained}");
        // Second order: a factor of 4.
        assert!(coarse.abs() < 0.1 * gained.abs(), "{coarse} of {gained}");
        assert!(fine.abs() < coarse.abs() / 3.0, "{fine} after {coarse}");
    }
}

#[test]
fn the_same_steps_backwards_lead_back() {
    let start = random_states(5, 4, 3);
    let mut system = system_at(&start, 1.0);
    for dt in [0.3, 0.2, -0.2, -0.3] {
        ImplicitDrift.step(&mut system, dt).unwrap();
    }
    for (a, b) in start.as_slice().iter().zip(system.state().as_slice()) {
        assert!((a - b).abs() < 1e-10, "{a} against {b}");
    }
    assert!(system.log_volume().abs() < 1e-10);
}

fn long_steps<T: Real>(accept: bool, steps: u64) -> (Sampler<'static, T>, Samples<T>) {
    let time = Resampling::Time { time: 6.0, jitter: 0.2 };
    let sampler = Sampler::new(gaussian::<T>(), FRICTIONLESS, field(0.0))
        .start_normal(10, &[0.0, 0.0], 1.0)
        .phase(ImplicitDrift, steps, StepSize::Constant(1.5))
        .resample(time)
        .seed(4);
    let sampler = if accept { sampler.joint_accept() } else { sampler };
    (sampler, Samples::new(1, 1))
}

/// The mean of θ² over all draws, and the share of stretches accepted.
fn second_moment<T: Real>(accept: bool) -> (f64, Option<f64>) {
    let (sampler, mut samples) = long_steps::<T>(accept, 10_000);
    let outcome = sampler.observe(samples.observer()).run().unwrap();
    let squares = samples.values().iter().map(|x| x.as_f64().powi(2));
    (squares.sum::<f64>() / samples.values().len() as f64, outcome.acceptance)
}

#[test]
fn it_keeps_the_variance_that_long_steps_would_change() {
    // 2500 stretches of 10 particles: a standard error near 0.02, as the particles move together.
    let (with, acceptance) = second_moment::<f64>(true);
    assert!((with - 1.0).abs() < 0.06, "{with}");
    assert!((0.5..0.999).contains(&acceptance.unwrap()), "{acceptance:?}");
    let (without, none) = second_moment::<f64>(false);
    assert!((without - 1.0).abs() > 0.08 && none.is_none(), "{without}");
    let (single, _) = second_moment::<f32>(true);
    assert!((single - 1.0).abs() < 0.06, "{single}");
}

#[test]
fn a_run_goes_on_to_the_same_bits() {
    let whole = long_steps::<f64>(true, 40).0.run().unwrap();
    for half in [1, 7, 20, 23] {
        let first = long_steps::<f64>(true, half).0.run().unwrap();
        let resumed = long_steps::<f64>(true, 40).0.resume_from(first.checkpoint).run().unwrap();
        assert_eq!(resumed.state, whole.state, "left after {half} steps");
        assert_eq!(resumed.acceptance, whole.acceptance);
    }
}

/// Steps that would throw particles to infinity are refused and halved, not reported as NaN.
#[test]
fn steps_that_are_too_long_are_halved() {
    let run = |accept: bool| {
        let sampler = Sampler::new(quartic(), FRICTIONLESS, field(0.0))
            .start_normal(20, &[0.0, 0.0], 0.8)
            .phase(ImplicitDrift, 600, StepSize::Constant(8.0))
            .resample_every(20);
        if accept { sampler.joint_accept() } else { sampler }.run()
    };
    assert!(run(false).is_err());
    let outcome = run(true).unwrap();
    assert!(outcome.shrinks > 0);
    let largest = outcome.theta().as_slice().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert!(largest < 5.0, "{largest}");
}

#[test]
fn what_it_can_not_accept_is_refused() {
    let sampler = |dynamics: Sghmc, field: Stein| {
        Sampler::new(gaussian::<f64>(), dynamics, field).joint_accept().resample_every(5)
    };
    let steps = StepSize::Constant(0.1);
    let good = sampler(FRICTIONLESS, field(0.0)).phase(ImplicitDrift, 1, steps);
    assert!(good.check().is_ok());
    let friction = sampler(Sghmc { friction: 0.1, variance: 1.0 }, field(0.0));
    let joint = sampler(FRICTIONLESS, Stein::new(Kernel::default()));
    for (bad, what) in [(friction, "without friction"), (joint, "kernel on theta")] {
        let error = bad.phase(ImplicitDrift, 1, steps).check().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let integrator = steinflow::integrator::MidpointDrift;
    let error = sampler(FRICTIONLESS, field(0.0)).phase(integrator, 1, steps).check();
    assert!(error.unwrap_err().to_string().contains("implicit-drift"));
    let third = ThirdOrder { friction: 0.0, coupling: 0.3, variance: 1.0, variance_u: 1.0 };
    let third = Sampler::new(gaussian::<f64>(), third, field(0.0)).resample_every(5);
    assert!(third.joint_accept().phase(ImplicitDrift, 1, steps).check().is_ok());
}
