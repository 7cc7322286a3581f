//! The ensemble: it takes few settings, and refuses the others by name.

use steinflow::ensemble::{Moves, Options};
use steinflow::run::NonFinitePolicy;
use steinflow_models::ModelSpec;

use super::start::resolve_start;
use super::{Facts, Moving};
use crate::presets::AUTO;
use crate::{Error, Result, Settings, Way};

pub(super) fn resolve_adjusted(
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
