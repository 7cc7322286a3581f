//! From what somebody has set to a complete config: defaults, and parts that must fit each other.

use std::time::Duration;

use steinflow::integrator::{self, StepSize};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{DynamicsKind, FieldKind, Method, Parameter, Value as ParameterValue};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::NonFinitePolicy;
use steinflow::{Error as LibraryError, LogDensity, Matrix};
use steinflow_models::data::is_name;
use steinflow_models::network::{Architecture, DEFAULT_DATA};
use steinflow_models::{Model, ModelSpec, NETWORK, Start, regression};

use crate::presets::{self, DEFAULT_MODEL};
use crate::{Config, Error, Phase, Result, Settings, Way};

const DEFAULT_STEPS: u64 = 1000;
const DEFAULT_PARTICLES: usize = 100;
/// Rows that a network looks at in a step.
const DEFAULT_BATCH: usize = 100;

/// What a run's defaults depend on.
pub struct Facts<'a> {
    /// The target.
    pub target: &'a dyn LogDensity<f64>,
    /// Whether it is a posterior, usually much narrower than momenta of unit variance.
    pub is_posterior: bool,
    /// Where particles begin.
    pub start: Begin,
    /// Dynamics in place of the method's own: the method is then the name of a field.
    pub own_dynamics: Option<OwnDynamics>,
}

/// Where particles begin unless the settings say.
pub enum Begin {
    /// At N(mean, sd² I).
    Normal(Start),
    /// Where the target draws them, which is about there.
    Drawn(Start),
    /// At these places.
    Given(Matrix<f64>),
}

/// What matters of dynamics that are not in the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct OwnDynamics {
    /// σ of the momentum, if they have one.
    pub sigma: Option<f64>,
}

impl<'a> Facts<'a> {
    /// Of a model that ships.
    pub fn of(model: &'a dyn Model<f64>, spec: &ModelSpec) -> Self {
        let takes_data = spec.info().is_ok_and(|info| info.takes("data"));
        Self {
            target: model,
            is_posterior: takes_data && spec.name() != NETWORK,
            start: match model.start_sample(1, 0) {
                Some(_) => Begin::Drawn(model.start()),
                None => Begin::Normal(model.start()),
            },
            own_dynamics: None,
        }
    }

    /// How sharply the target is curved where particles start, in scaled coordinates if there is a rule
    /// for them.
    fn sharpness(&self, start: Option<&Start>, rule: Option<RootMeanSquare>) -> Result<f64> {
        let around = |start: &Start| {
            let sd = start.sd.max(0.0);
            (integrator::places_around(&start.mean, sd), sd)
        };
        let (places, spread) = match (&self.start, start) {
            (Begin::Given(places), _) => (places.clone(), spread(places)),
            (_, Some(start)) | (Begin::Normal(start) | Begin::Drawn(start), None) => around(start),
        };
        // A start that does not fit is the sampler's to refuse.
        if places.rows() == 0 || places.cols() != self.target.dim() {
            return Ok(1.0);
        }
        Ok(integrator::sharpness(self.target, places.as_ref(), spread, rule)?)
    }
}

/// The standard deviation of the particles, pooled over coordinates.
fn spread(start: &Matrix<f64>) -> f64 {
    let (count, dim) = (start.rows() as f64, start.cols());
    let mut sum = 0.0;
    for j in 0..dim {
        let column = || (0..start.rows()).map(|i| start.row(i)[j]);
        let mean = column().sum::<f64>() / count;
        sum += column().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    }
    (sum / dim.max(1) as f64).sqrt()
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
        let rows = facts.target.data_rows();
        presets::apply(&model, rows, &mut settings);
        let name = settings.method.clone().unwrap_or_default();
        let method = match &facts.own_dynamics {
            None => Method::named(&name)?,
            Some(own) => field_alone(&name, own)?,
        };
        let on_network = model == NETWORK;
        let has = match &facts.own_dynamics {
            None => method.parameters(),
            Some(_) => method.field.parameters().to_vec(),
        };
        check_fit(&settings, &method, &has)?;
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
        let start = resolve_start(&mut settings, facts)?;
        let sharpness = || {
            // What the scaling would begin with.
            let rule = preconditioner.map(|_| RootMeanSquare::default());
            facts.sharpness(start.as_ref(), rule)
        };
        let sigma = match &facts.own_dynamics {
            Some(own) => own.sigma,
            None => settings.parameters.number(Parameter::Sigma),
        };
        let phases = resolve_phases(&mut settings, &method, sigma.unwrap_or(1.0), sharpness)?;
        resolve_parameters(&mut settings, &has, &phases)?;
        let parameters = settings.parameters.values()?;
        parameters.validate(&method)?;
        let collect = resolve_collection(&mut settings)?;
        if settings.trace_every == Some(0) {
            let remedy = "record every step with 1, or leave it out";
            return Err(LibraryError::setting("trace-every", 0, remedy).into());
        }
        if on_network {
            settings.batch_size.get_or_insert(rows.min(DEFAULT_BATCH));
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
            budget: budget(settings.budget)?,
            tolerance: not_negative("tolerance", settings.tolerance)?,
            trace_every: *settings.trace_every.get_or_insert((total / 1000).max(1)),
            preconditioner,
            resample_every: settings.resample_every,
            collect,
            phases,
            settings,
        })
    }
}

/// A wall-clock limit. One beyond what a Duration holds is none.
pub(crate) fn budget(seconds: Option<f64>) -> Result<Option<Duration>> {
    let seconds = not_negative("budget", seconds)?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

pub(crate) fn not_negative(name: &'static str, value: Option<f64>) -> Result<Option<f64>> {
    match value {
        Some(value) if !(value >= 0.0 && value.is_finite()) => {
            Err(LibraryError::setting(name, value, "it must be zero or positive").into())
        }
        value => Ok(value),
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
fn resolve_start(settings: &mut Settings, facts: &Facts<'_>) -> Result<Option<Start>> {
    let is_open = settings.start_mean.is_none() && settings.start_sd.is_none();
    let own = match &facts.start {
        Begin::Drawn(_) | Begin::Given(_) if is_open => return Ok(None),
        Begin::Given(_) => {
            let option = if settings.start_sd.is_some() { "start-sd" } else { "start-mean" };
            let remedy = "both say where particles start; drop one";
            return Err(Error::does_not_fit(option, "particles that are given", remedy));
        }
        Begin::Normal(own) | Begin::Drawn(own) => own.clone(),
    };
    let mean = match settings.start_mean.take() {
        None => own.mean,
        Some(mean) if mean.len() == 1 => vec![mean[0]; facts.target.dim()],
        Some(mean) => mean,
    };
    let start = Start { mean, sd: settings.start_sd.unwrap_or(own.sd) };
    settings.start_mean = Some(start.mean.clone());
    settings.start_sd = Some(start.sd);
    Ok(Some(start))
}

/// The method of dynamics that are not in the catalogue: a field by its name. Defaults are those of the
/// nearest dynamics that are.
fn field_alone(name: &str, own: &OwnDynamics) -> Result<Method> {
    // SPOS and LAWGD are for one dynamics each.
    let known = |field: &&FieldKind| {
        !matches!(field, FieldKind::Spos | FieldKind::SposExact | FieldKind::Lawgd)
    };
    let fields = || FieldKind::ALL.iter().filter(known);
    let Some(&field) = fields().find(|field| field.name() == name) else {
        let names = fields().map(|field| field.name());
        return Err(LibraryError::unknown("field for dynamics of your own", name, names).into());
    };
    let dynamics = match own.sigma {
        Some(_) => DynamicsKind::Sghmc,
        None => DynamicsKind::Langevin,
    };
    Ok(Method { name: name.to_owned(), dynamics, field })
}

fn resolve_phases(
    settings: &mut Settings,
    method: &Method,
    sigma: f64,
    sharpness: impl FnOnce() -> Result<f64>,
) -> Result<Vec<Phase>> {
    let momentum = method.dynamics.has_momentum();
    let default_integrator = if momentum { "splitting" } else { "euler" };
    if let Some(mut phases) = settings.phase.clone() {
        let rival = ["steps", "step_size", "eta", "integrator"];
        if let Some(option) = rival.into_iter().find(|name| settings.get(name).is_some()) {
            let remedy = "a phase states integrator, step size and steps; drop one of the two";
            return Err(Error::does_not_fit(option, "--phase", remedy));
        }
        // What a phase leaves empty has the default of a run without phases.
        let is_open = phases.iter().any(|phase| phase.step_size.is_empty());
        let default = if is_open { method.default_step_size(sigma, sharpness()?) } else { 0.0 };
        for phase in &mut phases {
            if phase.integrator.is_empty() {
                default_integrator.clone_into(&mut phase.integrator);
            }
            if phase.step_size.is_empty() {
                phase.step_size = default.to_string();
            }
            phase.validate()?;
        }
        settings.phase = Some(phases.clone());
        return Ok(phases);
    }
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
fn check_fit(settings: &Settings, method: &Method, own: &[Parameter]) -> Result<()> {
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
fn resolve_parameters(settings: &mut Settings, own: &[Parameter], phases: &[Phase]) -> Result<()> {
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
    for &parameter in own {
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
