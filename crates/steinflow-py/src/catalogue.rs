//! What can be asked for by name.

use pyo3::prelude::*;
use steinflow::method::Method;
use steinflow_config::ADJUSTED;

/// Every method: name, formula, names of its parameters, reference, and whether its particles move
/// by each other and without noise.
#[pyfunction]
pub fn methods() -> Vec<(String, String, Vec<String>, String, bool)> {
    let adjusted = ADJUSTED.map(|(name, _, what)| {
        let takes = vec!["effective".to_owned(), "gradients".to_owned()];
        (name.to_owned(), what.to_owned(), takes, "Duane et al. 1987".to_owned(), false)
    });
    let named = Method::all().into_iter().map(|method| {
        let parameters = method.parameters();
        let parameters = parameters.iter().map(|p| p.name().replace('-', "_")).collect();
        let (formula, reference) = (method.formula(), method.reference().to_owned());
        let deterministic = method.field.has_kernel() && !method.field.is_random();
        (method.name, formula, parameters, reference, deterministic)
    });
    adjusted.into_iter().chain(named).collect()
}

/// Every model that ships: name, a few words, formula, reference.
#[pyfunction]
pub fn models() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    steinflow_models::catalogue()
        .iter()
        .map(|model| (model.name, model.title, model.formula, model.reference))
        .collect()
}
