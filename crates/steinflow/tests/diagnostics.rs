//! Diagnostics against double loops, closed forms, and wrong shapes.

use steinflow::diagnostics::EnergyDistance;
use steinflow::testing::random_states;
use steinflow::{MatRef, Matrix};

fn naive(x: MatRef<'_, f64>, y: MatRef<'_, f64>) -> f64 {
    let mean = |a: MatRef<'_, f64>, b: MatRef<'_, f64>| {
        let mut sum = 0.0;
        for i in 0..a.rows() {
            for j in 0..b.rows() {
                let square: f64 = (0..a.cols()).map(|k| (a.row(i)[k] - b.row(j)[k]).powi(2)).sum();
                sum += square.sqrt();
            }
        }
        sum / (a.rows() * b.rows()) as f64
    };
    2.0 * mean(x, y) - mean(x, x) - mean(y, y)
}

fn energy_distance(x: MatRef<'_, f64>, y: MatRef<'_, f64>) -> f64 {
    EnergyDistance::to(y).unwrap().of(x).unwrap()
}

#[test]
fn tiles_sum_what_a_double_loop_sums() {
    for (rows, others, dim) in [(1, 1, 1), (1, 65, 2), (63, 64, 3), (64, 1, 2), (130, 200, 5)] {
        let (x, y) = (random_states(rows, dim, 1), random_states(others, dim, 2));
        let (found, expected) =
            (energy_distance(x.as_ref(), y.as_ref()), naive(x.as_ref(), y.as_ref()));
        assert!((found - expected).abs() < 1e-12, "{rows} {others} {dim}: {found} {expected}");
        let symmetric = energy_distance(y.as_ref(), x.as_ref());
        assert!((found - symmetric).abs() < 1e-12, "{found} {symmetric}");
        assert!(energy_distance(x.as_ref(), x.as_ref()).abs() < 1e-12);
    }
}

/// Uniform laws on [0, 1] and [s, 1 + s] with s ≥ 1: E|X − Y| = s and E|X − X′| = ⅓.
#[test]
fn shifted_uniforms_have_the_distance_of_the_integral() {
    let at = |shift: f64| Matrix::from_fn(4000, 1, |i, _| shift + (i as f64 + 0.5) / 4000.0);
    for shift in [1.0, 2.5] {
        let found = energy_distance(at(0.0).as_ref(), at(shift).as_ref());
        assert!((found - (2.0 * shift - 2.0 / 3.0)).abs() < 1e-6, "{found}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (x, y) = (random_states(300, 2, 3), random_states(777, 2, 4));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| energy_distance(x.as_ref(), y.as_ref())).to_bits()
    };
    assert!(with(1) == with(2) && with(1) == with(5));
}

#[test]
fn sets_that_cannot_be_compared_are_refused() {
    let (plane, line, empty) =
        (random_states(4, 2, 1), random_states(4, 1, 1), Matrix::<f64>::zeros(0, 2));
    let message = EnergyDistance::to(empty.as_ref()).unwrap_err().to_string();
    assert!(message.contains("the reference") && message.contains("one point"), "{message}");
    let distance = EnergyDistance::to(plane.as_ref()).unwrap();
    assert!(distance.of(empty.as_ref()).is_err());
    let error = distance.of(line.as_ref()).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("1 coordinates"), "{error}");
}
