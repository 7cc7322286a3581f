//! A run by steps gives away where it is, and goes on: what it has given stays as it was, and is not copied until the
//! particles move.

use std::sync::Arc;

use steinflow::dynamics::Sgnht;
use steinflow::field::Stein;
use steinflow::integrator::{StepSize, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::run::Stepper;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{Error, Matrix, Result, Sampler};

/// Few coordinates, which move all at once, and many, which move in strips.
const DIMS: [usize; 2] = [3, 1200];

fn quartic(theta: &[f64], score: &mut [f64]) -> f64 {
    score.iter_mut().zip(theta).for_each(|(score, &x)| *score = -x.powi(3));
    -0.25 * theta.iter().map(|x| x.powi(4)).sum::<f64>()
}

/// A run on a target that answers, or that is not to be asked.
fn stepper(dim: usize, is_asked: bool) -> Result<Stepper<'static, f64>> {
    let target = PerParticle::new(dim, move |theta: &[f64], score: &mut [f64]| {
        assert!(is_asked, "the score has been given");
        quartic(theta, score)
    });
    let dynamics = Sgnht { friction: 1.0, variance: 1.0, thermostat_precision: 1.0 };
    Sampler::new(target, dynamics, Stein::new(Kernel::default()))
        .start_at(random_states(9, dim, 1))
        .phase(SymmetricSplitting, 10, StepSize::Constant(0.05))
        .stepper()
}

#[test]
fn where_a_run_has_halted_is_shared_and_stays() -> Result<()> {
    for dim in DIMS {
        let mut run = stepper(dim, true)?;
        let first = run.halted();
        let copy = Matrix::clone(&first.state);
        assert!(Arc::ptr_eq(&first.state, &run.halted().state), "{dim}: nothing has moved");
        run.step()?;
        let second = run.halted();
        assert_eq!(*first.state, copy, "{dim}");
        assert_ne!(*second.state, copy, "{dim}");
        run.go_to(&first)?;
        assert!(Arc::ptr_eq(&first.state, &run.halted().state), "{dim}: going back copies nothing");
        run.step()?;
        assert_eq!(run.halted(), second, "{dim}");
        // What nobody holds is moved where it is.
        let place = run.halted().state.as_slice().as_ptr();
        drop(second);
        run.step()?;
        assert_eq!(run.halted().state.as_slice().as_ptr(), place, "{dim}");
    }
    Ok(())
}

#[test]
fn a_score_that_is_given_is_not_asked_for() -> Result<()> {
    for dim in DIMS {
        let (mut asks, mut is_told) = (stepper(dim, true)?, stepper(dim, false)?);
        for _ in 0..4 {
            asks.step()?;
            let at = is_told.halted().state;
            is_told.answer(|log_density, mut score| {
                for (i, value) in log_density.iter_mut().enumerate() {
                    *value = quartic(&at.row(i)[..dim], score.row_mut(i));
                }
                Ok(())
            })?;
            drop(at);
            is_told.step()?;
            assert_eq!(is_told.halted(), asks.halted(), "{dim}");
        }
        let bad = is_told.answer(|_, mut score| {
            score.row_mut(4)[1] = f64::NAN;
            Ok(())
        });
        let named =
            matches!(bad, Err(Error::NonFinite { what: "score", particle: 4, step: 3, .. }));
        assert!(named, "{dim}: {bad:?}");
    }
    Ok(())
}
