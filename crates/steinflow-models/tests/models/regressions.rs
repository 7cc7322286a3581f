//! Regressions: minibatches, tiles, the closed form, agreement of precisions.

use steinflow::{LogDensity, Matrix, Minibatch, Real};
use steinflow_models::Describe;
use steinflow_models::data::Table;
use steinflow_models::regression::{LinearRegression, LogisticRegression};

use crate::support::{at, random_points, table};

/// More rows than a tile holds.
const ROWS: usize = 2500;

/// The sum over a partition, scaled as minibatches are, averages to the full posterior.
fn batches_average_to_the_whole<T: Real>(model: &impl LogDensity<T>, tolerance: f64) {
    let theta: Vec<T> = [0.3, -0.8, 0.5, 0.1].map(T::of).to_vec();
    let (value, score) = at(model, &theta, None);
    let batch_count = 5;
    let size = ROWS / batch_count;
    let (mut mean_value, mut mean_score) = (0.0, [0.0; 4]);
    for batch in 0..batch_count {
        // Strided and reversed, so that order and place do not matter.
        let indices = (0..size).rev().map(|i| i * batch_count + batch).collect();
        let minibatch = Minibatch { indices, scale: batch_count as f64 };
        let (value, batch_score) = at(model, &theta, Some(&minibatch));
        assert_ne!(batch_score, score, "a part of the data is not the whole");
        mean_value += value.as_f64() / batch_count as f64;
        for (mean, s) in mean_score.iter_mut().zip(batch_score) {
            *mean += s.as_f64() / batch_count as f64;
        }
    }
    let close = |a: f64, b: f64| (a - b).abs() < tolerance * a.abs().max(1.0);
    assert!(close(value.as_f64(), mean_value), "{value} and {mean_value}");
    for (s, mean) in score.iter().zip(mean_score) {
        assert!(close(s.as_f64(), mean), "{s} and {mean}");
    }
}

#[test]
fn minibatches_are_unbiased() {
    let (linear, logistic) = (table(ROWS, false), table(ROWS, true));
    // A narrow prior, so that scaling it by mistake would show.
    batches_average_to_the_whole(
        &LinearRegression::<f64>::new(&linear, None, 0.1, Some(0.5)).unwrap(),
        1e-11,
    );
    batches_average_to_the_whole(
        &LinearRegression::<f32>::new(&linear, None, 0.1, Some(0.5)).unwrap(),
        1e-4,
    );
    batches_average_to_the_whole(
        &LogisticRegression::<f64>::new(&logistic, None, 0.1).unwrap(),
        1e-11,
    );
    batches_average_to_the_whole(
        &LogisticRegression::<f32>::new(&logistic, None, 0.1).unwrap(),
        1e-4,
    );
}

#[test]
fn a_minibatch_outside_the_data_is_rejected() {
    let model = LogisticRegression::<f64>::new(&table(10, true), None, 1.0).unwrap();
    let (theta, mut score) = (Matrix::zeros(1, 4), Matrix::zeros(1, 4));
    let batch = Minibatch { indices: vec![3, 10], scale: 5.0 };
    let error =
        model.evaluate(theta.as_ref(), Some(&batch), &mut [0.0], score.as_mut()).unwrap_err();
    assert!(error.to_string().contains("minibatch index is 10"), "{error}");
    assert!(error.is_usage());
}

/// Plain loops over particles and rows, in `f64`.
#[test]
fn tiles_match_plain_loops() {
    let data = table(ROWS, true);
    let model = LogisticRegression::<f64>::new(&data, None, 0.5).unwrap();
    assert_eq!(model.data_rows(), ROWS);
    // Not a multiple of the tile.
    let theta = random_points(37, 4, 0.5, 1);
    let (mut values, mut score) = (vec![0.0; 37], Matrix::zeros(37, 4));
    model.evaluate(theta.as_ref(), None, &mut values, score.as_mut()).unwrap();
    let (x, y) = (model.design().rows(), model.design().target());
    for p in 0..37 {
        let theta = theta.row(p);
        let mut value = -2.0 * theta.iter().map(|t| t * t).sum::<f64>();
        let mut gradient: Vec<f64> = theta.iter().map(|t| -4.0 * t).collect();
        for i in 0..ROWS {
            let eta: f64 = x.row(i).iter().zip(theta).map(|(x, t)| x * t).sum();
            let probability = 1.0 / (1.0 + (-eta).exp());
            value += if y[i] == 1.0 { probability.ln() } else { (1.0 - probability).ln() };
            for (g, x) in gradient.iter_mut().zip(x.row(i)) {
                *g += (y[i] - probability) * x;
            }
        }
        assert!((value - values[p]).abs() < 1e-9 * value.abs(), "particle {p}");
        for (g, s) in gradient.iter().zip(score.row(p)) {
            assert!((g - s).abs() < 1e-9, "particle {p}: {g} and {s}");
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_the_threads() {
    let model = LinearRegression::<f32>::new(&table(ROWS, false), None, 1.0, Some(1.0)).unwrap();
    let theta: Matrix<f32> = random_points(100, 4, 1.0, 3).cast();
    let with_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (mut values, mut score) = (vec![0.0; 100], Matrix::zeros(100, 4));
        pool.install(|| {
            model.evaluate(theta.as_ref(), None, &mut values, score.as_mut()).unwrap();
        });
        (values, score)
    };
    assert_eq!(with_threads(1), with_threads(3));
}

#[test]
fn the_closed_form_is_the_mode_and_curvature_of_the_posterior() {
    let model = LinearRegression::<f64>::new(&table(300, false), None, 0.8, Some(0.6)).unwrap();
    let moments = model.exact_moments().unwrap();
    let (_, score) = at(&model, &moments.mean, None);
    assert!(score.iter().all(|s| s.abs() < 1e-9), "the score at the mean is {score:?}");
    // The score is linear, so a difference of step 1 is the Hessian; −Hessian · covariance = I.
    let hessian: Vec<Vec<f64>> = (0..4)
        .map(|j| {
            let mut theta = moments.mean.clone();
            theta[j] += 1.0;
            at(&model, &theta, None).1
        })
        .collect();
    for i in 0..4 {
        for j in 0..4 {
            let product: f64 = (0..4).map(|k| -hessian[i][k] * moments.covariance.row(k)[j]).sum();
            let identity = f64::from(u8::from(i == j));
            assert!((product - identity).abs() < 1e-9, "entry {i}, {j} is {product}");
        }
    }
}

#[test]
fn both_precisions_have_the_same_closed_form() {
    let data = table(50, false);
    let in_f64 = LinearRegression::<f64>::new(&data, None, 1.0, Some(1.0)).unwrap();
    let in_f32 = LinearRegression::<f32>::new(&data, None, 1.0, Some(1.0)).unwrap();
    assert_eq!(in_f64.exact_moments(), in_f32.exact_moments());
}

#[test]
fn data_are_standardised_and_the_constants_kept() {
    let data = table(200, false);
    let model = LinearRegression::<f64>::new(&data, Some("weight"), 1.0, Some(1.0)).unwrap();
    assert_eq!(model.parameter_names(), ["intercept", "height", "offset", "outcome"]);
    assert_eq!(model.design().target_name(), "weight");
    assert!((model.design().target_scaling().unwrap().mean - 0.07).abs() < 0.005);
    let rows = model.design().rows();
    for j in 1..4 {
        let column: Vec<f64> = (0..200).map(|i| rows.row(i)[j]).collect();
        let mean = column.iter().sum::<f64>() / 200.0;
        let variance = column.iter().map(|x| x * x).sum::<f64>() / 200.0;
        assert!(mean.abs() < 1e-12 && (variance - 1.0).abs() < 1e-12, "column {j}");
        let restored = model.design().scalings()[j - 1].restore(column[7]);
        let original = data.values().row(7)[[0, 0, 2, 3][j]];
        assert!((restored - original).abs() < 1e-12 * original.abs());
    }
    assert!((0..200).all(|i| rows.row(i)[0] == 1.0));
}

#[test]
fn one_row_per_class_is_enough_for_a_posterior() {
    let data = Table::from_reader("a,y\n1,0\n2,1\n".as_bytes(), "two.csv").unwrap();
    let model = LogisticRegression::<f64>::new(&data, None, 1.0).unwrap();
    let (value, score) = at(&model, &[0.0, 0.0], None);
    assert!((value - 2.0 * 0.5_f64.ln()).abs() < 1e-15);
    assert_eq!(score, [0.0, 1.0]);
}
