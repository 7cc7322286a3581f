//! What is searched: all that the method has and the user has not set.

use steinflow::method::Parameter;
use steinflow::tune::{Choice, choices, learning_rates};
use steinflow_models::Model;

use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// The user's settings with a choice in them, and with the size of the run as it would be without.
pub fn apply(choice: Choice, settings: &Settings, base: &Config) -> Settings {
    let mut own = settings.clone();
    own.model = Some(base.model.clone());
    own.method = Some(base.method.clone());
    own.particles = Some(base.particles);
    own.steps = Some(base.phase.iter().map(|phase| phase.steps).sum());
    own.eta = choice.eta.or(own.eta);
    own.alpha = choice.alpha.or(own.alpha);
    own.mu = choice.mu.or(own.mu);
    own.gamma = choice.gamma.or(own.gamma);
    own
}

/// All points of the grid, the shortest steps first.
pub fn all(
    settings: &Settings,
    base: &Config,
    model: &dyn Model<f64>,
    rates_per_decade: u32,
) -> Result<Vec<Choice>> {
    if !settings.phase.is_empty() {
        return Err(Error::DoesNotFit {
            option: "phase",
            what: "tuning".to_owned(),
            remedy: "a phase states its step size; leave it out, and give --steps".to_owned(),
        });
    }
    let given = [
        (Parameter::Friction, settings.friction.is_some() || settings.alpha.is_some()),
        (Parameter::Mu, settings.mu.is_some()),
        (Parameter::Gamma, settings.gamma.is_some()),
    ];
    let set: Vec<Parameter> =
        given.into_iter().filter_map(|(parameter, is_set)| is_set.then_some(parameter)).collect();
    let rates = if settings.step_size.is_some() || settings.eta.is_some() {
        Vec::new()
    } else {
        let start = model.start();
        let mean = base.start_mean.as_ref().unwrap_or(&start.mean);
        let sd = base.start_sd.unwrap_or(start.sd);
        let sharpness = config::sharpness(model, mean, sd, &base.precondition)?;
        learning_rates(sharpness, base.particles, rates_per_decade)
    };
    Ok(choices(&base.method()?, &rates, &set)?)
}
