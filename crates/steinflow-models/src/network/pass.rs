//! One particle on one tile of data, forwards and backwards:
//! δ_L = cγ(y − f), δ_{l−1} = W_lᵀδ_l ⊙ φ′, ∂/∂W_l = δ_l a_{l−1}ᵀ, ∂/∂b_l = Σ δ_l.
//!
//! Everything is stored unit by unit (`units × rows of data`), so that a loop over the data is a loop
//! over neighbours in memory.

use steinflow::Real;

use super::architecture::{Layer, Layout};
use super::{Activation, simd};

/// A few rows of data, feature by feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a, T> {
    /// `features × width`, where the width is a multiple of [`LANES`](simd::LANES); zeros after the
    /// last row.
    pub(super) inputs: &'a [T],
    /// As many as there are rows.
    pub(super) targets: &'a [T],
}

/// The room that `rows` rows of data take.
pub(super) fn width(rows: usize) -> usize {
    rows.next_multiple_of(simd::LANES)
}

/// The shape of the network that a pass is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network<'a> {
    pub(super) layout: &'a Layout,
    pub(super) activation: Activation,
}

/// What one pass needs besides θ and the data; grows to the largest pass it has seen.
#[derive(Clone, Debug)]
pub(super) struct Workspace<T> {
    /// a_l of every hidden layer, then δ_l in its place.
    hidden: Vec<Vec<T>>,
    derivative: Vec<T>,
    output: Vec<T>,
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        Self { hidden: Vec::new(), derivative: Vec::new(), output: Vec::new() }
    }
}

impl<T: Real> Workspace<T> {
    fn prepare(&mut self, layout: &Layout, width: usize) {
        let grow = |buffer: &mut Vec<T>, units: usize| {
            if buffer.len() < units * width {
                buffer.resize(units * width, T::zero());
            }
        };
        self.hidden.resize_with(layout.hidden.len(), Vec::new);
        for (buffer, layer) in self.hidden.iter_mut().zip(&layout.hidden) {
            grow(buffer, layer.outputs);
            grow(&mut self.derivative, layer.outputs);
        }
        grow(&mut self.output, 1);
    }

    /// f(x) for all columns of `inputs`, a matrix of `features × width`.
    pub(super) fn forward(
        &mut self,
        network: Network<'_>,
        theta: &[T],
        inputs: &[T],
        width: usize,
    ) -> &mut [T] {
        let layout = network.layout;
        self.prepare(layout, width);
        for (l, layer) in layout.hidden.iter().enumerate() {
            let (before, here) = self.hidden.split_at_mut(l);
            let before = before.last().map_or(inputs, |a| &a[..layer.inputs * width]);
            let here = &mut here[0][..layer.outputs * width];
            let (weights, biases) = layer.of(theta);
            for (z, &bias) in here.chunks_exact_mut(width).zip(biases) {
                z.fill(bias);
            }
            T::accumulate_product(weights, before, here, layer.outputs, width, layer.inputs);
            simd::activate(network.activation, here, &mut self.derivative);
        }
        let last = self.hidden.last().map_or(inputs, |a| &a[..layout.output.inputs * width]);
        let (weights, biases) = layout.output.of(theta);
        let f = &mut self.output[..width];
        simd::output(weights, biases[0], last, f);
        f
    }

    /// Adds c ∂(−½γ Σ (y − f)²)/∂w to `score`, for `factor` = cγ, and returns Σ (y − f)².
    pub(super) fn add_score(
        &mut self,
        network: Network<'_>,
        theta: &[T],
        tile: Tile<'_, T>,
        factor: T,
        score: &mut [T],
    ) -> T {
        let Network { layout, activation } = network;
        let width = width(tile.targets.len());
        let f = self.forward(network, theta, tile.inputs, width);
        let squares = output_derivative(tile.targets, factor, f);
        let delta = &self.output[..width];

        let (weights, _) = layout.output.of(theta);
        let (below, above) = layout.split_output(score);
        let (weight_score, bias_score) = above.split_at_mut(layout.output.inputs);
        bias_score[0] += delta.iter().copied().sum();
        if let Some((last, a)) = layout.hidden.last().zip(self.hidden.last_mut()) {
            let a = &mut a[..last.outputs * width];
            let bias_score = last.of_mut(below).1;
            simd::OutputBackward { activation, delta, weights, a, weight_score, bias_score }.run();
        } else {
            let features = layout.output.inputs;
            T::accumulate_product_transposed(delta, tile.inputs, weight_score, 1, features, width);
        }

        for (l, layer) in layout.hidden.iter().enumerate().rev() {
            let Layer { inputs, outputs, .. } = *layer;
            let (before, here) = self.hidden.split_at_mut(l);
            let delta = &here[0][..outputs * width];
            let a = before.last().map_or(tile.inputs, |a| &a[..inputs * width]);
            let weight_score = layer.of_mut(score).0;
            T::accumulate_product_transposed(delta, a, weight_score, outputs, inputs, width);
            if let Some(a) = before.last_mut() {
                let derivative = &mut self.derivative[..inputs * width];
                let (weights, _) = layer.of(theta);
                T::transposed_product(weights, delta, derivative, inputs, width, outputs);
                let bias_score = layout.hidden[l - 1].of_mut(score).1;
                let a = &mut a[..inputs * width];
                simd::HiddenBackward { activation, derivative, a, bias_score }.run();
            }
        }
        squares
    }
}

/// f ← factor · (y − f) in the rows that exist and 0 after them; returns Σ (y − f)².
fn output_derivative<T: Real>(targets: &[T], factor: T, f: &mut [T]) -> T {
    let mut squares = T::zero();
    for (f, &y) in f.iter_mut().zip(targets) {
        let residual = y - *f;
        squares += residual * residual;
        *f = factor * residual;
    }
    f[targets.len()..].fill(T::zero());
    squares
}
