//! A short run of particles on a network, from its start to its predictions.

use steinflow::Sampler;
use steinflow::dynamics::Langevin;
use steinflow::field::Stein;
use steinflow::integrator::{Adaptive, StepSize};
use steinflow::kernel::Kernel;
use steinflow_models::Describe;
use steinflow_models::network::{Activation, Precision, Precisions};

use crate::support::{data, model};

#[test]
fn particles_learn_a_nonlinear_function() {
    let training = data(400, 2);
    // The noise of the data has standard deviation 0.2.
    let precisions = Precisions { noise: Precision::default(), weights: Precision::Fixed(1.0) };
    let model = model::<f32>(&[20], Activation::Tanh, &training, precisions);
    let start = model.start_sample(20, 1).unwrap().cast();
    let before = model.predict(start.as_ref(), &training.0).unwrap();
    let outcome = Sampler::<f32>::new(&model, Langevin::new(), Stein::new(Kernel::default()))
        .start_at(start)
        .batch_size(100)
        .phase(Adaptive::adam(), 1500, StepSize::Constant(0.01))
        .seed(2)
        .run()
        .unwrap();
    let after = model.predict(outcome.theta().as_ref(), &training.0).unwrap();
    let targets = &training.1;
    let (rmse_before, rmse) = (before.rmse(targets).unwrap(), after.rmse(targets).unwrap());
    assert!(rmse_before > 0.7 && rmse < 0.3, "the error went from {rmse_before} to {rmse}");
    // log N(y | f, 0.2²) is about 0.19 on average where f is known.
    let log_likelihood = after.mean_log_likelihood(targets).unwrap();
    assert!(log_likelihood > -0.2, "{log_likelihood}");
    let coverage = after.coverage(targets, 0.9).unwrap();
    assert!(coverage > 0.8, "{coverage}");
}
