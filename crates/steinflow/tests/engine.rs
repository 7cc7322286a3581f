//! Kernel sums against a double loop, at sizes around every tile edge, and the same bits for any
//! number of threads.

use steinflow::engine::{Factor, KernelSums, kernel_sums, write_kernel_sums};
use steinflow::kernel::Radial;
use steinflow::team::{ROWS_OF_A_CUT, share};
use steinflow::testing::random_states;
use steinflow::{Matrix, Real};

fn naive(
    radial: Radial,
    groups: &[Matrix<f64>],
    values: &Matrix<f64>,
    slope: Option<usize>,
) -> Matrix<f64> {
    let n = values.rows();
    let mut out = Matrix::zeros(n, values.cols());
    for i in 0..n {
        for j in 0..n {
            let squares: Vec<f64> = groups
                .iter()
                .map(|x| x.row(i).iter().zip(x.row(j)).map(|(a, b)| (a - b).powi(2)).sum())
                .collect();
            let k: f64 = squares
                .iter()
                .map(|q| match radial {
                    Radial::SquaredExponential => (-q).exp(),
                    Radial::InverseMultiquadric => (1.0 + q).powf(-0.5),
                })
                .product();
            let weight = match (radial, slope) {
                (Radial::InverseMultiquadric, Some(g)) => k / (1.0 + squares[g]),
                _ => k,
            };
            for (out, x) in out.row_mut(i).iter_mut().zip(values.row(j)) {
                *out += weight * x;
            }
        }
    }
    out
}

fn compare<T: Real>(tolerance: f64) {
    for n in [1, 2, 31, 32, 33, 255, 256, 257, 600] {
        for d in [1, 3, 16, 17, 40] {
            let scale = 0.7 / (d as f64).sqrt();
            let points = random_states(n, d, 1);
            let points = Matrix::from_fn(n, d, |i, j| points.row(i)[j] * scale);
            let values = random_states(n, 5, 2);
            for radial in Radial::ALL {
                let (found, _) = kernel_sums(&KernelSums {
                    radial,
                    factors: &[Factor::new(points.cast::<T>().as_ref(), T::one())],
                    values: values.cast::<T>().as_ref(),
                    slopes: &[],
                });
                let expected = naive(radial, std::slice::from_ref(&points), &values, None);
                close(&found, &expected, tolerance);
            }

            let groups = [points.clone(), random_states(n, 2, 3)];
            let slopes = [random_states(n, 4, 4), random_states(n, 3, 5)];
            let cast = groups.clone().map(|g| g.cast::<T>());
            let single = slopes.clone().map(|s| s.cast::<T>());
            let factors = cast.each_ref().map(|g| Factor::new(g.as_ref(), T::one()));
            for radial in Radial::ALL {
                let (found, found_slopes) = kernel_sums(&KernelSums {
                    radial,
                    factors: &factors,
                    values: values.cast::<T>().as_ref(),
                    slopes: &single.each_ref().map(Matrix::as_ref),
                });
                close(&found, &naive(radial, &groups, &values, None), tolerance);
                for (g, found) in found_slopes.iter().enumerate() {
                    close(found, &naive(radial, &groups, &slopes[g], Some(g)), tolerance);
                }
            }
        }
    }
}

fn close<T: Real>(found: &Matrix<T>, expected: &Matrix<f64>, tolerance: f64) {
    let largest = expected.as_slice().iter().map(|x| x.abs()).fold(1.0, f64::max);
    for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
        let error = (a.as_f64() - b).abs() / largest;
        assert!(error <= tolerance, "{a} against {b}: {error:e}");
    }
}

#[test]
fn equal_a_double_loop_in_f64() {
    compare::<f64>(1e-13);
}

#[test]
fn equal_a_double_loop_in_f32() {
    compare::<f32>(2e-5);
}

#[test]
fn same_bits_on_any_number_of_threads() {
    // A right-hand side of few columns, and one of many: they are summed in different ways.
    for (d, columns) in [(3, 7), (40, 7), (3, 20), (40, 20)] {
        let (points, values) = (random_states(1000, d, 1), random_states(1000, columns, 2));
        let factors = [Factor::new(points.as_ref(), 1.0)];
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                kernel_sums(&KernelSums {
                    radial: Radial::SquaredExponential,
                    factors: &factors,
                    values: values.as_ref(),
                    slopes: &[],
                })
            })
        };
        let (one, _) = on(1);
        for threads in [2, 3, 8] {
            assert_eq!(one.as_slice(), on(threads).0.as_slice(), "{threads} threads, d = {d}");
        }
    }
}

#[test]
fn wide_right_hand_sides_and_several_factors_equal_a_double_loop() {
    for (n, columns) in [(300, 8), (300, 9), (300, 20), (257, 9), (900, 9)] {
        let groups = [random_states(n, 3, 1), random_states(n, 20, 2)];
        let groups = groups.map(|g| Matrix::from_fn(n, g.cols(), |i, j| 0.3 * g.row(i)[j]));
        let values = random_states(n, columns, 3);
        let radial = Radial::SquaredExponential;
        let (found, _) = kernel_sums(&KernelSums {
            radial,
            factors: &groups.each_ref().map(|g| Factor::new(g.as_ref(), 1.0)),
            values: values.as_ref(),
            slopes: &[],
        });
        close(&found, &naive(radial, &groups, &values, None), 1e-13);
    }
}

#[test]
fn close_pairs_far_from_the_centre_keep_their_distance() {
    // Two tight clusters far apart, in more coordinates than are summed directly.
    for d in [17, 64] {
        let scatter = random_states(80, d, 1);
        let points = Matrix::from_fn(80, d, |i, j| {
            let place = if i % 4 == 0 { -30.0 } else { 10.0 };
            0.1 * scatter.row(i)[j] + if j == 0 { place } else { 0.0 }
        });
        let single = points.cast::<f32>();
        let values = random_states(80, 5, 2);
        let (found, _) = kernel_sums(&KernelSums {
            radial: Radial::SquaredExponential,
            factors: &[Factor::new(single.as_ref(), 1.0)],
            values: values.cast::<f32>().as_ref(),
            slopes: &[],
        });
        let exact = naive(Radial::SquaredExponential, &[single.cast()], &values, None);
        close(&found, &exact, 2e-5);
    }
}

/// Whoever computes only some of the rows computes them to the same bits: by halves of K, by bands, and for slopes.
#[test]
fn rows_do_not_depend_on_which_others_are_wanted() {
    for (count, dim, width) in [(700, 3, 3), (700, 3, 20), (1000, 40, 20), (300, 2, 5)] {
        let (points, rhs) = (random_states(count, dim, 1), random_states(count, width, 2));
        let factor = [Factor::new(points.as_ref(), 0.3)];
        for (radial, slopes) in [
            (Radial::SquaredExponential, vec![]),
            (Radial::InverseMultiquadric, vec![rhs.as_ref()]),
        ] {
            let values = rhs.as_ref();
            let sums = KernelSums { radial, factors: &factor, values, slopes: &slopes };
            let (values, own) = kernel_sums(&sums);
            let whole: Vec<Matrix<f64>> = std::iter::once(values).chain(own).collect();
            for (part, parts) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (6, 7)] {
                let rows = share(count, ROWS_OF_A_CUT, parts, part);
                let mut out: Vec<Matrix<f64>> =
                    whole.iter().map(|_| Matrix::zeros(count, width)).collect();
                write_kernel_sums(&sums, rows.clone(), &mut out.iter_mut().collect::<Vec<_>>());
                for (out, whole) in out.iter().zip(&whole) {
                    assert!(
                        rows.clone().all(|i| out.row(i) == whole.row(i)),
                        "{radial:?} {part}/{parts}"
                    );
                }
            }
        }
    }
}
