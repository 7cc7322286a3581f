//! Small networks of every likelihood: what a long run predicts, against Metropolis's sampler on the density in plain loops.
//! Units may change their signs, predictions do not.

use std::f64::consts::TAU;

use steinflow::Matrix;
use steinflow::run::{Auto, Samples};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precision, Precisions};

use crate::metropolis::{metropolis, moments};
use crate::support::normals;

const ROWS: usize = 40;
const PLACES: [f64; 3] = [-1.0, 0.2, 1.3];
const PRIOR: (f64, f64) = (2.0, 1.0);

/// The outputs at x of a network with one hidden unit.
fn outputs(w: &[f64], outputs: usize, x: f64) -> Vec<f64> {
    let a = (w[0] * x + w[1]).tanh();
    (0..outputs).map(|k| w[2 + k] * a + w[2 + outputs + k]).collect()
}

/// log p of the logarithm of a Gamma.
fn log_gamma(log: f64) -> f64 {
    PRIOR.0 * log - PRIOR.1 * log.exp()
}

fn weights_prior(w: &[f64], log_lambda: f64) -> f64 {
    let squares: f64 = w.iter().map(|w| w * w).sum();
    0.5 * (w.len() as f64 * log_lambda - log_lambda.exp() * squares) + log_gamma(log_lambda)
}

/// Compares moments of what is seen of draws of a long run and of Metropolis's.
fn compare(
    architecture: &Architecture,
    targets: impl Fn(f64, f64) -> f64,
    log_likelihood: impl Fn(&[f64], f64, f64) -> f64,
    seen: impl Fn(&[f64]) -> Vec<f64>,
) {
    let (inputs, chance) = (normals(ROWS, 1, 51), normals(ROWS, 1, 52));
    let rows: Vec<(f64, f64)> = (0..ROWS)
        .map(|i| (inputs.row(i)[0], targets(inputs.row(i)[0], chance.row(i)[0])))
        .collect();
    let targets: Vec<f64> = rows.iter().map(|row| row.1).collect();
    let (shape, rate) = PRIOR;
    let learned = Precision::Learned { shape, rate };
    let precisions = Precisions { noise: learned, weights: learned };
    let model = Bnn::<f64>::new(architecture, &inputs, &targets, precisions).unwrap();
    let count = 2 + 2 * architecture.outputs();
    let log_density = |theta: &[f64]| {
        let (w, precisions) = theta.split_at(count);
        let likelihood = rows.iter().map(|&(x, y)| log_likelihood(theta, x, y)).sum::<f64>();
        let of_noise = if precisions.len() > 1 { log_gamma(precisions[0]) } else { 0.0 };
        likelihood + of_noise + weights_prior(w, precisions[precisions.len() - 1])
    };
    let start = model.start_sample(1, 3).unwrap();
    let draws = metropolis(log_density, start.row(0), 600_000, 5);
    let exact = moments(&draws.iter().map(|draw| seen(draw)).collect::<Vec<_>>());

    let mut samples = Samples::of_ensemble();
    Auto::new(&model).observe(samples.observer()).run().unwrap();
    let theta: Matrix<f64> = samples.theta();
    let found: Vec<Vec<f64>> = (0..theta.rows()).map(|i| seen(theta.row(i))).collect();
    for (j, (found, exact)) in moments(&found).iter().zip(&exact).enumerate() {
        assert!((found.0 - exact.0).abs() < 0.12 * exact.1, "{j}: {found:?}, {exact:?}");
        assert!((found.1 / exact.1 - 1.0).abs() < 0.1, "{j}: {found:?}, {exact:?}");
    }
}

fn architecture() -> Architecture {
    Architecture { hidden: vec![1], activation: Activation::Tanh, ..Default::default() }
}

#[test]
fn a_network_of_classes_is_that_of_metropolis() {
    const CLASSES: usize = 3;
    let probabilities = |theta: &[f64], x: f64| {
        let powers: Vec<f64> = outputs(theta, CLASSES, x).into_iter().map(f64::exp).collect();
        let total: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / total).collect::<Vec<f64>>()
    };
    compare(
        &Architecture { classes: CLASSES, ..architecture() },
        |x, chance| {
            let level = x + 0.5 * chance;
            f64::from(u8::from(level > -0.5) + u8::from(level > 0.6))
        },
        |theta, x, y| probabilities(theta, x)[y as usize].ln(),
        |theta| {
            // Of classes that are seen there: of others, a few draws decide all.
            let likely = PLACES.iter().enumerate();
            let mut all: Vec<f64> = likely.map(|(k, &x)| probabilities(theta, x)[k]).collect();
            all.push(theta[theta.len() - 1]);
            all
        },
    );
}

#[test]
fn a_network_with_noise_by_input_is_that_of_metropolis() {
    // Mean and log precision at x.
    let normal = |theta: &[f64], x: f64| {
        let f = outputs(theta, 2, x);
        (f[0], theta[theta.len() - 2] + 6.0 * (f[1] / 6.0).tanh())
    };
    compare(
        &Architecture { noise_by_input: true, ..architecture() },
        |x, chance| x.sin() + (0.3 + 0.2 * x.tanh()) * chance,
        |theta, x, y| {
            let (mean, log) = normal(theta, x);
            0.5 * (log - TAU.ln() - log.exp() * (y - mean).powi(2))
        },
        |theta| {
            let at = |&x: &f64| {
                let (mean, log) = normal(theta, x);
                [mean, log]
            };
            let mut all: Vec<f64> = PLACES.iter().flat_map(at).collect();
            all.push(theta[theta.len() - 1]);
            all
        },
    );
}
