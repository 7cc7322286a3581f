//! With the first layer frozen and both precisions fixed, the last layer is Bayesian linear regression
//! on φ = (a₁, …, a_h, 1): posterior precision Λ = γ Σ φφᵀ + λI, mean Λ⁻¹ γ Σ φy.

use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Result};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Bnn};

use crate::support::{at, data, fixed, model};

/// The last coordinates of a network whose first ones stay as they are.
struct Frozen {
    model: Bnn<f64>,
    first: Vec<f64>,
}

impl LogDensity for Frozen {
    fn dim(&self) -> usize {
        self.model.dim() - self.first.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, f64>,
        rows: Option<&Minibatch>,
        log_density: &mut [f64],
        mut score: MatMut<'_, f64>,
    ) -> Result<()> {
        let frozen = self.first.len();
        let whole = Matrix::from_fn(theta.rows(), self.model.dim(), |i, j| {
            if j < frozen { self.first[j] } else { theta.row(i)[j - frozen] }
        });
        let mut whole_score = Matrix::zeros(theta.rows(), self.model.dim());
        self.model.evaluate(whole.as_ref(), rows, log_density, whole_score.as_mut())?;
        for i in 0..theta.rows() {
            score.row_mut(i).copy_from_slice(&whole_score.row(i)[frozen..]);
        }
        Ok(())
    }
}

#[test]
fn a_frozen_first_layer_leaves_linear_regression() {
    for activation in [Activation::Relu, Activation::Tanh] {
        let (rows, features, units) = (60, 2, 4);
        let (gamma, lambda) = (4.0, 1.7);
        let data = data(rows, features);
        let model = model::<f64>(&[units], activation, &data, fixed());
        let frozen = units * (features + 1);
        let first: Vec<f64> =
            model.start_sample(1, 12).unwrap().row(0)[..frozen].iter().map(|w| w + 0.1).collect();

        let phi = Matrix::from_fn(rows, units + 1, |i, k| {
            if k == units {
                return 1.0;
            }
            let weights = &first[k * features..(k + 1) * features];
            let bias = first[units * features + k];
            let z = data.0.row(i).iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + bias;
            if activation == Activation::Relu { z.max(0.0) } else { z.tanh() }
        });
        let precision = Matrix::from_fn(units + 1, units + 1, |j, k| {
            let sum: f64 = (0..rows).map(|i| phi.row(i)[j] * phi.row(i)[k]).sum();
            gamma * sum + if j == k { lambda } else { 0.0 }
        });
        let moment = |k: usize| gamma * (0..rows).map(|i| phi.row(i)[k] * data.1[i]).sum::<f64>();
        let posterior = Frozen { model, first };
        assert_eq!(posterior.dim(), units + 1);

        // The score is linear, so a difference of step 1 is a column of the Hessian −Λ.
        let origin = vec![0.0; units + 1];
        let (value_at_origin, score) = at(&posterior, &origin, None);
        for j in 0..=units {
            assert!((score[j] - moment(j)).abs() < 1e-10, "{} and {}", score[j], moment(j));
            let mut theta = origin.clone();
            theta[j] = 1.0;
            let (_, moved) = at(&posterior, &theta, None);
            for k in 0..=units {
                let curvature = score[k] - moved[k];
                assert!((curvature - precision.row(j)[k]).abs() < 1e-10, "entry {j}, {k}");
            }
        }
        // Newton's step from the origin is the mean; there the score vanishes and log π is
        // ½ mean · moment higher.
        let mean = solve(&precision, (0..=units).map(moment).collect());
        let (value, score) = at(&posterior, &mean, None);
        assert!(score.iter().all(|s| s.abs() < 1e-9), "{score:?}");
        let gain: f64 = mean.iter().enumerate().map(|(k, m)| m * moment(k) / 2.0).sum();
        assert!((value - value_at_origin - gain).abs() < 1e-9 * gain.abs());
    }
}

/// Gauss–Jordan elimination of a positive definite matrix.
fn solve(matrix: &Matrix<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let mut matrix = matrix.clone();
    for pivot in 0..b.len() {
        for row in (0..b.len()).filter(|&row| row != pivot) {
            let factor = matrix.row(row)[pivot] / matrix.row(pivot)[pivot];
            for column in 0..b.len() {
                let entry = matrix.row(pivot)[column];
                matrix.row_mut(row)[column] -= factor * entry;
            }
            b[row] -= factor * b[pivot];
        }
    }
    (0..b.len()).map(|i| b[i] / matrix.row(i)[i]).collect()
}
