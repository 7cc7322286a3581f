//! Gradients that are not the log density's, and what must not be taken for one.

use std::sync::atomic::{AtomicUsize, Ordering};

use steinflow::diagnostics::{Judged, Verdict, find_wrong_gradient};
use steinflow::dynamics::{Dynamics, Langevin, Structure};
use steinflow::field::Diffusion;
use steinflow::integrator::{Euler, StepSize};
use steinflow::run::Auto;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Result, Sampler};

fn shifted(count: usize, dim: usize, seed: u64, by: f64, scale: f64) -> Matrix<f64> {
    let z = random_states(count, dim, seed);
    Matrix::from_fn(count, dim, |i, j| scale * z.row(i)[j] + if j == 0 { by } else { 0.0 })
}

/// f and its gradient, which a factor and a shift make wrong.
fn by_hand(
    dim: usize,
    scale: f64,
    wrong: impl Fn(usize, f64) -> f64 + Send + Sync,
) -> impl LogDensity<f64> {
    PerParticle::new(dim, move |theta: &[f64], score: &mut [f64]| {
        for (j, (score, x)) in score.iter_mut().zip(theta).enumerate() {
            *score = wrong(j, -x / (scale * scale));
        }
        -0.5 * theta.iter().map(|x| (x / scale).powi(2)).sum::<f64>()
    })
}

#[test]
fn gradients_that_are_not_the_log_densitys_are_named() -> Result<()> {
    for scale in [1e-3, 1.0, 1e4] {
        for seed in 0..5 {
            // From typical places to far out.
            let theta = shifted(4, 3, seed, 0.0, scale * 10f64.powi(seed as i32 - 1));
            let check = |wrong: fn(usize, f64) -> f64| {
                let target = by_hand(3, scale, wrong);
                find_wrong_gradient(&target, theta.as_ref())
            };
            assert_eq!(check(|_, s| s)?, None, "{scale}, {seed}");
            for (wrong, ratio) in [
                ((|_, s| 2.0 * s) as fn(usize, f64) -> f64, 2.0),
                (|_, s| 0.5 * s, 0.5),
                (|j, s| if j == 1 { 10.0 * s } else { s }, 10.0),
                (|j, s| if j == 2 { -s } else { s }, -1.0),
            ] {
                let fault = check(wrong)?.expect("a wrong gradient");
                assert!((fault.given / fault.found / ratio - 1.0).abs() < 0.05, "{fault:?}");
                assert!(ratio != 10.0 || fault.coordinate == 1, "{fault:?}");
            }
        }
    }
    let doubled = by_hand(2, 1.0, |_, s| 2.0 * s);
    let refused = Sampler::new(&doubled, Langevin::new(), Diffusion)
        .phase(Euler, 5, StepSize::Constant(0.1))
        .run();
    let Err(Error::WrongGradient(fault)) = refused else { panic!("it should be refused") };
    assert!(fault.to_string().contains("2.000 times"), "{fault}");
    assert!(matches!(Auto::new(&doubled).run(), Err(Error::WrongGradient(_))));
    let let_through = Sampler::new(&doubled, Langevin::new(), Diffusion)
        .phase(Euler, 5, StepSize::Constant(0.1))
        .check_gradient(false);
    let_through.run()?;
    // A shift drowns in the score far out; at the end of a run it is seen.
    let shifted_score = by_hand(2, 1.0, |_, s| s + 1.0);
    assert_eq!(find_wrong_gradient(&shifted_score, shifted(2, 2, 1, 1e4, 1e4).as_ref())?, None);
    let end = shifted(100, 2, 3, 1.0, 1.0);
    let structure: Structure = Dynamics::<f64>::structure(&Langevin::new(), 2);
    let found = Judged::cloud(&shifted_score, &end, &structure).diagnose()?;
    assert_eq!(found.verdict, Verdict::NotConverged);
    assert!(found.headline.contains("gradient is"), "{}", found.headline);
    Ok(())
}

/// A density whose coordinates have names, counted.
struct Named<D> {
    of: D,
    evaluations: AtomicUsize,
}

impl<D: LogDensity<f64>> LogDensity<f64> for Named<D> {
    fn dim(&self) -> usize {
        self.of.dim()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        score: MatMut<'_, f64>,
    ) -> Result<()> {
        self.evaluations.fetch_add(theta.rows(), Ordering::Relaxed);
        self.of.evaluate(theta, rows, log_density, score)
    }

    fn coordinate_name(&self, coordinate: usize) -> Option<String> {
        Some(format!("weight[{coordinate}]"))
    }
}

/// Any one of many coordinates, wherever particles are: near the mode, where they should be, far out.
#[test]
fn one_wrong_coordinate_of_many_is_named() -> Result<()> {
    const DIM: usize = 200;
    type Wrong = fn(f64) -> f64;
    let faults: [(&str, Wrong); 6] = [
        ("shifted", |s| s + 1.0),
        ("doubled", |s| 2.0 * s),
        ("halved", |s| 0.5 * s),
        ("ten times", |s| 10.0 * s),
        ("turned", |s| -s),
        ("forgotten", |_| 0.0),
    ];
    for (k, width) in [0.1, 1.0, 30.0].into_iter().enumerate() {
        for (m, &(name, wrong)) in faults.iter().enumerate() {
            // Far out a shift is no part of a score to speak of.
            if name == "shifted" && width > 1.0 {
                continue;
            }
            let at = (61 * k + 29 * m + 7) % DIM;
            let of = by_hand(DIM, 1.0, move |j, s| if j == at { wrong(s) } else { s });
            let target = Named { of, evaluations: AtomicUsize::new(0) };
            let theta = shifted(50, DIM, (10 * k + m) as u64, 0.0, width);
            let fault = find_wrong_gradient(&target, theta.as_ref())?;
            let fault = fault.unwrap_or_else(|| panic!("{name} at {at}, {width}"));
            assert_eq!(fault.coordinate, at, "{name}, {width}: {fault}");
            assert!(fault.to_string().contains(&format!("`weight[{at}]`")), "{fault}");
            let evaluations = target.evaluations.into_inner();
            assert!(evaluations < 400, "{name}, {width}: {evaluations}");
        }
    }
    // A handful where all is right, and no more than that.
    let right = by_hand(DIM, 1.0, |_, s| s);
    let target = Named { of: right, evaluations: AtomicUsize::new(0) };
    assert_eq!(find_wrong_gradient(&target, shifted(50, DIM, 1, 0.0, 1.0).as_ref())?, None);
    assert!(target.evaluations.into_inner() <= 28);
    // All of them at once.
    for (name, wrong) in faults {
        let target = by_hand(DIM, 1.0, move |_, s| wrong(s));
        let found = find_wrong_gradient(&target, shifted(50, DIM, 1, 0.0, 1.0).as_ref())?;
        assert!(found.is_some(), "{name}");
    }
    Ok(())
}

#[test]
fn kinks_walls_rounding_and_flat_places_are_no_wrong_gradients() -> Result<()> {
    let laplace = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        for (s, x) in score.iter_mut().zip(theta) {
            *s = if *x > 0.0 { -1.0 } else { 1.0 };
        }
        -theta.iter().map(|x| x.abs()).sum::<f64>()
    });
    let walled = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        score.fill(-1.0);
        let inside = theta.iter().all(|x| *x >= 0.0);
        if inside { -theta.iter().sum::<f64>() } else { f64::NEG_INFINITY }
    });
    let flat = PerParticle::new(2, |_: &[f64], score: &mut [f64]| {
        score.fill(0.0);
        -1e6
    });
    for seed in 0..10 {
        let theta = shifted(2, 2, seed, 0.0, 10f64.powi(seed as i32 - 5));
        assert_eq!(find_wrong_gradient(&laplace, theta.as_ref())?, None, "{seed}");
        let inside = Matrix::from_fn(2, 2, |i, j| theta.row(i)[j].abs());
        assert_eq!(find_wrong_gradient(&walled, inside.as_ref())?, None, "{seed}");
        assert_eq!(find_wrong_gradient(&flat, theta.as_ref())?, None, "{seed}");
    }
    let zero = Matrix::zeros(2, 2);
    assert_eq!(find_wrong_gradient(&laplace, zero.as_ref())?, None, "at the kink itself");
    // Single precision with a large constant, as of many data.
    for offset in [0.0, 1e3, 1e6] {
        let single = PerParticle::new(2, move |theta: &[f32], score: &mut [f32]| {
            score.copy_from_slice(&[-theta[0], -theta[1]]);
            -0.5f32 * theta.iter().map(|x| x * x).sum::<f32>() - offset as f32
        });
        for seed in 0..10 {
            let theta = shifted(2, 2, seed, 0.0, 10f64.powi(seed as i32 % 5 - 2)).cast::<f32>();
            assert_eq!(find_wrong_gradient(&single, theta.as_ref())?, None, "{offset}, {seed}");
        }
    }
    Ok(())
}
