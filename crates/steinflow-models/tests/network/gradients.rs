//! Scores against central differences, forward-mode derivatives of a naive twin, and a hand computation.

use std::f64::consts::LN_10;

use steinflow::target::Autodiff;
use steinflow::{Matrix, Minibatch};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precision, Precisions};

use crate::naive::Naive;
use crate::support::{at, data, disagreement, fixed, learned, model};

const SHAPES: [&[usize]; 5] = [&[], &[7], &[50], &[6, 4], &[5, 1, 3]];

fn batch(rows: usize) -> Minibatch {
    let indices = (0..9).map(|i| (i * 5 + 2) % rows).collect();
    Minibatch { indices, scale: rows as f64 / 9.0 }
}

/// Runs a check on all shapes, activations, precisions, with and without a minibatch.
fn everywhere(check: impl Fn(&[usize], Activation, Precisions, Option<Minibatch>)) {
    let half = Precisions { noise: learned().noise, weights: Precision::Fixed(0.6) };
    for hidden in SHAPES {
        for activation in [Activation::Relu, Activation::Tanh] {
            for precisions in [learned(), half, fixed()] {
                for minibatch in [None, Some(batch(37))] {
                    check(hidden, activation, precisions, minibatch);
                }
            }
        }
    }
}

#[test]
fn the_score_matches_the_naive_twin() {
    everywhere(|hidden, activation, precisions, batch| {
        let data = data(37, 3);
        let model = model::<f64>(hidden, activation, &data, precisions);
        let start = model.start_sample(2, 3).unwrap();
        let hidden = hidden.to_vec();
        let (residual, own) = (false, batch.clone());
        let twin = Naive { hidden, activation, residual, data, precisions, batch: own };
        let twin = Autodiff::new(twin);
        for i in 0..2 {
            // Biases too must be away from 0.
            let theta: Vec<f64> = start.row(i).iter().map(|x| x + 0.05).collect();
            let (value, score) = at(&model, &theta, batch.as_ref());
            let (expected, expected_score) = at(&twin, &theta, None);
            assert!((value - expected).abs() < 1e-11 * expected.abs().max(1.0));
            assert!(disagreement(&score, &expected_score) < 1e-11, "{score:?} {expected_score:?}");
        }
    });
}

/// Layers that add what they are given: all of them, those at the top, those below, and none beside two that are equally
/// wide but not in a row.
#[test]
fn the_score_of_residual_layers_matches_the_naive_twin() {
    let shapes: [&[usize]; 5] = [&[6, 6], &[5, 5, 5], &[4, 7, 7], &[7, 7, 4], &[5, 3, 5]];
    for hidden in shapes {
        for activation in [Activation::Relu, Activation::Tanh] {
            for batch in [None, Some(batch(37))] {
                // As many features as units: what comes from outside is not added.
                let (data, precisions) = (data(37, 5), learned());
                let architecture = |residual| {
                    let hidden = hidden.to_vec();
                    Architecture { hidden, activation, residual, ..Default::default() }
                };
                let build = |residual| {
                    Bnn::<f64>::new(&architecture(residual), &data.0, &data.1, precisions).unwrap()
                };
                let (model, plain) = (build(true), build(false));
                let start = model.start_sample(1, 3).unwrap();
                let theta: Vec<f64> = start.row(0).iter().map(|x| x + 0.05).collect();
                let (hidden, residual, own) = (hidden.to_vec(), true, batch.clone());
                let is_wide = hidden.windows(2).any(|pair| pair[0] == pair[1]);
                let data = data.clone();
                let twin = Naive { hidden, activation, residual, data, precisions, batch: own };
                let (value, score) = at(&model, &theta, batch.as_ref());
                let (expected, expected_score) = at(&Autodiff::new(twin), &theta, None);
                assert!((value - expected).abs() < 1e-11 * expected.abs().max(1.0));
                let worst = disagreement(&score, &expected_score);
                assert!(worst < 1e-11, "{:?}: {worst}", architecture(true));
                let same = value == at(&plain, &theta, batch.as_ref()).0;
                assert_eq!(same, !is_wide, "{:?}", architecture(true));
            }
        }
    }
}

#[test]
fn the_score_matches_central_differences() {
    everywhere(|hidden, activation, precisions, batch| {
        let model = model::<f64>(hidden, activation, &data(37, 3), precisions);
        let start = model.start_sample(1, 8).unwrap();
        // With biases of 0, a unit below which all are silent would sit on its kink.
        let mut theta: Vec<f64> = start.row(0).iter().map(|x| x + 0.05).collect();
        let (_, score) = at(&model, &theta, batch.as_ref());
        let step = 1e-5;
        let mut differences = Vec::new();
        for j in 0..theta.len() {
            let centre = theta[j];
            let mut value = |x: f64| {
                theta[j] = x;
                at(&model, &theta, batch.as_ref()).0
            };
            differences.push((value(centre + step) - value(centre - step)) / (2.0 * step));
            theta[j] = centre;
        }
        let worst = disagreement(&score, &differences);
        assert!(worst < 1e-6, "{hidden:?} {activation:?} {precisions:?}: {worst}");
    });
}

#[test]
fn both_precisions_agree() {
    for hidden in SHAPES {
        for activation in [Activation::Relu, Activation::Tanh] {
            let data = data(300, 4);
            let in_f64 = model::<f64>(hidden, activation, &data, learned());
            let in_f32 = model::<f32>(hidden, activation, &data, learned());
            let start = in_f64.start_sample(1, 2).unwrap();
            let (value, score) = at(&in_f64, start.row(0), None);
            let (rounded, rounded_score) = at(&in_f32, start.cast::<f32>().row(0), None);
            assert!((f64::from(rounded) - value).abs() < 1e-4 * value.abs());
            assert!(disagreement(&rounded_score, &score) < 1e-4);
        }
    }
}

/// One input, one unit: x = 2, y = 1, θ = (w₁, b₁, w₂, b₂, log γ, log λ) = (1.5, −1, 0.5, 0.25, 0, 0).
/// z = 1.5·2 − 1 = 2, f = 0.5·2 + 0.25 = 1.25, y − f = −0.25, γ = λ = 1.
#[test]
fn a_network_of_width_one_by_hand() {
    let inputs = Matrix::from_vec(vec![2.0], 1, 1).unwrap();
    let architecture =
        Architecture { hidden: vec![1], activation: Activation::Relu, ..Default::default() };
    let model = Bnn::<f64>::new(&architecture, &inputs, &[1.0], Precisions::default()).unwrap();
    assert_eq!(
        model.parameter_names(),
        ["w1_1_1", "b1_1", "w2_1_1", "b2_1", "log_gamma", "log_lambda"]
    );
    let (value, score) = at(&model, &[1.5, -1.0, 0.5, 0.25, 0.0, 0.0], None);
    // −¼·w₂·x − w₁, −¼·w₂ − b₁, −¼·z − w₂, −¼ − b₂; |w|² = 2.25 + 1 + 0.25 + 0.0625 = 3.5625;
    // ½ − ½/16 + 1 − 0.1 and ½·4 − ½·3.5625 + 1 − 0.1.
    let expected = [-1.75, 0.875, -1.0, -0.5, 1.368_75, 1.118_75];
    assert!(disagreement(&score, &expected) < 1e-15, "{score:?}");
    // Five Gaussians, their squares, and log 0.1 − 0.1 twice.
    let log_two_pi = 1.837_877_066_409_345_3;
    let expected = -2.5 * log_two_pi - 0.031_25 - 1.781_25 + 2.0 * (-LN_10 - 0.1);
    assert!((value - expected).abs() < 1e-14, "{value} and {expected}");
}
