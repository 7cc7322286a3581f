//! A run goes on with the target that it was saved with, and with no other.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

use steinflow::dynamics::Langevin;
use steinflow::ensemble::Options;
use steinflow::field::Stein;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::Kernel;
use steinflow::run::{Auto, Checkpoint, Snapshot};
use steinflow::{Error, LogDensity, MatMut, MatRef, Minibatch, Real, Result, Sampler};

/// Σ over 40 rows of −(θ − y)²/40 in the plane, with things that somebody may edit.
#[derive(Default)]
struct Edited {
    /// Added to every y.
    data: f64,
    /// Added to every log density, which changes no distribution.
    constant: f64,
    /// Added to every score, and to no log density.
    slope: f64,
    /// Relative: another order of summing.
    rounding: f64,
    /// Added to every log density with a new sign at every call.
    noise: f64,
    calls: AtomicU32,
}

impl<T: Real> LogDensity<T> for Edited {
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
        let odd = self.calls.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        for i in 0..theta.rows() {
            let mut sum = self.constant + if odd { self.noise } else { -self.noise };
            for j in 0..2 {
                let x = theta.row(i)[j].as_f64();
                let errors =
                    || rows.indices.iter().map(|&k| ((k * (j + 1)) as f64).sin() + self.data - x);
                sum -= errors().map(|e| e * e).sum::<f64>() / 40.0 * rows.scale;
                score.row_mut(i)[j] = T::of(errors().sum::<f64>() / 20.0 * rows.scale + self.slope);
            }
            log_density[i] = T::of(sum * (1.0 + self.rounding));
        }
        Ok(())
    }
}

/// Goes on with every edit from a checkpoint of the unedited target.
fn check<T: Real>(what: &str, go_on: &dyn Fn(&Edited) -> Result<()>) {
    let fine: [Edited; 3] = [
        Edited::default(),
        Edited { rounding: 4.0 * T::epsilon().as_f64(), ..Edited::default() },
        Edited { noise: 0.2, ..Edited::default() },
    ];
    for (case, edited) in fine.iter().enumerate() {
        go_on(edited).unwrap_or_else(|error| panic!("{what}, case {case}: {error}"));
    }
    let others = [
        // At the top, other data change the score more than the log density.
        (["log density", "score"], Edited { data: 0.01, ..Edited::default() }),
        (["log density"; 2], Edited { constant: 0.01, ..Edited::default() }),
        (["log density"; 2], Edited { constant: f64::NAN, ..Edited::default() }),
        (["score"; 2], Edited { slope: 0.01, ..Edited::default() }),
    ];
    for (changed, edited) in others {
        let error = go_on(&edited).expect_err("another target");
        let is_told = matches!(error, Error::OtherTarget { what, .. } if changed.contains(&what));
        assert!(is_told && error.is_usage(), "{what}: {error}");
        assert!(error.to_string().contains("begin anew"), "{error}");
    }
}

fn flow<T: Real>(target: &Edited, steps: u64) -> Sampler<'_, T> {
    Sampler::new(target, Langevin::new(), Stein::new(Kernel::default()))
        .start_normal(20, &[0.0, 0.0], 1.0)
        .phase(Euler, steps, StepSize::Constant(0.1))
}

fn warm<T: Real>(target: &Edited, steps: u64) -> Sampler<'_, T> {
    flow(target, steps).warm_up(Options::default())
}

fn auto<T: Real>(target: &Edited) -> Auto<'_, T> {
    Auto::new(target).options(Options { effective: 200.0, ..Options::default() })
}

fn flows<T: Real>() {
    let begun = Edited::default();
    let half = flow::<T>(&begun, 10).run().unwrap().checkpoint;
    check::<T>("all rows", &|edited| flow(edited, 20).resume_from(half.clone()).run().map(drop));
    let half = flow::<T>(&begun, 10).batch_size(7).run().unwrap().checkpoint;
    let go_on =
        |edited: &Edited| flow(edited, 20).batch_size(7).resume_from(half.clone()).run().map(drop);
    check::<T>("the same minibatch", &go_on);
    let (mut warming, mut seen) = (None, 0);
    let keep = |at: &Snapshot<'_, T>| {
        seen += 1;
        warming = warming.take().or_else(|| (seen == 30).then(|| at.checkpoint().unwrap()));
        Ok(ControlFlow::Continue(()))
    };
    let half = warm::<T>(&begun, 10).observe(keep).run().unwrap().checkpoint;
    let warming: Checkpoint<T> = warming.unwrap();
    assert!(warming.is_of_warm_up() && !half.is_of_warm_up());
    for half in [half, warming] {
        let go_on = |edited: &Edited| warm(edited, 20).resume_from(half.clone()).run().map(drop);
        check::<T>("a warm-up", &go_on);
    }
    for place in [1, 40, 80] {
        let (mut kept, mut seen) = (None, 0);
        let keep = |at: &Snapshot<'_, T>| {
            seen += 1;
            kept = kept.take().or_else(|| (seen == place).then(|| at.checkpoint().unwrap()));
            Ok(ControlFlow::Continue(()))
        };
        auto::<T>(&begun).observe(keep).run().unwrap();
        let kept = kept.unwrap();
        check::<T>("auto", &|edited| auto(edited).resume_from(kept.clone()).run().map(drop));
    }
}

#[test]
fn another_target_is_refused_in_double_precision() {
    flows::<f64>();
}

#[test]
fn another_target_is_refused_in_single_precision() {
    flows::<f32>();
}
