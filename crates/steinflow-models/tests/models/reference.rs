//! Log densities and scores against reference vectors.

use steinflow::{LogDensity, Matrix};
use steinflow_models::toy::{Gaussian, TriCrescent};

use crate::reference_vectors::{
    GAUSSIAN, GAUSSIAN_MEAN, GAUSSIAN_PRECISION, Reference, TRI_CRESCENT,
};

fn compare<const D: usize>(target: &impl LogDensity<f64>, reference: &Reference<D>) {
    let theta = Matrix::from_fn(8, D, |i, j| reference.theta[i][j]);
    let (mut log_density, mut score) = ([0.0; 8], Matrix::zeros(8, D));
    target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut()).unwrap();
    for i in 0..8 {
        let difference = log_density[i] - reference.log_density[i];
        assert!(difference.abs() < 1e-12, "log density {i} differs by {difference:e}");
        for j in 0..D {
            let difference = score.row(i)[j] - reference.score[i][j];
            assert!(difference.abs() < 1e-12, "score {i}, {j} differs by {difference:e}");
        }
    }
}

#[test]
fn the_gaussian_matches_the_reference() {
    let precision = Matrix::from_fn(3, 3, |i, j| GAUSSIAN_PRECISION[i][j]);
    let gaussian = Gaussian::from_precision(GAUSSIAN_MEAN.to_vec(), precision).unwrap();
    compare(&gaussian, &GAUSSIAN);
}

#[test]
fn a_gaussian_made_from_its_covariance_is_the_same() {
    use steinflow_models::Describe;
    let precision = Matrix::from_fn(3, 3, |i, j| GAUSSIAN_PRECISION[i][j]);
    let gaussian = Gaussian::from_precision(GAUSSIAN_MEAN.to_vec(), precision).unwrap();
    let covariance = gaussian.exact_moments().unwrap().covariance;
    compare(&Gaussian::new(GAUSSIAN_MEAN.to_vec(), covariance).unwrap(), &GAUSSIAN);
}

#[test]
fn the_tri_crescent_matches_the_reference() {
    compare(&TriCrescent, &TRI_CRESCENT);
}
