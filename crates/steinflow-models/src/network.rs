//! A Bayesian neural network for regression: y ~ N(f(x; w), 1/γ), w ~ N(0, I/λ), γ and λ ~ Gamma,
//! log π(θ) = c Σ_batch log N(y | f, 1/γ) + log N(w | 0, I/λ) + log p(log γ) + log p(log λ),
//! with c = n / batch size on a minibatch and 1 otherwise.
//!
//! Where the noise depends on the input, its precision is γeˢ, with s from a second output of the network. A target
//! of classes has P(y = k) = e^(f_k)/Σⱼ e^(f_j), with an output for every class, and no γ.
//!
//! θ = [W₁ | b₁ | W₂ | b₂ | … | log γ | log λ], each W by rows, a row a unit. All constants are kept, so
//! that log π is the log of the joint density of the data and θ.

mod aligned;
mod architecture;
mod block;
mod few_inputs;
pub(crate) mod fit;
mod likelihood;
mod noise;
mod pass;
mod precision;
mod predict;
mod simd;
mod start;

pub use architecture::{Activation, Architecture};
pub use fit::{DEFAULT_DATA, NetworkFit, NetworkSpec, TestRows};
pub use precision::{Precision, Precisions};

use std::f64::consts::TAU;

use rayon::prelude::*;
use steinflow::target::DeviceSource;
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use crate::checks::require_shapes;
use crate::pool::Pool;
use crate::prior::add_gaussian;
use crate::{Describe, Result, Start};
use architecture::Layout;
use block::{Block, ROWS_PER_BLOCK};
use likelihood::Likelihood;
use pass::{Network, Tile, Workspace};
use precision::AtParticle;

/// Squares of larger numbers overflow in `f32`; standardised data is nowhere near.
const LARGEST: f64 = 1e15;

const STANDARDISE: &str = "give finite numbers, standardised to mean 0 and standard deviation 1";

/// The posterior of a neural network's weights and precisions.
///
/// ```
/// use steinflow::{LogDensity, Matrix};
/// use steinflow_models::Describe;
/// use steinflow_models::network::{Architecture, Bnn, Precisions};
///
/// let inputs = Matrix::from_fn(40, 2, |i, j| ((i * (j + 3)) as f64).sin());
/// let targets: Vec<f64> = (0..40).map(|i| inputs.row(i)[0] * inputs.row(i)[1]).collect();
/// let model = Bnn::<f32>::new(&Architecture::default(), &inputs, &targets, Precisions::default())?;
///
/// let theta = model.start_sample(20, 1).expect("networks start at Glorot's scale").cast();
/// let (mut log_density, mut score) = (vec![0.0; 20], Matrix::zeros(20, model.dim()));
/// model.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
/// assert!(log_density.iter().all(|value| value.is_finite()));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bnn<T> {
    layout: Layout,
    activation: Activation,
    likelihood: Likelihood,
    precisions: Precisions,
    inputs: Matrix<T>,
    targets: Vec<T>,
    blocks: Pool<Block<T>>,
    /// Every particle's sums over rows: see [`Likelihood::slopes`].
    sums: Pool<Vec<[f64; 2]>>,
    workspaces: Pool<Workspace<T>>,
}

impl<T: Real> Bnn<T> {
    /// A network on data that is already standardised: a row of `inputs` for every target, which is a number or the
    /// number of a class. Classes have no noise: its precision is of no use to them.
    pub fn new(
        architecture: &Architecture,
        inputs: &Matrix<f64>,
        targets: &[f64],
        precisions: Precisions,
    ) -> Result<Self> {
        require_data(inputs, targets)?;
        let likelihood = architecture.likelihood()?;
        let mut precisions = precisions;
        if likelihood == Likelihood::Classes {
            require_classes(targets, architecture.classes)?;
            precisions.noise = Precision::Fixed(1.0);
        }
        precisions.noise.require_valid(["noise-shape", "noise-rate", "noise-precision"])?;
        precisions.weights.require_valid(["weight-shape", "weight-rate", "weight-precision"])?;
        Ok(Self {
            layout: Layout::new(architecture, inputs.cols(), &precisions)?,
            activation: architecture.activation,
            likelihood,
            precisions,
            inputs: inputs.cast(),
            targets: targets.iter().map(|&y| T::of(y)).collect(),
            blocks: Pool::default(),
            sums: Pool::default(),
            workspaces: Pool::default(),
        })
    }

    /// A network that has seen no data: its density is the prior, and with particles from elsewhere
    /// it predicts.
    pub fn prior(
        architecture: &Architecture,
        features: usize,
        precisions: Precisions,
    ) -> Result<Self> {
        let row = Self::new(architecture, &Matrix::zeros(1, features), &[0.0], precisions)?;
        Ok(Self { inputs: Matrix::zeros(0, features), targets: Vec::new(), ..row })
    }

    fn network(&self) -> Network<'_> {
        let (layout, activation) = (&self.layout, self.activation);
        Network { layout, activation, likelihood: self.likelihood }
    }

    /// γ and λ at one particle.
    fn precisions_at(&self, theta: &[T]) -> [AtParticle; 2] {
        let coordinate = |at: Option<usize>| at.map(|at| theta[at].as_f64());
        [
            self.precisions.noise.at(coordinate(self.layout.log_gamma)),
            self.precisions.weights.at(coordinate(self.layout.log_lambda)),
        ]
    }

    /// Adds c ∂/∂w of the log likelihood of some tiles to `score` and their sums to `sums`.
    fn add_likelihood<'a>(
        &self,
        workspace: &mut Workspace<T>,
        theta: &[T],
        tiles: impl Iterator<Item = Tile<'a, T>>,
        scale: f64,
        score: &mut [T],
        sums: &mut [f64; 2],
    ) {
        let [gamma, _] = self.precisions_at(theta);
        let factors = (T::of(scale * gamma.value), T::of(scale));
        // From 0, so that sums of tiles are added to those of other blocks at once.
        let mut own = [0.0; 2];
        for tile in tiles {
            let (squares, logs) = workspace.add_score(self.network(), theta, tile, factors, score);
            own[0] += squares.as_f64();
            own[1] += logs.as_f64();
        }
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
    }

    /// Adds the prior to a score that holds the likelihood of the weights, fills in the scores of
    /// log γ and log λ, and returns log π. `rows` is c times the number of rows in the batch, and
    /// `squares` and `logs` c times the sums of [`Likelihood::slopes`].
    fn finish(&self, theta: &[T], rows: f64, [squares, logs]: [f64; 2], score: &mut [T]) -> f64 {
        let [gamma, lambda] = self.precisions_at(theta);
        let weights = self.layout.weights;
        let norm =
            add_gaussian(T::one(), T::of(lambda.value), &theta[..weights], &mut score[..weights])
                .as_f64();
        let count = weights as f64;
        if let Some(at) = self.layout.log_gamma {
            score[at] = T::of((rows - gamma.value * squares) / 2.0 + gamma.prior_score);
        }
        if let Some(at) = self.layout.log_lambda {
            score[at] = T::of((count - lambda.value * norm) / 2.0 + lambda.prior_score);
        }
        let constant = match self.likelihood {
            Likelihood::Classes => 0.0,
            _ => gamma.log - TAU.ln(),
        };
        let gaussians = rows * constant + logs - gamma.value * squares
            + count * (lambda.log - TAU.ln())
            - lambda.value * norm;
        gaussians / 2.0 + gamma.log_prior + lambda.log_prior
    }
}

fn require_data(inputs: &Matrix<f64>, targets: &[f64]) -> Result<()> {
    require_inputs(inputs)?;
    if targets.len() != inputs.rows() {
        return Err(Error::Shape {
            what: "targets",
            found: format!("{} entries", targets.len()),
            expected: format!("{}, one for every row of inputs", inputs.rows()),
        }
        .into());
    }
    if let Some(row) = targets.iter().position(|&y| !(y.abs() <= LARGEST)) {
        let value = format!("{} in row {row}", targets[row]);
        return Err(Error::setting("targets", value, STANDARDISE).into());
    }
    Ok(())
}

fn require_classes(targets: &[f64], classes: usize) -> Result<()> {
    let is_class = |y: f64| y >= 0.0 && y < classes as f64 && y.fract() == 0.0;
    let Some(row) = targets.iter().position(|&y| !is_class(y)) else { return Ok(()) };
    let value = format!("{} in row {row}", targets[row]);
    let remedy = format!("give the numbers of {classes} classes, from 0");
    Err(Error::setting("targets", value, remedy).into())
}

fn require_inputs(inputs: &Matrix<f64>) -> Result<()> {
    if inputs.rows() == 0 || inputs.cols() == 0 {
        let value = format!("{} rows of {} features", inputs.rows(), inputs.cols());
        return Err(Error::setting("inputs", value, "give at least 1 row and 1 feature").into());
    }
    if let Some(at) = inputs.as_slice().iter().position(|&x| !(x.abs() <= LARGEST)) {
        let (row, column) = (at / inputs.cols(), at % inputs.cols());
        let value = format!("{} in row {row}, column {column}", inputs.as_slice()[at]);
        return Err(Error::setting("inputs", value, STANDARDISE).into());
    }
    Ok(())
}

impl<T: Real> LogDensity<T> for Bnn<T> {
    fn dim(&self) -> usize {
        self.layout.dim
    }

    fn data_rows(&self) -> usize {
        self.targets.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        require_shapes(self.dim(), theta, log_density, score.rows(), score.cols())?;
        require_rows(rows, self.data_rows())?;
        let (count, scale) =
            rows.map_or((self.data_rows(), 1.0), |batch| (batch.indices.len(), batch.scale));
        let (mut block, mut sums) = (self.blocks.lend(), self.sums.lend());
        sums.clear();
        sums.resize(theta.rows(), [0.0; 2]);
        // Once at least, so that a batch without rows leaves the prior.
        for first in (0..count.max(1)).step_by(ROWS_PER_BLOCK) {
            let size = ROWS_PER_BLOCK.min(count - first);
            block.gather(&self.inputs, &self.targets, size, |k| {
                rows.map_or(first + k, |batch| batch.indices[first + k])
            });
            let block = &*block;
            let is_last = first + size == count;
            score
                .as_mut_slice()
                .par_chunks_mut(self.dim())
                .zip(&mut *sums)
                .zip(&mut *log_density)
                .enumerate()
                // One by one, so that whoever is free takes the next.
                .with_max_len(1)
                .for_each_init(
                    || self.workspaces.lend(),
                    |workspace, (i, ((score, sums), value))| {
                        let theta = theta.row(i);
                        if first == 0 {
                            score.fill(T::zero());
                        }
                        let tiles = block.tiles(self.inputs.cols(), size);
                        self.add_likelihood(workspace, theta, tiles, scale, score, sums);
                        if is_last {
                            let rows = scale * count as f64;
                            let sums = sums.map(|sum| scale * sum);
                            *value = T::of(self.finish(theta, rows, sums, score));
                        }
                    },
                );
        }
        Ok(())
    }

    fn device_source(&self) -> Option<DeviceSource> {
        let (inputs, outputs) = (self.inputs.cols(), self.layout.layers().map(|l| l.outputs));
        // The device knows plain layers and the likelihoods of numbers; what else there is, is the host's.
        (self.likelihood != Likelihood::Classes && !self.layout.is_residual()).then(|| {
            DeviceSource::Network {
                layers: std::iter::once(inputs).chain(outputs).collect(),
                code: self.activation.device_code(),
                rows: self.inputs.cast(),
                outcomes: self.targets.iter().map(|y| y.as_f64()).collect(),
                precisions: [self.precisions.noise, self.precisions.weights]
                    .map(Precision::on_device),
                largest_log_factor: noise::LARGEST,
            }
        })
    }
}

fn require_rows(batch: Option<&Minibatch>, data_rows: usize) -> steinflow::Result<()> {
    let outside = batch.and_then(|batch| batch.indices.iter().find(|&&row| row >= data_rows));
    outside.map_or(Ok(()), |index| {
        let remedy = format!("the data has {data_rows} rows, counted from 0");
        Err(Error::setting("minibatch index", index, remedy))
    })
}

impl<T: Real> Describe for Bnn<T> {
    fn parameter_names(&self) -> Vec<String> {
        self.layout.names()
    }

    /// The nearest Gaussian to [`Bnn::start_sample`](Describe::start_sample), which is the better start.
    fn start(&self) -> Start {
        start::gaussian(&self.layout, &self.precisions)
    }

    fn start_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(start::sample(&self.layout, &self.precisions, count, seed))
    }
}
