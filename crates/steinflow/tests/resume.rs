//! A run that goes on from a checkpoint has the bits of one that was never interrupted.

use std::ops::ControlFlow;

use steinflow::dynamics::{Langevin, Sghmc};
use steinflow::field::{Diffusion, Stein, TimeUnit};
use steinflow::integrator::{Adaptive, Euler, MidpointDrift, StepSize, SymmetricSplitting};
use steinflow::kernel::{Kernel, View};
use steinflow::method::{FieldKind, Method, Parameters, Region};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{
    Checkpoint, Ended, NonFinitePolicy, Observer, Outcome, Resampling, Samples, Snapshot, Trace,
    TraceRow,
};
use steinflow::target::PerParticle;
use steinflow::{Error, LogDensity, MatMut, MatRef, Minibatch, Real, Result, Sampler};

/// Σ over 40 rows of −(θ − y)²/80 in the plane, ten times that in y, with no score beyond |x| = `wall`.
struct Rows {
    wall: f64,
}

impl<T: Real> LogDensity<T> for Rows {
    fn dim(&self) -> usize {
        2
    }
    fn data_rows(&self) -> usize {
        40
    }
    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> Result<()> {
        let all = Minibatch { indices: (0..40).collect(), scale: 1.0 };
        let rows = rows.unwrap_or(&all);
        for i in 0..theta.rows() {
            let mut sum = 0.0;
            for j in 0..2 {
                let x = theta.row(i)[j].as_f64();
                let errors = || rows.indices.iter().map(|&k| ((k * (j + 1)) as f64).sin() - x);
                let wall = if x.abs() < self.wall { 0.0 } else { f64::NAN };
                let weight = rows.scale * (1.0 + 9.0 * j as f64);
                sum -= errors().map(|e| e * e).sum::<f64>() / 80.0 * weight;
                score.row_mut(i)[j] = T::of(errors().sum::<f64>() / 40.0 * weight + wall);
            }
            log_density[i] = T::of(sum);
        }
        Ok(())
    }
}

/// Keeps a checkpoint of every step, with what other observers had gathered by then.
struct Keep<T> {
    trace: Trace,
    samples: Samples<T>,
    kept: Vec<(Checkpoint<T>, Trace, Samples<T>)>,
}

impl<T: Real> Keep<T> {
    fn new() -> Self {
        Self { trace: Trace::new(4), samples: Samples::new(3, 5), kept: Vec::new() }
    }
}

impl<T: Real> Observer<T> for &mut Keep<T> {
    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        let _ = self.trace.observer().observe(at)?;
        let _ = self.samples.observer().observe(at)?;
        self.kept.push((at.checkpoint()?, self.trace.clone(), self.samples.clone()));
        Ok(ControlFlow::Continue(()))
    }
}

/// What may not depend on an interruption.
fn lasting<T: Real>(outcome: Outcome<T>, trace: &Trace, samples: &Samples<T>) -> String {
    let rows: Vec<TraceRow> =
        trace.rows().iter().map(|row| TraceRow { seconds: 0.0, ..row.clone() }).collect();
    let Outcome { state, log_density, ended, steps, gradients, mut checkpoint, .. } = outcome;
    checkpoint.elapsed = std::time::Duration::ZERO;
    // By way of text, which tells −0 from 0 and gives every bit.
    format!(
        "{state:?} {log_density:?} {ended:?} {steps} {gradients} {checkpoint:?} {rows:?} {:?} {:?}",
        samples.steps(),
        samples.theta()
    )
}

/// Runs `sampler` through and from checkpoints at the steps in `places`.
fn check<T: Real>(
    what: &str,
    places: &[usize],
    sampler: &dyn Fn() -> Sampler<'static, T>,
) -> Outcome<T> {
    let mut keep = Keep::new();
    let whole =
        sampler().observe(&mut keep).run().unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = lasting(whole.clone(), &keep.trace, &keep.samples);
    for &place in places {
        let (checkpoint, trace, samples) = keep.kept[place].clone();
        let mut trace = Trace::resume(4, trace.rows().to_vec());
        let (chains, steps) = (samples.chains(), samples.steps().to_vec());
        let mut samples = Samples::resume(3, 5, chains, steps, samples.theta()).unwrap();
        let mut seen = Vec::new();
        let resumed = sampler()
            .resume_from(checkpoint)
            .observe(trace.observer())
            .observe(samples.observer())
            .observe(|at: &Snapshot<'_, T>| {
                seen.push(at.step);
                Ok(ControlFlow::Continue(()))
            })
            .run()
            .unwrap_or_else(|error| panic!("{what} from {place}: {error}"));
        assert!(seen.into_iter().eq(place as u64 + 1..=whole.steps), "{what} from {place}");
        assert!(lasting(resumed, &trace, &samples) == expected, "{what} from step {place} differs");
    }
    whole
}

const WINDOW: [(f64, f64); 2] = [(-4.0, 4.0), (-4.0, 4.0)];

fn by_name<T: Real>(method: &Method, wall: f64) -> Sampler<'static, T> {
    // The bandwidth of exact samplers is held between two of the places that are resumed from.
    let parameters = Parameters { adapt: 9, cells: Some(12), ..Parameters::default() };
    let region = Region { target: &Rows { wall: f64::INFINITY }, window: &WINDOW };
    let field = method.build_field::<T>(Kernel::default(), &parameters, Some(region)).unwrap();
    Sampler::new(Rows { wall }, method.build_dynamics::<T>(&parameters), field)
        .start_normal(6, &[0.5, -0.5], 1.0)
        .seed(5)
}

fn every_method<T: Real>() {
    for method in Method::all() {
        for batch in [None, Some(7)] {
            for precondition in [false, true] {
                if precondition && method.field == FieldKind::Lawgd {
                    continue;
                }
                let sampler = || {
                    let mut sampler = by_name::<T>(&method, f64::INFINITY);
                    if let Some(rows) = batch {
                        sampler = sampler.batch_size(rows);
                    }
                    if precondition {
                        let hold_after = Some(11);
                        sampler = sampler.precondition(RootMeanSquare {
                            hold_after,
                            ..RootMeanSquare::default()
                        });
                    }
                    if method.dynamics.has_momentum() {
                        sampler
                            .resample_every(6)
                            .phase(SymmetricSplitting, 11, StepSize::Linear(0.02, 0.01))
                            .phase(Euler, 9, StepSize::Constant(0.01))
                    } else {
                        sampler.phase(Euler, 20, StepSize::Cosine(0.005, 0.002))
                    }
                };
                let what = format!("{} {batch:?} {precondition} {}", method.name, T::NAME);
                check(&what, &[0, 1, 4, 10, 11, 12, 19, 20], &sampler);
            }
        }
    }
}

#[test]
fn every_method_goes_on_in_double_precision() {
    every_method::<f64>();
}

#[test]
fn every_method_goes_on_in_single_precision() {
    every_method::<f32>();
}

#[test]
fn what_is_held_and_the_clock_of_resampling_go_on() {
    let sampler = || {
        let kernel = Kernel { affine: 1.0, view: View::Theta, ..Kernel::default() };
        let field = Stein::new(kernel).time_unit(TimeUnit::Eigenvalue);
        let dynamics = Sghmc { friction: 0.0, variance: 1.0 };
        Sampler::<f64>::new(Rows { wall: f64::INFINITY }, dynamics, field)
            .start_normal(6, &[0.5, -0.5], 1.0)
            .resample(Resampling::Time { time: 0.1, jitter: 0.3 })
            .phase(MidpointDrift, 11, StepSize::Linear(0.02, 0.01))
            .phase(MidpointDrift, 9, StepSize::Constant(0.03))
            .seed(5)
    };
    check("held", &[0, 1, 4, 10, 11, 12, 19, 20], &sampler);
}

#[test]
fn integrators_remember() {
    for rule in [Adaptive::adagrad, Adaptive::adam, Adaptive::rmsprop] {
        let sampler = move || {
            by_name::<f64>(&Method::named("svgd").unwrap(), f64::INFINITY)
                .phase(rule(), 8, StepSize::Constant(0.1))
                .phase(rule(), 0, StepSize::Constant(0.1))
                .phase(rule(), 8, StepSize::Constant(0.02))
        };
        check("adaptive", &[0, 1, 7, 8, 9, 16], &sampler);
    }
}

#[test]
fn frozen_particles_stay_frozen_and_shrunk_steps_stay_short() {
    let wandering = |policy| {
        move || {
            Sampler::<f64>::new(Rows { wall: 3.0 }, Langevin::new(), Diffusion)
                .start_normal(20, &[0.0, 0.0], 0.5)
                .phase(Euler, 60, StepSize::Constant(0.19))
                .batch_size(9)
                .precondition(RootMeanSquare::default())
                .on_non_finite(policy)
                .seed(2)
        }
    };
    let places: Vec<usize> = (0..=60).collect();
    let frozen = check("freeze", &places, &wandering(NonFinitePolicy::Freeze));
    assert!(frozen.frozen.len() > 1, "{:?}", frozen.frozen);
    let shrunk = check("shrink", &places, &wandering(NonFinitePolicy::Shrink));
    assert!(shrunk.shrinks > 0);
}

#[test]
fn a_fault_goes_back_to_states_from_before_the_checkpoint() {
    let sampler = || {
        let quartic = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
            score[0] = -4.0 * theta[0].powi(3);
            -theta[0].powi(4)
        });
        Sampler::new(quartic, Langevin::new(), Diffusion)
            .start_normal(20, &[0.0], 0.5)
            .phase(Euler, 330, StepSize::Constant(0.01))
            .phase(Euler, 270, StepSize::Constant(1.0))
            .on_non_finite(NonFinitePolicy::Shrink)
    };
    let places: Vec<usize> = (0..=600).step_by(15).chain(325..345).collect();
    let outcome = check("quartic", &places, &sampler);
    assert!(outcome.shrinks > 1);
    assert_eq!(outcome.checkpoint.past.len(), 2);
}

fn svgd(steps: u64) -> Sampler<'static, f64> {
    by_name(&Method::named("svgd").unwrap(), f64::INFINITY).phase(
        Euler,
        steps,
        StepSize::Constant(0.1),
    )
}

fn observed_run(
    sampler: Sampler<'_, f64>,
    trace: &mut Trace,
    samples: &mut Samples<f64>,
) -> Outcome<f64> {
    sampler.observe(trace.observer()).observe(samples.observer()).run().unwrap()
}

#[test]
fn a_finished_run_is_continued_with_more_steps() {
    // 30 is no multiple of 4: what was the last row of the trace is not one of the longer run.
    let (mut trace, mut samples) = (Trace::new(4), Samples::new(3, 5));
    let part = observed_run(svgd(30).batch_size(7), &mut trace, &mut samples);
    let sampler = svgd(50).batch_size(7).resume_from(part.checkpoint);
    let continued = observed_run(sampler, &mut trace, &mut samples);
    let (mut whole_trace, mut whole_samples) = (Trace::new(4), Samples::new(3, 5));
    let whole = observed_run(svgd(50).batch_size(7), &mut whole_trace, &mut whole_samples);
    assert_eq!(lasting(continued, &trace, &samples), lasting(whole, &whole_trace, &whole_samples));
}

#[test]
fn a_run_that_came_to_rest_is_at_rest_when_resumed() {
    let sampler = || svgd(100_000).tolerance(1e-2);
    let mut keep = Keep::new();
    let whole = sampler().observe(&mut keep).run().unwrap();
    assert_eq!(whole.ended, Ended::AtRest);
    let (last, _, _) = keep.kept.pop().unwrap();
    let again = sampler().resume_from(last).run().unwrap();
    assert_eq!((again.ended, again.steps), (Ended::AtRest, whole.steps));
    assert_eq!(again.state, whole.state);
}

type Change<'a> = &'a dyn Fn(&mut Checkpoint<f64>);

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let good = svgd(10).run().unwrap().checkpoint;
    let refused = |sampler: Sampler<'_, f64>, change: Change<'_>| {
        let mut checkpoint = good.clone();
        change(&mut checkpoint);
        sampler.resume_from(checkpoint).run().unwrap_err()
    };
    let same: Change<'_> = &|_| {};
    let error = refused(svgd(9), same);
    assert!(matches!(error, Error::Setting { .. }) && error.to_string().contains("only 9"));
    let sghmc = Sghmc { friction: 1.0, variance: 1.0 };
    let other = Sampler::<f64>::new(Rows { wall: 9.0 }, sghmc, Stein::new(Kernel::default()));
    let other = other.phase(SymmetricSplitting, 20, StepSize::Constant(0.1));
    assert!(matches!(refused(other, same), Error::Shape { .. }));
    let preconditioned = svgd(20).precondition(RootMeanSquare::default());
    assert!(matches!(refused(preconditioned, same), Error::ForeignState { .. }));

    let damage: [Change<'_>; 10] = [
        &|c| c.frozen = (0..6).collect(),
        &|c| c.frozen = vec![6],
        &|c| c.frozen = vec![3, 3],
        &|c| c.squared_speeds.push(0.0),
        &|c| c.step_size_factor = f64::NAN,
        &|c| c.time = f64::NAN,
        &|c| c.particles.field = vec![1.0],
        &|c| c.integrator = vec![1.0],
        &|c| c.particles.score.row_mut(1)[1] = f64::NAN,
        &|c| c.particles.log_density.truncate(5),
    ];
    for (index, change) in damage.into_iter().enumerate() {
        let error = refused(svgd(20), change);
        let typed = matches!(error, Error::ForeignState { .. } | Error::Shape { .. });
        assert!(typed, "change {index}: {error}");
    }
}
