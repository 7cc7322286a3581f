//! From a dictionary of settings to the parts of a sampler.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use steinflow::dynamics::metric::EnergySign;
use steinflow::dynamics::{Dynamics, Structure};
use steinflow::field::Field;
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{DynamicsKind, FieldKind, Method, Parameter, Parameters, Region};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::NonFinitePolicy;
use steinflow::{Error, LogDensity};

use crate::arrays::Number;
use crate::dynamics::{OwnDynamics, Raised};
use crate::errors::to_python;

/// Integrator, steps and step size; what is left out has a default.
pub type GivenPhase = (Option<String>, u64, Option<String>);

/// All settings of a run but its target and its start, as the Python side hands them over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    method: String,
    dynamics: Option<Py<PyAny>>,
    parameters: BTreeMap<String, f64>,
    metric_sign: Option<String>,
    kernel: Option<String>,
    kernel_on: Option<String>,
    bandwidth: Option<String>,
    /// What the kernel sees unless `kernel_on` says.
    default_view: String,
    window: Option<Vec<(f64, f64)>>,
    /// The phases of the run.
    pub phases: Vec<GivenPhase>,
    /// The seed.
    pub seed: u64,
    /// Rows of a minibatch.
    pub batch_size: Option<usize>,
    non_finite: String,
    budget: Option<f64>,
    /// Ends the run at rest.
    pub tolerance: Option<f64>,
    /// Steps between draws of fresh momenta.
    pub resample_every: Option<u64>,
    precondition: Option<String>,
    precondition_hold: Option<u64>,
    /// Steps between rows of the trace.
    pub trace_every: u64,
    /// Where collecting samples begins.
    pub collect_from: Option<u64>,
    /// Steps between collected samples.
    pub collect_every: u64,
}

/// What moves the particles.
pub struct Motion<T: Number> {
    /// (A, C).
    pub dynamics: Box<dyn Dynamics<T>>,
    /// The field.
    pub field: Box<dyn Field<T>>,
    /// The method, or the nearest one to dynamics of the user's own.
    pub method: Method,
    /// σ of the momentum.
    pub sigma: f64,
    /// Where an exception in dynamics of the user's own is kept.
    pub raised: Option<Raised>,
}

impl Settings {
    /// Whether a grid over the target is needed beforehand.
    pub fn needs_region(&self) -> PyResult<bool> {
        Ok(self.method()?.field == FieldKind::Lawgd)
    }

    /// The method by name; dynamics of the user's own count as Langevin.
    pub fn method(&self) -> PyResult<Method> {
        if self.dynamics.is_none() {
            return Method::named(&self.method).map_err(to_python);
        }
        // Dynamics of one's own go with the fields that take any, named after them alone.
        let fields = [
            ("diffusion", FieldKind::Diffusion),
            ("stein", FieldKind::Stein),
            ("stein-alt", FieldKind::SteinStarred),
            ("blob", FieldKind::Blob),
            ("blob-alt", FieldKind::BlobStarred),
            ("gfsd", FieldKind::Gfsd),
            ("gfsf", FieldKind::Gfsf),
            ("sge", FieldKind::SteinGradient),
            ("product", FieldKind::Product),
            ("drift", FieldKind::Drift),
        ];
        let known = fields.iter().find(|(name, _)| *name == self.method);
        let Some(&(_, field)) = known else {
            let names = fields.iter().map(|(name, _)| *name);
            let kind = "field for dynamics of your own";
            return Err(to_python(Error::unknown(kind, &self.method, names)));
        };
        Ok(Method { name: self.method.clone(), dynamics: DynamicsKind::Langevin, field })
    }

    fn kernel(&self, method: &Method) -> PyResult<Kernel> {
        if !method.field.has_kernel() {
            let given = [
                ("kernel", &self.kernel),
                ("kernel_on", &self.kernel_on),
                ("bandwidth", &self.bandwidth),
            ];
            if let Some((name, _)) = given.iter().find(|(_, given)| given.is_some()) {
                return Err(does_not_fit(name, method, "it has no kernel"));
            }
        }
        let read = || -> steinflow::Result<Kernel> {
            Ok(Kernel {
                radial: Radial::parse(self.kernel.as_deref().unwrap_or("se"))?,
                view: View::parse(self.kernel_on.as_deref().unwrap_or(&self.default_view))?,
                bandwidth: Bandwidth::parse(self.bandwidth.as_deref().unwrap_or("median-log"))?,
                ..Kernel::default()
            })
        };
        read().map_err(to_python)
    }

    fn parameters(&self, method: &Method, more: &BTreeMap<String, f64>) -> PyResult<Parameters> {
        let steps: u64 = self.phases.iter().map(|phase| phase.1).sum();
        // The bandwidth of an exact sampler is held after a tenth of the run.
        let mut all = Parameters { adapt: (steps / 10).max(1), ..Parameters::default() };
        let own = method.parameters();
        let has = |parameter| own.contains(&parameter);
        for (name, &value) in self.parameters.iter().chain(more) {
            let fits = match name.as_str() {
                "metric_sign" => false,
                name => own.iter().any(|parameter| parameter.name().replace('-', "_") == name),
            };
            if !fits {
                return Err(does_not_fit(name, method, &own_names(&own)));
            }
            let count = || {
                if value >= 0.0 && value.fract() == 0.0 {
                    Ok(value as u64)
                } else {
                    Err(PyValueError::new_err(format!("{name} is {value}: give a whole number")))
                }
            };
            match name.as_str() {
                "friction" => all.friction = value,
                "sigma" => all.sigma = value,
                "mu" => all.mu = value,
                "gamma" => all.gamma = value,
                "sigma_u" => all.sigma_u = value,
                "metric_scale" => all.metric.scale = value,
                "metric_offset" => all.metric.offset = value,
                "regulariser" => all.regulariser = value,
                "solve_memory" => all.solve_memory = count()? << 20,
                "noise_strength" => all.noise_strength = value,
                "adapt" => all.adapt = count()?,
                "cells" => all.cells = Some(count()? as usize),
                "smoothing" => all.smoothing = Some(value),
                _ => return Err(does_not_fit(name, method, &own_names(&own))),
            }
        }
        if let Some(sign) = &self.metric_sign {
            if !has(Parameter::MetricSign) {
                return Err(does_not_fit("metric_sign", method, &own_names(&own)));
            }
            all.metric.sign = match sign.as_str() {
                "energy" => EnergySign::Energy,
                "log-density" => EnergySign::LogDensity,
                other => {
                    let known = ["energy", "log-density"];
                    return Err(to_python(Error::unknown("metric sign", other, known)));
                }
            };
        }
        all.validate(method).map_err(to_python)?;
        Ok(all)
    }

    /// Whether a parameter of the method is set.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Dynamics and field; `target` is what a grid is laid over, where one is needed.
    pub fn motion<T: Number>(
        &self,
        py: Python<'_>,
        target: Option<&dyn LogDensity<f64>>,
    ) -> PyResult<Motion<T>> {
        self.motion_with(py, target, &BTreeMap::new())
    }

    /// As [`Settings::motion`], with parameters beside those that are set.
    pub fn motion_with<T: Number>(
        &self,
        py: Python<'_>,
        target: Option<&dyn LogDensity<f64>>,
        more: &BTreeMap<String, f64>,
    ) -> PyResult<Motion<T>> {
        let mut method = self.method()?;
        let parameters = self.parameters(&method, more)?;
        let kernel = self.kernel(&method)?;
        let region = match (target, &self.window) {
            (Some(target), Some(window)) => Some(Region { target, window }),
            _ => None,
        };
        let field = method.build_field::<T>(kernel, &parameters, region).map_err(to_python)?;
        let Some(own) = &self.dynamics else {
            let dynamics = method.build_dynamics::<T>(&parameters);
            return Ok(Motion { dynamics, field, sigma: parameters.sigma, method, raised: None });
        };
        let own = OwnDynamics::read(own.bind(py))?;
        let variance = own.momentum_variance();
        if variance.is_some() {
            method.dynamics = DynamicsKind::Sghmc;
        }
        let (sigma, raised) = (variance.unwrap_or(1.0).max(0.0).sqrt(), Some(own.raised()));
        Ok(Motion { dynamics: Box::new(own), field, method, sigma, raised })
    }

    /// The blocks of the state, for a target of `dim` coordinates.
    pub fn structure(&self, py: Python<'_>, dim: usize) -> PyResult<Structure> {
        if let Some(own) = &self.dynamics {
            let own: Box<dyn Dynamics<f64>> = Box::new(OwnDynamics::read(own.bind(py))?);
            return Ok(own.structure(dim));
        }
        let method = self.method()?;
        let parameters = self.parameters(&method, &BTreeMap::new())?;
        Ok(method.build_dynamics::<f64>(&parameters).structure(dim))
    }

    /// What a non-finite number does to the run.
    pub fn policy(&self) -> PyResult<NonFinitePolicy> {
        NonFinitePolicy::parse(&self.non_finite).map_err(to_python)
    }

    /// The wall-clock limit.
    pub fn budget(&self) -> PyResult<Option<Duration>> {
        let Some(seconds) = self.budget else { return Ok(None) };
        if !(seconds >= 0.0) {
            return Err(PyValueError::new_err(format!(
                "budget is {seconds}: give a number of seconds, zero or more"
            )));
        }
        // A budget beyond what a Duration holds is no budget.
        Ok(Duration::try_from_secs_f64(seconds).ok())
    }

    /// How coordinates are scaled, if they are.
    pub fn preconditioner(&self) -> PyResult<Option<RootMeanSquare>> {
        let hold_after = self.precondition_hold;
        match self.precondition.as_deref() {
            None => Ok(None),
            Some("rms") => Ok(Some(RootMeanSquare { hold_after, ..RootMeanSquare::default() })),
            Some(other) => Err(to_python(Error::unknown("preconditioner", other, ["rms"]))),
        }
    }
}

fn own_names(own: &[Parameter]) -> String {
    let names: Vec<String> = own.iter().map(|p| p.name().replace('-', "_")).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("its parameters are: {names}")
}

fn does_not_fit(option: &str, method: &Method, remedy: &str) -> PyErr {
    let name = &method.name;
    PyValueError::new_err(format!("{option} does not go with the method `{name}`: {remedy}"))
}
