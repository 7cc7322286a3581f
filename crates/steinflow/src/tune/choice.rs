//! What is searched: all that a method has and nobody has set.

use std::fmt;

use super::{COUPLINGS, MOMENTUM_DECAYS};
use crate::method::{FieldKind, Method, Parameter};
use crate::{Error, Result};

/// A point of the grid; what is not searched is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Choice {
    /// η, the learning rate.
    pub eta: Option<f64>,
    /// α, the momentum decay.
    pub alpha: Option<f64>,
    /// μ of the thermostat.
    pub mu: Option<f64>,
    /// γ of third-order dynamics.
    pub gamma: Option<f64>,
}

impl Choice {
    /// What is searched, by name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let all =
            [("eta", self.eta), ("alpha", self.alpha), ("mu", self.mu), ("gamma", self.gamma)];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// ε = σ√η with momentum, ε = η without.
    pub fn step_size(&self, method: &Method, sigma: f64) -> Option<f64> {
        let momentum = method.dynamics.has_momentum();
        self.eta.map(|eta| if momentum { sigma * eta.sqrt() } else { eta })
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

/// What nobody has set; of it, what the method has is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// ε.
    pub step_size: bool,
    /// A.
    pub friction: bool,
    /// μ.
    pub mu: bool,
    /// γ.
    pub gamma: bool,
}

/// All points of the grid over the learning rates `rates` and what else is open, the rates first to
/// last. Where there is nothing to search, the error says so.
///
/// ```
/// use steinflow::method::Method;
/// use steinflow::tune::{Open, choices};
/// let open = Open { step_size: true, friction: true, mu: true, gamma: true };
/// assert_eq!(choices(&Method::named("svgd")?, open, &[1e-3, 1e-2])?.len(), 2);
/// assert_eq!(choices(&Method::named("sgnht-stein")?, open, &[1e-3, 1e-2])?.len(), 18);
/// assert!(choices(&Method::named("lawgd")?, open, &[1e-3, 1e-2]).is_err());
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn choices(method: &Method, open: Open, rates: &[f64]) -> Result<Vec<Choice>> {
    if method.field == FieldKind::Lawgd {
        let remedy = "there is nothing to tune: everything decays at rate 1 under it, whatever the target, \
                      and its default step size suits that; run it without tuning";
        return Err(Error::setting("method", &method.name, remedy));
    }
    let some = |is_open: bool, values: &[f64]| -> Vec<Option<f64>> {
        if is_open { values.iter().copied().map(Some).collect() } else { vec![None] }
    };
    let own = method.parameters();
    let has = |parameter| own.contains(&parameter);
    let alphas = some(open.friction && has(Parameter::Friction), &MOMENTUM_DECAYS);
    let mus = some(open.mu && has(Parameter::Mu), &COUPLINGS);
    let gammas = some(open.gamma && has(Parameter::Gamma), &COUPLINGS);
    let mut all = Vec::new();
    for &eta in &some(open.step_size, rates) {
        for &alpha in &alphas {
            for &mu in &mus {
                all.extend(gammas.iter().map(|&gamma| Choice { eta, alpha, mu, gamma }));
            }
        }
    }
    if all == [Choice::default()] {
        let searched = [Parameter::Friction, Parameter::Mu, Parameter::Gamma];
        let names = searched.into_iter().filter(|&parameter| has(parameter)).map(Parameter::name);
        let names: Vec<&str> = std::iter::once("step size").chain(names).collect();
        let remedy = format!(
            "there is nothing to tune, for all that could be ({}) is set; leave some of it open",
            names.join(", ")
        );
        return Err(Error::setting("method", &method.name, remedy));
    }
    Ok(all)
}
