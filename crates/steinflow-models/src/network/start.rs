//! Where particles begin: weights ~ N(0, 2/(fan in + fan out)) (Glorot and Bengio 2010), biases 0, and
//! log γ, log λ from their Gamma priors, or from Gammas of mean 10 where the priors' means are larger:
//! particles that believe in a precise fit before they have one are thrown far away.

use rand_distr::{Distribution, StandardNormal};
use steinflow::Matrix;
use steinflow::random::{Purpose, stream};

use super::Precisions;
use super::architecture::{Layer, Layout};
use crate::Start;

fn glorot_sd(layer: &Layer) -> f64 {
    (2.0 / (layer.inputs + layer.outputs) as f64).sqrt()
}

/// `count` starting points, one a row; row `i` depends on `seed` and `i` alone.
pub(super) fn sample(
    layout: &Layout,
    precisions: &Precisions,
    count: usize,
    seed: u64,
) -> Matrix<f64> {
    let mut start = Matrix::zeros(count, layout.dim);
    for i in 0..count {
        let mut generator = stream(seed, Purpose::Start, 0, i as u64);
        let theta = start.row_mut(i);
        for layer in layout.layers() {
            let sd = glorot_sd(layer);
            for weight in layer.of_mut(theta).0 {
                let draw: f64 = StandardNormal.sample(&mut generator);
                *weight = sd * draw;
            }
        }
        if let Some(at) = layout.log_gamma {
            theta[at] = precisions.noise.for_start().draw_log(&mut generator);
        }
        if let Some(at) = layout.log_lambda {
            theta[at] = precisions.weights.for_start().draw_log(&mut generator);
        }
    }
    start
}

/// The nearest that one standard deviation for all coordinates comes to it.
pub(super) fn gaussian(layout: &Layout, precisions: &Precisions) -> Start {
    let mut mean = vec![0.0; layout.dim];
    if let Some(at) = layout.log_gamma {
        mean[at] = precisions.noise.for_start().mean().ln();
    }
    if let Some(at) = layout.log_lambda {
        mean[at] = precisions.weights.for_start().mean().ln();
    }
    let variance: f64 = layout
        .layers()
        .map(|layer| (layer.inputs * layer.outputs) as f64 * glorot_sd(layer).powi(2))
        .sum();
    Start { mean, sd: (variance / layout.dim as f64).sqrt() }
}
