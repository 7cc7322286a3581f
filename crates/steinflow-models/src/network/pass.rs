//! One particle on one tile of data, forwards and backwards:
//! δ_L = cγ(y − f), D_{l−1} = W_lᵀδ_l, δ_{l−1} = D_{l−1} ⊙ φ′, ∂/∂W_l = δ_l a_{l−1}ᵀ, ∂/∂b_l = Σ δ_l; a layer that
//! adds what it was given has D_{l−1} = W_lᵀδ_l + D_l.
//!
//! Everything is stored unit by unit (`units × rows of data`), so that a loop over the data is a loop
//! over neighbours in memory.

use steinflow::Real;

use super::aligned::Aligned;
use super::architecture::{Layer, Layout};
use super::likelihood::Likelihood;
use super::{Activation, few_inputs, simd};

/// A few rows of data, feature by feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile<'a, T> {
    /// `features × width`, where the width is a multiple of [`LANES`](simd::LANES); zeros after the
    /// last row.
    pub(super) inputs: &'a [T],
    /// The same row by row, where there are few inputs.
    pub(super) by_row: Option<&'a [T]>,
    /// As many as the tile is wide.
    pub(super) targets: &'a [T],
    pub(super) rows: usize,
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
    pub(super) likelihood: Likelihood,
}

/// What one pass needs besides θ and the data.
#[derive(Clone, Debug)]
pub(super) struct Workspace<T> {
    /// φ of every hidden layer, then δ_l in its place.
    hidden: Vec<Aligned<T>>,
    /// a_l of those layers that add what they were given; a_l of others is φ.
    sums: Vec<Aligned<T>>,
    /// D_l of one layer after the other.
    derivative: Aligned<T>,
    output: Aligned<T>,
}

impl<T> Default for Workspace<T> {
    fn default() -> Self {
        let (derivative, output) = (Aligned::default(), Aligned::default());
        Self { hidden: Vec::new(), sums: Vec::new(), derivative, output }
    }
}

impl<T: Real> Workspace<T> {
    fn prepare(&mut self, layout: &Layout, width: usize) {
        self.hidden.resize_with(layout.hidden.len(), Aligned::default);
        self.sums.resize_with(layout.hidden.len(), Aligned::default);
        let buffers = self.hidden.iter_mut().zip(&mut self.sums);
        for ((buffer, sums), layer) in buffers.zip(&layout.hidden) {
            buffer.reserve(layer.outputs * width);
            self.derivative.reserve(layer.outputs * width);
            if layer.skips {
                sums.reserve(layer.outputs * width);
            }
        }
        self.output.reserve(layout.output.outputs * width);
    }

    /// f(x), and what other outputs there are, for all columns of `inputs`, a matrix of `features × width`.
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
            let (sums_before, sums) = self.sums.split_at_mut(l);
            let before = given(layout, before, sums_before, width).unwrap_or(inputs);
            let here = here[0].first_mut(layer.outputs * width);
            let (weights, biases) = layer.of(theta);
            T::product(weights, before, here, layer.outputs, width, layer.inputs);
            let scratch = self.derivative.first_mut(here.len());
            simd::activate(network.activation, biases, here, scratch);
            if layer.skips {
                let sums = sums[0].first_mut(here.len()).iter_mut();
                sums.zip(here).zip(before).for_each(|((sum, here), before)| *sum = *here + *before);
            }
        }
        let last = given(layout, &self.hidden, &self.sums, width).unwrap_or(inputs);
        let (weights, biases) = layout.output.of(theta);
        let Layer { inputs, outputs, .. } = layout.output;
        let f = self.output.first_mut(outputs * width);
        if outputs == 1 {
            simd::output(weights, biases[0], last, f);
            return f;
        }
        T::product(weights, last, f, outputs, width, inputs);
        for (f, &bias) in f.chunks_exact_mut(width).zip(biases) {
            for f in f {
                *f += bias;
            }
        }
        f
    }

    /// Adds c ∂ℓ/∂w to `score`, for the `factors` cγ and c, and returns the sums of [`Likelihood::slopes`].
    pub(super) fn add_score(
        &mut self,
        network: Network<'_>,
        theta: &[T],
        tile: Tile<'_, T>,
        factors: (T, T),
        score: &mut [T],
    ) -> (T, T) {
        let Network { layout, activation, likelihood } = network;
        let width = tile.targets.len();
        let f = self.forward(network, theta, tile.inputs, width);
        let sums = if likelihood == Likelihood::Normal {
            simd::residuals(tile.targets, f, tile.rows);
            let (squares, sum) = simd::scale_and_sum(factors.0, f);
            if layout.hidden.last().is_some_and(|layer| layer.skips) {
                self.add_output_scores(network, theta, tile, score);
            } else {
                self.add_output_score(network, theta, tile, sum, score);
            }
            (squares, T::zero())
        } else {
            let sums = likelihood.slopes(tile.targets, f, tile.rows, factors);
            self.add_output_scores(network, theta, tile, score);
            sums
        };
        self.add_hidden_scores(layout, activation, theta, tile, score);
        sums
    }

    /// From δ of the one output, whose sum is given, to δ of the last hidden layer.
    fn add_output_score(
        &mut self,
        Network { layout, activation, .. }: Network<'_>,
        theta: &[T],
        tile: Tile<'_, T>,
        sum: T,
        score: &mut [T],
    ) {
        let width = tile.targets.len();
        let delta = self.output.first(width);
        let (weights, _) = layout.output.of(theta);
        let (below, above) = layout.split_output(score);
        let (weight_score, bias_score) = above.split_at_mut(layout.output.inputs);
        bias_score[0] += sum;
        if let Some((last, a)) = layout.hidden.last().zip(self.hidden.last_mut()) {
            let a = a.first_mut(last.outputs * width);
            let bias_score = last.of_mut(below).1;
            simd::OutputBackward { delta, weights, a, weight_score, bias_score }.run(activation);
        } else {
            let features = layout.output.inputs;
            T::accumulate_product_transposed(delta, tile.inputs, weight_score, 1, features, width);
        }
    }

    /// The same from δ of several outputs.
    fn add_output_scores(
        &mut self,
        Network { layout, activation, .. }: Network<'_>,
        theta: &[T],
        tile: Tile<'_, T>,
        score: &mut [T],
    ) {
        let width = tile.targets.len();
        let Layer { inputs, outputs, .. } = layout.output;
        let delta = self.output.first(outputs * width);
        let (weights, _) = layout.output.of(theta);
        let (below, above) = layout.split_output(score);
        let (weight_score, bias_score) = above.split_at_mut(inputs * outputs);
        for (bias, delta) in bias_score.iter_mut().zip(delta.chunks_exact(width)) {
            *bias += delta.iter().copied().sum();
        }
        let a = given(layout, &self.hidden, &self.sums, width).unwrap_or(tile.inputs);
        T::accumulate_product_transposed(delta, a, weight_score, outputs, inputs, width);
        let Some((last, a)) = layout.hidden.last().zip(self.hidden.last_mut()) else { return };
        let a = a.first_mut(inputs * width);
        let derivative = self.derivative.first_mut(inputs * width);
        T::transposed_product(weights, delta, derivative, inputs, width, outputs);
        let bias_score = last.of_mut(below).1;
        simd::HiddenBackward { derivative, a, bias_score }.run(activation);
    }

    /// From δ of the last hidden layer down to the inputs.
    fn add_hidden_scores(
        &mut self,
        layout: &Layout,
        activation: Activation,
        theta: &[T],
        tile: Tile<'_, T>,
        score: &mut [T],
    ) {
        let width = tile.targets.len();
        for (l, layer) in layout.hidden.iter().enumerate().rev() {
            let Layer { inputs, outputs, .. } = *layer;
            let (before, here) = self.hidden.split_at_mut(l);
            let delta = here[0].first(outputs * width);
            let a = given(layout, before, &self.sums[..l], width).unwrap_or(tile.inputs);
            let weight_score = layer.of_mut(score).0;
            match tile.by_row {
                Some(rows) if l == 0 => {
                    few_inputs::add_products(delta, width, rows, inputs, weight_score);
                }
                _ => {
                    T::accumulate_product_transposed(
                        delta,
                        a,
                        weight_score,
                        outputs,
                        inputs,
                        width,
                    );
                }
            }
            if let Some(a) = before.last_mut() {
                let derivative = self.derivative.first_mut(inputs * width);
                let (weights, _) = layer.of(theta);
                if layer.skips {
                    // D_l is there still.
                    T::accumulate_transposed_product(
                        weights, delta, derivative, inputs, width, outputs,
                    );
                } else {
                    T::transposed_product(weights, delta, derivative, inputs, width, outputs);
                }
                let bias_score = layout.hidden[l - 1].of_mut(score).1;
                let a = a.first_mut(inputs * width);
                simd::HiddenBackward { derivative, a, bias_score }.run(activation);
            }
        }
    }
}

/// What the last of some hidden layers gives; none where there is none.
fn given<'a, T: Real>(
    layout: &Layout,
    hidden: &'a [Aligned<T>],
    sums: &'a [Aligned<T>],
    width: usize,
) -> Option<&'a [T]> {
    let last = hidden.len().checked_sub(1)?;
    let layer = &layout.hidden[last];
    let from = if layer.skips { &sums[last] } else { &hidden[last] };
    Some(from.first(layer.outputs * width))
}
