//! Noise that depends on the input: its density by its predictions, its score by differences, and what it learns.

use steinflow::dynamics::Langevin;
use steinflow::field::Stein;
use steinflow::integrator::{Adaptive, StepSize};
use steinflow::kernel::Kernel;
use steinflow::{LogDensity, Matrix, Minibatch, Real, Sampler};
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Architecture, Bnn, Precisions};

use crate::support::{at, data, disagreement, fixed, learned, normals};

fn architecture(hidden: &[usize]) -> Architecture {
    let hidden = hidden.to_vec();
    let activation = Activation::Tanh;
    Architecture { hidden, activation, noise_by_input: true, ..Default::default() }
}

fn network<T: Real>(
    hidden: &[usize],
    (inputs, targets): &(Matrix<f64>, Vec<f64>),
    precisions: Precisions,
) -> Bnn<T> {
    Bnn::new(&architecture(hidden), inputs, targets, precisions).unwrap()
}

const SHAPES: [&[usize]; 4] = [&[], &[7], &[50], &[6, 4]];

#[test]
fn the_density_is_that_of_the_predictions() {
    for hidden in SHAPES {
        for precisions in [learned(), fixed()] {
            // More rows than a tile, and not a multiple of anything.
            let data = data(301, 3);
            let model = network::<f64>(hidden, &data, precisions);
            let prior = Bnn::<f64>::prior(&architecture(hidden), 3, precisions).unwrap();
            let theta = model.start_sample(1, 4).unwrap();
            let predictive = model.predict(theta.as_ref(), &data.0).unwrap();
            let likelihood: f64 = predictive.log_likelihoods(&data.1).unwrap().iter().sum();
            let found = at(&model, theta.row(0), None).0 - at(&prior, theta.row(0), None).0;
            assert!((found - likelihood).abs() < 1e-9 * likelihood.abs(), "{found}, {likelihood}");
            assert!(predictive.noise().1 > 1e-3, "the noise is the same everywhere");
        }
    }
}

#[test]
fn the_score_matches_central_differences_in_both_precisions() {
    for hidden in SHAPES {
        for batch in [None, Some(Minibatch { indices: vec![3, 30, 8], scale: 12.0 })] {
            let data = data(37, 3);
            let model = network::<f64>(hidden, &data, learned());
            let narrow = network::<f32>(hidden, &data, learned());
            let start = model.start_sample(1, 8).unwrap();
            let mut theta: Vec<f64> = start.row(0).iter().map(|x| x + 0.05).collect();
            let (_, score) = at(&model, &theta, batch.as_ref());
            let single: Vec<f32> = theta.iter().map(|&x| x as f32).collect();
            assert!(disagreement(&at(&narrow, &single, batch.as_ref()).1, &score) < 1e-4);
            let differences: Vec<f64> = (0..theta.len())
                .map(|j| {
                    let centre = theta[j];
                    theta[j] = centre + 1e-5;
                    let above = at(&model, &theta, batch.as_ref()).0;
                    theta[j] = centre - 1e-5;
                    let below = at(&model, &theta, batch.as_ref()).0;
                    theta[j] = centre;
                    (above - below) / 2e-5
                })
                .collect();
            assert!(disagreement(&score, &differences) < 1e-7, "{hidden:?}");
        }
    }
}

/// Where the noise is 0.1 on the left and 0.6 on the right, intervals are honest on both sides.
#[test]
fn intervals_are_honest_where_noise_differs() {
    let (inputs, noise) = (normals(600, 1, 5), normals(600, 1, 6));
    let sd = |x: f64| if x < 0.0 { 0.1 } else { 0.6 };
    let targets: Vec<f64> = (0..600)
        .map(|i| {
            let x: f64 = inputs.row(i)[0];
            x.sin() + sd(x) * noise.row(i)[0]
        })
        .collect();
    let data = (inputs, targets);
    let coverage = |model: &Bnn<f32>| {
        let start = model.start_sample(20, 1).unwrap().cast();
        let outcome = Sampler::<f32>::new(model, Langevin::new(), Stein::new(Kernel::default()))
            .start_at(start)
            .batch_size(100)
            .phase(Adaptive::adam(), 3000, StepSize::Constant(0.01))
            .seed(2)
            .run()
            .unwrap();
        let theta = outcome.theta();
        [true, false].map(|left| {
            let rows: Vec<usize> = (0..600).filter(|&i| (data.0.row(i)[0] < 0.0) == left).collect();
            let inputs = Matrix::from_fn(rows.len(), 1, |i, _| data.0.row(rows[i])[0]);
            let targets: Vec<f64> = rows.iter().map(|&i| data.1[i]).collect();
            let predictive = model.predict(theta.as_ref(), &inputs).unwrap();
            (
                predictive.coverage(&targets, 0.9).unwrap(),
                predictive.mean_log_likelihood(&targets).unwrap(),
            )
        })
    };
    let same = {
        let architecture = Architecture { noise_by_input: false, ..architecture(&[20]) };
        Bnn::<f32>::new(&architecture, &data.0, &data.1, Precisions::default()).unwrap()
    };
    let [left, right] = coverage(&network::<f32>(&[20], &data, Precisions::default()));
    // 300 rows on a side: 0.9 ± 4 · 0.017.
    for side in [left, right] {
        assert!((0.83..0.97).contains(&side.0), "{left:?}, {right:?}");
    }
    let [same_left, same_right] = coverage(&same);
    assert!(same_left.0 > 0.99 && same_right.0 < 0.88, "{same_left:?}, {same_right:?}");
    assert!(left.1 + right.1 > same_left.1 + same_right.1 + 0.5);
    assert_eq!(
        LogDensity::<f32>::dim(&same) + 21,
        LogDensity::<f32>::dim(&network::<f32>(&[20], &data, Precisions::default()))
    );
}
