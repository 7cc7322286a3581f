//! The same density written with plain loops over one row at a time, for forward-mode derivatives.

use std::f64::consts::TAU;

use steinflow::target::{DualNum, GenericLogDensity};
use steinflow::{Matrix, Minibatch};
use steinflow_models::network::{Activation, Precision, Precisions};

pub struct Naive {
    pub hidden: Vec<usize>,
    pub activation: Activation,
    pub residual: bool,
    pub data: (Matrix<f64>, Vec<f64>),
    pub precisions: Precisions,
    pub batch: Option<Minibatch>,
}

impl Naive {
    fn weights(&self) -> usize {
        let mut inputs = self.data.0.cols();
        let mut count = 0;
        for &outputs in self.hidden.iter().chain(&[1]) {
            count += (inputs + 1) * outputs;
            inputs = outputs;
        }
        count
    }

    fn network<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D], x: &[f64]) -> D {
        let mut a: Vec<D> = x.iter().map(|&x| D::from(x)).collect();
        let mut rest = theta;
        for (layer, &units) in self.hidden.iter().chain(&[1]).enumerate() {
            let (weights, after) = rest.split_at(a.len() * units);
            let (biases, after) = after.split_at(units);
            let z = |k: usize| {
                let row = &weights[k * a.len()..(k + 1) * a.len()];
                row.iter().zip(&a).fold(biases[k], |sum, (&w, &a)| sum + w * a)
            };
            let z: Vec<D> = (0..units).map(z).collect();
            rest = after;
            let given = std::mem::replace(&mut a, z);
            let is_output = rest.len() <= theta.len() - self.weights();
            for a in &mut a {
                *a = match self.activation {
                    _ if is_output => *a,
                    Activation::Relu if a.re() > 0.0 => *a,
                    Activation::Relu => *a * 0.0,
                    Activation::Tanh => a.tanh(),
                };
            }
            if self.residual && layer > 0 && !is_output && given.len() == a.len() {
                a.iter_mut().zip(given).for_each(|(a, given)| *a += given);
            }
        }
        a[0]
    }
}

impl GenericLogDensity for Naive {
    fn dim(&self) -> usize {
        let learned = |p| usize::from(matches!(p, Precision::Learned { .. }));
        self.weights() + learned(self.precisions.noise) + learned(self.precisions.weights)
    }

    fn log_density<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D]) -> D {
        let (inputs, targets) = &self.data;
        let mut rest = theta[self.weights()..].iter();
        // The logarithm of a precision, and its log prior with Jacobian.
        let mut precision = |precision| match precision {
            Precision::Fixed(value) => (D::from(f64::ln(value)), D::from(0.0)),
            Precision::Learned { shape, rate } => {
                let log = *rest.next().unwrap();
                let normaliser = shape * rate.ln() - libm::lgamma(shape);
                let log_gamma_density =
                    log * (shape - 1.0) - log.exp() * rate + D::from(normaliser);
                (log, log_gamma_density + log)
            }
        };
        let (log_gamma, mut sum) = precision(self.precisions.noise);
        let (log_lambda, log_prior) = precision(self.precisions.weights);
        sum += log_prior;
        let log_normal = |difference: D, log_precision: D| {
            (log_precision - difference * difference * log_precision.exp() - TAU.ln()) * 0.5
        };
        for &w in &theta[..self.weights()] {
            sum += log_normal(w, log_lambda);
        }
        let all: Vec<usize> = (0..targets.len()).collect();
        let (rows, scale) = match &self.batch {
            Some(batch) => (&batch.indices, batch.scale),
            None => (&all, 1.0),
        };
        for &row in rows {
            let residual = -self.network(theta, inputs.row(row)) + targets[row];
            sum += log_normal(residual, log_gamma) * scale;
        }
        sum
    }
}
