//! Where particles begin.

use steinflow_models::Describe;
use steinflow_models::network::Activation;

use crate::support::{data, learned, model};

#[test]
fn a_particle_depends_on_the_seed_and_its_index_alone() {
    let model = model::<f64>(&[5], Activation::Relu, &data(10, 2), learned());
    let (few, many) = (model.start_sample(3, 7).unwrap(), model.start_sample(8, 7).unwrap());
    assert_eq!(few.as_slice(), &many.as_slice()[..few.as_slice().len()]);
    assert_ne!(few, model.start_sample(3, 8).unwrap());
    assert_ne!(few.row(0), few.row(1));
}

#[test]
fn weights_have_glorots_scale_and_precisions_their_priors() {
    let model = model::<f64>(&[5, 20], Activation::Relu, &data(10, 3), learned());
    let names = model.parameter_names();
    let count = 4000;
    let start = model.start_sample(count, 1).unwrap();
    let mean_of = |prefix: &str, f: &dyn Fn(f64) -> f64| {
        let columns = (0..names.len()).filter(|&j| names[j].starts_with(prefix));
        let values: Vec<f64> = columns
            .flat_map(|j| (0..count).map(move |i| (i, j)))
            .map(|(i, j)| f(start.row(i)[j]))
            .collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    for (prefix, fans) in [("w1", 3 + 5), ("w2", 5 + 20), ("w3", 20 + 1)] {
        let variance = mean_of(prefix, &|w| w * w);
        assert!((variance * f64::from(fans) / 2.0 - 1.0).abs() < 0.03, "{prefix}: {variance}");
        assert!(mean_of(prefix, &|w| w).abs() < 0.01);
    }
    assert_eq!(mean_of("b", &f64::abs), 0.0);
    // Gamma(1.5, 0.3) has mean 5, Gamma(0.8, 0.2) has mean 4.
    assert!((mean_of("log_gamma", &f64::exp) - 5.0).abs() < 0.3);
    assert!((mean_of("log_lambda", &f64::exp) - 4.0).abs() < 0.3);

    let gaussian = model.start();
    assert_eq!(gaussian.mean.len(), names.len());
    assert!(gaussian.sd > 0.1 && gaussian.sd < 0.6);
}
