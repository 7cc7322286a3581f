//! A warm-up that is left between any two moves goes on to the same bits.

use std::ops::ControlFlow;

use steinflow::dynamics::Langevin;
use steinflow::ensemble::Options;
use steinflow::field::Stein;
use steinflow::integrator::{Adaptive, StepSize};
use steinflow::kernel::Kernel;
use steinflow::run::Snapshot;
use steinflow::target::PerParticle;
use steinflow::{Error, Real, Sampler};

const STEPS: u64 = 12;

/// SVGD on N((3, 0), diag(1, 10⁻⁴)).
fn flow<T: Real>() -> Sampler<'static, T> {
    let gaussian = PerParticle::new(2, |theta: &[T], score: &mut [T]| {
        let (x, y) = (theta[0] - T::of(3.0), theta[1] / T::of(0.01));
        score.copy_from_slice(&[-x, -y / T::of(0.01)]);
        T::of(-0.5) * (x * x + y * y)
    });
    Sampler::new(gaussian, Langevin::new(), Stein::new(Kernel::default()))
        .start_normal(16, &[0.0, 0.0], 1.0)
        .phase(Adaptive::adam(), STEPS, StepSize::Constant(0.1))
}

fn check<T: Real>() {
    let sampler = || flow::<T>().warm_up(Options::default());
    let mut kept = Vec::new();
    let keep = |at: &Snapshot<'_, T>| {
        kept.push(at.checkpoint()?);
        Ok(ControlFlow::Continue(()))
    };
    let whole = sampler().observe(keep).run().unwrap();
    let warm = kept.iter().filter(|checkpoint| checkpoint.is_of_warm_up()).count();
    assert_eq!(kept.len(), warm + 1 + STEPS as usize);
    let expected = (whole.state, whole.gradients, whole.warm_moments);
    for place in [0, 1, warm / 3, warm / 2, warm - 26, warm - 9, warm - 1, warm, warm + 5] {
        let resumed = sampler().resume_from(kept[place].clone()).run().unwrap();
        let found = (resumed.state, resumed.gradients, resumed.warm_moments);
        assert!(found == expected, "from {place} of {warm}");
    }
    // Where there is no warm-up, it cannot go on; and what is damaged is refused.
    let error = flow::<T>().resume_from(kept[3].clone()).run().unwrap_err();
    assert!(matches!(error, Error::ForeignState { .. }), "{error}");
    let mut damaged = kept[3].clone();
    damaged.step = 1;
    let error = sampler().resume_from(damaged).run().unwrap_err();
    assert!(matches!(error, Error::ForeignState { .. }), "{error}");
}

#[test]
fn a_warm_up_goes_on_in_double_precision() {
    check::<f64>();
}

#[test]
fn a_warm_up_goes_on_in_single_precision() {
    check::<f32>();
}
