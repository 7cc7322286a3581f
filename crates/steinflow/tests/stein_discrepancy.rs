//! Kernel Stein discrepancy against a double loop over differences of the kernel, and in law.

use steinflow::diagnostics::{Statistic, squared_stein_discrepancy};
use steinflow::kernel::{Bandwidth, Radial};
use steinflow::testing::random_states;
use steinflow::{Matrix, Result};

const PROFILES: [Radial; 2] = [Radial::SquaredExponential, Radial::InverseMultiquadric];

fn kernel(radial: Radial, h: f64, x: &[f64], y: &[f64]) -> f64 {
    let q = x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / h;
    match radial {
        Radial::SquaredExponential => (-q).exp(),
        Radial::InverseMultiquadric => (1.0 + q).sqrt().recip(),
    }
}

/// u from the definition, every derivative of the kernel by central differences.
fn naive_u(radial: Radial, h: f64, (x, s): (&[f64], &[f64]), (y, t): (&[f64], &[f64])) -> f64 {
    const STEP: f64 = 1e-4;
    let moved = |point: &[f64], k: usize, by: f64| {
        let mut point = point.to_vec();
        point[k] += by;
        point
    };
    let mut u = s.iter().zip(t).map(|(a, b)| a * b).sum::<f64>() * kernel(radial, h, x, y);
    for k in 0..x.len() {
        let k_at = |a: f64, b: f64| kernel(radial, h, &moved(x, k, a), &moved(y, k, b));
        u += s[k] * (k_at(0.0, STEP) - k_at(0.0, -STEP)) / (2.0 * STEP);
        u += t[k] * (k_at(STEP, 0.0) - k_at(-STEP, 0.0)) / (2.0 * STEP);
        let corners = k_at(STEP, STEP) - k_at(STEP, -STEP) - k_at(-STEP, STEP) + k_at(-STEP, -STEP);
        u += corners / (4.0 * STEP * STEP);
    }
    u
}

#[test]
fn both_statistics_are_what_a_double_loop_gives() -> Result<()> {
    for radial in PROFILES {
        for (count, dim) in [(2, 1), (7, 3), (65, 2)] {
            let (x, s) = (random_states(count, dim, 1), random_states(count, dim, 2));
            let (mut all, mut others) = (0.0, 0.0);
            for i in 0..count {
                for j in 0..count {
                    let u = naive_u(radial, 1.7, (x.row(i), s.row(i)), (x.row(j), s.row(j)));
                    all += u;
                    others += if i == j { 0.0 } else { u };
                }
            }
            let n = count as f64;
            let expected =
                [(Statistic::V, all / (n * n)), (Statistic::U, others / (n * (n - 1.0)))];
            for (statistic, expected) in expected {
                let found =
                    squared_stein_discrepancy(x.as_ref(), s.as_ref(), radial, 1.7, statistic)?;
                assert!(
                    (found - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{radial:?}, {statistic:?}, {count} × {dim}: {found} against {expected}"
                );
            }
        }
    }
    Ok(())
}

/// The discrepancy of a normal sample from its own law falls to nothing, from a shifted one not.
#[test]
fn exact_draws_are_told_from_wrong_ones() -> Result<()> {
    let x = random_states(2000, 2, 3);
    let score = |shift: f64| Matrix::from_fn(2000, 2, |i, j| shift - x.row(i)[j]);
    for radial in PROFILES {
        let from = |shift: f64| {
            let score = score(shift);
            squared_stein_discrepancy(x.as_ref(), score.as_ref(), radial, 2.0, Statistic::U)
        };
        let (own, shifted) = (from(0.0)?, from(0.5)?);
        assert!(own.abs() < 0.005 && shifted > 0.1, "{radial:?}: {own}, {shifted}");
    }
    Ok(())
}

#[test]
fn wrong_requests_are_refused() {
    let x = random_states(3, 2, 1);
    let other = random_states(3, 1, 1);
    let single = random_states(1, 2, 1);
    let of = |x: &Matrix<f64>, s: &Matrix<f64>, h, statistic| {
        let radial = Radial::InverseMultiquadric;
        squared_stein_discrepancy(x.as_ref(), s.as_ref(), radial, h, statistic).unwrap_err()
    };
    assert!(of(&x, &other, 1.0, Statistic::V).to_string().contains("3 × 1, expected 3 × 2"));
    assert!(of(&single, &single, 1.0, Statistic::U).to_string().contains("needs 2 or more"));
    assert!(of(&x, &x, f64::NAN, Statistic::V).to_string().contains("bandwidth is NaN"));
    assert!(Statistic::parse("w").unwrap_err().to_string().contains("statistic `w`"));
}

#[test]
fn a_rule_gives_the_bandwidth_of_points() {
    let x = Matrix::from_fn(3, 1, |i, _| [0.0, 3.0, 4.0][i]);
    // Distances 3, 4 and 1; their median is 3.
    assert_eq!(Bandwidth::Median.of(x.as_ref()), 9.0);
    assert_eq!(Bandwidth::fixed(2.5).of(x.as_ref()), 2.5);
}
