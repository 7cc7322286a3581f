//! Where particles begin.

use steinflow_models::Start;

use super::{Begin, Facts};
use crate::{Error, Result, Settings};

/// Mean and spread of the start, written down unless the target draws its own or they are given.
pub(super) fn resolve_start(settings: &mut Settings, facts: &Facts<'_>) -> Result<Option<Start>> {
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
