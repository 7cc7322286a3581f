//! The verdict, and the measures that it rests on.

use steinflow::diagnostics::{
    EnergyDistance, Judged, Statistic, SteinIdentities, Verdict, auxiliary_marginals,
    directions_spanned, search_modes, sliced_wasserstein, squared_mean_discrepancy,
    summarise_chains, weigh_modes,
};
use steinflow::dynamics::{Dynamics, Langevin, Sghmc};
use steinflow::field::Stein;
use steinflow::integrator::{Euler, StepSize};
use steinflow::kernel::{Kernel, Radial};
use steinflow::run::Trace;
use steinflow::target::PerParticle;
use steinflow::testing::random_states;
use steinflow::{LogDensity, Matrix, Result, Sampler};

fn normal(dim: usize) -> impl LogDensity<f64> {
    PerParticle::new(dim, |theta: &[f64], score: &mut [f64]| {
        for (s, x) in score.iter_mut().zip(theta) {
            *s = -x;
        }
        -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
    })
}

/// Two Gaussians of variance 1 at (∓4, 0), the left one with `weight`.
fn two_modes(weight: f64) -> impl LogDensity<f64> {
    PerParticle::new(2, move |theta: &[f64], score: &mut [f64]| {
        let height = |w: f64, c: f64| w.ln() - 0.5 * ((theta[0] - c).powi(2) + theta[1].powi(2));
        let (left, right) = (height(weight, -4.0), height(1.0 - weight, 4.0));
        let top = left.max(right);
        let total = top + ((left - top).exp() + (right - top).exp()).ln();
        let share = (left - total).exp();
        score[0] = -(theta[0] - 4.0 + 8.0 * share);
        score[1] = -theta[1];
        total
    })
}

fn judge(target: &dyn LogDensity<f64>, theta: &Matrix<f64>) -> Result<Verdict> {
    let structure = Dynamics::<f64>::structure(&Langevin::new(), target.dim());
    Ok(Judged::cloud(target, theta, &structure).diagnose()?.verdict)
}

#[test]
fn the_collapse_of_svgd_is_caught_and_exact_draws_pass() -> Result<()> {
    for (dim, steps) in [(10, 400), (50, 300), (200, 200)] {
        let target = normal(dim);
        let structure = Dynamics::<f64>::structure(&Langevin::new(), dim);
        let (mut caught, mut passed) = (0, 0);
        for seed in 0..20 {
            let mut trace = Trace::new(1);
            let outcome = Sampler::new(&target, Langevin::new(), Stein::new(Kernel::default()))
                .start_normal(100, &vec![0.0; dim], 1.0)
                .phase(Euler, steps, StepSize::Constant(1.0))
                .seed(seed)
                .observe(trace.observer())
                .run()?;
            let judged = Judged {
                is_interacting: true,
                is_random: false,
                course: &trace.rows().into(),
                gradients: steps,
                ..Judged::cloud(&target, &outcome.state, &structure)
            };
            let diagnosis = judged.diagnose()?;
            let narrow = diagnosis
                .evidence
                .iter()
                .any(|e| e.name == "variance, all coordinates" && e.passed == Some(false));
            caught += usize::from(narrow && diagnosis.verdict != Verdict::Trust);
            let exact = random_states(100, dim, 1000 + seed);
            passed += usize::from(judge(&target, &exact)? == Verdict::Trust);
        }
        assert_eq!(caught, 20, "collapses caught at d = {dim}");
        assert!(passed >= 19, "{passed} of 20 exact samples passed at d = {dim}");
    }
    Ok(())
}

#[test]
fn identities_tell_shift_and_spread_of_a_gaussian() -> Result<()> {
    let (shift, scale) = (0.8, 0.5);
    let z = random_states(4000, 3, 1);
    let x = Matrix::from_fn(4000, 3, |i, j| shift + scale * z.row(i)[j]);
    let score = Matrix::from_fn(4000, 3, |i, j| -x.row(i)[j]);
    let found = SteinIdentities::new(x.as_ref(), score.as_ref())?;
    // A Newton step with the particles' own covariance goes a quarter of the way, in units of half a
    // standard deviation.
    let expected = -shift * scale * scale / scale;
    for (moved, spread) in found.shift.iter().zip(&found.spread) {
        assert!((moved.value - expected).abs() < 0.05, "{moved:?}");
        assert!((spread.value - scale * scale).abs() < 0.05, "{spread:?}");
        assert!(spread.deviation(1.0) < -10.0);
    }
    assert!((found.total_spread.value - 0.25).abs() < 0.03);
    // (0.25 − 1)² in every direction.
    assert!((found.unevenness.value - 0.5625).abs() < 0.02, "{:?}", found.unevenness);
    Ok(())
}

#[test]
fn unevenness_sees_what_coordinates_hide() -> Result<()> {
    // Twice the variance along the diagonal and none to speak of across: every coordinate is right.
    let z = random_states(2000, 2, 1);
    let x = Matrix::from_fn(2000, 2, |i, j| {
        let (along, across) = (z.row(i)[0], 0.1 * z.row(i)[1]);
        if j == 0 { along + across } else { along - across }
    });
    assert_eq!(judge(&normal(2), &x)?, Verdict::MeansOnly);
    let score = Matrix::from_fn(2000, 2, |i, j| -x.row(i)[j]);
    let found = SteinIdentities::new(x.as_ref(), score.as_ref())?;
    assert!((found.spread[0].value - 1.0).abs() < 0.1 && found.unevenness.value > 0.8);
    Ok(())
}

#[test]
fn wrong_particles_are_not_trusted() -> Result<()> {
    let target = normal(2);
    let z = random_states(200, 2, 3);
    let moved = |by: f64, scale: f64| Matrix::from_fn(200, 2, |i, j| by + scale * z.row(i)[j]);
    assert_eq!(judge(&target, &moved(0.0, 1.0))?, Verdict::Trust);
    assert_eq!(judge(&target, &moved(1.0, 1.0))?, Verdict::NotConverged);
    assert_eq!(judge(&target, &moved(0.0, 0.6))?, Verdict::Collapsed);
    assert_eq!(judge(&target, &moved(0.0, 1.8))?, Verdict::MeansOnly);
    // Between two modes, where the score drives everything away.
    let between =
        Matrix::from_fn(200, 2, |i, j| if j == 0 { 0.6 * z.row(i)[0] } else { z.row(i)[1] });
    assert_eq!(judge(&two_modes(0.5), &between)?, Verdict::NotConverged);
    let mut broken = moved(0.0, 1.0);
    broken.row_mut(7)[1] = f64::NAN;
    assert_eq!(judge(&target, &broken)?, Verdict::Diverged);
    Ok(())
}

#[test]
fn a_handful_of_particles_has_no_modes_to_weigh() -> Result<()> {
    for count in 1..4 {
        let few = random_states(count, 2, 1);
        let modes = weigh_modes(&two_modes(0.5), few.as_ref())?;
        assert!(modes.weights.is_empty() && modes.mode_of == vec![0; count], "{modes:?}");
    }
    Ok(())
}

#[test]
fn a_mode_without_particles_is_found_and_one_with_too_many_is_weighed() -> Result<()> {
    let z = random_states(200, 2, 4);
    let with_left = |count: usize| {
        Matrix::from_fn(200, 2, |i, j| {
            let centre = if i < count { -4.0 } else { 4.0 };
            z.row(i)[j] + if j == 0 { centre } else { 0.0 }
        })
    };
    let target = two_modes(0.5);
    let search = search_modes(&target, with_left(200).as_ref(), 0)?;
    let found = search.unvisited.expect("the right mode");
    assert!((found[0] - 4.0).abs() < 0.1 && search.share > 0.1, "{found:?}");
    assert_eq!(search_modes(&target, with_left(100).as_ref(), 0)?.unvisited, None);
    assert_eq!(judge(&target, &with_left(200))?, Verdict::NotConverged);
    assert_eq!(judge(&target, &with_left(100))?, Verdict::Trust);

    let target = two_modes(0.2);
    let modes = weigh_modes(&target, with_left(100).as_ref())?;
    assert_eq!(modes.weights.len(), 2);
    for (particle, weight) in [(0, 0.2), (199, 0.8)] {
        let mode = &modes.weights[modes.mode_of[particle]];
        assert!((mode.share - 0.5).abs() < 1e-12, "{modes:?}");
        assert!((mode.weight - weight).abs() < 0.08, "{mode:?}");
    }
    assert_eq!(judge(&target, &with_left(100))?, Verdict::NotConverged);
    assert_eq!(judge(&target, &with_left(40))?, Verdict::Trust);
    Ok(())
}

#[test]
fn mean_discrepancy_is_what_a_double_loop_gives() -> Result<()> {
    let (x, y) = (random_states(70, 3, 1), random_states(40, 3, 2));
    for radial in [Radial::SquaredExponential, Radial::InverseMultiquadric] {
        let k = |a: &[f64], b: &[f64]| {
            let q = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 1.3;
            if radial == Radial::SquaredExponential { (-q).exp() } else { (1.0 + q).powf(-0.5) }
        };
        let mean = |a: &Matrix<f64>, b: &Matrix<f64>, skip: bool| {
            let (mut sum, mut count) = (0.0, 0.0);
            for i in 0..a.rows() {
                for j in (0..b.rows()).filter(|&j| !skip || i != j) {
                    sum += k(a.row(i), b.row(j));
                    count += 1.0;
                }
            }
            sum / count
        };
        for (statistic, skip) in [(Statistic::V, false), (Statistic::U, true)] {
            let expected = mean(&x, &x, skip) + mean(&y, &y, skip) - 2.0 * mean(&x, &y, false);
            let found = squared_mean_discrepancy(x.as_ref(), y.as_ref(), radial, 1.3, statistic)?;
            assert!((found - expected).abs() < 1e-13, "{radial:?}, {statistic:?}");
        }
    }
    let other = random_states(4, 2, 1);
    let radial = Radial::SquaredExponential;
    let refused = squared_mean_discrepancy(x.as_ref(), other.as_ref(), radial, 1.0, Statistic::V);
    assert!(refused.unwrap_err().to_string().contains("3 coordinates, expected 2"));
    Ok(())
}

#[test]
fn sliced_distances_of_shifted_points_are_the_shift_along_lines() -> Result<()> {
    let x = random_states(50, 2, 1);
    // Twice as many points at the same places: the same distribution.
    let twice = Matrix::from_fn(100, 2, |i, j| x.row(i / 2)[j]);
    assert!(sliced_wasserstein(x.as_ref(), twice.as_ref(), 50, 0)? < 1e-12);
    // The mean square of a projection of (3, 4) on a line of the plane is 25/2.
    let moved = Matrix::from_fn(50, 2, |i, j| x.row(i)[j] + [3.0, 4.0][j]);
    let found = sliced_wasserstein(x.as_ref(), moved.as_ref(), 4000, 0)?;
    assert!((found - 12.5f64.sqrt()).abs() < 0.1, "{found}");
    assert!(sliced_wasserstein(x.as_ref(), moved.as_ref(), 0, 0).is_err());
    Ok(())
}

/// x ← ρ x + √(1 − ρ²) noise is worth (1 − ρ)/(1 + ρ) of its length.
#[test]
fn effective_sample_sizes_of_autoregressions_are_known() {
    for (rho, length) in [(0.0, 2000), (0.6, 2000), (0.9, 4000), (-0.4, 2000)] {
        let noise = random_states(length, 4, 9);
        let chain = |c: usize| {
            let mut x = noise.row(0)[c];
            let next = |t: usize| {
                x = rho * x + f64::sqrt(1.0 - rho * rho) * noise.row(t)[c];
                x
            };
            (0..length).map(next).collect::<Vec<f64>>()
        };
        let chains: Vec<Vec<f64>> = (0..4).map(chain).collect();
        let found = summarise_chains(&chains).unwrap();
        let expected = 4.0 * length as f64 * (1.0 - rho) / (1.0 + rho);
        let ratio = found.effective_sample_size / expected;
        assert!((0.75..1.3).contains(&ratio), "{rho}: {ratio}");
        assert!(found.r_hat < 1.02, "{rho}: {}", found.r_hat);
        let apart: Vec<Vec<f64>> = (0..4)
            .map(|c| chains[c].iter().map(|x| x + if c == 0 { 2.0 } else { 0.0 }).collect())
            .collect();
        assert!(summarise_chains(&apart).unwrap().r_hat > 1.1);
        let wide: Vec<Vec<f64>> = (0..4)
            .map(|c| chains[c].iter().map(|x| x * if c == 0 { 5.0 } else { 1.0 }).collect())
            .collect();
        assert!(summarise_chains(&wide).unwrap().r_hat > 1.1, "a chain that is wider");
    }
    assert_eq!(summarise_chains(&[vec![1.0, 2.0, 3.0]]), None);
    assert_eq!(summarise_chains(&[]), None);
}

#[test]
fn directions_and_momenta_are_counted() {
    let x = random_states(500, 4, 1);
    let free = directions_spanned(x.as_ref());
    assert!((free.found - 4.0).abs() < 0.1 && (free.if_uncorrelated - 4.0).abs() < 0.1);
    let line = Matrix::from_fn(500, 4, |i, j| x.row(i)[0] * (1.0 + j as f64));
    assert!((directions_spanned(line.as_ref()).found - 1.0).abs() < 1e-9);

    let dynamics = Sghmc { friction: 1.0, variance: 4.0 };
    let structure = Dynamics::<f64>::structure(&dynamics, 2);
    let states = Matrix::from_fn(500, 4, |i, j| x.row(i)[j] * if j < 2 { 1.0 } else { 2.0 });
    let found = auxiliary_marginals(states.as_ref(), &structure);
    assert_eq!((found.len(), found[0].count), (1, 1000));
    assert!((found[0].square - 1.0).abs() < 0.15 && found[0].mean.abs() < 0.15);
}

#[test]
fn energy_distance_tells_a_wider_sample() -> Result<()> {
    let (x, y) = (random_states(300, 2, 1), random_states(300, 2, 2));
    let wide = Matrix::from_fn(300, 2, |i, j| 2.0 * y.row(i)[j]);
    let distance = EnergyDistance::to(x.as_ref())?;
    assert!(distance.of(wide.as_ref())? > 5.0 * distance.of(y.as_ref())?);
    Ok(())
}

/// Variances 1 and 10⁻⁴ along the diagonals of the plane.
#[test]
fn a_narrow_ridge_is_one_mode() -> Result<()> {
    let target = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
        let (along, across) = (theta[0] + theta[1], theta[0] - theta[1]);
        score[0] = -along - 1e4 * across;
        score[1] = -along + 1e4 * across;
        -0.5 * (along * along + 1e4 * across * across)
    });
    let z = random_states(300, 2, 9);
    let draws = Matrix::from_fn(300, 2, |i, j| {
        let sign = if j == 0 { 1.0 } else { -1.0 };
        0.5 * (z.row(i)[0] + sign * 1e-2 * z.row(i)[1])
    });
    assert_eq!(weigh_modes(&target, draws.as_ref())?.weights.len(), 1);
    assert_eq!(judge(&target, &draws)?, Verdict::Trust);
    Ok(())
}
