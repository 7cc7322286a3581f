//! Predictive distributions against direct sums, numerical integrals and simulated data.

use std::f64::consts::TAU;

use steinflow::{MatRef, Matrix};
use steinflow_models::Describe;
use steinflow_models::data::Scaling;
use steinflow_models::network::Activation;
use steinflow_models::prediction::Predictive;

use crate::support::{data, fixed, learned, model, normals};

/// Particles that disagree in mean and noise.
fn example(particles: usize, rows: usize) -> Predictive {
    let means = normals(particles, rows, 31);
    let sds: Vec<f64> = (0..particles).map(|i| 0.3 + 0.2 * (i % 4) as f64).collect();
    Predictive::new(&means, &sds).unwrap()
}

#[test]
fn the_log_likelihood_is_the_log_of_the_mean_density() {
    let (particles, rows) = (7, 5);
    let (means, predictive) = (normals(particles, rows, 31), example(particles, rows));
    let targets = [0.3, -1.0, 2.0, 0.0, 0.7];
    let found = predictive.log_likelihoods(&targets).unwrap();
    let mut sum = 0.0;
    for row in 0..rows {
        let density = |i: usize| {
            let sd = 0.3 + 0.2 * (i % 4) as f64;
            let z = (targets[row] - means.row(i)[row]) / sd;
            (-0.5 * z * z).exp() / (sd * TAU.sqrt())
        };
        let expected = ((0..particles).map(density).sum::<f64>() / particles as f64).ln();
        assert!((found[row] - expected).abs() < 1e-13, "{} and {expected}", found[row]);
        sum += expected;
    }
    let mean = predictive.mean_log_likelihood(&targets).unwrap();
    assert!((mean - sum / rows as f64).abs() < 1e-13);
    // Far away a plain sum of densities would be 0.
    let far = predictive.row(0).log_density(1e3);
    assert!(far.is_finite() && far < -1e5);
}

#[test]
fn own_units_move_every_score_as_they_should() {
    let predictive = example(6, 4);
    let scaling = Scaling { mean: 20.0, sd: 5.0 };
    let in_units = predictive.in_units(scaling).unwrap();
    let standard = [0.1, -0.4, 1.0, 0.6];
    let own = standard.map(|y| scaling.restore(y));
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} and {b}");
    close(
        in_units.mean_log_likelihood(&own).unwrap(),
        predictive.mean_log_likelihood(&standard).unwrap() - 5.0_f64.ln(),
    );
    close(in_units.rmse(&own).unwrap(), 5.0 * predictive.rmse(&standard).unwrap());
    close(in_units.mse(&own).unwrap(), 25.0 * predictive.mse(&standard).unwrap());
    close(in_units.mean_crps(&own).unwrap(), 5.0 * predictive.mean_crps(&standard).unwrap());
    for row in 0..4 {
        close(in_units.means()[row], scaling.restore(predictive.means()[row]));
        close(in_units.sds()[row], 5.0 * predictive.sds()[row]);
        close(in_units.pit(&own).unwrap()[row], predictive.pit(&standard).unwrap()[row]);
        let quantile = |p: &Predictive| p.quantiles(0.9).unwrap()[row];
        close(quantile(&in_units), scaling.restore(quantile(&predictive)));
    }
}

#[test]
fn moments_and_density_agree_with_integrals() {
    let predictive = example(5, 1);
    let mixture = predictive.row(0);
    let (mut mass, mut mean, mut second) = (0.0, 0.0, 0.0);
    let spacing = 0.01;
    for k in -2000..=2000 {
        let y = f64::from(k) * spacing;
        let weight = spacing * mixture.log_density(y).exp();
        mass += weight;
        mean += weight * y;
        second += weight * y * y;
    }
    assert!((mass - 1.0).abs() < 1e-10);
    assert!((mean - mixture.mean()).abs() < 1e-10);
    assert!(((second - mean * mean).sqrt() - mixture.sd()).abs() < 1e-10);
}

#[test]
fn the_crps_is_the_integral_of_the_squared_difference() {
    // Both sides of where the pairs give way to the grid.
    for particles in [1, 5, 128, 129, 400] {
        let predictive = example(particles, 1);
        let mixture = predictive.row(0);
        for y in [-2.0, 0.15, 4.0] {
            let found = predictive.crps(&[y]).unwrap()[0];
            // Either side of y apart, since the integrand jumps there; Simpson's rule.
            let side = |from: f64, to: f64, above: f64| {
                let steps = 4000;
                let h = (to - from) / f64::from(steps);
                let term = |k: i32| {
                    let weight =
                        if k == 0 || k == steps { 1.0 } else { 2.0 + 2.0 * f64::from(k % 2) };
                    weight * (mixture.cdf(from + f64::from(k) * h) - above).powi(2)
                };
                (0..=steps).map(term).sum::<f64>() * h / 3.0
            };
            let expected = side(-14.0, y, 0.0) + side(y, 14.0, 1.0);
            assert!((found - expected).abs() < 1e-9, "{particles}: {found} and {expected}");
        }
    }
}

#[test]
fn the_quantile_inverts_the_distribution_function() {
    for particles in [1, 2, 50] {
        let predictive = example(particles, 3);
        for level in [1e-12, 1e-3, 0.05, 0.25, 0.5, 0.75, 0.975, 1.0 - 1e-9] {
            for (row, x) in predictive.quantiles(level).unwrap().into_iter().enumerate() {
                let back = predictive.row(row).cdf(x);
                let tolerance = 1e-12 * level + f64::EPSILON;
                assert!((back - level).abs() < tolerance, "{level}: {back} at {x}");
            }
        }
    }
    // Two narrow peaks far apart: the distribution function is flat in between.
    let means = Matrix::from_vec(vec![-1e3, 1e3], 2, 1).unwrap();
    let predictive = Predictive::new(&means, &[1e-3, 1e-3]).unwrap();
    for (level, near) in [(0.3, -1e3), (0.7, 1e3)] {
        let x = predictive.row(0).quantile(level);
        assert!((x - near).abs() < 0.01 && (predictive.row(0).cdf(x) - level).abs() < 1e-7);
    }
    // The standard normal's, from tables.
    let normal = Predictive::new(&Matrix::zeros(1, 1), &[1.0]).unwrap();
    assert!((normal.row(0).quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
    assert!(normal.row(0).quantile(0.5).abs() < 1e-15);
    assert!(normal.row(0).quantile(0.0).is_nan());
}

#[test]
fn a_calibrated_prediction_covers_what_it_says() {
    // Every target is drawn from one of the components of its mixture.
    let (particles, rows) = (8, 20_000);
    let means = normals(particles, rows, 31);
    let predictive = example(particles, rows);
    let noise = normals(rows, 1, 77);
    let targets: Vec<f64> = (0..rows)
        .map(|row| {
            let i = row % particles;
            means.row(i)[row] + (0.3 + 0.2 * (i % 4) as f64) * noise.row(row)[0]
        })
        .collect();
    for level in [0.5, 0.9, 0.95] {
        let coverage = predictive.coverage(&targets, level).unwrap();
        assert!((coverage - level).abs() < 0.012, "{coverage} instead of {level}");
    }
    let histogram = predictive.pit_histogram(&targets, 10).unwrap();
    assert_eq!(histogram.iter().sum::<usize>(), rows);
    assert!(histogram.iter().all(|&count| (1850..2150).contains(&count)), "{histogram:?}");
    // Half the noise covers too little.
    let timid = Predictive::new(&means, &vec![0.15; particles]).unwrap();
    assert!(timid.coverage(&targets, 0.9).unwrap() < 0.87);
}

/// f(x) = w₂ max(w₁x + b₁, 0) + b₂ of two particles, by hand.
#[test]
fn a_network_predicts_what_its_weights_say() {
    let (inputs, targets) = (Matrix::from_vec(vec![0.0, 1.0], 2, 1).unwrap(), vec![0.0, 1.0]);
    let model = model::<f64>(&[1], Activation::Relu, &(inputs, targets), learned());
    let (gamma, lambda) = (4.0_f64.ln(), 0.0);
    let theta = vec![2.0, -1.0, 3.0, 0.5, gamma, lambda, -1.0, 0.0, 1.0, -2.0, 0.0, lambda];
    let theta = Matrix::from_vec(theta, 2, 6).unwrap();
    let test = Matrix::from_vec(vec![-1.0, 0.0, 2.0], 3, 1).unwrap();
    let predictive = model.predict(theta.as_ref(), &test).unwrap();
    // Particle 0: 0.5, 0.5, 3·3 + 0.5 = 9.5; particle 1: 1 − 2 = −1, −2, −2.
    assert_eq!(predictive.means(), [-0.25, -0.75, 3.75]);
    // Noise variances ¼ and 1: their mean, and the means' variance 5.75².
    let expected = (0.625_f64 + 5.75 * 5.75).sqrt();
    assert!((predictive.sds()[2] - expected).abs() < 1e-12);
}

#[test]
fn predictions_of_many_rows_are_those_of_each_alone() {
    let data = data(1300, 3);
    let model = model::<f32>(&[8, 5], Activation::Tanh, &data, fixed());
    let theta: Matrix<f32> = model.start_sample(4, 2).unwrap().cast();
    let all = model.predict(theta.as_ref(), &data.0).unwrap();
    assert_eq!((all.particles(), all.rows()), (4, 1300));
    for row in [0, 127, 128, 1023, 1024, 1299] {
        let one = Matrix::from_vec(data.0.row(row).to_vec(), 1, 3).unwrap();
        let alone = model.predict(theta.as_ref(), &one).unwrap();
        assert!((alone.means()[0] - all.means()[row]).abs() < 1e-5);
    }
    // The fixed precision of the noise is 4.
    let single = MatRef::new(theta.row(0), 1, theta.cols()).unwrap();
    let sds = model.predict(single, &data.0).unwrap().sds();
    assert!(sds.iter().all(|sd| (sd - 0.5).abs() < 1e-12));
}

#[test]
fn wrong_requests_are_named() {
    let predictive = example(3, 2);
    let said = |error: steinflow_models::Error| {
        assert!(error.is_usage());
        error.to_string()
    };
    let message = said(predictive.crps(&[1.0]).unwrap_err());
    assert!(message.contains("targets has 1 entries, expected 2"), "{message}");
    let message = said(predictive.rmse(&[1.0, f64::NAN]).unwrap_err());
    assert!(message.contains("targets is NaN in row 1"), "{message}");
    let message = said(predictive.quantiles(1.0).unwrap_err());
    assert!(message.contains("level is 1"), "{message}");
    let message = said(predictive.pit_histogram(&[0.0, 0.0], 0).unwrap_err());
    assert!(message.contains("bins is 0"), "{message}");
    let message = said(predictive.in_units(Scaling { mean: 0.0, sd: 0.0 }).unwrap_err());
    assert!(message.contains("standard deviation 0"), "{message}");
    let message = said(Predictive::new(&Matrix::zeros(0, 2), &[]).unwrap_err());
    assert!(message.contains("0 particles and 2 rows"), "{message}");
    let message = said(Predictive::new(&Matrix::zeros(2, 2), &[1.0]).unwrap_err());
    assert!(message.contains("standard deviations has 1 entries"), "{message}");
    let message = said(Predictive::new(&Matrix::zeros(2, 2), &[1.0, 0.0]).unwrap_err());
    assert!(message.contains("0 at particle 1"), "{message}");

    let model = model::<f64>(&[3], Activation::Relu, &data(5, 2), learned());
    let theta = model.start_sample(2, 1).unwrap();
    let message = said(model.predict(theta.as_ref(), &Matrix::zeros(4, 3)).unwrap_err());
    assert!(message.contains("inputs has 3 columns, expected 2"), "{message}");
    let message =
        said(model.predict(Matrix::zeros(2, 4).as_ref(), &Matrix::zeros(4, 2)).unwrap_err());
    assert!(message.contains("theta has 4 columns"), "{message}");
    let message = said(
        model.predict(Matrix::zeros(0, theta.cols()).as_ref(), &Matrix::zeros(4, 2)).unwrap_err(),
    );
    assert!(message.contains("0 particles"), "{message}");
    let mut broken = theta.clone();
    broken.row_mut(1)[0] = f64::NAN;
    let message = said(model.predict(broken.as_ref(), &Matrix::zeros(4, 2)).unwrap_err());
    assert!(message.contains("particle 1, row 0"), "{message}");
}
