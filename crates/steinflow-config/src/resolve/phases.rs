//! Integrators, step sizes and steps, phase after phase.

use steinflow::Error as LibraryError;
use steinflow::method::Method;
use steinflow::settings::NumberOrWord;

use crate::{Error, Phase, Result, Settings};

const DEFAULT_STEPS: u64 = 1000;

pub(super) fn resolve_phases(
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
