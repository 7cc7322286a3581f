//! From what somebody has set to a complete config: defaults, and parts that must fit each other.

use std::time::Duration;

use steinflow::ensemble::{Moves, Options};
use steinflow::integrator::{self, StepSize};
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{DynamicsKind, FieldKind, Method, Parameter, Value as ParameterValue};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Resampling};
use steinflow::settings::{NumberOrWord, NumbersOrWord};
use steinflow::{Error as LibraryError, LogDensity, Matrix};
use steinflow_models::data::is_name;
use steinflow_models::density::{self, DENSITY};
use steinflow_models::network::{Architecture, DEFAULT_DATA};
use steinflow_models::stan::STAN;
use steinflow_models::{Model, ModelSpec, NETWORK, Start, posteriors, regression};

use crate::device;
use crate::presets::{self, ADJUSTED, AUTO, DEFAULT_MODEL};
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
    /// Whether that is a place where a sampler can begin.
    pub start_is_good: bool,
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
            start_is_good: posteriors::find(spec.name()).is_none()
                && ![DENSITY, STAN].contains(&spec.name()),
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
        settings.spec.name_by_what_is_given();
        settings.spec.model.get_or_insert_with(|| DEFAULT_MODEL.to_owned());
        record_model_defaults(&mut settings)?;
        let model = steinflow_models::build::<f64>(&settings.spec)?;
        Ok((settings, model))
    }

    /// As [`Config::resolve`], for a target that is built already and named in the settings.
    pub fn resolve_on(mut settings: Settings, facts: &Facts<'_>) -> Result<Self> {
        let model = settings.spec.name().to_owned();
        let asked_device = settings.device.take();
        let rows = facts.target.data_rows();
        if facts.own_dynamics.is_some() {
            settings.method.get_or_insert_with(|| FieldKind::Stein.name().to_owned());
        }
        presets::apply(&model, rows, &mut settings);
        let name = settings.method.clone().unwrap_or_default();
        let adjusted = ADJUSTED.iter().find(|(own, ..)| *own == name);
        let moving = match adjusted {
            Some((_, moves, _)) if facts.own_dynamics.is_none() => {
                resolve_adjusted(&mut settings, facts, &name, *moves)?
            }
            _ => resolve_flow(&mut settings, facts, &name)?,
        };
        if settings.trace_every == Some(0) {
            let remedy = "record every step with 1, or leave it out";
            return Err(LibraryError::setting("trace-every", 0, remedy).into());
        }
        let total = moving.phases.iter().fold(0_u64, |sum, phase| sum.saturating_add(phase.steps));
        let on_network = model == NETWORK;
        let precision = fill(&mut settings.precision, if on_network { "f32" } else { "f64" });
        let is_f32 = match precision.as_str() {
            "f32" | "tf32" => true,
            "f64" => false,
            other => {
                return Err(
                    LibraryError::unknown("precision", other, ["f32", "f64", "tf32"]).into()
                );
            }
        };
        let work = device::Work {
            steps: total,
            particles: moving.particles,
            dim: facts.target.dim(),
            rows: settings.batch_size.unwrap_or(rows),
            // In coordinates that a warm-up has learnt, too, it is the processor that knows the target.
            is_hosts: matches!(moving.way, Way::Flow { warm_up: true, .. })
                || facts.target.device_source().is_none(),
        };
        let has_own_dynamics = facts.own_dynamics.is_some();
        let asked = asked_device.as_deref();
        let device = device::resolve(asked, &mut settings, &moving.way, has_own_dynamics, work)?;
        let is_fast = precision == "tf32";
        if is_fast && device.is_none() {
            let remedy = "products are that short only on a GPU; take f32, or device cuda";
            return Err(LibraryError::setting("precision", precision, remedy).into());
        }
        Ok(Self {
            model,
            method: name,
            way: moving.way,
            particles: moving.particles,
            seed: *settings.seed.get_or_insert(0),
            is_f32,
            is_fast,
            device,
            start: moving.start,
            batch_size: settings.batch_size,
            policy: moving.policy,
            check_gradient: *settings.check_gradient.get_or_insert(true),
            budget: budget(settings.budget)?,
            tolerance: not_negative("tolerance", settings.tolerance)?,
            trace_every: *settings.trace_every.get_or_insert((total / 1000).max(1)),
            preconditioner: moving.preconditioner,
            resampling: resampling(&settings)?,
            collect: moving.collect,
            phases: moving.phases,
            settings,
        })
    }
}

/// What depends on how particles move.
struct Moving {
    way: Way,
    particles: usize,
    start: Option<Start>,
    policy: NonFinitePolicy,
    preconditioner: Option<RootMeanSquare>,
    collect: Option<(u64, u64)>,
    phases: Vec<Phase>,
}

/// The ensemble: it takes few settings, and refuses the others by name.
fn resolve_adjusted(
    settings: &mut Settings,
    facts: &Facts<'_>,
    name: &str,
    moves: Moves,
) -> Result<Moving> {
    const TAKES: [&str; 12] = [
        "method",
        "points",
        "particles",
        "effective",
        "gradients",
        "seed",
        "precision",
        "start_mean",
        "start_sd",
        "check_gradient",
        "budget",
        "trace_every",
    ];
    let of_model = ModelSpec::table();
    let is_taken =
        |name: &str| TAKES.contains(&name) || of_model.iter().any(|option| option.name == name);
    if let Some((setting, _)) = settings.given().iter().find(|(given, _)| !is_taken(given.name)) {
        let remedy = match setting.name {
            "batch_size" => "its accept step needs all of the data; name a --method without one",
            "steps" => {
                "it stops by itself, at --effective draws or --gradients; or name a --method"
            }
            "warm_up" => "it warms up by itself; name a --method to warm up for",
            _ => "it finds that by itself; leave it out, or name a --method that takes it",
        };
        return Err(Error::does_not_fit(setting.name, format!("the method `{name}`"), remedy));
    }
    let default = Options::default();
    let effective = *settings.effective.get_or_insert(default.effective as u64) as f64;
    let gradients = *settings.gradients.get_or_insert(default.gradients);
    let dim = facts.target.dim();
    let particles = *settings.particles.get_or_insert(Options::default_particles(dim));
    // Without a start of its own, the ensemble finds one.
    let is_open = settings.start_mean.is_none() && settings.start_sd.is_none();
    let start = if is_open { None } else { resolve_start(settings, facts)? };
    Ok(Moving {
        way: Way::Auto { moves, with_bends_and_jumps: name == AUTO, effective, gradients },
        particles,
        start,
        policy: NonFinitePolicy::default(),
        preconditioner: None,
        collect: None,
        phases: Vec::new(),
    })
}

/// A method of the catalogue.
fn resolve_flow(settings: &mut Settings, facts: &Facts<'_>, name: &str) -> Result<Moving> {
    let method = match &facts.own_dynamics {
        None => Method::named(name)?,
        Some(own) => field_alone(name, own)?,
    };
    for option in ["effective", "gradients"] {
        if settings.get(option).is_some() {
            let remedy = "only methods with an accept step have it; give --steps, or --method auto";
            return Err(Error::does_not_fit(option, of_method(&method), remedy));
        }
    }
    let on_network = settings.spec.name() == NETWORK;
    let has = match &facts.own_dynamics {
        None => method.parameters(),
        Some(_) => method.field.parameters().to_vec(),
    };
    check_fit(settings, &method, &has)?;
    let preconditioner = resolve_preconditioner(settings, on_network)?;
    let is_given = matches!(facts.start, Begin::Given(_))
        || settings.start_mean.is_some()
        || settings.start_sd.is_some();
    let can_warm_up = settings.batch_size.is_none()
        && !on_network
        && preconditioner.is_none()
        && method.field != FieldKind::Lawgd;
    let needs_warm_up = !facts.start_is_good && !is_given && can_warm_up;
    let warm_up = *settings.warm_up.get_or_insert(needs_warm_up);
    if warm_up && facts.own_dynamics.is_none() {
        presets::in_learnt_coordinates(&method, facts.target.dim(), settings);
    }
    let kernel = resolve_kernel(settings, &method, facts.is_posterior)?;
    // Without a start of its own, the warm-up finds one.
    let start = if warm_up && !is_given { None } else { resolve_start(settings, facts)? };
    let sharpness = || {
        if warm_up {
            return Ok(1.0);
        }
        // What the scaling would begin with.
        let rule = preconditioner.map(|_| RootMeanSquare::default());
        facts.sharpness(start.as_ref(), rule)
    };
    // What is out of range is refused as such, before anything is computed from it.
    settings.parameters.values()?;
    let sigma = match &facts.own_dynamics {
        Some(own) => own.sigma,
        None => settings.parameters.number(Parameter::Sigma),
    };
    let phases = resolve_phases(settings, &method, sigma.unwrap_or(1.0), sharpness)?;
    resolve_parameters(settings, &has, &phases)?;
    let parameters = settings.parameters.values()?;
    parameters.validate(&method)?;
    let collect = resolve_collection(settings)?;
    if settings.points == Some(true) && !warm_up {
        let remedy = "points come to rest in coordinates that a warm-up has learnt; add --warm-up, or take auto";
        return Err(Error::does_not_fit("points", "a run without a warm-up", remedy));
    }
    if on_network {
        settings.batch_size.get_or_insert(facts.target.data_rows().min(DEFAULT_BATCH));
    }
    Ok(Moving {
        way: Way::Flow { method, parameters: Box::new(parameters), kernel, warm_up },
        particles: *settings.particles.get_or_insert(DEFAULT_PARTICLES),
        start,
        policy: NonFinitePolicy::parse(&fill(&mut settings.non_finite, "stop"))?,
        preconditioner,
        collect,
        phases,
    })
}

fn resolve_preconditioner(
    settings: &mut Settings,
    on_network: bool,
) -> Result<Option<RootMeanSquare>> {
    let rule = fill(&mut settings.precondition, if on_network { "rms" } else { "none" });
    match rule.as_str() {
        "none" => Ok(None),
        "rms" => {
            let hold_after = settings.precondition_hold;
            Ok(Some(RootMeanSquare { hold_after, ..RootMeanSquare::default() }))
        }
        other => Err(LibraryError::unknown("preconditioner", other, ["rms", "none"]).into()),
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
    let paths = [file, spec.data_dir.as_mut(), spec.split_file.as_mut(), spec.program.as_mut()];
    for path in paths.into_iter().flatten() {
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
    if info.name == DENSITY {
        spec.density.get_or_insert_with(|| density::EXAMPLE.to_owned());
    }
    if info.takes("missing") {
        spec.missing.get_or_insert_with(|| "drop".to_owned());
    }
    if info.takes("components") {
        spec.components.get_or_insert(regression::DEFAULT_COMPONENTS);
    }
    if info.takes("prior_sd") {
        spec.prior_sd.get_or_insert(regression::DEFAULT_PRIOR_SD);
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
        let is_open = phases.iter().any(|phase| phase.step_size == Phase::OPEN);
        let default = if is_open { method.default_step_size(sigma, sharpness()?) } else { 0.0 };
        for phase in &mut phases {
            if phase.integrator == Phase::OPEN {
                default_integrator.clone_into(&mut phase.integrator);
            }
            if phase.step_size == Phase::OPEN {
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
        (Some(NumberOrWord(text)), None) => text,
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
        let names = ["kernel", "kernel_on", "bandwidth", "affine"];
        return match names.into_iter().find(|name| settings.get(name).is_some()) {
            Some(option) => Err(Error::does_not_fit(option, of_method(method), "it has no kernel")),
            None => Ok(None),
        };
    }
    let view = if is_posterior { "theta" } else { "joint" };
    Ok(Some(Kernel {
        radial: Radial::parse(&fill(&mut settings.kernel, "se"))?,
        view: View::parse(&fill(&mut settings.kernel_on, view))?,
        bandwidth: {
            let default = || NumbersOrWord("median-log".to_owned());
            Bandwidth::parse(&settings.bandwidth.get_or_insert_with(default).0)?
        },
        affine: settings.affine.unwrap_or(0.0),
    }))
}

/// When auxiliary variables are drawn afresh, if they are.
fn resampling(settings: &Settings) -> Result<Option<Resampling>> {
    /// Of the time between two draws.
    const JITTER: f64 = 0.2;
    match (settings.resample_every, settings.resample_time) {
        (Some(_), Some(_)) => {
            let remedy = "both say when momenta are drawn afresh; drop one";
            Err(Error::does_not_fit("resample_time", "--resample-every", remedy))
        }
        (Some(steps), None) => Ok(Some(Resampling::Steps(steps))),
        (None, Some(time)) => Ok(Some(Resampling::Time { time, jitter: JITTER })),
        (None, None) => Ok(None),
    }
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
