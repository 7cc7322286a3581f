//! The shape of a network, f = W_L a_{L−1} + b_L with a_l = φ(W_l a_{l−1} + b_l) and a₀ = x, and where its
//! numbers stand in θ = [W₁ | b₁ | W₂ | b₂ | … | log γ | log λ]. Where it is residual, a hidden layer as wide as the one
//! before adds what that one gave: a_l = φ(W_l a_{l−1} + b_l) + a_{l−1} (He, Zhang, Ren and Sun 2016, CVPR).

use steinflow::Error;

use super::likelihood::Likelihood;
use super::{Precision, Precisions};
use crate::Result;

/// More weights than this are taken for a slip of the pen: one particle would fill 0.8 GB.
const MOST_WEIGHTS: usize = 100_000_000;

/// The function φ that a hidden unit applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// max(z, 0).
    #[default]
    Relu,
    /// tanh z.
    Tanh,
}

impl Activation {
    /// Reads a name: `relu` or `tanh`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "relu" => Ok(Self::Relu),
            "tanh" => Ok(Self::Tanh),
            other => Err(Error::unknown("activation", other, ["relu", "tanh"]).into()),
        }
    }

    /// φ of z, and φ′ where φ is a, as a device reads them.
    pub(super) fn device_code(self) -> String {
        let (value, derivative) = match self {
            Self::Relu => ("z > 0 ? z : real(0)", "a > 0 ? real(1) : real(0)"),
            Self::Tanh => ("tanh(z)", "1 - a * a"),
        };
        format!(
            "__device__ __forceinline__ real activate(real z) {{ return {value}; }}
             __device__ __forceinline__ real derivative(real a) {{ return {derivative}; }}"
        )
    }
}

/// Hidden layers, their activation, and what the outputs say; the input is as wide as the data. A target that is a
/// number takes one output, and a second one where the noise depends on the input; a target of classes takes one for
/// every class.
///
/// ```
/// use steinflow_models::network::{Activation, Architecture};
///
/// assert_eq!(Architecture::default().hidden, [50]);
/// let deeper = Architecture { hidden: vec![20, 10], activation: Activation::Tanh, ..Default::default() };
/// assert_eq!(deeper.weights(13)?, 20 * (13 + 1) + 10 * (20 + 1) + (10 + 1));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Units of every hidden layer, first to last. None at all is linear regression.
    pub hidden: Vec<usize>,
    /// φ, the same in every hidden layer.
    pub activation: Activation,
    /// Whether a hidden layer adds what it was given, where it is as wide as the hidden layer before.
    pub residual: bool,
    /// Whether the noise depends on the input, by a second output.
    pub noise_by_input: bool,
    /// How many classes the target has; 0 for a target that is a number.
    pub classes: usize,
}

impl Default for Architecture {
    /// One hidden layer of 50 rectified linear units.
    fn default() -> Self {
        Self {
            hidden: vec![50],
            activation: Activation::Relu,
            residual: false,
            noise_by_input: false,
            classes: 0,
        }
    }
}

impl Architecture {
    /// Numbers that come out of the last layer.
    pub fn outputs(&self) -> usize {
        match self.classes {
            0 => 1 + usize::from(self.noise_by_input),
            classes => classes,
        }
    }

    pub(super) fn likelihood(&self) -> Result<Likelihood> {
        match (self.classes, self.noise_by_input) {
            (0, false) => Ok(Likelihood::Normal),
            (0, true) => Ok(Likelihood::NormalByInput),
            (1, _) => {
                Err(Error::setting("classes", 1, "give two or more: one says nothing").into())
            }
            (_, false) => Ok(Likelihood::Classes),
            (_, true) => Err(Error::setting(
                "noise",
                "input",
                "a target of classes has no noise beside its probabilities; leave it out",
            )
            .into()),
        }
    }

    /// M, the number of weights and biases of a network with `features` inputs.
    pub fn weights(&self, features: usize) -> Result<usize> {
        let mut inputs = features;
        let mut weights = 0_usize;
        for &outputs in self.hidden.iter().chain(&[self.outputs()]) {
            if outputs == 0 {
                let remedy = "give every hidden layer at least 1 unit";
                return Err(Error::setting("hidden", format!("{:?}", self.hidden), remedy).into());
            }
            let layer = inputs.checked_add(1).and_then(|rows| rows.checked_mul(outputs));
            weights = layer
                .and_then(|layer| weights.checked_add(layer))
                .filter(|&weights| weights <= MOST_WEIGHTS)
                .ok_or_else(|| {
                    let remedy = format!(
                        "with {features} features that is more than {MOST_WEIGHTS} weights; give \
                         fewer units"
                    );
                    Error::setting("hidden", format!("{:?}", self.hidden), remedy)
                })?;
            inputs = outputs;
        }
        Ok(weights)
    }
}

/// One affine map: a matrix W of `outputs × inputs`, by rows, and as many biases as outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Whether what comes in is added to what goes out.
    pub(super) skips: bool,
    /// Where W begins in θ; the biases follow it.
    start: usize,
}

impl Layer {
    /// W and b of this layer.
    pub(super) fn of<'a, T>(&self, theta: &'a [T]) -> (&'a [T], &'a [T]) {
        theta[self.start..self.end()].split_at(self.inputs * self.outputs)
    }

    /// W and b of this layer, to change.
    pub(super) fn of_mut<'a, T>(&self, theta: &'a mut [T]) -> (&'a mut [T], &'a mut [T]) {
        let end = self.end();
        theta[self.start..end].split_at_mut(self.inputs * self.outputs)
    }

    fn end(&self) -> usize {
        self.start + (self.inputs + 1) * self.outputs
    }
}

/// Where everything stands in θ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) hidden: Vec<Layer>,
    pub(super) output: Layer,
    pub(super) weights: usize,
    pub(super) log_gamma: Option<usize>,
    pub(super) log_lambda: Option<usize>,
    pub(super) dim: usize,
}

impl Layout {
    pub(super) fn new(
        architecture: &Architecture,
        features: usize,
        precisions: &Precisions,
    ) -> Result<Self> {
        let weights = architecture.weights(features)?;
        let last = architecture.outputs();
        let mut next = Layer { inputs: features, outputs: last, skips: false, start: 0 };
        let mut hidden = Vec::with_capacity(architecture.hidden.len());
        for (l, &outputs) in architecture.hidden.iter().enumerate() {
            let skips = architecture.residual && l > 0 && outputs == next.inputs;
            let layer = Layer { outputs, skips, ..next };
            next = Layer { inputs: outputs, outputs: last, skips: false, start: layer.end() };
            hidden.push(layer);
        }
        let mut dim = weights;
        let mut place = |precision| match precision {
            Precision::Learned { .. } => {
                dim += 1;
                Some(dim - 1)
            }
            Precision::Fixed(_) => None,
        };
        let log_gamma = place(precisions.noise);
        let log_lambda = place(precisions.weights);
        Ok(Self { hidden, output: next, weights, log_gamma, log_lambda, dim })
    }

    /// Whether a layer adds what it was given.
    pub(super) fn is_residual(&self) -> bool {
        self.hidden.iter().any(|layer| layer.skips)
    }

    /// All layers, the output last.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.hidden.iter().chain([&self.output])
    }

    /// Cuts what is laid out like θ before the output layer.
    pub(super) fn split_output<'a, T>(&self, theta: &'a mut [T]) -> (&'a mut [T], &'a mut [T]) {
        theta.split_at_mut(self.output.start)
    }

    /// `w1_3_2` is the weight of layer 1 from input 2 to unit 3, `b1_3` the bias of that unit.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.dim);
        for (at, layer) in (1..).zip(self.layers()) {
            for unit in 1..=layer.outputs {
                names.extend((1..=layer.inputs).map(|input| format!("w{at}_{unit}_{input}")));
            }
            names.extend((1..=layer.outputs).map(|unit| format!("b{at}_{unit}")));
        }
        names.extend(self.log_gamma.map(|_| "log_gamma".to_owned()));
        names.extend(self.log_lambda.map(|_| "log_lambda".to_owned()));
        names
    }
}
