//! What the tests share: evaluation at one point, random points, a data set of known make.

use std::fmt::Write as _;

use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::{LogDensity, Matrix, Minibatch, Real};
use steinflow_models::data::Table;

/// log π and ∇log π at one point.
pub fn at<T: Real>(
    target: &(impl LogDensity<T> + ?Sized),
    theta: &[T],
    rows: Option<&Minibatch>,
) -> (T, Vec<T>) {
    let theta = Matrix::from_vec(theta.to_vec(), 1, theta.len()).unwrap();
    let (mut value, mut score) = ([T::zero()], Matrix::zeros(1, theta.cols()));
    target.evaluate(theta.as_ref(), rows, &mut value, score.as_mut()).unwrap();
    (value[0], score.as_slice().to_vec())
}

/// `count` points of N(0, spread²).
pub fn random_points(count: usize, dim: usize, spread: f64, seed: u64) -> Matrix<f64> {
    let mut points = Matrix::zeros(count, dim);
    fill_standard_normal(&mut stream(seed, Purpose::Start, 0, 0), points.as_mut_slice());
    for x in points.as_mut_slice() {
        *x *= spread;
    }
    points
}

/// CSV text of `rows` rows: three features of different scale, a target that depends on them, or,
/// when `binary`, whether it is above its usual value.
pub fn csv_text(rows: usize, binary: bool) -> String {
    let noise = random_points(rows, 4, 1.0, 99);
    let mut text = "height,weight,offset,outcome\n".to_owned();
    for i in 0..rows {
        let n = noise.row(i);
        let outcome = 4.0 + 2.0 * n[0] - n[1] + 0.5 * n[3];
        let outcome = if binary { f64::from(u8::from(outcome > 4.0)) } else { outcome };
        let (height, weight) = (170.0 + 10.0 * n[0], 0.07 + 0.01 * (n[1] + n[0]));
        writeln!(text, "{height},{weight},{},{outcome}", n[2] - 3.0).unwrap();
    }
    text
}

pub fn table(rows: usize, binary: bool) -> Table {
    Table::from_reader(csv_text(rows, binary).as_bytes(), "test.csv").unwrap()
}
