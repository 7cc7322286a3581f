//! Stein discrepancies of dynamics (A, C): against dense matrices, in law, and where the plain one is
//! blind.

use std::f64::consts::FRAC_PI_2;

use steinflow::diagnostics::{Statistic, SteinKernel};
use steinflow::dynamics::{Block, Dynamics, Langevin, Point, Sghmc, Sgnht, Structure, THETA};
use steinflow::kernel::{Bandwidth, Radial};
use steinflow::random::{Purpose, stream};
use steinflow::target::PerParticle;
use steinflow::testing::{dense_matrices, random_states};
use steinflow::{LogDensity, Matrix, Real, Result, System};

const PROFILES: [Radial; 2] = [Radial::SquaredExponential, Radial::InverseMultiquadric];

/// ∂φ by q, thrice.
fn profile(radial: Radial, q: f64) -> [f64; 3] {
    match radial {
        Radial::SquaredExponential => [(-q).exp(), -(-q).exp(), (-q).exp()],
        Radial::InverseMultiquadric => {
            [(1.0 + q).powf(-0.5), -0.5 * (1.0 + q).powf(-1.5), 0.75 * (1.0 + q).powf(-2.5)]
        }
    }
}

fn normal(dim: usize) -> impl LogDensity<f64> {
    PerParticle::new(dim, |theta: &[f64], score: &mut [f64]| {
        for (s, x) in score.iter_mut().zip(theta) {
            *s = -x;
        }
        -0.5 * theta.iter().map(|x| x * x).sum::<f64>()
    })
}

/// A = 1 + θ², coordinate by coordinate: what makes tails as heavy as the Cauchy's count.
struct Growing;

impl<T: Real> Dynamics<T> for Growing {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim).diffusion(THETA, Block::DiagonalCoefficients(0))
    }
    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        for (c, &x) in coefficients.iter_mut().zip(at.block(THETA)) {
            *c = T::one() + x * x;
        }
    }
    fn diffusion_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(at.block(THETA)) {
            *out = x + x;
        }
    }
}

/// u by the definition, with M written out in full.
fn naive(
    (x, f, m): (&[f64], &[f64], &[f64]),
    (y, g, n): (&[f64], &[f64], &[f64]),
    radial: Radial,
    h: f64,
) -> f64 {
    let size = x.len();
    let delta: Vec<f64> = x.iter().zip(y).map(|(x, y)| x - y).collect();
    let q = delta.iter().map(|d| d * d).sum::<f64>() / h;
    let [value, slope, curvature] = profile(radial, q);
    let first = |k: usize| 2.0 * slope * delta[k] / h;
    let second = |k: usize, l: usize| {
        let own = if k == l { -2.0 * slope / h } else { 0.0 };
        own - 4.0 * curvature * delta[k] * delta[l] / (h * h)
    };
    let mut u = 0.0;
    for i in 0..size {
        u += f[i] * g[i] * value;
        for k in 0..size {
            u += g[i] * m[i * size + k] * first(k) - f[i] * n[i * size + k] * first(k);
            for l in 0..size {
                u += m[i * size + k] * second(k, l) * n[i * size + l];
            }
        }
    }
    u
}

#[test]
fn any_dynamics_is_what_a_double_loop_over_dense_matrices_gives() -> Result<()> {
    let target = normal(2);
    let dynamics: [Box<dyn Dynamics<f64>>; 4] = [
        Box::new(Langevin::new()),
        Box::new(Sghmc { friction: 0.7, variance: 1.3 }),
        Box::new(Sgnht { friction: 0.7, variance: 1.3, thermostat_precision: 0.4 }),
        Box::new(Growing),
    ];
    for dynamics in dynamics {
        let blocks = dynamics.structure(2).blocks();
        let states = random_states(9, 2 * blocks, 5);
        let theta = Matrix::from_fn(9, 2, |i, j| states.row(i)[j]);
        let mut system = System::new(&target, &*dynamics, steinflow::field::Diffusion, &theta, 0)?;
        system.set_state(states.clone())?;
        let structure = system.structure().clone();
        let at = system.evaluated()?;
        let drift = at.drift();
        let matrices: Vec<Vec<f64>> = (0..9)
            .map(|i| {
                let (a, c) = dense_matrices(&structure, &at.coefficients.row(i)[1..]);
                a.as_slice().iter().zip(c.as_slice()).map(|(a, c)| a + c).collect()
            })
            .collect();
        for radial in PROFILES {
            let kernel =
                SteinKernel::of_dynamics(&target, &*dynamics, states.clone(), radial, 1.7)?;
            let mut all = 0.0;
            for i in 0..9 {
                for j in 0..9 {
                    let of = |i: usize| (at.state.row(i), drift.row(i), &matrices[i][..]);
                    let u = naive(of(i), of(j), radial, 1.7);
                    assert!((kernel.at(i, j) - u).abs() < 1e-12 * (1.0 + u.abs()), "{i}, {j}");
                    all += u;
                }
            }
            let found = kernel.squared_discrepancy(Statistic::V)?;
            assert!((found - all / 81.0).abs() < 1e-12 * (1.0 + all.abs()), "{radial:?}");
        }
    }
    Ok(())
}

#[test]
fn langevin_is_the_plain_kernel() -> Result<()> {
    let (x, target) = (random_states(20, 3, 2), normal(3));
    let score = Matrix::from_fn(20, 3, |i, j| -x.row(i)[j]);
    for radial in PROFILES {
        let plain = SteinKernel::new(x.as_ref(), score.as_ref(), radial, 2.0)?;
        let general = SteinKernel::of_dynamics(&target, &Langevin::new(), x.clone(), radial, 2.0)?;
        for (i, j) in [(0, 0), (3, 7), (19, 2)] {
            assert!((plain.at(i, j) - general.at(i, j)).abs() < 1e-12);
        }
    }
    Ok(())
}

/// For N(μ, 1) against N(0, 1), both operators see a drift that is off by the constant μ:
/// KSD² = μ² E k = μ² (1 + 4/h)^(−1/2) for the squared exponential. By quadrature on a grid, which for
/// Gaussians is as good as exact.
#[test]
fn a_shifted_gaussian_has_its_closed_form() -> Result<()> {
    let (shift, h) = (0.6, 2.5);
    let x = Matrix::from_fn(121, 1, |i, _| shift + (i as f64 - 60.0) * 0.15);
    let score = Matrix::from_fn(121, 1, |i, _| -x.row(i)[0]);
    let weight = |i: usize| {
        0.15 * (-0.5 * (x.row(i)[0] - shift).powi(2)).exp() / std::f64::consts::TAU.sqrt()
    };
    let kernel = SteinKernel::new(x.as_ref(), score.as_ref(), Radial::SquaredExponential, h)?;
    let mut sum = 0.0;
    for i in 0..121 {
        for j in 0..121 {
            sum += weight(i) * weight(j) * kernel.at(i, j);
        }
    }
    let expected = shift * shift / (1.0 + 4.0 / h).sqrt();
    assert!((sum - expected).abs() < 1e-12, "{sum} against {expected}");
    Ok(())
}

/// The Cauchy distribution and a sampler that never leaves [−5, 5], where an eighth of its probability is
/// not: inside, the scores are right, and outside they hardly matter to the plain operator. That of a
/// diffusion whose noise grows as the tails do tells them apart.
#[test]
fn a_sampler_without_tails_is_seen_by_the_right_diffusion_alone() -> Result<()> {
    const COUNT: usize = 300;
    let target = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
        let x = theta[0];
        score[0] = -2.0 * x / (1.0 + x * x);
        -(1.0 + x * x).ln()
    });
    // By the inverse of the distribution function, whole or between −5 and 5.
    let draws = |reach: f64, seed: u64| {
        use rand_distr::{Distribution as _, StandardUniform};
        Matrix::from_fn(COUNT, 1, |i, _| {
            let uniform: f64 =
                StandardUniform.sample(&mut stream(seed, Purpose::Exact, 0, i as u64));
            (reach * (2.0 * uniform - 1.0)).tan()
        })
    };
    let radial = Radial::InverseMultiquadric;
    let rejected = |reach: f64, dynamics: &dyn Dynamics<f64>| -> Result<usize> {
        let mut count = 0;
        for seed in 0..20 {
            let x = draws(reach, seed);
            let h = Bandwidth::Median.of(x.as_ref());
            let kernel = SteinKernel::of_dynamics(&target, dynamics, x, radial, h)?;
            count += usize::from(kernel.test(199, seed)?.p_value < 0.05);
        }
        Ok(count)
    };
    let (whole, cut) = (FRAC_PI_2, 5f64.atan());
    let (plain, growing) = (&Langevin::new(), &Growing);
    let found = [
        rejected(whole, plain)?,
        rejected(cut, plain)?,
        rejected(whole, growing)?,
        rejected(cut, growing)?,
    ];
    println!("rejected of 20: whole and cut by the plain operator, then by the growing: {found:?}");
    assert!(found[0] <= 4 && found[1] <= 4, "the plain operator is blind: {found:?}");
    assert!(found[2] <= 4 && found[3] >= 18, "the growing one is not: {found:?}");
    Ok(())
}

#[test]
fn p_values_of_exact_draws_are_spread_over_the_unit_interval() -> Result<()> {
    let mut low = 0;
    for seed in 0..60 {
        let x = random_states(80, 2, 100 + seed);
        let score = Matrix::from_fn(80, 2, |i, j| -x.row(i)[j]);
        let h = Bandwidth::Median.of(x.as_ref());
        let kernel = SteinKernel::new(x.as_ref(), score.as_ref(), Radial::SquaredExponential, h)?;
        low += usize::from(kernel.test(199, seed)?.p_value <= 0.25);
    }
    // 15 on average, standard deviation 3.4.
    assert!((4..=27).contains(&low), "{low} of 60 are below 0.25");
    Ok(())
}

#[test]
fn wrong_requests_are_refused() -> Result<()> {
    let x = random_states(3, 2, 1);
    let kernel = SteinKernel::new(x.as_ref(), x.as_ref(), PROFILES[0], 1.0)?;
    assert!(kernel.test(5, 0).unwrap_err().to_string().contains("19 or more"));
    let one = random_states(1, 2, 1);
    let kernel = SteinKernel::new(one.as_ref(), one.as_ref(), PROFILES[0], 1.0)?;
    assert!(kernel.test(99, 0).unwrap_err().to_string().contains("2 or more"));
    let target = normal(3);
    let of = |h| SteinKernel::of_dynamics(&target, &Langevin::new(), x.clone(), PROFILES[0], h);
    assert!(of(1.0).unwrap_err().to_string().contains("expected 3 or more"));
    assert!(of(-1.0).unwrap_err().to_string().contains("bandwidth is -1"));
    Ok(())
}
