//! A preconditioner is a change of variables: held, it gives the run on the rescaled target.

use steinflow::dynamics::{Dynamics, Langevin, Sghmc, Sgnht};
use steinflow::field::{Diffusion, Estimator, Field, Lawgd, LogRatio, Stein};
use steinflow::integrator::{Euler, Integrator, StepSize, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::precondition::RootMeanSquare;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Sampler};

const SD: [f64; 3] = [10.0, 1.0, 0.1];

fn badly_scaled() -> impl LogDensity<f64> {
    rescaled([1.0; 3])
}

/// The same density in u = θ / s.
fn rescaled(s: [f64; 3]) -> impl LogDensity<f64> {
    PerParticle::new(3, move |u: &[f64], score: &mut [f64]| {
        let mut value = 0.0;
        for j in 0..3 {
            let z = s[j] * u[j] / SD[j];
            value -= 0.5 * z * z;
            score[j] = -z * s[j] / SD[j];
        }
        value
    })
}

fn start() -> Matrix<f64> {
    let draws = random_states(20, 3, 5);
    Matrix::from_fn(20, 3, |i, j| SD[j] * (0.5 + draws.row(i)[j]))
}

/// s as the rule must find it from the first gradient alone.
fn first_scale() -> [f64; 3] {
    let theta = start();
    std::array::from_fn(|j| {
        let square = |i: usize| (theta.row(i)[j] / SD[j].powi(2)).powi(2);
        let mean = (0..20).map(square).sum::<f64>() / 20.0;
        (mean.sqrt() + 1e-3).sqrt().recip()
    })
}

fn held() -> RootMeanSquare {
    RootMeanSquare { hold_after: Some(1), ..RootMeanSquare::default() }
}

fn agree(
    dynamics: impl Dynamics<f64> + Clone,
    field: impl Field<f64> + Clone,
    integrator: impl Integrator<f64> + Clone + 'static,
) {
    let s = first_scale();
    let step = StepSize::Constant(0.02);
    let preconditioned = Sampler::new(badly_scaled(), dynamics.clone(), field.clone())
        .start_at(start())
        .precondition(held())
        .phase(integrator.clone(), 40, step)
        .run()
        .unwrap()
        .theta();
    let theta = start();
    let u = Matrix::from_fn(20, 3, |i, j| theta.row(i)[j] / s[j]);
    let other = Sampler::new(rescaled(s), dynamics, field)
        .start_at(u)
        .phase(integrator, 40, step)
        .run()
        .unwrap()
        .theta();
    for i in 0..20 {
        for j in 0..3 {
            let (found, expected) = (preconditioned.row(i)[j], s[j] * other.row(i)[j]);
            let error = (found - expected).abs() / SD[j];
            assert!(error < 1e-10, "particle {i}, coordinate {j}: {found} against {expected}");
        }
    }
}

#[test]
fn held_it_is_a_change_of_variables() {
    let kernel = Kernel::default;
    let sghmc = Sghmc { friction: 1.0, variance: 1.0 };
    agree(Langevin::new(), Stein::new(kernel()), Euler);
    agree(Langevin::new(), Diffusion, Euler);
    agree(sghmc.clone(), Stein::new(kernel()), SymmetricSplitting);
    agree(sghmc, LogRatio::starred(kernel(), Estimator::Blob), SymmetricSplitting);
    let sgnht = Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 1.0 };
    agree(sgnht.clone(), Stein::new(kernel()), SymmetricSplitting);
    agree(sgnht, Diffusion, SymmetricSplitting);
}

#[test]
fn it_makes_a_badly_scaled_target_easy() {
    // Mean and spread of every coordinate, in units of the target's standard deviation.
    let moments = |preconditioned: bool| -> [[f64; 2]; 3] {
        let step_size = StepSize::Constant(if preconditioned { 0.15 } else { 0.015 });
        let field = Stein::new(Kernel::default());
        let mut sampler = Sampler::new(badly_scaled(), Langevin::new(), field)
            .start_at(start())
            .phase(Euler, 3000, step_size);
        if preconditioned {
            sampler = sampler.precondition(RootMeanSquare::default());
        }
        let theta = sampler.run().unwrap().theta();
        std::array::from_fn(|j| {
            let mean = (0..20).map(|i| theta.row(i)[j]).sum::<f64>() / 20.0;
            let square = |i: usize| (theta.row(i)[j] - mean).powi(2);
            [mean / SD[j], ((0..20).map(square).sum::<f64>() / 20.0).sqrt() / SD[j]]
        })
    };
    for [mean, sd] in moments(true) {
        assert!(mean.abs() < 0.1 && (0.5..1.5).contains(&sd), "{mean}, {sd}");
    }
    // The sharpest direction sets the step, and in the flattest little happens.
    let theta = start();
    let begun = (0..20).map(|i| theta.row(i)[0]).sum::<f64>() / 20.0 / SD[0];
    let ended = moments(false)[0][0];
    assert!(begun > 0.3 && ended > 0.8 * begun, "{begun}, {ended}");
}

#[test]
fn wrong_numbers_and_fields_are_refused() {
    let check =
        |rule| Sampler::new(badly_scaled(), Langevin::new(), Diffusion).precondition(rule).check();
    for decay in [1.0, -0.1, f64::NAN] {
        let rule = RootMeanSquare { decay, ..RootMeanSquare::default() };
        assert!(check(rule).unwrap_err().to_string().contains("0.999"));
    }
    for floor in [0.0, -1.0, f64::INFINITY] {
        assert!(check(RootMeanSquare { floor, ..RootMeanSquare::default() }).is_err());
    }
    let line = || {
        PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
            score[0] = -theta[0];
            -0.5 * theta[0] * theta[0]
        })
    };
    let field = Lawgd::new(&line(), &Langevin::new(), &[(-6.0, 6.0)], 50).unwrap();
    let sampler = Sampler::new(line(), Langevin::new(), field).precondition(held());
    assert!(sampler.check().unwrap_err().to_string().contains("grid"));
}
