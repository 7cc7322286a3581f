//! A method of the catalogue, or a field for dynamics of one's own.

use steinflow::Error as LibraryError;
use steinflow::kernel::{Bandwidth, Kernel, Radial, View};
use steinflow::method::{DynamicsKind, FieldKind, Method, Parameter};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::NonFinitePolicy;
use steinflow::settings::NumbersOrWord;
use steinflow_models::NETWORK;

use super::parameters::{check_fit, resolve_parameters};
use super::phases::resolve_phases;
use super::start::resolve_start;
use super::{Begin, Facts, Moving, OwnDynamics, fill};
use crate::presets;
use crate::{Error, Result, Settings, Way};

const DEFAULT_PARTICLES: usize = 100;
/// Rows that a network looks at in a step.
const DEFAULT_BATCH: usize = 100;

/// A method of the catalogue.
pub(super) fn resolve_flow(
    settings: &mut Settings,
    facts: &Facts<'_>,
    name: &str,
) -> Result<Moving> {
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

pub(super) fn of_method(method: &Method) -> String {
    format!("the method `{}`", method.name)
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
