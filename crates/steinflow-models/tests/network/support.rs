//! What the tests share: data, evaluation at one point, the worst disagreement of two vectors.

use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::{LogDensity, Matrix, Minibatch, Real};
use steinflow_models::network::{Activation, Architecture, Bnn, Precision, Precisions};

/// Independent standard normals.
pub fn normals(rows: usize, cols: usize, seed: u64) -> Matrix<f64> {
    let mut points = Matrix::zeros(rows, cols);
    fill_standard_normal(&mut stream(seed, Purpose::Start, 0, 0), points.as_mut_slice());
    points
}

/// Features and a target that is no linear function of them.
pub fn data(rows: usize, features: usize) -> (Matrix<f64>, Vec<f64>) {
    let inputs = normals(rows, features, 5);
    let noise = normals(rows, 1, 6);
    let target = |i: usize| {
        let x = inputs.row(i);
        (1.3 * x[0]).sin() + 0.4 * x[features - 1].powi(2) - 0.4 + 0.2 * noise.row(i)[0]
    };
    let targets = (0..rows).map(target).collect();
    (inputs, targets)
}

pub fn learned() -> Precisions {
    Precisions {
        noise: Precision::Learned { shape: 1.5, rate: 0.3 },
        weights: Precision::Learned { shape: 0.8, rate: 0.2 },
    }
}

pub fn fixed() -> Precisions {
    Precisions { noise: Precision::Fixed(4.0), weights: Precision::Fixed(1.7) }
}

pub fn model<T: Real>(
    hidden: &[usize],
    activation: Activation,
    (inputs, targets): &(Matrix<f64>, Vec<f64>),
    precisions: Precisions,
) -> Bnn<T> {
    let architecture = Architecture { hidden: hidden.to_vec(), activation, ..Default::default() };
    Bnn::new(&architecture, inputs, targets, precisions).unwrap()
}

/// log π and ∇log π at one point.
pub fn at<T: Real>(
    target: &impl LogDensity<T>,
    theta: &[T],
    rows: Option<&Minibatch>,
) -> (T, Vec<T>) {
    let theta = Matrix::from_vec(theta.to_vec(), 1, theta.len()).unwrap();
    let (mut value, mut score) = ([T::zero()], Matrix::zeros(1, theta.cols()));
    target.evaluate(theta.as_ref(), rows, &mut value, score.as_mut()).unwrap();
    (value[0], score.as_slice().to_vec())
}

/// The largest difference, relative to the largest entry or 1.
pub fn disagreement<T: Real, U: Real>(a: &[T], b: &[U]) -> f64 {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(1.0, |size: f64, x| size.max(x.as_f64().abs()));
    let pairs = a.iter().zip(b);
    let worst = pairs.fold(0.0, |worst: f64, (x, y)| worst.max((x.as_f64() - y.as_f64()).abs()));
    // `max` forgets NaN.
    assert!(a.iter().all(|x| x.is_finite()) && b.iter().all(|x| x.is_finite()));
    worst / size
}
