//! Runs that went wrong in ways that the particles alone do not show, and runs that are right.

use steinflow::diagnostics::{Course, Diagnosis, Judged, StopRule, Verdict, weigh_modes};
use steinflow::dynamics::{Dynamics, Langevin, Sghmc, Structure};
use steinflow::ensemble::Options;
use steinflow::field::{Diffusion, Stein};
use steinflow::integrator::{Euler, StepSize, SymmetricSplitting};
use steinflow::kernel::Kernel;
use steinflow::run::{Auto, Outcome, Samples, Trace};
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Result, Sampler};

/// Σₖ wₖ N(cₖ e₁, sₖ² I).
fn mixture(dim: usize, parts: Vec<(f64, f64, f64)>) -> impl LogDensity<f64> {
    PerParticle::new(dim, move |theta: &[f64], score: &mut [f64]| {
        let away = |centre: f64, j: usize| theta[j] - if j == 0 { centre } else { 0.0 };
        let heights: Vec<f64> = parts
            .iter()
            .map(|&(weight, centre, sd)| {
                let square: f64 = (0..dim).map(|j| away(centre, j).powi(2)).sum();
                weight.ln() - dim as f64 * sd.ln() - 0.5 * square / (sd * sd)
            })
            .collect();
        let top = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = heights.iter().map(|height| (height - top).exp()).sum();
        score.fill(0.0);
        for (&(_, centre, sd), height) in parts.iter().zip(&heights) {
            let share = (height - top).exp() / total;
            for (j, score) in score.iter_mut().enumerate() {
                *score -= share * away(centre, j) / (sd * sd);
            }
        }
        top + total.ln()
    })
}

const WAYS: [&str; 5] = ["svgd", "sghmc-stein", "sghmc", "auto", "hmc"];

/// Runs it, and judges what came of it; with the sample.
fn run(
    target: &dyn LogDensity<f64>,
    way: &str,
    start: &Matrix<f64>,
    seed: u64,
) -> Result<(Diagnosis, Matrix<f64>)> {
    let momentum = Sghmc { friction: 1.0, variance: 1.0 };
    let stein = || Stein::new(Kernel::default());
    let mut trace = Trace::new(2);
    let step = |step| StepSize::Constant(step);
    let sampler = match way {
        "svgd" => Sampler::new(target, Langevin::new(), stein()).phase(Euler, 400, step(0.5)),
        "sghmc-stein" => {
            Sampler::new(target, momentum, stein()).phase(SymmetricSplitting, 400, step(0.3))
        }
        "sghmc" => {
            Sampler::new(target, momentum, Diffusion).phase(SymmetricSplitting, 1000, step(0.1))
        }
        _ => {
            let is_auto = way == "auto";
            let options = Options {
                start: Some(start.clone()),
                seed,
                bends: is_auto,
                jumps: is_auto,
                effective: 400.0,
                ..Options::default()
            };
            let mut draws = Samples::of_ensemble();
            let outcome = Auto::new(target).options(options).observe(draws.observer()).run()?;
            return Ok((
                judge(target, &outcome, way, &Course::default(), Some(&draws))?,
                draws.theta(),
            ));
        }
    };
    let sampler = sampler.start_at(start.clone()).seed(seed).observe(trace.observer());
    let outcome = sampler.run()?;
    Ok((judge(target, &outcome, way, &trace.rows().into(), None)?, outcome.theta()))
}

fn judge(
    target: &dyn LogDensity<f64>,
    outcome: &Outcome<f64>,
    way: &str,
    course: &Course,
    draws: Option<&Samples<f64>>,
) -> Result<Diagnosis> {
    let rule = outcome.report.as_ref().map(StopRule::from);
    Judged {
        is_interacting: way == "svgd" || way == "sghmc-stein",
        is_random: way == "sghmc" || draws.is_some(),
        course,
        draws,
        stop_rule: rule.as_ref(),
        gradients: outcome.gradients,
        ..Judged::cloud(target, &outcome.state, &outcome.structure)
    }
    .diagnose()
}

/// As exact draws, or draws from elsewhere, are judged.
fn judge_cloud(target: &dyn LogDensity<f64>, theta: &Matrix<f64>) -> Result<Diagnosis> {
    let structure: Structure = Dynamics::<f64>::structure(&Langevin::new(), target.dim());
    Judged::cloud(target, theta, &structure).diagnose()
}

fn shifted(count: usize, dim: usize, seed: u64, by: f64, scale: f64) -> Matrix<f64> {
    let z = random_states(count, dim, seed);
    Matrix::from_fn(count, dim, |i, j| scale * z.row(i)[j] + if j == 0 { by } else { 0.0 })
}

#[test]
fn a_missed_mode_is_seen_at_any_distance() -> Result<()> {
    let (mut trusted, mut seed) = (Vec::new(), 100);
    for apart in [4.0, 5.0, 6.0, 6.5, 8.0, 10.0] {
        for (dim, weight) in [(1, 0.5), (2, 0.7), (3, 0.5), (5, 0.3), (2, 0.2)] {
            let half = 0.5 * apart;
            let target = mixture(dim, vec![(1.0 - weight, -half, 1.0), (weight, half, 1.0)]);
            // The samplers with an accept step take longer, and jump.
            let ways = if dim == 1 || apart == 6.5 { &WAYS[..] } else { &WAYS[..3] };
            for way in ways {
                seed += 1;
                let (found, theta) = run(&target, way, &shifted(64, dim, seed, -half, 0.5), seed)?;
                let mean: f64 = (0..theta.rows()).map(|i| theta.row(i)[0]).sum::<f64>();
                let error = (mean / theta.rows() as f64 - half * (2.0 * weight - 1.0)).abs();
                let sd = (1.0 + weight * (1.0 - weight) * apart * apart).sqrt();
                // More than 64 draws would be off by, once in a thousand times.
                if error > 0.5 * sd && found.verdict == Verdict::Trust {
                    trusted.push((apart, dim, weight, way, error / sd));
                }
            }
        }
    }
    // 1 % of some hundred runs.
    assert!(trusted.len() <= 1, "{trusted:?}");
    Ok(())
}

#[test]
fn a_broad_part_around_a_narrow_one_is_weighed_by_its_volume() -> Result<()> {
    for (narrow, broad) in [(0.5, 20.0), (0.7, 10.0), (0.95, 10.0)] {
        for dim in [1, 2, 4] {
            let target = mixture(dim, vec![(narrow, 0.0, 1.0), (1.0 - narrow, 0.0, broad)]);
            for seed in 0..2 {
                let start = shifted(64, dim, seed, 0.0, 0.5);
                for way in ["svgd", "sghmc-stein"] {
                    let (found, theta) = run(&target, way, &start, seed)?;
                    let square: f64 = theta.as_slice().iter().map(|x| x * x).sum();
                    let variance = square / theta.as_slice().len() as f64;
                    let right = narrow + (1.0 - narrow) * broad * broad;
                    if variance < 0.5 * right {
                        assert_ne!(
                            found.verdict,
                            Verdict::Trust,
                            "{narrow}, {dim}, {way}: {variance}"
                        );
                    }
                }
                let narrow_alone = shifted(100, dim, 50 + seed, 0.0, 1.0);
                let verdict = judge_cloud(&target, &narrow_alone)?.verdict;
                assert_ne!(verdict, Verdict::Trust, "{narrow}, {dim}, seed {seed}");
            }
        }
    }
    Ok(())
}

/// Heavy tails, ridges and correlation are no missing mass.
#[test]
fn exact_draws_of_many_shapes_are_trusted() -> Result<()> {
    let mut doubted = Vec::new();
    let mut all = 0;
    for dim in [1, 2, 5, 10, 50] {
        for seed in 0..6 {
            let normal = mixture(dim, vec![(1.0, 0.0, 1.0)]);
            let z = random_states(100, dim, 900 + seed);
            let found = judge_cloud(&normal, &z)?;
            all += 1;
            if found.verdict != Verdict::Trust {
                doubted.push(("normal", dim, seed, found.headline));
            }
            // Half of the draws in each of two modes.
            let two = mixture(dim, vec![(0.5, -3.0, 1.0), (0.5, 3.0, 1.0)]);
            let theta = Matrix::from_fn(100, dim, |i, j| {
                z.row(i)[j]
                    + if j > 0 {
                        0.0
                    } else if i % 2 == 0 {
                        3.0
                    } else {
                        -3.0
                    }
            });
            let found = judge_cloud(&two, &theta)?;
            all += 1;
            if found.verdict != Verdict::Trust {
                doubted.push(("two modes", dim, seed, found.headline));
            }
        }
    }
    assert!(10 * doubted.len() <= all, "{} of {all}: {doubted:#?}", doubted.len());
    Ok(())
}

/// The noise of minibatches is no fall, and a fall that noise cannot explain is one.
#[test]
fn a_noisy_rise_is_no_divergence() -> Result<()> {
    let target = mixture(2, vec![(1.0, 0.0, 1.0)]);
    let wide = shifted(100, 2, 7, 0.0, 1.8);
    let structure: Structure = Dynamics::<f64>::structure(&Langevin::new(), 2);
    let noise = random_states(400, 1, 8);
    let verdict = |rise: f64| -> Result<Verdict> {
        let row = |k: usize| rise * k as f64 + 60.0 * noise.row(k)[0];
        let course = Course { log_densities: (0..400).map(row).collect(), ..Course::default() };
        let judged = Judged {
            course: &course,
            gradients: 400,
            check_gradient: false,
            ..Judged::cloud(&target, &wide, &structure)
        };
        Ok(judged.diagnose()?.verdict)
    };
    assert_ne!(verdict(0.05)?, Verdict::Diverged);
    assert_eq!(verdict(-1.0)?, Verdict::Diverged);
    Ok(())
}

/// Lines have names of their own, variances are not negative, and the cost is within what is allowed.
/// Where the log density is too low for a number, the score may be one still.
#[test]
fn particles_that_have_run_away_altogether_have_diverged() -> Result<()> {
    let target = mixture(2, vec![(1.0, 0.0, 1.0)]);
    for gone in [1, 50] {
        let mut theta = shifted(50, 2, 7, 0.0, 1.0);
        for i in 0..gone {
            theta.row_mut(i)[0] *= 1e160;
        }
        let found = judge_cloud(&target, &theta)?;
        assert_eq!(found.verdict, Verdict::Diverged, "{gone}: {}", found.headline);
        assert!(weigh_modes(&target, theta.as_ref()).is_err());
    }
    // Finite where they are, and not where rounding puts them: no one may be left to climb.
    let wall = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
        score[0] = -1.0;
        if theta[0].abs().fract() == 0.0 { -theta[0].abs() } else { f64::NEG_INFINITY }
    });
    let integers = Matrix::from_fn(50, 1, |i, _| (3 * i * i) as f64 - 1000.0);
    assert_ne!(judge_cloud(&wall, &integers)?.verdict, Verdict::Trust);
    assert!(weigh_modes(&wall, integers.as_ref()).is_err());
    Ok(())
}

#[test]
fn evidence_is_well_formed() -> Result<()> {
    let two = mixture(2, vec![(0.5, -4.0, 1.0), (0.5, 4.0, 1.0)]);
    // Between the modes scores point outwards.
    for (by, scale) in [(0.0, 0.6), (-4.0, 1.0), (4.0, 0.3)] {
        let found = judge_cloud(&two, &shifted(80, 2, 3, by, scale))?;
        let mut names: Vec<&str> = found.evidence.iter().map(|evidence| evidence.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for evidence in found.evidence.iter().filter(|item| item.name.starts_with("variance")) {
            assert!(evidence.value >= 0.0, "{evidence:?}");
        }
        assert!(found.evaluations <= 80 * 200, "{}", found.evaluations);
        assert!(found.headline.starts_with("Use") || found.headline.starts_with("Means"));
    }
    Ok(())
}
