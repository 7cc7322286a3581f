//! The settings that only some methods have.

use super::Method;
use crate::dynamics::metric::EnergyMetric;
use crate::{Error, Result};

/// A setting that only some methods have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A.
    Friction,
    /// σ, standard deviation of the momentum.
    Sigma,
    /// μ, precision of the thermostat.
    Mu,
    /// γ, coupling of third-order dynamics.
    Gamma,
    /// σᵤ, standard deviation of the third-order variable.
    SigmaU,
    /// The metric G⁻¹.
    Metric,
    /// η of the Stein gradient estimator.
    Regulariser,
    /// What an N×N solve may take.
    SolveMemory,
    /// σ² of SPOS.
    NoiseStrength,
    /// Steps before a bandwidth is held.
    Adapt,
    /// Cells of a grid per coordinate.
    Cells,
    /// τ of LAWGD.
    Smoothing,
}

impl Parameter {
    /// The name that flags and configs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Friction => "friction",
            Self::Sigma => "sigma",
            Self::Mu => "mu",
            Self::Gamma => "gamma",
            Self::SigmaU => "sigma-u",
            Self::Metric => "metric",
            Self::Regulariser => "regulariser",
            Self::SolveMemory => "solve-memory",
            Self::NoiseStrength => "noise-strength",
            Self::Adapt => "adapt",
            Self::Cells => "cells",
            Self::Smoothing => "smoothing",
        }
    }
}

/// The values of all parameters; a method takes those it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// A.
    pub friction: f64,
    /// σ.
    pub sigma: f64,
    /// μ.
    pub mu: f64,
    /// γ.
    pub gamma: f64,
    /// σᵤ.
    pub sigma_u: f64,
    /// G⁻¹.
    pub metric: EnergyMetric,
    /// η of the Stein gradient estimator.
    pub regulariser: f64,
    /// What an N×N solve may take, in bytes.
    pub solve_memory: u64,
    /// σ² of SPOS.
    pub noise_strength: f64,
    /// Velocities before the bandwidth of an exact sampler is held.
    pub adapt: u64,
    /// Cells of LAWGD's grid per coordinate; none for what suits the dimension.
    pub cells: Option<usize>,
    /// τ, how long LAWGD's ρ/π is smoothed for; none for what suits the dimension.
    pub smoothing: Option<f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            friction: 1.0,
            sigma: 1.0,
            mu: 1.0,
            gamma: 1.0,
            sigma_u: 1.0,
            metric: EnergyMetric::default(),
            regulariser: 1e-2,
            solve_memory: 1 << 30,
            noise_strength: 0.1,
            adapt: 100,
            cells: None,
            smoothing: None,
        }
    }
}

impl Parameters {
    /// Checks that the parameters a method has are in range.
    pub fn validate(&self, method: &Method) -> Result<()> {
        for parameter in method.parameters() {
            let (value, may_be_zero) = match parameter {
                Parameter::Friction => (self.friction, true),
                Parameter::Sigma => (self.sigma, false),
                Parameter::Mu => (self.mu, false),
                Parameter::Gamma => (self.gamma, false),
                Parameter::SigmaU => (self.sigma_u, false),
                Parameter::Metric => (self.metric.scale, false),
                Parameter::Regulariser => (self.regulariser, true),
                Parameter::NoiseStrength => (self.noise_strength, true),
                Parameter::Smoothing => (self.smoothing.unwrap_or(0.0), true),
                Parameter::SolveMemory | Parameter::Adapt | Parameter::Cells => continue,
            };
            let in_range = value > 0.0 || (may_be_zero && value == 0.0);
            if !in_range || !value.is_finite() {
                let bound = if may_be_zero { "zero or positive" } else { "positive" };
                let remedy = format!("it must be {bound} and finite");
                let name = match parameter {
                    Parameter::Metric => "metric-scale",
                    other => other.name(),
                };
                return Err(Error::setting(name, value, remedy));
            }
        }
        Ok(())
    }
}
