//! One particle on one tile of data, forwards and backwards:
//! δ_L = cγ(y − f), δ_{l−1} = W_lᵀδ_l ⊙ φ′, ∂/∂W_l = δ_l a_{l−1}ᵀ, ∂/∂b_l = Σ δ_l.
//!
//! Everything is stored unit by unit (`units × rows of data`), so that a loop over the data is a loop
//! over neighbours in memory.

use steinflow::Real;

use super::architecture::Layout;
use super::{Activation, simd};

/// A few rows of data, feature by feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a, T> {
    /// `features × rows`.
    pub(super) inputs: &'a [T],
    pub(super) targets: &'a [T],
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
    fn prepare(&mut self, layout: &Layout, rows: usize) {
        let grow = |buffer: &mut Vec<T>, units: usize| {
            if buffer.len() < units * rows {
                buffer.resize(units * rows, T::zero());
            }
        };
        self.hidden.resize_with(layout.hidden.len(), Vec::new);
        for (buffer, layer) in self.hidden.iter_mut().zip(&layout.hidden) {
            grow(buffer, layer.outputs);
        }
        grow(
            &mut self.derivative,
            layout.hidden.iter().map(|layer| layer.outputs).max().unwrap_or(0),
        );
        grow(&mut self.output, 1);
    }

    /// f(x) of every row of the tile whose inputs are given.
    pub(super) fn forward(
        &mut self,
        layout: &Layout,
        activation: Activation,
        theta: &[T],
        inputs: &[T],
        rows: usize,
    ) -> &mut [T] {
        self.prepare(layout, rows);
        for (l, layer) in layout.hidden.iter().enumerate() {
            let (before, here) = self.hidden.split_at_mut(l);
            let before = before.last().map_or(inputs, |a| &a[..layer.inputs * rows]);
            let here = &mut here[0][..layer.outputs * rows];
            let (weights, biases) = layer.of(theta);
            for (z, &bias) in here.chunks_exact_mut(rows).zip(biases) {
                z.fill(bias);
            }
            T::accumulate_product(weights, before, here, layer.outputs, rows, layer.inputs);
            simd::activate(activation, here, &mut self.derivative);
        }
        let last = self.hidden.last().map_or(inputs, |a| &a[..layout.output.inputs * rows]);
        let (weights, biases) = layout.output.of(theta);
        let f = &mut self.output[..rows];
        simd::output(weights, biases[0], last, f);
        f
    }

    /// Adds c ∂(−½γ Σ (y − f)²)/∂w to `score`, for `factor` = cγ, and returns Σ (y − f)².
    pub(super) fn add_score(
        &mut self,
        layout: &Layout,
        activation: Activation,
        theta: &[T],
        tile: Tile<'_, T>,
        factor: T,
        score: &mut [T],
    ) -> T {
        let rows = tile.targets.len();
        let f = self.forward(layout, activation, theta, tile.inputs, rows);
        let squares = simd::residuals(tile.targets, factor, f);
        let delta = &self.output[..rows];
        let (output_weights, _) = layout.output.of(theta);
        layout.output.of_mut(score).1[0] += delta.iter().copied().sum();
        let Some((last, hidden)) = layout.hidden.split_last() else {
            simd::add_products(delta, tile.inputs, layout.output.of_mut(score).0);
            return squares;
        };
        // Each layer's scores stand before those of the layer above it.
        let (below, above) = score.split_at_mut(layout.weights - last.outputs - 1);
        simd::output_backward(
            activation,
            delta,
            output_weights,
            &mut self.hidden[hidden.len()][..last.outputs * rows],
            &mut above[..last.outputs],
            last.of_mut(below).1,
        );
        for (l, layer) in layout.hidden.iter().enumerate().rev() {
            let (before, here) = self.hidden.split_at_mut(l);
            let delta = &here[0][..layer.outputs * rows];
            let Some(before) = before.last_mut() else {
                let score = layer.of_mut(score).0;
                T::accumulate_product_transposed(
                    delta,
                    tile.inputs,
                    score,
                    layer.outputs,
                    layer.inputs,
                    rows,
                );
                break;
            };
            let before = &mut before[..layer.inputs * rows];
            let weight_score = layer.of_mut(score).0;
            T::accumulate_product_transposed(
                delta,
                before,
                weight_score,
                layer.outputs,
                layer.inputs,
                rows,
            );
            let derivative = &mut self.derivative[..layer.inputs * rows];
            let (weights, _) = layer.of(theta);
            T::transposed_product(weights, delta, derivative, layer.inputs, rows, layer.outputs);
            let bias_score = layout.hidden[l - 1].of_mut(score).1;
            simd::hidden_backward(activation, derivative, before, bias_score);
        }
        squares
    }
}
