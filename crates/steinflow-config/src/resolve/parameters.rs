//! The parameters of a method: those it does not have are refused, and the others written down.

use steinflow::integrator::StepSize;
use steinflow::method::{Method, Parameter, Value as ParameterValue};

use super::flow::of_method;
use crate::{Error, Phase, Result, Settings};

/// Refuses parameters that the method does not have.
pub(super) fn check_fit(settings: &Settings, method: &Method, own: &[Parameter]) -> Result<()> {
    let names: Vec<&str> = own.iter().map(|parameter| parameter.name()).collect();
    for &parameter in Parameter::ALL {
        let name = parameter.name().replace('-', "_");
        let given = if settings.get(&name).is_some() {
            Some(parameter.name())
        } else {
            settings.alpha.filter(|_| parameter == Parameter::Friction).map(|_| "alpha")
        };
        if let Some(option) = given
            && !own.contains(&parameter)
        {
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let remedy = format!("its parameters are: {has}");
            return Err(Error::does_not_fit(option, of_method(method), &remedy));
        }
    }
    Ok(())
}

/// Writes down the parameters that the method has.
pub(super) fn resolve_parameters(
    settings: &mut Settings,
    own: &[Parameter],
    phases: &[Phase],
) -> Result<()> {
    if let Some(alpha) = settings.alpha.take() {
        if settings.parameters.number(Parameter::Friction).is_some() {
            let remedy = "both set the friction; drop one";
            return Err(Error::does_not_fit("alpha", "--friction", remedy));
        }
        let [phase] = phases else {
            let remedy = "A = ασ²/ε needs a single step size; use --friction";
            return Err(Error::does_not_fit("alpha", "several phases", remedy));
        };
        let StepSize::Constant(epsilon) = StepSize::parse(&phase.step_size)? else {
            let remedy = "A = ασ²/ε needs a constant step size; use --friction";
            return Err(Error::does_not_fit("alpha", "a schedule", remedy));
        };
        let sigma = settings.parameters.number(Parameter::Sigma).unwrap_or(1.0);
        let friction = ParameterValue::Number(alpha * sigma * sigma / epsilon);
        settings.parameters.put(Parameter::Friction, friction);
    }
    let steps: u64 = phases.iter().map(|phase| phase.steps).sum();
    for &parameter in own {
        let is_open = settings.parameters.get(&parameter.name().replace('-', "_")).is_none();
        let default = match parameter {
            // The bandwidth of an exact sampler is held after a tenth of the run.
            Parameter::Adapt => Some(ParameterValue::WholeNumber(steps / 10)),
            other => other.default_value(),
        };
        if let Some(default) = default.filter(|_| is_open) {
            settings.parameters.put(parameter, default);
        }
    }
    Ok(())
}
