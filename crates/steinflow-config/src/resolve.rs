//! From what somebody has set to a complete config: defaults, and parts that must fit each other.

use std::time::Duration;

use steinflow::Error as LibraryError;
use steinflow::integrator::{self, StepSize};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{Method, Parameter, Value as ParameterValue};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::NonFinitePolicy;
use steinflow_models::data::is_name;
use steinflow_models::network::{Architecture, DEFAULT_DATA};
use steinflow_models::{Model, ModelSpec, NETWORK, Start, regression};

use crate::presets::{self, DEFAULT_MODEL};
use crate::{Config, Error, Phase, Result, Settings, Way};

const DEFAULT_STEPS: u64 = 1000;
const DEFAULT_PARTICLES: usize = 100;
/// Rows that a network looks at in a step.
const DEFAULT_BATCH: usize = 100;

/// How sharply a target is curved around a start, in scaled coordinates if there is a rule for them.
type Sharpness<'a> = dyn Fn(Option<&Start>, Option<RootMeanSquare>) -> steinflow::Result<f64> + 'a;

/// What a run's defaults depend on.
pub struct Facts<'a> {
    /// The number of coordinates.
    pub dim: usize,
    /// Rows of data that minibatches can be drawn of.
    pub data_rows: usize,
    /// Whether it is a posterior, usually much narrower than momenta of unit variance.
    pub is_posterior: bool,
    /// Where particles begin unless the settings say; none where they are given.
    pub start: Option<Start>,
    /// Whether the target draws starts of its own.
    pub draws_starts: bool,
    /// How sharply the target is curved there.
    pub sharpness: Box<Sharpness<'a>>,
}

impl<'a> Facts<'a> {
    /// Of a model that ships.
    pub fn of(model: &'a dyn Model<f64>, spec: &ModelSpec) -> Self {
        let sharpness = |start: Option<&Start>, rule: Option<RootMeanSquare>| match start {
            Some(Start { mean, sd }) if mean.len() == model.dim() && *sd >= 0.0 => {
                let places = integrator::places_around(mean, *sd);
                integrator::sharpness(model, places.as_ref(), *sd, rule)
            }
            // A start that does not fit is the sampler's to refuse.
            _ => Ok(1.0),
        };
        Self {
            dim: model.dim(),
            data_rows: model.data_rows(),
            is_posterior: spec.info().is_ok_and(|info| info.takes("data"))
                && spec.name() != NETWORK,
            start: Some(model.start()),
            draws_starts: model.start_sample(1, 0).is_some(),
            sharpness: Box::new(sharpness),
        }
    }
}

impl Config {
    /// Fills in what was not set, with the model's help, and checks that the parts fit.
    pub fn resolve(settings: Settings) -> Result<Self> {
        let (settings, model) = Self::with_model(settings)?;
        let facts = Facts::of(&*model, &settings.spec);
        Self::resolve_on(settings, &facts)
    }

    /// Builds the model, and writes down in the settings what it assumes.
    pub fn with_model(mut settings: Settings) -> Result<(Settings, Box<dyn Model<f64>>)> {
        settings.spec.model.get_or_insert_with(|| DEFAULT_MODEL.to_owned());
        record_model_defaults(&mut settings)?;
        let model = steinflow_models::build::<f64>(&settings.spec)?;
        Ok((settings, model))
    }

    /// As [`Config::resolve`], for a target that is built already and named in the settings.
    pub fn resolve_on(mut settings: Settings, facts: &Facts<'_>) -> Result<Self> {
        let model = settings.spec.name().to_owned();
        presets::apply(&model, facts.data_rows, &mut settings);
        let name = settings.method.clone().unwrap_or_default();
        let method = Method::named(&name)?;
        let on_network = model == NETWORK;
        check_fit(&settings, &method)?;
        let kernel = resolve_kernel(&mut settings, &method, facts.is_posterior)?;
        let rule = fill(&mut settings.precondition, if on_network { "rms" } else { "none" });
        let preconditioner = match rule.as_str() {
            "none" => None,
            "rms" => {
                let hold_after = settings.precondition_hold;
                Some(RootMeanSquare { hold_after, ..RootMeanSquare::default() })
            }
            other => {
                return Err(LibraryError::unknown("preconditioner", other, ["rms", "none"]).into());
            }
        };
        let start = resolve_start(&mut settings, facts);
        let sharpness =
            || (facts.sharpness)(start.as_ref(), preconditioner.map(|_| RootMeanSquare::default()));
        let phases = resolve_phases(&mut settings, &method, sharpness)?;
        resolve_parameters(&mut settings, &method, &phases)?;
        let parameters = settings.parameters.values()?;
        parameters.validate(&method)?;
        let collect = resolve_collection(&mut settings)?;
        let non_negative = |name, value: Option<f64>| match value {
            Some(value) if !(value >= 0.0 && value.is_finite()) => {
                Err(LibraryError::setting(name, value, "it must be zero or positive"))
            }
            value => Ok(value),
        };
        let tolerance = non_negative("tolerance", settings.tolerance)?;
        // A budget beyond what a Duration holds is no budget.
        let budget = non_negative("budget", settings.budget)?
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if settings.trace_every == Some(0) {
            let remedy = "record every step with 1, or leave it out";
            return Err(LibraryError::setting("trace-every", 0, remedy).into());
        }
        if on_network {
            settings.batch_size.get_or_insert(facts.data_rows.min(DEFAULT_BATCH));
        }
        let total: u64 = phases.iter().map(|phase| phase.steps).sum();
        let precision = fill(&mut settings.precision, if on_network { "f32" } else { "f64" });
        let is_f32 = match precision.as_str() {
            "f32" => true,
            "f64" => false,
            other => return Err(LibraryError::unknown("precision", other, ["f32", "f64"]).into()),
        };
        Ok(Self {
            model,
            method: name,
            way: Way::Flow { method, parameters: Box::new(parameters), kernel },
            particles: *settings.particles.get_or_insert(DEFAULT_PARTICLES),
            seed: *settings.seed.get_or_insert(0),
            is_f32,
            start,
            batch_size: settings.batch_size,
            policy: NonFinitePolicy::parse(&fill(&mut settings.non_finite, "stop"))?,
            budget,
            tolerance,
            trace_every: *settings.trace_every.get_or_insert((total / 1000).max(1)),
            preconditioner,
            resample_every: settings.resample_every,
            collect,
            phases,
            settings,
        })
    }
}

/// A word that was given, or its default, which is written down.
fn fill(setting: &mut Option<String>, default: &str) -> String {
    setting.get_or_insert_with(|| default.to_owned()).clone()
}

/// Writes down what the model would assume, so that the config says it, and from any folder.
fn record_model_defaults(settings: &mut Settings) -> Result<()> {
    let seed = settings.seed.unwrap_or(0);
    let spec = &mut settings.spec;
    let file = spec.data.as_mut().filter(|data| !is_name(data));
    for path in [file, spec.data_dir.as_mut(), spec.split_file.as_mut()].into_iter().flatten() {
        if let Ok(absolute) = std::path::absolute(&*path) {
            *path = absolute;
        }
        if path.to_str().is_none() {
            let remedy = "a config can only hold paths in Unicode; rename it";
            return Err(LibraryError::setting("path", path.display(), remedy).into());
        }
    }
    let info = spec.info()?;
    if info.name == NETWORK {
        spec.data.get_or_insert_with(|| DEFAULT_DATA.into());
        spec.hidden.get_or_insert_with(|| Architecture::default().hidden);
        spec.activation.get_or_insert_with(|| "relu".to_owned());
        if spec.split.is_none() && spec.split_file.is_none() {
            spec.test_fraction.get_or_insert(0.1);
            spec.split_seed.get_or_insert(seed);
        }
    }
    if info.takes("prior_sd") {
        spec.prior_sd.get_or_insert(regression::DEFAULT_PRIOR_SD);
    }
    if info.takes("noise_sd") {
        spec.noise_sd.get_or_insert(regression::DEFAULT_NOISE_SD);
    }
    Ok(())
}

/// Mean and spread of the start, written down unless the target draws its own or they are given.
fn resolve_start(settings: &mut Settings, facts: &Facts<'_>) -> Option<Start> {
    let is_open = settings.start_mean.is_none() && settings.start_sd.is_none();
    if facts.draws_starts && is_open {
        return None;
    }
    let own = facts.start.clone()?;
    let mean = match settings.start_mean.take() {
        None => own.mean,
        Some(mean) if mean.len() == 1 => vec![mean[0]; facts.dim],
        Some(mean) => mean,
    };
    let start = Start { mean, sd: settings.start_sd.unwrap_or(own.sd) };
    settings.start_mean = Some(start.mean.clone());
    settings.start_sd = Some(start.sd);
    Some(start)
}

fn resolve_phases(
    settings: &mut Settings,
    method: &Method,
    sharpness: impl FnOnce() -> steinflow::Result<f64>,
) -> Result<Vec<Phase>> {
    if let Some(phases) = settings.phase.clone() {
        let rival = ["steps", "step_size", "eta", "integrator"];
        if let Some(option) = rival.into_iter().find(|name| settings.get(name).is_some()) {
            let remedy = "a phase states integrator, step size and steps; drop one of the two";
            return Err(Error::does_not_fit(option, "--phase", remedy));
        }
        phases.iter().try_for_each(Phase::validate)?;
        return Ok(phases);
    }
    let momentum = method.dynamics.has_momentum();
    let sigma = settings.parameters.number(Parameter::Sigma).unwrap_or(1.0);
    let step_size = match (settings.step_size.take(), settings.eta.take()) {
        (Some(_), Some(_)) => {
            let remedy = "both set the step size; drop one";
            return Err(Error::does_not_fit("eta", "--step-size", remedy));
        }
        (Some(text), None) => text,
        (None, Some(eta)) => {
            if !(eta > 0.0 && eta.is_finite()) {
                let remedy = "it must be positive and finite";
                return Err(LibraryError::setting("eta", eta, remedy).into());
            }
            if momentum { (sigma * eta.sqrt()).to_string() } else { eta.to_string() }
        }
        (None, None) => method.default_step_size(sigma, sharpness()?).to_string(),
    };
    let default_integrator = if momentum { "splitting" } else { "euler" };
    let phase = Phase {
        integrator: settings.integrator.take().unwrap_or_else(|| default_integrator.to_owned()),
        steps: settings.steps.take().unwrap_or(DEFAULT_STEPS),
        step_size,
    };
    phase.validate()?;
    settings.phase = Some(vec![phase.clone()]);
    Ok(vec![phase])
}

/// Refuses parameters that the method does not have.
fn check_fit(settings: &Settings, method: &Method) -> Result<()> {
    let own = method.parameters();
    let names: Vec<&str> = own.iter().map(|parameter| parameter.name()).collect();
    for &parameter in Parameter::ALL {
        let name = parameter.name().replace('-', "_");
        let given = if settings.get(&name).is_some() {
            Some(parameter.name())
        } else {
            settings.alpha.filter(|_| parameter == Parameter::Friction).map(|_| "alpha")
        };
        if let Some(option) = given
            && !own.contains(&parameter)
        {
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let remedy = format!("its parameters are: {has}");
            return Err(Error::does_not_fit(option, of_method(method), &remedy));
        }
    }
    Ok(())
}

fn of_method(method: &Method) -> String {
    format!("the method `{}`", method.name)
}

/// Writes down the parameters that the method has.
fn resolve_parameters(settings: &mut Settings, method: &Method, phases: &[Phase]) -> Result<()> {
    if let Some(alpha) = settings.alpha.take() {
        if settings.parameters.number(Parameter::Friction).is_some() {
            let remedy = "both set the friction; drop one";
            return Err(Error::does_not_fit("alpha", "--friction", remedy));
        }
        let [phase] = phases else {
            let remedy = "A = ασ²/ε needs a single step size; use --friction";
            return Err(Error::does_not_fit("alpha", "several phases", remedy));
        };
        let StepSize::Constant(epsilon) = StepSize::parse(&phase.step_size)? else {
            let remedy = "A = ασ²/ε needs a constant step size; use --friction";
            return Err(Error::does_not_fit("alpha", "a schedule", remedy));
        };
        let sigma = settings.parameters.number(Parameter::Sigma).unwrap_or(1.0);
        let friction = ParameterValue::Number(alpha * sigma * sigma / epsilon);
        settings.parameters.put(Parameter::Friction, friction);
    }
    let steps: u64 = phases.iter().map(|phase| phase.steps).sum();
    for parameter in method.parameters() {
        let is_open = settings.parameters.get(&parameter.name().replace('-', "_")).is_none();
        let default = match parameter {
            // The bandwidth of an exact sampler is held after a tenth of the run.
            Parameter::Adapt => Some(ParameterValue::WholeNumber(steps / 10)),
            other => other.default_value(),
        };
        if let Some(default) = default.filter(|_| is_open) {
            settings.parameters.put(parameter, default);
        }
    }
    Ok(())
}

fn resolve_kernel(
    settings: &mut Settings,
    method: &Method,
    is_posterior: bool,
) -> Result<Option<Kernel>> {
    if !method.field.has_kernel() {
        let names = ["kernel", "kernel_on", "bandwidth"];
        return match names.into_iter().find(|name| settings.get(name).is_some()) {
            Some(option) => Err(Error::does_not_fit(option, of_method(method), "it has no kernel")),
            None => Ok(None),
        };
    }
    let view = if is_posterior { "theta" } else { "joint" };
    Ok(Some(Kernel {
        radial: Radial::parse(&fill(&mut settings.kernel, "se"))?,
        view: View::parse(&fill(&mut settings.kernel_on, view))?,
        bandwidth: Bandwidth::parse(&fill(&mut settings.bandwidth, "median-log"))?,
    }))
}

/// From which step on samples are collected and how often, if they are.
fn resolve_collection(settings: &mut Settings) -> Result<Option<(u64, u64)>> {
    match (settings.collect_from, settings.collect_every) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let remedy = "say from which step on with --collect-from";
            Err(Error::does_not_fit("collect_every", "a run that collects nothing", remedy))
        }
        (Some(_), Some(0)) => {
            let remedy = "collect every 1 or more steps";
            Err(LibraryError::setting("collect-every", 0, remedy).into())
        }
        (Some(from), every) => {
            let every = every.or(settings.resample_every).unwrap_or(1).max(1);
            settings.collect_every = Some(every);
            Ok(Some((from, every)))
        }
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
            let again = toml::from_str(&config.to_toml()).unwrap();
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
        assert_eq!(config.phases[0].step_size, "0.4");
        let (_, parameters) = config.flow().unwrap();
        assert!((parameters.friction - 1.0).abs() < 1e-15);
    }
}
