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

/// All points of the grid over the learning rates `rates`, of which there are none where the step size
/// is set, and over what the method has and is not `set`; the rates first to last. Where there is nothing
/// to search, the error says so.
///
/// ```
/// use steinflow::method::{Method, Parameter};
/// use steinflow::tune::choices;
/// let rates = [1e-3, 1e-2];
/// assert_eq!(choices(&Method::named("svgd")?, &rates, &[])?.len(), 2);
/// assert_eq!(choices(&Method::named("sgnht-stein")?, &rates, &[])?.len(), 18);
/// assert_eq!(choices(&Method::named("sgnht-stein")?, &rates, &[Parameter::Mu])?.len(), 6);
/// assert!(choices(&Method::named("svgd")?, &[], &[]).is_err());
/// assert!(choices(&Method::named("lawgd")?, &rates, &[]).is_err());
/// # Ok::<(), steinflow::Error>(())
/// ```
pub fn choices(method: &Method, rates: &[f64], set: &[Parameter]) -> Result<Vec<Choice>> {
    if method.field == FieldKind::Lawgd {
        let remedy = "there is nothing to tune: everything decays at rate 1 under it, whatever the target, \
                      and its default step size suits that; run it without tuning";
        return Err(Error::setting("method", &method.name, remedy));
    }
    let some = |values: &[f64]| -> Vec<Option<f64>> { values.iter().copied().map(Some).collect() };
    let own = method.parameters();
    let open = |parameter, values| {
        let is_open = own.contains(&parameter) && !set.contains(&parameter);
        if is_open { some(values) } else { vec![None] }
    };
    let etas = if rates.is_empty() { vec![None] } else { some(rates) };
    let alphas = open(Parameter::Friction, &MOMENTUM_DECAYS);
    let mus = open(Parameter::Mu, &COUPLINGS);
    let gammas = open(Parameter::Gamma, &COUPLINGS);
    let mut all = Vec::new();
    for &eta in &etas {
        for &alpha in &alphas {
            for &mu in &mus {
                all.extend(gammas.iter().map(|&gamma| Choice { eta, alpha, mu, gamma }));
            }
        }
    }
    if all == [Choice::default()] {
        let searched = [Parameter::Friction, Parameter::Mu, Parameter::Gamma];
        let names =
            searched.into_iter().filter(|parameter| own.contains(parameter)).map(Parameter::name);
        let names: Vec<&str> = std::iter::once("step size").chain(names).collect();
        let remedy = format!(
            "there is nothing to tune, for all that could be ({}) is set; leave some of it open",
            names.join(", ")
        );
        return Err(Error::setting("method", &method.name, remedy));
    }
    Ok(all)
}
