//! The adjusted methods, `hmc`, `mala` and `ghmc`: each leaves a target as it is, and gives the same bits
//! however it is run.

use std::ops::ControlFlow;

use steinflow::ensemble::{Ensemble, Moment, Moves, Options, Report, Stage};
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{Arrays, LogDensity, Matrix};

const ALL: [Moves; 3] = [Moves::Turning, Moves::Langevin, Moves::Persistent];

fn adjusted(moves: Moves) -> Options {
    Options { moves, bends: false, jumps: false, ..Options::default() }
}

fn keep(draws: &mut Vec<Matrix<f64>>, at: &Moment<'_>) {
    if let Some(k) = at.draw {
        draws.truncate(k);
        let copy = |i: usize, j: usize| at.theta.row(i)[j];
        draws.push(Matrix::from_fn(at.theta.rows(), at.theta.cols(), copy));
    }
}

fn draw(target: &dyn LogDensity<f64>, options: Options) -> (Vec<Matrix<f64>>, Report) {
    let (mut draws, mut ensemble) = (Vec::new(), Ensemble::new(target.dim(), options).unwrap());
    while !ensemble.is_done() {
        let watch = &mut |at: &Moment<'_>| {
            keep(&mut draws, at);
            ControlFlow::Continue(())
        };
        ensemble.advance(target, watch).unwrap();
    }
    (draws, ensemble.report())
}

/// From exact starts, means and variances stay within 4.5 of their standard errors, which the particles tell,
/// each being a chain of its own. Returns the acceptances.
fn check(target: &dyn LogDensity<f64>, start: &Matrix<f64>, exact: &[(f64, f64)]) -> [f64; 3] {
    ALL.map(|moves| {
        let start = Some(start.clone());
        let options = Options { start, effective: 1e4, gradients: 20_000, ..adjusted(moves) };
        let (draws, report) = draw(target, options);
        assert!(report.done, "{moves:?}: {:?}", report.reasons);
        for (j, &(mean, variance)) in exact.iter().enumerate() {
            for (exact, power) in [(0.0, 1), (variance, 2)] {
                let of = |i: usize| {
                    let sum = draws.iter().map(|draw| (draw.row(i)[j] - mean).powi(power));
                    sum.sum::<f64>() / draws.len() as f64
                };
                let chains: Vec<f64> = (0..draws[0].rows()).map(of).collect();
                let count = chains.len() as f64;
                let found = chains.iter().sum::<f64>() / count;
                let spread = chains.iter().map(|x| (x - found).powi(2)).sum::<f64>();
                let error = (spread / (count - 1.0) / count).sqrt();
                let z = (found - exact) / error;
                assert!(z.abs() < 4.5, "{moves:?}, moment {power} of coordinate {j}: {z}");
                // A test of a few per cent of the scale, not of noise.
                assert!(error < 0.03 * variance.sqrt().powi(power), "{moves:?}: {error}");
            }
        }
        report.acceptance
    })
}

#[test]
fn a_gaussian_stays() {
    // A random walk with steps of 3: x₀ ~ N(0, 9), xⱼ ~ N(xⱼ₋₁, 9).
    let target = PerParticle::new(5, |x: &[f64], score: &mut [f64]| {
        score.fill(0.0);
        let (mut before, mut sum) = (0.0, 0.0);
        for j in 0..5 {
            let step = x[j] - before;
            sum -= step * step / 18.0;
            score[j] -= step / 9.0;
            if j > 0 {
                score[j - 1] += step / 9.0;
            }
            before = x[j];
        }
        sum
    });
    let noise = random_states(64, 5, 1);
    let start = Matrix::from_fn(64, 5, |i, j| 3.0 * noise.row(i)[..=j].iter().sum::<f64>());
    let exact: Vec<(f64, f64)> = (1..6).map(|j| (0.0, 9.0 * f64::from(j))).collect();
    let [_, langevin, persistent] = check(&target, &start, &exact);
    assert!((langevin - 0.574).abs() < 0.05 && (persistent - 0.9).abs() < 0.05);
}

#[test]
fn logarithms_of_exponentials_stay() {
    // x = log E with E ~ Exp(1): a tail to the left, a wall to the right. Its mean is −γ, its variance π²/6.
    let target = PerParticle::new(3, |x: &[f64], score: &mut [f64]| {
        score.iter_mut().zip(x).for_each(|(s, x)| *s = 1.0 - x.exp());
        x.iter().map(|x| x - x.exp()).sum()
    });
    // E is half the sum of two squared normals.
    let noise = random_states(64, 6, 2);
    let start = Matrix::from_fn(64, 3, |i, j| {
        (0.5 * (noise.row(i)[2 * j].powi(2) + noise.row(i)[2 * j + 1].powi(2))).ln()
    });
    let gamma = 0.577_215_664_901_532_9;
    check(&target, &start, &[(-gamma, std::f64::consts::PI.powi(2) / 6.0); 3]);
}

/// x ~ N(0, 100), y ~ N(0.03 (x² − 100), 1).
fn banana(theta: &[f64], score: &mut [f64]) -> f64 {
    let off = theta[1] - 0.03 * (theta[0].powi(2) - 100.0);
    score[0] = -theta[0] / 100.0 + 0.06 * off * theta[0];
    score[1] = -off;
    -theta[0].powi(2) / 200.0 - 0.5 * off * off
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_after_save_and_restore() {
    let target = PerParticle::new(2, banana);
    for moves in [Moves::Langevin, Moves::Persistent] {
        let options = Options { moves, gradients: 800, ..Options::default() };
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| draw(&target, options.clone()))
        };
        let (expected, report) = run(1);
        assert!(run(4) == (expected.clone(), report.clone()), "{moves:?}");
        let (mut draws, mut ensemble) = (Vec::new(), Ensemble::new(2, options.clone()).unwrap());
        while !ensemble.is_done() {
            // Interrupted after seven moves, which is never where a unit ends.
            let mut left = 7;
            let interrupt = &mut |at: &Moment<'_>| {
                keep(&mut draws, at);
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            ensemble.advance(&target, interrupt).unwrap();
            let saved = Arrays::new(ensemble.save().as_slice().to_vec());
            ensemble = Ensemble::restore(options.clone(), &saved).unwrap();
        }
        assert!(draws == expected && ensemble.report() == report, "{moves:?}");
    }
}

#[test]
fn momenta_are_saved_where_they_persist() {
    let saved = |moves: Moves| Ensemble::new(2, adjusted(moves)).unwrap().save();
    assert!(Ensemble::restore(adjusted(Moves::Persistent), &saved(Moves::Persistent)).is_ok());
    assert!(Ensemble::restore(adjusted(Moves::Persistent), &saved(Moves::Langevin)).is_err());
}

/// Runs on, from where draws end.
fn go_on(
    target: &dyn LogDensity<f64>,
    options: &Options,
    saved: &Arrays,
    draws: &mut Vec<Matrix<f64>>,
) -> Ensemble {
    let mut ensemble = Ensemble::restore(options.clone(), saved).unwrap();
    while !ensemble.is_done() {
        let watch = &mut |at: &Moment<'_>| {
            assert!(at.draw.is_none_or(|k| k <= draws.len()));
            keep(draws, at);
            ControlFlow::Continue(())
        };
        ensemble.advance(target, watch).unwrap();
    }
    ensemble
}

#[test]
fn a_finished_run_goes_on_when_more_is_asked_for() {
    let target = PerParticle::new(2, banana);
    for moves in ALL {
        let many = Options { moves, effective: 3e4, gradients: 20_000, ..Options::default() };
        let (expected, report) = draw(&target, many.clone());
        let few = Options { effective: 2000.0, ..many.clone() };
        let poor = Options { gradients: 500, ..many.clone() };
        for less in [few, poor] {
            let (mut draws, new) = (Vec::new(), Ensemble::new(2, less.clone()).unwrap());
            let ended = go_on(&target, &less, &new.save(), &mut draws);
            let (count, saved) = (draws.len(), ended.save());
            let again = go_on(&target, &less, &saved, &mut draws);
            assert!(again.report() == ended.report() && draws.len() == count, "{moves:?}");
            let further = go_on(&target, &many, &saved, &mut draws);
            assert!(further.gradients() > ended.gradients());
            if less.gradients == many.gradients {
                // To the same bits as if more had been asked for at once, but for the search for modes at
                // its first end.
                let mut found = further.report();
                (found.gradients, found.evaluations) = (report.gradients, report.evaluations);
                assert!(draws == expected && found == report, "{moves:?}");
            } else {
                let (before, after) = (ended.report(), further.report());
                assert!(before.effective < 3e4, "{moves:?}: {before:?}");
                assert!(after.effective >= 3e4, "{moves:?}: {after:?}");
                assert_eq!(draws.len(), after.draws);
            }
        }
    }
}

#[test]
fn a_run_that_does_not_mix_stays_ended() {
    // Two modes 30 apart that nothing jumps between.
    let target = PerParticle::new(2, |x: &[f64], score: &mut [f64]| {
        let nearer = if x[0] > 0.0 { 15.0 } else { -15.0 };
        score.copy_from_slice(&[nearer - x[0], -x[1]]);
        -0.5 * ((x[0] - nearer).powi(2) + x[1].powi(2))
    });
    let options = adjusted(Moves::Turning);
    let mut ensemble = Ensemble::new(2, options.clone()).unwrap();
    while !ensemble.is_done() {
        ensemble.advance(&target, &mut |_| ControlFlow::Continue(())).unwrap();
    }
    assert!(ensemble.report().rhat > 1.5 && ensemble.report().gradients < 2900.0);
    let more = Options { effective: 1e5, gradients: 30_000, ..options };
    assert_eq!(Ensemble::restore(more, &ensemble.save()).unwrap().stage(), Stage::Done);
}
