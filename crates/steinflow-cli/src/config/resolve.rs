//! From what a user has set to a complete config: defaults, and parts that must fit each other.

use steinflow::Error as LibraryError;
use steinflow::integrator::{self, StepSize};
use steinflow::method::{Method, Parameter, Parameters};
use steinflow::precondition::RootMeanSquare;
use steinflow_models::data::is_name;
use steinflow_models::network::{Architecture, DEFAULT_DATA};
use steinflow_models::{Model, NETWORK};

use super::presets::{self, DEFAULT_MODEL};
use super::{Config, KernelOptions, MethodOptions, ModelOptions};
use crate::error::{Error, Result};
use crate::settings::{PhaseSettings, Settings};

const DEFAULT_STEPS: u64 = 1000;
/// Rows that a network looks at in a step.
const DEFAULT_BATCH: usize = 100;

impl Config {
    /// Fills in what was not set, with the model's help, and checks that the parts fit.
    pub fn resolve(settings: Settings) -> Result<Self> {
        let (settings, target) = Self::with_model(settings)?;
        Self::resolve_on(settings, &*target)
    }

    /// Builds the model, and writes down in the settings what it assumes.
    pub fn with_model(mut settings: Settings) -> Result<(Settings, Box<dyn Model<f64>>)> {
        let model = settings.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        record_model_defaults(&mut settings, &model)?;
        let spec = model_options(&settings).spec(&model, settings.seed.unwrap_or(0))?;
        let target = steinflow_models::build::<f64>(&spec)?;
        Ok((settings, target))
    }

    /// As [`Config::resolve`], for a model that is built already and named in the settings.
    pub fn resolve_on(mut settings: Settings, target: &dyn Model<f64>) -> Result<Self> {
        let model = settings.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        presets::apply(&model, target.data_rows(), &mut settings);
        let method = Method::named(settings.method.as_deref().unwrap_or_default())?;

        check_fit(&settings, &method)?;
        let on_network = model == NETWORK;
        let kernel = resolve_kernel(&settings, &method, needs_data(&model) && !on_network)?;
        let seed = settings.seed.unwrap_or(0);
        let mut model_options = model_options(&settings);
        if on_network {
            let rows = target.data_rows().min(DEFAULT_BATCH);
            model_options.batch_size.get_or_insert(rows);
        }
        let own_start = settings.start_mean.is_empty()
            && settings.start_sd.is_none()
            && target.start_sample(1, 0).is_some();
        let start = target.start();
        let start_sd = settings.start_sd.unwrap_or(start.sd);
        let start_mean = match settings.start_mean[..] {
            [] => start.mean,
            [everywhere] => vec![everywhere; target.dim()],
            _ => std::mem::take(&mut settings.start_mean),
        };
        let precondition =
            or(settings.precondition.as_ref(), if on_network { "rms" } else { "none" });
        let sharpness = || sharpness(target, &start_mean, start_sd, &precondition);

        let sigma = settings.sigma.unwrap_or(1.0);
        let phase = resolve_phases(&settings, &method, sigma, sharpness)?;
        let parameters = resolve_parameters(&settings, &method, &phase)?;
        let collect_every = resolve_collection(&settings)?;
        let total: u64 = phase.iter().map(|phase| phase.steps).sum();
        for (name, value) in [("budget", settings.budget), ("tolerance", settings.tolerance)] {
            if let Some(value) = value
                && !(value >= 0.0 && value.is_finite())
            {
                return Err(
                    LibraryError::setting(name, value, "it must be zero or positive").into()
                );
            }
        }
        if settings.trace_every == Some(0) {
            let remedy = "record every step with 1, or leave it out";
            return Err(LibraryError::setting("trace-every", 0, remedy).into());
        }
        let config = Self {
            model,
            model_options,
            method: method.name.clone(),
            particles: settings.particles.unwrap_or(100),
            parameters,
            kernel,
            seed,
            precision: or(settings.precision.as_ref(), if on_network { "f32" } else { "f64" }),
            start_mean: (!own_start).then_some(start_mean),
            start_sd: (!own_start).then_some(start_sd),
            non_finite: settings.non_finite.unwrap_or_else(|| "stop".to_owned()),
            budget: settings.budget,
            tolerance: settings.tolerance,
            trace_every: settings.trace_every.unwrap_or((total / 1000).max(1)),
            precondition,
            precondition_hold: settings.precondition_hold,
            resample_every: settings.resample_every,
            collect_from: settings.collect_from,
            collect_every,
            phase,
        };
        // Words that stand for something are understood now, not in the middle of a run.
        config.policy()?;
        config.preconditioner()?;
        config.is_f32()?;
        config.parameters().validate(&method)?;
        config.kernel()?;
        Ok(config)
    }
}

/// How sharply the target is curved where particles start, in the coordinates that they move in.
pub fn sharpness(
    target: &dyn Model<f64>,
    start_mean: &[f64],
    start_sd: f64,
    precondition: &str,
) -> Result<f64> {
    let sound = start_mean.len() == target.dim() && start_sd >= 0.0;
    if !sound {
        return Ok(1.0);
    }
    let rule = (precondition == "rms").then(RootMeanSquare::default);
    let places = integrator::places_around(start_mean, start_sd);
    Ok(integrator::sharpness(target, places.as_ref(), start_sd, rule)?)
}

fn needs_data(model: &str) -> bool {
    steinflow_models::catalogue().iter().any(|info| info.name == model && info.needs_data)
}

pub(super) fn model_options(settings: &Settings) -> ModelOptions {
    let own = settings.clone();
    ModelOptions {
        dim: own.dim,
        condition: own.condition,
        data: own.data,
        data_dir: own.data_dir,
        target: own.target,
        prior_sd: own.prior_sd,
        noise_sd: own.noise_sd,
        hidden: own.hidden,
        activation: own.activation,
        noise_precision: own.noise_precision,
        noise_rate: own.noise_rate,
        weight_precision: own.weight_precision,
        test_fraction: own.test_fraction,
        split: own.split,
        split_file: own.split_file,
        batch_size: own.batch_size,
    }
}

/// Writes down what the model would assume, so that the config says it, and from any folder.
fn record_model_defaults(settings: &mut Settings, model: &str) -> Result<()> {
    let file = settings.data.as_mut().filter(|data| !is_name(data));
    for path in [file, settings.data_dir.as_mut(), settings.split_file.as_mut()] {
        if let Some(path) = path
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            *path = absolute;
        }
    }
    if model == NETWORK {
        settings.data.get_or_insert_with(|| DEFAULT_DATA.into());
        if settings.hidden.is_empty() {
            settings.hidden = Architecture::default().hidden;
        }
        settings.activation.get_or_insert_with(|| "relu".to_owned());
        if settings.split.is_none() && settings.split_file.is_none() {
            settings.test_fraction.get_or_insert(0.1);
        }
        return Ok(());
    }
    let of_networks = [
        ("hidden", !settings.hidden.is_empty()),
        ("activation", settings.activation.is_some()),
        ("noise-precision", settings.noise_precision.is_some()),
        ("noise-rate", settings.noise_rate.is_some()),
        ("weight-precision", settings.weight_precision.is_some()),
        ("test-fraction", settings.test_fraction.is_some()),
        ("split", settings.split.is_some()),
        ("split-file", settings.split_file.is_some()),
    ];
    if let Some((option, _)) = of_networks.into_iter().find(|(_, given)| *given) {
        let remedy = "only the model `bnn` takes it; leave it out";
        return Err(does_not_fit(option, &format!("the model `{model}`"), remedy));
    }
    if needs_data(model) {
        settings.prior_sd.get_or_insert(steinflow_models::regression::DEFAULT_PRIOR_SD);
        if model == "linear-regression" {
            settings.noise_sd.get_or_insert(steinflow_models::regression::DEFAULT_NOISE_SD);
        }
    }
    Ok(())
}

fn resolve_phases(
    settings: &Settings,
    method: &Method,
    sigma: f64,
    sharpness: impl FnOnce() -> Result<f64>,
) -> Result<Vec<PhaseSettings>> {
    let given = [
        ("steps", settings.steps.is_some()),
        ("step-size", settings.step_size.is_some()),
        ("eta", settings.eta.is_some()),
        ("integrator", settings.integrator.is_some()),
    ];
    let given = given.into_iter().find_map(|(name, given)| given.then_some(name));
    if !settings.phase.is_empty() {
        if let Some(option) = given {
            let remedy = "a phase states integrator, step size and steps; drop one of the two";
            return Err(does_not_fit(option, "--phase", remedy));
        }
        for phase in &settings.phase {
            integrator::named::<f64>(&phase.integrator)?;
            StepSize::parse(&phase.step_size)?.validate(phase.steps)?;
        }
        return Ok(settings.phase.clone());
    }
    let momentum = method.dynamics.has_momentum();
    let size = match (&settings.step_size, settings.eta) {
        (Some(_), Some(_)) => {
            return Err(does_not_fit("eta", "--step-size", "both set the step size; drop one"));
        }
        (Some(text), None) => text.clone(),
        (None, Some(eta)) => {
            if !(eta > 0.0 && eta.is_finite()) {
                return Err(
                    LibraryError::setting("eta", eta, "it must be positive and finite").into()
                );
            }
            if momentum { (sigma * eta.sqrt()).to_string() } else { eta.to_string() }
        }
        (None, None) => method.default_step_size(sigma, sharpness()?).to_string(),
    };
    let default_integrator = if momentum { "splitting" } else { "euler" };
    let phase = PhaseSettings {
        integrator: settings.integrator.clone().unwrap_or_else(|| default_integrator.to_owned()),
        steps: settings.steps.unwrap_or(DEFAULT_STEPS),
        step_size: size,
    };
    integrator::named::<f64>(&phase.integrator)?;
    StepSize::parse(&phase.step_size)?.validate(phase.steps)?;
    Ok(vec![phase])
}

/// Refuses settings that the method does not have.
fn check_fit(settings: &Settings, method: &Method) -> Result<()> {
    let has = |parameter| method.parameters().contains(&parameter);
    let given = [
        ("friction", settings.friction.is_some(), Parameter::Friction),
        ("alpha", settings.alpha.is_some(), Parameter::Friction),
        ("sigma", settings.sigma.is_some(), Parameter::Sigma),
        ("mu", settings.mu.is_some(), Parameter::Mu),
        ("gamma", settings.gamma.is_some(), Parameter::Gamma),
        ("sigma-u", settings.sigma_u.is_some(), Parameter::SigmaU),
        ("metric-scale", settings.metric_scale.is_some(), Parameter::MetricScale),
        ("metric-offset", settings.metric_offset.is_some(), Parameter::MetricOffset),
        ("metric-sign", settings.metric_sign.is_some(), Parameter::MetricSign),
        ("regulariser", settings.regulariser.is_some(), Parameter::Regulariser),
        ("solve-memory", settings.solve_memory.is_some(), Parameter::SolveMemory),
        ("noise-strength", settings.noise_strength.is_some(), Parameter::NoiseStrength),
        ("adapt", settings.adapt.is_some(), Parameter::Adapt),
        ("cells", settings.cells.is_some(), Parameter::Cells),
        ("smoothing", settings.smoothing.is_some(), Parameter::Smoothing),
    ];
    for (option, given, parameter) in given {
        if given && !has(parameter) {
            let own: Vec<&str> = method.parameters().iter().map(|p| p.name()).collect();
            let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
            let remedy = format!("its parameters are: {own}");
            return Err(does_not_fit(option, &format!("the method `{}`", method.name), &remedy));
        }
    }
    Ok(())
}

fn resolve_parameters(
    settings: &Settings,
    method: &Method,
    phases: &[PhaseSettings],
) -> Result<MethodOptions> {
    let has = |parameter| method.parameters().contains(&parameter);
    if let Some(sign) = &settings.metric_sign
        && !["energy", "log-density"].contains(&sign.as_str())
    {
        return Err(LibraryError::unknown("metric sign", sign, ["energy", "log-density"]).into());
    }
    if let Some(offset) = settings.metric_offset
        && !offset.is_finite()
    {
        return Err(LibraryError::setting("metric-offset", offset, "it must be finite").into());
    }
    let steps: u64 = phases.iter().map(|phase| phase.steps).sum();
    let default = Parameters::default();
    let value =
        |parameter, given: Option<f64>, default| has(parameter).then(|| given.unwrap_or(default));
    let sigma = value(Parameter::Sigma, settings.sigma, default.sigma);
    let friction = match (settings.alpha, settings.friction) {
        (Some(_), Some(_)) => {
            return Err(does_not_fit("alpha", "--friction", "both set the friction; drop one"));
        }
        (Some(alpha), None) => {
            let [phase] = phases else {
                let remedy = "A = ασ²/ε needs a single step size; use --friction";
                return Err(does_not_fit("alpha", "several phases", remedy));
            };
            let StepSize::Constant(epsilon) = StepSize::parse(&phase.step_size)? else {
                let remedy = "A = ασ²/ε needs a constant step size; use --friction";
                return Err(does_not_fit("alpha", "a schedule", remedy));
            };
            Some(alpha * sigma.unwrap_or(1.0).powi(2) / epsilon)
        }
        (None, given) => value(Parameter::Friction, given, default.friction),
    };
    let metric = has(Parameter::MetricSign);
    Ok(MethodOptions {
        friction,
        sigma,
        mu: value(Parameter::Mu, settings.mu, default.mu),
        gamma: value(Parameter::Gamma, settings.gamma, default.gamma),
        sigma_u: value(Parameter::SigmaU, settings.sigma_u, default.sigma_u),
        metric_scale: value(Parameter::MetricScale, settings.metric_scale, default.metric.scale),
        metric_offset: value(Parameter::MetricOffset, settings.metric_offset, default.metric.offset),
        metric_sign: metric
            .then(|| settings.metric_sign.clone().unwrap_or_else(|| "energy".to_owned())),
        regulariser: value(Parameter::Regulariser, settings.regulariser, default.regulariser),
        solve_memory: has(Parameter::SolveMemory)
            .then(|| settings.solve_memory.unwrap_or(default.solve_memory >> 20)),
        noise_strength: value(
            Parameter::NoiseStrength,
            settings.noise_strength,
            default.noise_strength,
        ),
        adapt: has(Parameter::Adapt).then(|| settings.adapt.unwrap_or(steps / 10)),
        cells: settings.cells,
        smoothing: settings.smoothing,
    })
}

fn resolve_kernel(
    settings: &Settings,
    method: &Method,
    has_data: bool,
) -> Result<Option<KernelOptions>> {
    if !method.field.has_kernel() {
        let given = [
            ("kernel", settings.kernel.is_some()),
            ("kernel-on", settings.kernel_on.is_some()),
            ("bandwidth", settings.bandwidth.is_some()),
        ];
        return match given.into_iter().find_map(|(name, given)| given.then_some(name)) {
            Some(option) => Err(does_not_fit(
                option,
                &format!("the method `{}`", method.name),
                "it has no kernel",
            )),
            None => Ok(None),
        };
    }
    Ok(Some(KernelOptions {
        kernel: or(settings.kernel.as_ref(), "se"),
        kernel_on: or(settings.kernel_on.as_ref(), if has_data { "theta" } else { "joint" }),
        bandwidth: or(settings.bandwidth.as_ref(), "median-log"),
    }))
}

/// How often samples are collected, if they are.
fn resolve_collection(settings: &Settings) -> Result<Option<u64>> {
    match (settings.collect_from, settings.collect_every) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let remedy = "say from which step on with --collect-from";
            Err(does_not_fit("collect-every", "a run that collects nothing", remedy))
        }
        (Some(_), Some(0)) => {
            let remedy = "collect every 1 or more steps";
            Err(LibraryError::setting("collect-every", 0, remedy).into())
        }
        (Some(_), every) => Ok(Some(every.or(settings.resample_every).unwrap_or(1).max(1))),
    }
}

/// A word that was given, or its default.
fn or(given: Option<&String>, default: &str) -> String {
    given.cloned().unwrap_or_else(|| default.to_owned())
}

fn does_not_fit(option: &'static str, what: &str, remedy: &str) -> Error {
    Error::DoesNotFit { option, what: what.to_owned(), remedy: remedy.to_owned() }
}
