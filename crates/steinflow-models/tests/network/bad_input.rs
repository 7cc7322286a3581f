//! Every wrong request is an error that names the value and the remedy.

use steinflow::{LogDensity, Matrix, Minibatch};
use steinflow_models::network::{Activation, Architecture, Bnn, Precision, Precisions};

use crate::support::{data, fixed, learned, model};

fn rejected(
    hidden: &[usize],
    inputs: &Matrix<f64>,
    targets: &[f64],
    precisions: Precisions,
) -> String {
    let architecture = Architecture {
        hidden: hidden.to_vec(),
        activation: Activation::Relu,
        ..Default::default()
    };
    let error = Bnn::<f64>::new(&architecture, inputs, targets, precisions).unwrap_err();
    assert!(error.is_usage());
    error.to_string()
}

#[test]
fn networks_that_cannot_be() {
    let (inputs, targets) = data(5, 2);
    for (hidden, said) in [
        (&[3, 0][..], "hidden is [3, 0]: give every hidden layer at least 1 unit"),
        (&[usize::MAX], "give fewer units"),
        (&[1 << 40, 1 << 40], "give fewer units"),
    ] {
        let message = rejected(hidden, &inputs, &targets, learned());
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn data_that_cannot_be() {
    let (inputs, targets) = data(5, 2);
    let message = rejected(&[3], &Matrix::zeros(0, 2), &[], learned());
    assert!(message.contains("0 rows of 2 features: give at least 1"), "{message}");
    let message = rejected(&[3], &Matrix::zeros(5, 0), &targets, learned());
    assert!(message.contains("5 rows of 0 features"), "{message}");
    let message = rejected(&[3], &inputs, &targets[..4], learned());
    assert!(message.contains("targets has 4 entries, expected 5"), "{message}");
    for bad in [f64::NAN, f64::INFINITY, 1e200] {
        let mut broken = inputs.clone();
        broken.row_mut(3)[1] = bad;
        let message = rejected(&[3], &broken, &targets, learned());
        assert!(message.contains(&format!("inputs is {bad} in row 3, column 1")), "{message}");
        let mut broken = targets.clone();
        broken[2] = bad;
        let message = rejected(&[3], &inputs, &broken, learned());
        assert!(message.contains(&format!("targets is {bad} in row 2")), "{message}");
    }
}

#[test]
fn precisions_that_cannot_be() {
    let (inputs, targets) = data(5, 2);
    for (precision, said) in [
        (Precision::Fixed(0.0), "precision is 0"),
        (Precision::Fixed(f64::NAN), "precision is NaN"),
        (Precision::Learned { shape: -1.0, rate: 1.0 }, "shape is -1"),
        (Precision::Learned { shape: 1.0, rate: f64::INFINITY }, "rate is inf"),
    ] {
        for precisions in [
            Precisions { noise: precision, ..fixed() },
            Precisions { weights: precision, ..fixed() },
        ] {
            let message = rejected(&[3], &inputs, &targets, precisions);
            assert!(message.contains(said) && message.contains("give a positive"), "{message}");
        }
    }
}

#[test]
fn requests_that_do_not_fit() {
    let model = model::<f64>(&[3], Activation::Relu, &data(5, 2), learned());
    let dim = model.dim();
    let evaluate = |cols: usize, values: usize, rows: Option<Minibatch>| {
        let (theta, mut score) = (Matrix::zeros(2, cols), Matrix::zeros(2, dim));
        let mut values = vec![0.0; values];
        model.evaluate(theta.as_ref(), rows.as_ref(), &mut values, score.as_mut())
    };
    evaluate(dim, 2, None).unwrap();
    let message = evaluate(dim - 1, 2, None).unwrap_err().to_string();
    assert!(message.contains(&format!("theta has 2 × {} entries", dim - 1)), "{message}");
    let message = evaluate(dim, 3, None).unwrap_err().to_string();
    assert!(message.contains("log_density has 3 × 1 entries"), "{message}");
    let outside = Minibatch { indices: vec![4, 5], scale: 2.5 };
    let message = evaluate(dim, 2, Some(outside)).unwrap_err().to_string();
    assert!(message.contains("minibatch index is 5: the data has 5 rows"), "{message}");
}

/// What overflows comes out as a number that is not finite, for the run loop to find.
#[test]
fn runaway_particles_do_not_panic() {
    for activation in [Activation::Relu, Activation::Tanh] {
        let model = model::<f32>(&[3, 2], activation, &data(5, 2), learned());
        for bad in [f32::NAN, f32::INFINITY, 1e30, -1e30] {
            let theta = Matrix::from_fn(1, model.dim(), |_, _| bad);
            let (mut value, mut score) = ([0.0], Matrix::zeros(1, model.dim()));
            model.evaluate(theta.as_ref(), None, &mut value, score.as_mut()).unwrap();
            assert!(!value[0].is_finite());
        }
    }
}
