//! What a user may set, by flag or in a TOML file, under the same names; everything is optional.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A starting mean for every weight of a large network fits.
const MOST_BYTES: u64 = 64 << 20;

/// Settings as given. [`crate::config::Config::resolve`] fills in the rest.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[command(allow_negative_numbers = true)]
pub struct Settings {
    /// What to sample from: a name of `steinflow models` [default: tri-crescent].
    pub model: Option<String>,

    /// Dimension of a model that comes in any.
    #[arg(long, value_name = "D", help_heading = "Model")]
    pub dim: Option<usize>,
    /// Largest over smallest variance of the model gaussian with a chosen --dim.
    #[arg(long, value_name = "KAPPA", help_heading = "Model")]
    pub condition: Option<f64>,
    /// Data of a regression or network: a CSV file (a header row, then numbers; may be gzipped), or a
    /// name of `steinflow data list` [default for bnn: penguins].
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub data: Option<PathBuf>,
    /// Where to look for data sets by name, before $STEINFLOW_DATA and the cache.
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub data_dir: Option<PathBuf>,
    /// Column of the CSV file to predict [default: the last].
    #[arg(long, value_name = "COLUMN", help_heading = "Model")]
    pub target: Option<String>,
    /// Prior standard deviation of regression coefficients.
    #[arg(long, value_name = "SD", help_heading = "Model")]
    pub prior_sd: Option<f64>,
    /// Noise of linear regression, in standard deviations of the target column.
    #[arg(long, value_name = "SD", help_heading = "Model")]
    pub noise_sd: Option<f64>,
    /// Units of a network's hidden layers, separated by commas [default: 50].
    #[arg(long, value_name = "UNITS", value_delimiter = ',', help_heading = "Model")]
    #[serde(default)]
    pub hidden: Vec<usize>,
    /// Activation of a network's hidden layers: relu or tanh [default: relu].
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub activation: Option<String>,
    /// Fixes the noise precision γ of a network, in standard units [default: learned].
    #[arg(long, value_name = "GAMMA", help_heading = "Model")]
    pub noise_precision: Option<f64>,
    /// Rate of the Gamma(1, rate) prior of a network's noise precision γ, in standard units; a smaller
    /// one lets a network believe in targets with little noise [default: 0.1].
    #[arg(long, value_name = "RATE", help_heading = "Model")]
    pub noise_rate: Option<f64>,
    /// Fixes the precision λ of a network's weights [default: learned].
    #[arg(long, value_name = "LAMBDA", help_heading = "Model")]
    pub weight_precision: Option<f64>,
    /// Part of the rows that a network does not train on but is judged by [default: 0.1].
    #[arg(long, value_name = "PART", help_heading = "Model")]
    pub test_fraction: Option<f64>,
    /// Number of a standard split of a named data set, or of a line of --split-file, from 0.
    #[arg(long, value_name = "K", help_heading = "Model")]
    pub split: Option<usize>,
    /// File of splits: a line each, the numbers of the test rows from 0, separated by spaces.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub split_file: Option<PathBuf>,
    /// Evaluate the likelihood on this many rows of the data at a time [default: all; 100, or all if
    /// fewer, for bnn].
    #[arg(long, value_name = "ROWS", help_heading = "Model")]
    pub batch_size: Option<usize>,

    /// How to sample: a name of `steinflow methods` [default: sgrhmc-stein on the tri-crescent,
    /// sgnht-stein for bnn, svgd elsewhere].
    #[arg(long, short, value_name = "NAME", help_heading = "Method")]
    pub method: Option<String>,
    /// Number of particles, or of chains of a diffusion [default: 100; 20 for bnn by sgnht-stein].
    #[arg(long, short = 'n', value_name = "N", help_heading = "Method")]
    pub particles: Option<usize>,
    /// Friction A of methods with momentum [default: 1].
    #[arg(long, value_name = "A", help_heading = "Method")]
    pub friction: Option<f64>,
    /// Standard deviation σ of the momentum [default: 1].
    #[arg(long, value_name = "SIGMA", help_heading = "Method")]
    pub sigma: Option<f64>,
    /// Precision μ of the thermostat [default: 1].
    #[arg(long, value_name = "MU", help_heading = "Method")]
    pub mu: Option<f64>,
    /// Coupling γ of third-order dynamics [default: 1].
    #[arg(long, value_name = "GAMMA", help_heading = "Method")]
    pub gamma: Option<f64>,
    /// Standard deviation σᵤ of the third-order variable [default: 1].
    #[arg(long, value_name = "SIGMA", help_heading = "Method")]
    pub sigma_u: Option<f64>,
    /// D in the metric G⁻¹ = D √|U + c| of Riemannian methods [default: 1.5].
    #[arg(long, value_name = "D", help_heading = "Method")]
    pub metric_scale: Option<f64>,
    /// c in the metric [default: 0.5].
    #[arg(long, value_name = "C", help_heading = "Method")]
    pub metric_offset: Option<f64>,
    /// U in the metric: `energy` = −log π, `log-density` = +log π as the paper prints it
    /// [default: energy].
    #[arg(long, value_name = "SIGN", help_heading = "Method")]
    pub metric_sign: Option<String>,
    /// Regulariser η of the Stein gradient estimator [default: 0.01].
    #[arg(long, value_name = "ETA", help_heading = "Method")]
    pub regulariser: Option<f64>,
    /// Mebibytes that the N×N solve of gfsf and sge may take [default: 1024].
    #[arg(long, value_name = "MIB", help_heading = "Method")]
    pub solve_memory: Option<u64>,
    /// Strength σ² of the independent noise of SPOS [default: 0.1].
    #[arg(long, value_name = "S2", help_heading = "Method")]
    pub noise_strength: Option<f64>,
    /// Velocities before an exact sampler holds its bandwidth [default: a tenth of the steps].
    #[arg(long, value_name = "COUNT", help_heading = "Method")]
    pub adapt: Option<u64>,
    /// Cells of LAWGD's grid per coordinate [default: 1000 on a line, 64 in the plane].
    #[arg(long, value_name = "COUNT", help_heading = "Method")]
    pub cells: Option<usize>,
    /// Smoothing time τ of LAWGD [default: 0 on a line, 0.1 in the plane].
    #[arg(long, value_name = "TAU", help_heading = "Method")]
    pub smoothing: Option<f64>,

    /// Profile of the kernel: `se` (squared exponential) or `imq` [default: se].
    #[arg(long, value_name = "NAME", help_heading = "Kernel")]
    pub kernel: Option<String>,
    /// What the kernel sees: `joint` state, `product` of blocks, or `theta` [default: joint as in
    /// the paper; theta for models with data, whose posteriors are narrower than the momenta].
    #[arg(long, value_name = "VIEW", help_heading = "Kernel")]
    pub kernel_on: Option<String>,
    /// median-log, liu-wang, numpyro, median, a number, or one number per block separated by
    /// commas [default: median-log].
    #[arg(long, value_name = "RULE", help_heading = "Kernel")]
    #[serde(default, deserialize_with = "number_or_text")]
    pub bandwidth: Option<String>,

    /// Number of steps [default: 1000; 5000 for bnn by sgnht-stein].
    #[arg(long, value_name = "K", help_heading = "Steps")]
    pub steps: Option<u64>,
    /// Step size ε: a number, or `linear:FROM:TO`, `cosine:FROM:TO`, `polynomial:A:B:GAMMA` for
    /// A (B + k)^-GAMMA [default: from the method and the target's curvature at the start].
    #[arg(long, value_name = "EPS", help_heading = "Steps")]
    #[serde(default, deserialize_with = "number_or_text")]
    pub step_size: Option<String>,
    /// Learning rate η instead of --step-size: ε = σ√η with momentum, ε = η without.
    #[arg(long, value_name = "ETA", help_heading = "Steps")]
    pub eta: Option<f64>,
    /// Momentum decay α instead of --friction: A = ασ²/ε.
    #[arg(long, value_name = "ALPHA", help_heading = "Steps")]
    pub alpha: Option<f64>,
    /// euler, splitting, midpoint-splitting, adagrad, rmsprop or adam [default: splitting with
    /// momentum, euler without].
    #[arg(long, value_name = "NAME", help_heading = "Steps")]
    pub integrator: Option<String>,
    /// A phase of the run instead of --steps, --step-size and --integrator, as INTEGRATOR:EPSxSTEPS; repeat for
    /// further phases, e.g. --phase euler:1.3x300 --phase splitting:0.5x300.
    #[arg(long, value_name = "PHASE", help_heading = "Steps")]
    #[serde(default)]
    pub phase: Vec<PhaseSettings>,
    /// Learn the scale of every coordinate from the gradients and move in those: `rms` or `none`
    /// [default: rms for bnn, none elsewhere].
    #[arg(long, value_name = "RULE", help_heading = "Steps")]
    pub precondition: Option<String>,
    /// Stop learning scales after this many gradients [default: never].
    #[arg(long, value_name = "COUNT", help_heading = "Steps")]
    pub precondition_hold: Option<u64>,
    /// Draw the auxiliary variables afresh every so many steps.
    #[arg(long, value_name = "STEPS", help_heading = "Steps")]
    pub resample_every: Option<u64>,
    /// Collect samples of all particles from this step on, in samples.parquet.
    #[arg(long, value_name = "STEP", help_heading = "Steps")]
    pub collect_from: Option<u64>,
    /// Collect at every so many steps [default: the steps between resamplings, or 1].
    #[arg(long, value_name = "STEPS", help_heading = "Steps")]
    pub collect_every: Option<u64>,

    /// Seed of every random number [default: 0].
    #[arg(long, value_name = "SEED", help_heading = "Run")]
    pub seed: Option<u64>,
    /// f64 or f32 [default: f64].
    #[arg(long, value_name = "TYPE", help_heading = "Run")]
    pub precision: Option<String>,
    /// Mean of the starting particles: one number, or one per coordinate separated by commas
    /// [default: the model's].
    #[arg(
        long,
        value_name = "MEAN",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Run"
    )]
    #[serde(default)]
    pub start_mean: Vec<f64>,
    /// Standard deviation of the starting particles [default: the model's].
    #[arg(long, value_name = "SD", help_heading = "Run")]
    pub start_sd: Option<f64>,
    /// What to do with a non-finite score: `stop`, `freeze` the particle, or `shrink` the step
    /// [default: stop].
    #[arg(long, value_name = "POLICY", help_heading = "Run")]
    pub non_finite: Option<String>,
    /// Stop after this many seconds, keeping everything so far.
    #[arg(long, value_name = "SECONDS", help_heading = "Run")]
    pub budget: Option<f64>,
    /// Stop once the root-mean-square velocity is below this.
    #[arg(long, value_name = "V", help_heading = "Run")]
    pub tolerance: Option<f64>,
    /// Record every so many steps in the trace [default: what gives about 1000 rows].
    #[arg(long, value_name = "STEPS", help_heading = "Run")]
    pub trace_every: Option<u64>,
}

/// One phase: a number of steps with one integrator.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PhaseSettings {
    pub integrator: String,
    #[serde(deserialize_with = "number_or_text_required")]
    pub step_size: String,
    pub steps: u64,
}

impl std::str::FromStr for PhaseSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (integrator, rest) = text.split_once(':')?;
            let (step_size, steps) = rest.rsplit_once('x')?;
            Some(Self {
                integrator: integrator.to_owned(),
                step_size: step_size.to_owned(),
                steps: steps.parse().ok()?,
            })
        };
        parse().ok_or_else(|| "write INTEGRATOR:EPSxSTEPS, for example euler:1.3x300".to_owned())
    }
}

/// Settings that may be written as a bare number or as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or text in quotes")]
enum NumberOrText {
    Integer(i64),
    Number(f64),
    Text(String),
}

impl NumberOrText {
    fn into_text(self) -> String {
        match self {
            Self::Integer(n) => n.to_string(),
            Self::Number(x) => x.to_string(),
            Self::Text(text) => text,
        }
    }
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    number_or_text_required(from).map(Some)
}

fn number_or_text_required<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    NumberOrText::deserialize(from).map(NumberOrText::into_text)
}

impl Settings {
    /// Reads a TOML file.
    pub fn read(path: &Path) -> Result<Self> {
        let unreadable = |source| Error::ConfigUnreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MOST_BYTES {
            let message = format!("it has more than {} MiB, so it is no config", MOST_BYTES >> 20);
            return Err(Error::ConfigWrong { path: path.to_owned(), message });
        }
        Self::parse(path, &text)
    }

    /// Reads the text of a TOML file.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| Error::ConfigWrong {
            path: path.to_owned(),
            message: error.to_string(),
        })
    }

    /// These settings, with those of `other` where they are not set.
    ///
    /// Settings that exclude each other (--phase against --steps and its like, --eta against
    /// --step-size, --alpha against --friction) are dropped from `other` when their rival is set.
    ///
    /// What belonged to another method or model than the one now asked for is dropped too.
    pub fn or(mut self, mut other: Self) -> Self {
        if self.method.is_some() && self.method != other.method {
            other = Self {
                model: other.model,
                dim: other.dim,
                condition: other.condition,
                data: other.data,
                data_dir: other.data_dir,
                target: other.target,
                prior_sd: other.prior_sd,
                noise_sd: other.noise_sd,
                hidden: other.hidden,
                activation: other.activation,
                noise_precision: other.noise_precision,
                noise_rate: other.noise_rate,
                weight_precision: other.weight_precision,
                test_fraction: other.test_fraction,
                split: other.split,
                split_file: other.split_file,
                batch_size: other.batch_size,
                particles: other.particles,
                seed: other.seed,
                precision: other.precision,
                start_mean: other.start_mean,
                start_sd: other.start_sd,
                ..Self::default()
            };
        }
        if self.model.is_some() && self.model != other.model {
            (other.dim, other.condition) = (None, None);
            (other.data, other.target) = (None, None);
            (other.prior_sd, other.noise_sd, other.batch_size) = (None, None, None);
            (other.hidden, other.activation) = (Vec::new(), None);
            (other.noise_precision, other.noise_rate, other.weight_precision) = (None, None, None);
            (other.test_fraction, other.split, other.split_file) = (None, None, None);
            (other.start_mean, other.start_sd) = (Vec::new(), None);
        }
        if self.test_fraction.is_some() {
            (other.split, other.split_file) = (None, None);
        }
        if self.split.is_some() || self.split_file.is_some() {
            other.test_fraction = None;
        }
        let single_phase = self.steps.is_some()
            || self.step_size.is_some()
            || self.eta.is_some()
            || self.integrator.is_some();
        if single_phase {
            other.phase.clear();
        }
        if !self.phase.is_empty() {
            (other.steps, other.step_size, other.eta, other.integrator) = (None, None, None, None);
        }
        if self.eta.is_some() {
            other.step_size = None;
        }
        if self.step_size.is_some() {
            other.eta = None;
        }
        if self.alpha.is_some() {
            other.friction = None;
        }
        if self.friction.is_some() {
            other.alpha = None;
        }
        macro_rules! fill {
            ($($field:ident),* $(,)?) => {$(
                self.$field = self.$field.take().or(other.$field.take());
            )*};
        }
        fill!(
            model,
            dim,
            condition,
            data,
            data_dir,
            target,
            prior_sd,
            noise_sd,
            activation,
            noise_precision,
            noise_rate,
            weight_precision,
            test_fraction,
            split,
            split_file,
            batch_size,
            precondition,
            precondition_hold,
            method,
            particles,
            friction,
            sigma,
            mu,
            gamma,
            sigma_u,
            metric_scale,
            metric_offset,
            metric_sign,
            kernel,
            kernel_on,
            bandwidth,
            steps,
            step_size,
            eta,
            alpha,
            integrator,
            seed,
            precision,
            start_sd,
            non_finite,
            budget,
            tolerance,
            trace_every,
            regulariser,
            solve_memory,
            noise_strength,
            adapt,
            cells,
            smoothing,
            resample_every,
            collect_from,
            collect_every,
        );
        if self.phase.is_empty() {
            self.phase = other.phase;
        }
        if self.hidden.is_empty() {
            self.hidden = other.hidden;
        }
        if self.start_mean.is_empty() {
            self.start_mean = other.start_mean;
        }
        self
    }
}
