//! A target of classes: the likelihood by hand, differences, probabilities, and a fit that must succeed.

use steinflow::dynamics::Langevin;
use steinflow::field::Stein;
use steinflow::integrator::{Adaptive, StepSize};
use steinflow::kernel::Kernel;
use steinflow::{LogDensity, Matrix, Minibatch, Real, Sampler};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};

use crate::support::{at, disagreement, fixed, learned, normals};

const CLASSES: usize = 3;

/// The class is the third of the plane, by angle, that a row lies in.
fn data(rows: usize) -> (Matrix<f64>, Vec<f64>) {
    let inputs = normals(rows, 2, 5);
    let third = |x: &[f64]| {
        let turn = (x[1].atan2(x[0]) / std::f64::consts::TAU + 1.0).fract();
        (turn * CLASSES as f64).floor()
    };
    let targets = (0..rows).map(|i| third(inputs.row(i))).collect();
    (inputs, targets)
}

fn architecture(hidden: &[usize]) -> Architecture {
    let activation = Activation::Tanh;
    Architecture { hidden: hidden.to_vec(), activation, classes: CLASSES, ..Default::default() }
}

fn network<T: Real>(hidden: &[usize], rows: usize, precisions: Precisions) -> Bnn<T> {
    let (inputs, targets) = data(rows);
    Bnn::new(&architecture(hidden), &inputs, &targets, precisions).unwrap()
}

/// Without hidden layers f = Wx + b, and log π is a sum of a few lines.
#[test]
fn the_density_is_the_textbook_s() {
    let (inputs, targets) = data(37);
    let model = network::<f64>(&[], 37, fixed());
    // λ = 1.7, and no γ.
    assert_eq!(LogDensity::<f64>::dim(&model), 9);
    let theta = normals(1, 9, 8);
    let theta = theta.row(0);
    let mut expected = 0.0;
    for (i, &y) in targets.iter().enumerate() {
        let f: Vec<f64> = (0..CLASSES)
            .map(|k| {
                theta[2 * k] * inputs.row(i)[0] + theta[2 * k + 1] * inputs.row(i)[1] + theta[6 + k]
            })
            .collect();
        expected += f[y as usize] - f.iter().map(|f| f.exp()).sum::<f64>().ln();
    }
    let squares: f64 = theta.iter().map(|w| w * w).sum();
    expected += 4.5 * (1.7 / std::f64::consts::TAU).ln() - 0.5 * 1.7 * squares;
    let (value, _) = at(&model, theta, None);
    assert!((value - expected).abs() < 1e-10, "{value} and {expected}");
}

#[test]
fn scores_are_differences() {
    let batch = Minibatch { indices: vec![3, 30, 7, 7], scale: 12.5 };
    for hidden in [&[][..], &[6], &[5, 4]] {
        let model = network::<f64>(hidden, 150, learned());
        for rows in [None, Some(&batch)] {
            let mut theta = model.start_sample(1, 4).unwrap().row(0).to_vec();
            let (_, score) = at(&model, &theta, rows);
            let differences: Vec<f64> = (0..theta.len())
                .map(|j| {
                    let centre = theta[j];
                    theta[j] = centre + 1e-5;
                    let above = at(&model, &theta, rows).0;
                    theta[j] = centre - 1e-5;
                    let below = at(&model, &theta, rows).0;
                    theta[j] = centre;
                    (above - below) / 2e-5
                })
                .collect();
            assert!(disagreement(&score, &differences) < 1e-7, "{hidden:?}");
            let rounded: Vec<f32> = theta.iter().map(|&x| x as f32).collect();
            let narrow = at(&network::<f32>(hidden, 150, learned()), &rounded, rows).1;
            assert!(disagreement(&narrow, &score) < 1e-3, "{hidden:?}");
        }
    }
}

#[test]
fn a_fit_knows_the_classes_and_how_sure_it_is() {
    let model = network::<f32>(&[20], 600, Precisions::default());
    let start = model.start_sample(20, 1).unwrap().cast();
    let outcome = Sampler::<f32>::new(&model, Langevin::new(), Stein::new(Kernel::default()))
        .start_at(start)
        .batch_size(100)
        .phase(Adaptive::adam(), 1500, StepSize::Constant(0.01))
        .seed(2)
        .run()
        .unwrap();
    // Rows that it has not seen.
    let (inputs, targets) = data(900);
    let new = Matrix::from_fn(300, 2, |i, j| inputs.row(600 + i)[j]);
    let predictive = model.predict_classes(outcome.theta().as_ref(), &new).unwrap();
    let seen = &targets[600..];
    assert!(predictive.accuracy(seen).unwrap() > 0.93);
    let scores = predictive.log_likelihoods(seen).unwrap();
    assert!(scores.iter().sum::<f64>() / 300.0 > -0.25);
    for row in 0..300 {
        let probabilities = predictive.probabilities(row);
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
    // Counts of all classes of all rows, and what they were promised is what is there.
    let bins = predictive.reliability(seen, 10).unwrap();
    assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), 300 * CLASSES);
    let promised: f64 = bins.iter().map(|bin| bin.count as f64 * bin.promised).sum();
    let found: f64 = bins.iter().map(|bin| bin.count as f64 * bin.seen).sum();
    assert!((promised - 300.0).abs() < 1e-3 && (found - 300.0).abs() < 1e-9);
    assert!(model.predict(outcome.theta().as_ref(), &new).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let (inputs, targets) = data(20);
    let refused = |architecture: &Architecture, targets: &[f64]| {
        let found = Bnn::<f64>::new(architecture, &inputs, targets, Precisions::default());
        found.unwrap_err().to_string()
    };
    let mut wrong = targets.clone();
    wrong[7] = 3.0;
    assert!(refused(&architecture(&[3]), &wrong).contains("3 in row 7"));
    wrong[7] = 0.5;
    assert!(refused(&architecture(&[3]), &wrong).contains("0.5 in row 7"));
    let one = Architecture { classes: 1, ..architecture(&[3]) };
    assert!(refused(&one, &targets).contains("classes is 1"));
    let noisy = Architecture { noise_by_input: true, ..architecture(&[3]) };
    assert!(refused(&noisy, &targets).contains("noise is input"));
}
