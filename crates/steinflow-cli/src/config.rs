//! A run, complete: what `config.toml` holds and all that the result depends on.

mod presets;
mod resolve;

pub use resolve::sharpness;

use std::time::Duration;

use serde::Serialize;
use steinflow::dynamics::metric::{EnergyMetric, EnergySign};
use steinflow::integrator::{self, Integrator, StepSize};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{Method, Parameters};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Samples};
use steinflow::{Error as LibraryError, Real};
use steinflow_models::ModelSpec;
use steinflow_models::network::{
    Activation, Architecture, NetworkSpec, Precision, Precisions, TestRows,
};

use crate::error::{Error, Result};
use crate::settings::{PhaseSettings, Settings};

/// A complete and checked configuration. Serialised, it reads back as [`crate::settings::Settings`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    pub model: String,
    #[serde(flatten)]
    pub model_options: ModelOptions,
    pub method: String,
    pub particles: usize,
    #[serde(flatten)]
    pub parameters: MethodOptions,
    #[serde(flatten)]
    pub kernel: Option<KernelOptions>,
    pub seed: u64,
    pub precision: String,
    /// Without mean and spread, particles start as the model has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_mean: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_sd: Option<f64>,
    pub non_finite: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    pub trace_every: u64,
    pub precondition: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition_hold: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resample_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect_every: Option<u64>,
    pub phase: Vec<PhaseSettings>,
}

/// What the model takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<std::path::PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_sd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_sd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<std::path::PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_precision: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_precision: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_file: Option<std::path::PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<usize>,
}

/// What the settings say of a network, for a caller that has its data.
pub fn network_spec(settings: &Settings) -> Result<NetworkSpec> {
    let without_rows =
        Settings { test_fraction: None, split: None, split_file: None, ..settings.clone() };
    resolve::model_options(&without_rows).network_spec(0)
}

impl ModelOptions {
    /// What these options mean for a model; the seed chooses the rows that are held back.
    fn spec(&self, model: &str, seed: u64) -> Result<ModelSpec> {
        let own = self.clone();
        Ok(ModelSpec {
            name: model.to_owned(),
            dim: own.dim,
            condition: own.condition,
            data: own.data,
            data_dir: own.data_dir,
            target: own.target,
            prior_sd: own.prior_sd,
            noise_sd: own.noise_sd,
            network: self.network_spec(seed)?,
        })
    }

    fn network_spec(&self, seed: u64) -> Result<NetworkSpec> {
        let activation = match self.activation.as_deref() {
            None | Some("relu") => Activation::Relu,
            Some("tanh") => Activation::Tanh,
            Some(other) => {
                return Err(LibraryError::unknown("activation", other, ["relu", "tanh"]).into());
            }
        };
        let hidden = match self.hidden[..] {
            [] => Architecture::default().hidden,
            _ => self.hidden.clone(),
        };
        let precision =
            |fixed: Option<f64>| fixed.map_or_else(Precision::default, Precision::Fixed);
        let noise = match (self.noise_precision, self.noise_rate) {
            (Some(_), Some(_)) => {
                return Err(Error::DoesNotFit {
                    option: "noise-rate",
                    what: "--noise-precision".to_owned(),
                    remedy: "a precision that is fixed has no prior; drop one".to_owned(),
                });
            }
            (None, Some(rate)) => Precision::Learned { shape: 1.0, rate },
            (fixed, None) => precision(fixed),
        };
        let test_rows = match (self.test_fraction, &self.split_file, self.split) {
            // Nothing to hold back is no error here.
            (None | Some(0.0), None, None) => TestRows::None,
            (None, None, Some(index)) => TestRows::Standard(index),
            (None, Some(path), index) => {
                TestRows::File { path: path.clone(), index: index.unwrap_or(0) }
            }
            (Some(fraction), None, None) => TestRows::Fraction { fraction, seed },
            (Some(_), ..) => {
                return Err(Error::DoesNotFit {
                    option: "test-fraction",
                    what: "--split or --split-file".to_owned(),
                    remedy: "both say which rows are held back; drop one".to_owned(),
                });
            }
        };
        Ok(NetworkSpec {
            architecture: Architecture { hidden, activation },
            precisions: Precisions { noise, weights: precision(self.weight_precision) },
            test_rows,
        })
    }
}

/// The parameters that the method has; the others stay away from the config.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MethodOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_u: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_scale: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_offset: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_sign: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regulariser: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solve_memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_strength: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<f64>,
}

/// The kernel of a method whose particles interact.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelOptions {
    pub kernel: String,
    pub kernel_on: String,
    pub bandwidth: String,
}

/// Integrator, number of steps, schedule.
pub type Phase<T> = (Box<dyn Integrator<T>>, u64, StepSize);

impl Config {
    pub fn method(&self) -> Result<Method> {
        Ok(Method::named(&self.method)?)
    }

    /// The model, from options that [`Config::resolve`] has checked.
    pub fn model_spec(&self) -> Result<ModelSpec> {
        self.model_options.spec(&self.model, self.seed)
    }

    /// How coordinates are scaled, if they are.
    pub fn preconditioner(&self) -> Result<Option<RootMeanSquare>> {
        match self.precondition.as_str() {
            "none" => Ok(None),
            "rms" => Ok(Some(RootMeanSquare {
                hold_after: self.precondition_hold,
                ..RootMeanSquare::default()
            })),
            other => Err(LibraryError::unknown("preconditioner", other, ["rms", "none"]).into()),
        }
    }

    pub fn parameters(&self) -> Parameters {
        let (own, default) = (&self.parameters, Parameters::default());
        Parameters {
            friction: own.friction.unwrap_or(default.friction),
            sigma: own.sigma.unwrap_or(default.sigma),
            mu: own.mu.unwrap_or(default.mu),
            gamma: own.gamma.unwrap_or(default.gamma),
            sigma_u: own.sigma_u.unwrap_or(default.sigma_u),
            metric: EnergyMetric {
                scale: own.metric_scale.unwrap_or(default.metric.scale),
                offset: own.metric_offset.unwrap_or(default.metric.offset),
                sign: match own.metric_sign.as_deref() {
                    Some("log-density") => EnergySign::LogDensity,
                    _ => EnergySign::Energy,
                },
            },
            regulariser: own.regulariser.unwrap_or(default.regulariser),
            solve_memory: own.solve_memory.map_or(default.solve_memory, |mib| mib << 20),
            noise_strength: own.noise_strength.unwrap_or(default.noise_strength),
            adapt: own.adapt.unwrap_or(default.adapt),
            cells: own.cells,
            smoothing: own.smoothing,
            ..default
        }
    }

    pub fn kernel(&self) -> Result<Kernel> {
        let Some(options) = &self.kernel else { return Ok(Kernel::default()) };
        let (radial, view) = (Radial::parse(&options.kernel)?, View::parse(&options.kernel_on)?);
        let bandwidth = Bandwidth::parse(&options.bandwidth)?;
        Ok(Kernel { radial, view, bandwidth, ..Kernel::default() })
    }

    pub fn policy(&self) -> Result<NonFinitePolicy> {
        Ok(NonFinitePolicy::parse(&self.non_finite)?)
    }

    /// Whether particles are f32.
    pub fn is_f32(&self) -> Result<bool> {
        match self.precision.as_str() {
            "f32" => Ok(true),
            "f64" => Ok(false),
            other => Err(LibraryError::unknown("precision", other, ["f32", "f64"]).into()),
        }
    }

    pub fn budget(&self) -> Option<Duration> {
        // A budget beyond what a Duration holds is no budget.
        self.budget.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// The integrators and schedules of the phases.
    pub fn phases<T: Real>(&self) -> Result<Vec<Phase<T>>> {
        self.phase
            .iter()
            .map(|phase| {
                Ok((
                    integrator::named(&phase.integrator)?,
                    phase.steps,
                    StepSize::parse(&phase.step_size)?,
                ))
            })
            .collect()
    }

    /// Where samples are collected, if they are.
    pub fn samples<T: Real>(&self) -> Option<Samples<T>> {
        self.collect_from.map(|from| Samples::new(from, self.collect_every.unwrap_or(1)))
    }

    /// The text of `config.toml`. A path that is not Unicode has none.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::ConfigWrong {
            path: "config.toml".into(),
            message: format!("it cannot be written: {error}; use paths in Unicode"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run writes is what it was: reading its config back gives the same config.
    #[test]
    fn configs_read_back_as_themselves() {
        let samples = [
            "",
            "model = 'gaussian'\ndim = 7\nmethod = 'sgnht-stein'\neta = 0.01\nalpha = 0.1\nmu = 2",
            "method = 'ld'\nstep-size = 'cosine:0.1:0.01'\nprecision = 'f32'\nstart-mean = [1.0]",
            "method = 'third-order-stein'\nbandwidth = '1.0,2.0,3.5'\nkernel-on = 'product'\n\
             kernel = 'imq'\nbudget = 3.5\ntolerance = 1e-9\nnon-finite = 'shrink'",
        ];
        for sample in samples {
            let settings: Settings = toml::from_str(sample).unwrap();
            let config = Config::resolve(settings).unwrap();
            let again = toml::from_str(&config.to_toml().unwrap()).unwrap();
            assert_eq!(Config::resolve(again).unwrap(), config, "{sample}");
        }
    }

    #[test]
    fn eta_and_alpha_follow_the_paper() {
        let settings: Settings = toml::from_str(
            "model = 'ring'\nmethod = 'sghmc-stein'\nsigma = 2.0\neta = 0.04\nalpha = 0.1",
        )
        .unwrap();
        let config = Config::resolve(settings).unwrap();
        // ε = σ√η = 0.4 and A = ασ²/ε = 1.
        assert_eq!(config.phase[0].step_size, "0.4");
        assert!((config.parameters.friction.unwrap() - 1.0).abs() < 1e-15);
    }
}
