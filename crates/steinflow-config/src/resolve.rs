//! From what somebody has set to a complete config: defaults, and parts that must fit each other.

mod adjusted;
mod facts;
mod flow;
mod model;
mod parameters;
mod phases;
mod start;

use std::time::Duration;

use steinflow::Error as LibraryError;
use steinflow::method::FieldKind;
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Resampling};
use steinflow_models::{Model, NETWORK, Start};

use self::adjusted::resolve_adjusted;
pub use self::facts::{Begin, Facts, OwnDynamics};
use self::flow::resolve_flow;
use self::model::record_model_defaults;
use crate::cost::Work;
use crate::device;
use crate::presets::{self, ADJUSTED, DEFAULT_MODEL};
use crate::{Config, Error, Phase, Result, Settings, Way};

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
        let work = work(&moving, facts, settings.batch_size.unwrap_or(rows), is_f32);
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

/// How much there is to do.
fn work(moving: &Moving, facts: &Facts<'_>, rows: usize, is_f32: bool) -> Work {
    let (particles, dim) = (moving.particles, facts.target.dim());
    let steps = moving.phases.iter().fold(0_u64, |sum, phase| sum.saturating_add(phase.steps));
    let mut work = Work {
        steps,
        moves: 1,
        particles,
        dim,
        blocks: 1,
        rows,
        is_f32,
        interacts: false,
        is_random: true,
        is_hosts: facts.target.device_source().is_none(),
    };
    if let Way::Flow { method, parameters, warm_up, .. } = &moving.way {
        let structure = method.build_dynamics::<f64>(parameters).structure(dim);
        let splits = moving.phases.iter().any(|phase| phase.integrator.ends_with("splitting"));
        // Every stage but the innermost is there twice.
        work.moves = if splits { 2 * structure.stages().len() - 1 } else { 1 };
        work.blocks = structure.blocks();
        work.interacts = method.field.has_kernel();
        work.is_random = method.field.is_random();
        // In coordinates that a warm-up has learnt, too, it is the processor that knows the target.
        work.is_hosts |= warm_up;
    }
    work
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
