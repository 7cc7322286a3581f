//! Particles that meet only some others in a step: the same velocity on average, and exact samplers stay exact.

use std::ops::ControlFlow;

use crate::common::{catalogue, gaussian, tri_crescent};
use rayon::ThreadPoolBuilder;
use steinflow::dynamics::{Langevin, Sghmc};
use steinflow::field::{CurlForm, Field, ProductSpace, Stein, TimeUnit};
use steinflow::integrator::{Euler, StepSize, SymmetricSplitting};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::Method;
use steinflow::run::Snapshot;
use steinflow::testing::random_states;
use steinflow::{Matrix, Sampler, System};

fn kernel(radial: Radial, view: View) -> Kernel {
    Kernel { radial, view, bandwidth: Bandwidth::fixed(2.0), ..Kernel::default() }
}

/// The mean over many draws of partners is the velocity over all pairs: 600 draws, every coordinate of every
/// particle within 5 of its standard errors (of some thousand, exact means exceed 5 in one of 10³ tests).
#[test]
fn the_velocity_is_that_of_all_pairs_on_average() {
    const DRAWS: u64 = 600;
    // 23 particles in batches of 5, 6 and more: sizes differ, and so do weights.
    let theta = random_states(23, 2, 3);
    for (name, dynamics) in catalogue() {
        for (radial, view) in [
            (Radial::SquaredExponential, View::Joint),
            (Radial::InverseMultiquadric, View::Product),
        ] {
            let fields: [fn(Kernel) -> Stein; 3] = [
                Stein::new,
                |kernel| Stein::new(Kernel { affine: 0.3, ..kernel }).curl(CurlForm::Symmetrised),
                Stein::starred,
            ];
            for field in fields {
                let field = field(kernel(radial, view));
                let blocks: Vec<usize> = (0..dynamics.structure(2).blocks()).collect();
                let target = tri_crescent::<f64>();
                let mut all = System::new(&target, &*dynamics, field.clone(), &theta, 1).unwrap();
                let expected = all.velocity(&blocks).unwrap();
                let some = field.interactions(4);
                let mut system = System::new(&target, &*dynamics, some, &theta, 1).unwrap();
                let mut sums = vec![(0.0, 0.0); expected.as_slice().len()];
                for draw in 0..DRAWS {
                    system.begin_step(draw, 0.1);
                    for (sum, &v) in
                        sums.iter_mut().zip(system.velocity(&blocks).unwrap().as_slice())
                    {
                        *sum = (sum.0 + v, sum.1 + v * v);
                    }
                }
                let n = DRAWS as f64;
                let mut noisy = 0;
                for ((sum, square), &expected) in sums.into_iter().zip(expected.as_slice()) {
                    let mean = sum / n;
                    let error = ((square / n - mean * mean).max(0.0) / n).sqrt();
                    let off = (mean - expected).abs();
                    assert!(
                        off <= 5.0 * error + 1e-12 * expected.abs().max(1.0),
                        "{name}, {radial:?}: {mean} ± {error} against {expected}"
                    );
                    noisy += usize::from(error > 1e-6);
                }
                assert!(noisy > 0, "{name}: nothing was drawn at random");
            }
        }
    }
}

/// A batch must have company: with half of the others or more there is one batch, and that is all pairs.
#[test]
fn who_meets_half_of_the_others_meets_all() {
    let theta = random_states(20, 2, 3);
    let velocity = |field: Stein| {
        let mut system =
            System::new(tri_crescent::<f64>(), Langevin::new(), field, &theta, 1).unwrap();
        system.velocity(&[0]).unwrap()
    };
    let all = velocity(Stein::new(Kernel::default()));
    for others in [10, 18, 19, 20, usize::MAX] {
        assert_eq!(velocity(Stein::new(Kernel::default()).interactions(others)), all, "{others}");
    }
    assert_ne!(velocity(Stein::new(Kernel::default()).interactions(9)), all);
}

/// What somebody meets is drawn by seed and step alone, once for the whole step.
#[test]
fn partners_are_those_of_the_step() {
    let theta = random_states(20, 2, 3);
    let field = Stein::new(Kernel::default()).interactions(3);
    let at = |seed, step| {
        let mut system =
            System::new(tri_crescent::<f64>(), Langevin::new(), field.clone(), &theta, seed)
                .unwrap();
        system.begin_step(step, 0.1);
        let first = system.velocity(&[0]).unwrap();
        assert_eq!(system.velocity(&[0]).unwrap(), first);
        first
    };
    assert_eq!(at(1, 5), at(1, 5));
    assert_ne!(at(1, 5), at(1, 6));
    assert_ne!(at(1, 5), at(2, 5));
}

fn sampler(steps: u64) -> Sampler<'static, f64> {
    let field = Stein::new(Kernel::default()).interactions(16);
    Sampler::new(tri_crescent::<f64>(), Sghmc { friction: 1.0, variance: 1.0 }, field)
        .start_normal(700, &[0.0, 0.0], 1.0)
        .phase(SymmetricSplitting, steps, StepSize::Constant(0.1))
        .seed(3)
}

#[test]
fn the_bits_depend_on_neither_threads_nor_interruptions() {
    let on = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| sampler(12).run().unwrap())
    };
    let whole = on(1);
    assert_eq!(on(8).state, whole.state);
    let half = sampler(5).run().unwrap();
    assert_eq!(sampler(12).resume_from(half.checkpoint).run().unwrap().state, whole.state);
}

/// The exact sampler in batches of four, 40 particles on N(0, 1): some 10⁴ independent draws of the square, so that
/// the standard error is about 0.015, and steps of 0.1 are off by about 0.02. GSVGD of four particles without the noise
/// has a variance near 0.5.
#[test]
fn an_exact_sampler_stays_exact() {
    let target = gaussian::<f64>(vec![0.0], Matrix::from_fn(1, 1, |_, _| 1.0));
    let field = ProductSpace::new(kernel(Radial::SquaredExponential, View::Joint), 0);
    let (mut sum, mut count) = (0.0, 0.0);
    Sampler::new(target, Langevin::new(), field.interactions(3))
        .start_normal(40, &[0.0], 1.0)
        .phase(Euler, 20_000, StepSize::Constant(0.1))
        .seed(5)
        .observe(|snapshot: &Snapshot<'_, f64>| {
            sum += snapshot.state.as_slice().iter().map(|x| x * x).sum::<f64>();
            count += snapshot.state.rows() as f64;
            Ok(ControlFlow::Continue(()))
        })
        .run()
        .unwrap();
    let variance = sum / count;
    assert!((variance - 1.0).abs() < 0.06, "{variance}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let check = |field: &dyn Fn() -> Box<dyn Field<f64>>| {
        Field::<f64>::validate(&*field(), 1, 10).unwrap_err().to_string()
    };
    let error = check(&|| Box::new(Stein::new(Kernel::default()).interactions(0)));
    assert!(error.contains("interactions is 0"), "{error}");
    let error = check(&|| {
        Box::new(Stein::new(Kernel::default()).time_unit(TimeUnit::Eigenvalue).interactions(2))
    });
    assert!(error.contains("λ needs all pairs"), "{error}");
    let affine = Kernel { affine: 1.0, ..Kernel::default() };
    let error = check(&|| Box::new(ProductSpace::new(affine.clone(), 0).interactions(2)));
    assert!(error.contains("an affine part lets all particles meet"), "{error}");
    let error = check(&|| Box::new(ProductSpace::spos(Kernel::default(), 0.1).interactions(0)));
    assert!(error.contains("interactions is 0"), "{error}");
    // Fields whose sums stand in a denominator or a solve have no such parameter.
    for name in ["blob", "gfsd", "gfsf", "sge", "ld", "lawgd"] {
        let method = Method::named(name).unwrap();
        assert!(method.parameters().iter().all(|own| own.name() != "interactions"), "{name}");
    }
}
