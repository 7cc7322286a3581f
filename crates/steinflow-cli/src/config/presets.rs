//! Settings that we trust for a model, where the user has made no choice of their own.

use steinflow_models::NETWORK;

use crate::settings::{PhaseSettings, Settings};

/// The model without arguments: the paper's toy.
pub const DEFAULT_MODEL: &str = "tri-crescent";

/// Particles of a network, as in the paper.
const NETWORK_PARTICLES: usize = 20;
const NETWORK_STEPS: u64 = 5000;

/// Fills in the method, and with the method that is recommended for the model its steps as well, if
/// nothing was said about them.
pub fn apply(model: &str, settings: &mut Settings) {
    let recommended = match model {
        DEFAULT_MODEL => "sgrhmc-stein",
        NETWORK => "sgnht-stein",
        _ => "svgd",
    };
    let method = settings.method.get_or_insert_with(|| recommended.to_owned());
    let steps_are_open = settings.phase.is_empty()
        && settings.step_size.is_none()
        && settings.eta.is_none()
        && settings.integrator.is_none();
    if method != recommended || !steps_are_open {
        return;
    }
    if model == DEFAULT_MODEL && settings.steps.is_none() {
        settings.phase = toy_phases();
    }
    let friction_is_open = settings.friction.is_none() && settings.alpha.is_none();
    let is_scaled = settings.precondition.as_deref().is_none_or(|rule| rule == "rms");
    if model == NETWORK && friction_is_open && is_scaled {
        fit_network(settings);
    }
}

/// Steps above the integrator's local stability limit throw particles over the barriers, smaller
/// ones let them settle.
fn toy_phases() -> Vec<PhaseSettings> {
    let phase = |integrator: &str, step_size: &str| PhaseSettings {
        integrator: integrator.to_owned(),
        step_size: step_size.to_owned(),
        steps: 300,
    };
    vec![phase("euler", "1.3"), phase("splitting", "0.5")]
}

/// η = 3e-4 and α = 0.1 in preconditioned coordinates. Particles of a network are far apart, so that
/// of the mean over N only each one's own share is left: steps are N times as long. The second half
/// decays to a tenth of η.
fn fit_network(settings: &mut Settings) {
    let particles = *settings.particles.get_or_insert(NETWORK_PARTICLES);
    let root_eta = 3e-4_f64.sqrt();
    let step = (1e4 * particles as f64 * root_eta).round() / 1e4;
    let last = (1e4 * step * 0.1_f64.sqrt()).round() / 1e4;
    settings.friction = Some((100.0 * 0.1 / root_eta).round() / 100.0);
    settings.non_finite.get_or_insert_with(|| "shrink".to_owned());
    let steps = settings.steps.take().unwrap_or(NETWORK_STEPS);
    let phase = |step_size: String, steps| PhaseSettings {
        integrator: "splitting".to_owned(),
        step_size,
        steps,
    };
    settings.phase = vec![
        phase(step.to_string(), steps - steps / 2),
        phase(format!("linear:{step}:{last}"), steps / 2),
    ];
}
