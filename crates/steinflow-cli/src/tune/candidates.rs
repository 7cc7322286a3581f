//! What is searched: all that the method has and the user has not set.

use std::fmt;

use serde::Serialize;
use steinflow::method::{FieldKind, Method, Parameter};
use steinflow::tune::{COUPLINGS, MOMENTUM_DECAYS, learning_rates};
use steinflow_models::Model;

use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// A point of the grid; what is not searched is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    pub eta: Option<f64>,
    pub alpha: Option<f64>,
    pub mu: Option<f64>,
    pub gamma: Option<f64>,
}

impl Choice {
    /// The searched settings by name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all =
            [("eta", self.eta), ("alpha", self.alpha), ("mu", self.mu), ("gamma", self.gamma)];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The user's settings with these in them, and with the size of the run as it would be without.
    pub fn apply(&self, settings: &Settings, base: &Config) -> Settings {
        let mut own = settings.clone();
        own.model = Some(base.model.clone());
        own.method = Some(base.method.clone());
        own.particles = Some(base.particles);
        own.steps = Some(base.phase.iter().map(|phase| phase.steps).sum());
        own.eta = self.eta.or(own.eta);
        own.alpha = self.alpha.or(own.alpha);
        own.mu = self.mu.or(own.mu);
        own.gamma = self.gamma.or(own.gamma);
        own
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.values().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(formatter, "{comma}{name} {value}")?;
        }
        Ok(())
    }
}

/// All points of the grid, the shortest steps first.
pub fn all(
    settings: &Settings,
    base: &Config,
    model: &dyn Model<f64>,
    rates_per_decade: u32,
) -> Result<Vec<Choice>> {
    let method = base.method()?;
    if method.field == FieldKind::Lawgd {
        return Err(Error::NothingToTune {
            why: format!(
                "everything decays at rate 1 under `{}`, whatever the target",
                method.name
            ),
            remedy: "its default step size suits it; run `steinflow sample`",
        });
    }
    if !settings.phase.is_empty() {
        return Err(Error::NothingToTune {
            why: "phases state their steps".to_owned(),
            remedy: "leave --phase out and give --steps",
        });
    }
    let etas = if settings.step_size.is_none() && settings.eta.is_none() {
        let start = model.start();
        let mean = base.start_mean.as_ref().unwrap_or(&start.mean);
        let sd = base.start_sd.unwrap_or(start.sd);
        let sharpness = config::sharpness(model, mean, sd, &base.precondition)?;
        some(&learning_rates(sharpness, base.particles, rates_per_decade))
    } else {
        vec![None]
    };
    let open = |parameter, is_set: bool, values: &[f64]| {
        let is_open = method.parameters().contains(&parameter) && !is_set;
        if is_open { some(values) } else { vec![None] }
    };
    let friction_is_set = settings.friction.is_some() || settings.alpha.is_some();
    let alphas = open(Parameter::Friction, friction_is_set, &MOMENTUM_DECAYS);
    let mus = open(Parameter::Mu, settings.mu.is_some(), &COUPLINGS);
    let gammas = open(Parameter::Gamma, settings.gamma.is_some(), &COUPLINGS);
    let mut choices = Vec::new();
    for &eta in &etas {
        for &alpha in &alphas {
            for &mu in &mus {
                choices.extend(gammas.iter().map(|&gamma| Choice { eta, alpha, mu, gamma }));
            }
        }
    }
    if choices == [Choice::default()] {
        return Err(Error::NothingToTune {
            why: format!("{} of `{}` is set", searchable(&method), method.name),
            remedy: "leave some of it open",
        });
    }
    Ok(choices)
}

fn some(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(Some).collect()
}

/// What could be searched, in words.
fn searchable(method: &Method) -> String {
    let others = [Parameter::Friction, Parameter::Mu, Parameter::Gamma];
    let own = others.into_iter().filter(|parameter| method.parameters().contains(parameter));
    let names: Vec<&str> = std::iter::once("step size").chain(own.map(Parameter::name)).collect();
    format!("all ({})", names.join(", "))
}
