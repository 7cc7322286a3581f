//! The order of each integrator is measured, not believed.

use crate::common::{relative_error, tri_crescent};
use steinflow::dynamics::{Dynamics, Sghmc, Sgnht, ThirdOrder};
use steinflow::field::Stein;
use steinflow::integrator::{
    Adaptive, Euler, Integrator, MidpointSplitting, StepSize, SymmetricSplitting,
};
use steinflow::kernel::{Bandwidth, Kernel};
use steinflow::testing::random_states;
use steinflow::{Matrix, System};

fn smooth_system(dynamics: impl Dynamics<f64> + 'static) -> System<'static, f64> {
    // A fixed bandwidth: a median is not differentiable in the particles.
    let kernel = Kernel { bandwidth: Bandwidth::fixed(2.0), ..Kernel::default() };
    System::new(tri_crescent(), dynamics, Stein::new(kernel), &random_states(12, 2, 1), 1).unwrap()
}

/// The state at time 1.
fn integrate(
    mut system: System<'_, f64>,
    mut integrator: impl Integrator,
    steps: u32,
) -> Matrix<f64> {
    for _ in 0..steps {
        integrator.step(&mut system, 1.0 / f64::from(steps)).unwrap();
    }
    Matrix::from_vec(system.state().as_slice().to_vec(), 12, system.state().cols()).unwrap()
}

/// Errors at 100 and 200 steps, and the order log₂ of their ratio.
fn order(
    dynamics: impl Dynamics<f64> + Clone + 'static,
    integrator: impl Integrator + Copy,
) -> (f64, f64) {
    let reference = integrate(smooth_system(dynamics.clone()), MidpointSplitting, 6400);
    let error = |steps| {
        relative_error(&integrate(smooth_system(dynamics.clone()), integrator, steps), &reference)
    };
    let (coarse, fine) = (error(100), error(200));
    (fine, (coarse / fine).log2())
}

fn orders(dynamics: impl Dynamics<f64> + Clone + 'static) {
    let (euler_error, euler) = order(dynamics.clone(), Euler);
    let (split_error, split) = order(dynamics.clone(), SymmetricSplitting);
    let (midpoint_error, midpoint) = order(dynamics, MidpointSplitting);
    assert!((euler - 1.0).abs() < 0.1, "Euler has order {euler}");
    assert!((split - 1.0).abs() < 0.1, "splitting has order {split}");
    assert!((midpoint - 2.0).abs() < 0.1, "midpoint splitting has order {midpoint}");
    assert!(split_error < euler_error / 1.5, "{split_error:e} against {euler_error:e}");
    assert!(midpoint_error < split_error / 10.0, "{midpoint_error:e} against {split_error:e}");
}

#[test]
fn orders_with_two_blocks() {
    orders(Sghmc { friction: 1.0, variance: 1.0 });
}

#[test]
fn orders_with_three_blocks() {
    orders(Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 1.0 });
    orders(ThirdOrder { friction: 1.0, coupling: 1.0, variance: 1.0, variance_u: 1.0 });
}

#[test]
fn a_step_costs_one_gradient() {
    let count = |mut integrator: Box<dyn Integrator>| {
        let mut system = smooth_system(Sghmc { friction: 1.0, variance: 1.0 });
        system.evaluate_target().unwrap();
        for _ in 0..10 {
            integrator.step(&mut system, 0.01).unwrap();
            system.evaluate_target().unwrap();
        }
        system.gradients() - 1
    };
    assert_eq!(count(Box::new(Euler)), 10);
    assert_eq!(count(Box::new(SymmetricSplitting)), 10);
    assert_eq!(count(Box::new(MidpointSplitting)), 10);
}

#[test]
fn adaptive_rules_take_the_steps_of_their_definition() {
    // Two far-apart particles with a narrow kernel each follow half their own score, −x/2.
    let start = [4.0, -60.0];
    let run = |integrator: Adaptive<f64>, steps: usize| {
        let target = crate::common::gaussian(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0));
        let kernel = Kernel { bandwidth: Bandwidth::fixed(0.1), ..Kernel::default() };
        let theta = Matrix::from_fn(2, 1, |i, _| start[i]);
        let langevin = steinflow::dynamics::Langevin::new();
        let mut system = System::new(target, langevin, Stein::new(kernel), &theta, 0).unwrap();
        let mut integrator = integrator;
        for _ in 0..steps {
            integrator.step(&mut system, 0.1).unwrap();
        }
        system.state().row(0)[0]
    };
    let by_hand = |update: &dyn Fn(f64, &mut f64, &mut f64, i32) -> f64, steps: i32| {
        let (mut x, mut mean, mut square) = (start[0], 0.0, 0.0);
        for k in 1..=steps {
            x += 0.1 * update(-x / 2.0, &mut mean, &mut square, k);
        }
        x
    };
    let adagrad = by_hand(
        &|v, _, s, _| {
            *s += v * v;
            v / (s.sqrt() + 1e-8)
        },
        5,
    );
    let rmsprop = by_hand(
        &|v, _, s, _| {
            *s = 0.9 * *s + 0.1 * v * v;
            v / (s.sqrt() + 1e-8)
        },
        5,
    );
    let adam = by_hand(
        &|v, m, s, k| {
            *m = 0.9 * *m + 0.1 * v;
            *s = 0.999 * *s + 0.001 * v * v;
            (*m / (1.0 - 0.9f64.powi(k))) / ((*s / (1.0 - 0.999f64.powi(k))).sqrt() + 1e-8)
        },
        5,
    );
    assert!((run(Adaptive::adagrad(), 5) - adagrad).abs() < 1e-12);
    assert!((run(Adaptive::rmsprop(), 5) - rmsprop).abs() < 1e-12);
    assert!((run(Adaptive::adam(), 5) - adam).abs() < 1e-12);
}

#[test]
fn schedules() {
    assert_eq!(StepSize::Constant(0.3).at(7, 10), 0.3);
    assert_eq!(StepSize::Linear(1.0, 0.5).at(9, 10), 0.5);
    assert!((StepSize::Cosine(1.0, 0.0).at(5, 11) - 0.5).abs() < 1e-15);
    let polynomial = StepSize::Polynomial { scale: 2.0, offset: 1.0, power: 0.5 };
    assert_eq!(polynomial.at(3, 10), 1.0);
    assert!(StepSize::Linear(0.1, -0.1).validate(10).is_err());
    assert!(StepSize::Constant(f64::NAN).validate(10).is_err());
}
