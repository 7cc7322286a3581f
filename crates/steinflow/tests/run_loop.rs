//! The loop: stop rules, interrupts, observers, minibatches, and what happens to a NaN.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steinflow::dynamics::{Langevin, Sghmc, Sgnht};
use steinflow::field::{Diffusion, Stein};
use steinflow::integrator::{Adaptive, Euler, MidpointSplitting, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, View};
use steinflow::method::{FieldKind, Method, Parameters};
use steinflow::run::{Ended, NonFinitePolicy, Outcome, Snapshot, Trace};
use steinflow::target::PerParticle;
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Result, Sampler};

fn standard() -> impl LogDensity<f64> {
    common::gaussian(vec![0.0, 0.0], Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j))))
}

fn svgd<'a>(target: impl LogDensity<f64> + 'a) -> Sampler<'a, f64> {
    Sampler::new(target, Langevin::new(), Stein::new(Kernel::default())).start_normal(
        20,
        &[1.0, 1.0],
        0.5,
    )
}

fn constant(step_size: f64) -> StepSize {
    StepSize::Constant(step_size)
}

#[test]
fn phases_follow_one_another_and_the_trace_tells() {
    let mut trace = Trace::new(3);
    let outcome = svgd(standard())
        .phase(Euler, 10, constant(0.1))
        .phase(Adaptive::adam(), 5, StepSize::Linear(0.05, 0.01))
        .observe(trace.observer())
        .run()
        .unwrap();
    assert_eq!((outcome.ended, outcome.steps, outcome.gradients), (Ended::Finished, 15, 16));
    let steps: Vec<u64> = trace.rows().iter().map(|row| row.step).collect();
    assert_eq!(steps, [3, 6, 9, 12, 15]);
    let last = trace.rows().last().unwrap();
    assert_eq!((last.step_size, last.gradients), (0.01, 16));
    // The last row speaks of the particles that the run returns.
    let mean = outcome.log_density.iter().sum::<f64>() / 20.0;
    assert!((last.mean_log_density - mean).abs() < 1e-14);
    assert!(trace.rows().iter().all(|row| row.bandwidth.unwrap() > 0.0 && row.velocity_norm > 0.0));
}

#[test]
fn stop_rules() {
    let at_rest = svgd(standard()).phase(Euler, 100_000, constant(0.3)).tolerance(1e-3).run();
    let at_rest = at_rest.unwrap();
    assert_eq!(at_rest.ended, Ended::AtRest);
    assert!(at_rest.steps > 10 && at_rest.steps < 100_000);

    let hasty = svgd(standard()).phase(Euler, 1_000_000_000, constant(0.3));
    let hasty = hasty.budget(Duration::from_millis(50)).run().unwrap();
    assert_eq!(hasty.ended, Ended::OutOfTime);

    let flag = Arc::new(AtomicBool::new(false));
    let raise = Arc::clone(&flag);
    let stopped = svgd(standard())
        .phase(Euler, 1000, constant(0.1))
        .interrupt(flag)
        .observe(move |at: &Snapshot<'_, f64>| {
            raise.store(at.step >= 7, Ordering::Relaxed);
            Ok(ControlFlow::Continue(()))
        })
        .run()
        .unwrap();
    assert_eq!((stopped.ended, stopped.steps), (Ended::Interrupted, 7));
    // What was done until then is what a run of seven steps would have done.
    let seven = svgd(standard()).phase(Euler, 7, constant(0.1)).run().unwrap();
    assert_eq!(stopped.state.as_slice(), seven.state.as_slice());

    let asked = svgd(standard())
        .phase(Euler, 1000, constant(0.1))
        .observe(|at: &Snapshot<'_, f64>| {
            Ok(if at.step == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .run()
        .unwrap();
    assert_eq!((asked.ended, asked.steps), (Ended::Interrupted, 4));
}

/// −x²/2 with a wall: the score is NaN beyond |x| = 3, where a large step takes the particles.
fn walled() -> impl LogDensity<f64> {
    PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
        score[0] = if theta[0].abs() < 3.0 { -theta[0] } else { f64::NAN };
        -0.5 * theta[0] * theta[0]
    })
}

fn over_the_wall(policy: NonFinitePolicy) -> Result<Outcome<f64>> {
    // Chains with step size 3 overshoot: x ← −2x + √6 n.
    Sampler::new(walled(), Langevin::new(), Diffusion)
        .start_normal(10, &[0.0], 0.5)
        .phase(Euler, 30, constant(3.0))
        .on_non_finite(policy)
        .run()
}

#[test]
fn a_non_finite_score_stops_freezes_or_shrinks() {
    let error = over_the_wall(NonFinitePolicy::Stop).unwrap_err();
    assert!(!error.is_usage());
    let Error::NonFinite { what, step, step_size, .. } = error else { panic!("{error}") };
    assert_eq!((what, step_size), ("score", 3.0));
    assert!(step < 5, "found only at step {step}");

    let frozen = over_the_wall(NonFinitePolicy::Freeze).unwrap();
    assert_eq!((frozen.ended, frozen.steps), (Ended::Finished, 30));
    assert!(!frozen.frozen.is_empty());
    assert!(frozen.state.as_slice().iter().all(|x| x.abs() < 3.0));

    let shrunk = over_the_wall(NonFinitePolicy::Shrink).unwrap();
    assert_eq!((shrunk.ended, shrunk.steps), (Ended::Finished, 30));
    assert!(shrunk.shrinks > 0 && shrunk.frozen.is_empty());
    assert!(shrunk.state.as_slice().iter().all(|x| x.abs() < 3.0));

    // A start that is already bad has no good state to go back to.
    for policy in [NonFinitePolicy::Stop, NonFinitePolicy::Freeze, NonFinitePolicy::Shrink] {
        let error = Sampler::new(walled(), Langevin::new(), Diffusion)
            .start_normal(3, &[9.0], 0.0)
            .phase(Euler, 5, constant(0.1))
            .on_non_finite(policy)
            .run()
            .unwrap_err();
        assert!(matches!(error, Error::NonFinite { particle: 0, step: 0, .. }), "{error}");
    }
}

#[test]
fn wrong_requests_get_typed_errors() {
    let stein = || Stein::new(Kernel::default());
    let momentum = || Sghmc { friction: 1.0, variance: 1.0 };
    let message = |sampler: Sampler<'_, f64>| {
        let error = sampler.run().unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    let cases = [
        (message(svgd(standard()).start_normal(0, &[0.0, 0.0], 1.0)), "number of particles is 0"),
        (message(svgd(standard()).start_normal(1, &[0.0, 0.0], 1.0)), "number of particles is 1"),
        (message(svgd(standard()).start_normal(5, &[0.0], 1.0)), "1 coordinates"),
        (message(svgd(standard()).start_normal(5, &[0.0, 0.0], -1.0)), "spread of the start is -1"),
        (message(svgd(standard()).start_at(Matrix::zeros(5, 3))), "3 coordinates"),
        (message(svgd(standard()).phase(Euler, 5, constant(-0.1))), "step size is -0.1"),
        (message(svgd(standard()).phase(Euler, 5, constant(f64::NAN))), "step size is NaN"),
        (message(svgd(standard()).phase(SymmetricSplitting, 5, constant(0.1))), "use euler"),
        (message(svgd(standard()).batch_size(5)), "no data"),
        (message(svgd(standard()).tolerance(f64::NAN)), "tolerance is NaN"),
        (
            message(svgd(PerParticle::new(0, |_: &[f64], _: &mut [f64]| 0.0)).start_normal(
                5,
                &[],
                1.0,
            )),
            "dimension is 0",
        ),
        (
            message(Sampler::new(standard(), momentum(), stein()).phase(
                Adaptive::adam(),
                5,
                constant(0.1),
            )),
            "first-order",
        ),
        (
            message(Sampler::new(standard(), momentum(), Diffusion).phase(
                MidpointSplitting,
                5,
                constant(0.1),
            )),
            "deterministic",
        ),
        (
            message(Sampler::new(standard(), Sghmc { friction: -1.0, variance: 1.0 }, stein())),
            "positive semidefinite",
        ),
        (
            message(Sampler::new(standard(), Sghmc { friction: 1.0, variance: 0.0 }, stein())),
            "positive, finite variance",
        ),
        (
            message(Sampler::new(
                standard(),
                Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: f64::NAN },
                stein(),
            )),
            "variance",
        ),
        (
            message(Sampler::new(
                standard(),
                momentum(),
                Stein::new(Kernel {
                    view: View::Product,
                    bandwidth: Bandwidth::Fixed(vec![1.0, 2.0, 3.0]),
                    ..Kernel::default()
                }),
            )),
            "give one value, or 2",
        ),
        (
            message(Sampler::new(
                standard(),
                momentum(),
                Stein::new(Kernel { bandwidth: Bandwidth::fixed(0.0), ..Kernel::default() }),
            )),
            "bandwidth is 0",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message:?} should contain {expected:?}");
    }
}

/// log π = Σ over data rows of −(θ − y)²/2; counts nothing else.
struct Rows(Vec<f64>);
impl LogDensity<f64> for Rows {
    fn dim(&self) -> usize {
        1
    }
    fn data_rows(&self) -> usize {
        self.0.len()
    }
    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        mut score: MatMut<'_, f64>,
    ) -> Result<()> {
        let all = Minibatch { indices: (0..self.0.len()).collect(), scale: 1.0 };
        let rows = rows.unwrap_or(&all);
        let mut distinct = rows.indices.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), rows.indices.len(), "rows are drawn without replacement");
        for i in 0..theta.rows() {
            let x = theta.row(i)[0];
            let errors = || rows.indices.iter().map(|&k| self.0[k] - x);
            log_density[i] = -0.5 * rows.scale * errors().map(|e| e * e).sum::<f64>();
            score.row_mut(i)[0] = rows.scale * errors().sum::<f64>();
        }
        Ok(())
    }
}

#[test]
fn minibatches_change_after_every_move_and_depend_on_the_seed_alone() {
    let data: Vec<f64> = (0..100).map(|i| f64::from(i) / 50.0 - 1.0).collect();
    let run = |seed, momentum: bool| {
        let mut densities = Vec::new();
        let observe = |at: &Snapshot<'_, f64>| {
            densities.push(at.log_density[0]);
            Ok(ControlFlow::Continue(()))
        };
        let field = Stein::new(Kernel::default());
        let sampler = if momentum {
            Sampler::new(Rows(data.clone()), Sghmc { friction: 1.0, variance: 1.0 }, field).phase(
                SymmetricSplitting,
                6,
                constant(1e-9),
            )
        } else {
            Sampler::new(Rows(data.clone()), Langevin::new(), field).phase(Euler, 6, constant(1e-9))
        };
        let outcome =
            sampler.start_normal(4, &[0.0], 1.0).seed(seed).batch_size(10).observe(observe).run();
        let outcome = outcome.unwrap();
        // One gradient a step, the first, and the last on all of the data.
        assert_eq!(outcome.gradients, 8);
        (densities, outcome.log_density)
    };
    for momentum in [false, true] {
        let (batches, full) = run(3, momentum);
        // Particles hardly move, so a changed log density means a changed minibatch.
        assert!(batches.windows(2).all(|pair| pair[0] != pair[1]), "{batches:?}");
        assert_eq!(run(3, momentum), (batches.clone(), full));
        assert_ne!(run(4, momentum).0, batches);
    }
}

#[test]
fn runs_depend_on_their_settings_alone() {
    let parameters = Parameters::default();
    let run = |method: &Method, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let sampler = Sampler::new(
                common::tri_crescent::<f64>(),
                method.build_dynamics(&parameters),
                method.build_field(Kernel::default(), &parameters, None).unwrap(),
            );
            let sampler = if method.dynamics.has_momentum() {
                sampler.phase(SymmetricSplitting, 5, constant(0.002))
            } else {
                sampler.phase(Euler, 5, constant(0.002))
            };
            sampler.start_normal(150, &[0.0, 0.0], 1.0).seed(2).run().unwrap().state
        })
    };
    for method in Method::all() {
        // The test starts with close particles, whose kernel matrix cannot be inverted in f64.
        if method.field == FieldKind::Gfsf {
            continue;
        }
        // The energy metric gives this one an indefinite covariance here, which it reports.
        // LAWGD needs a window, and has tests of its own.
        if method.name == "rsvgd-product" || method.field == FieldKind::Lawgd {
            continue;
        }
        let one = run(&method, 1);
        assert_eq!(one.as_slice(), run(&method, 3).as_slice(), "{}", method.name);
    }
}
