//! What can be asked for by name.

use pyo3::prelude::*;
use steinflow::method::Method;
use steinflow_config::AUTO;

/// Every method: name, formula, names of its parameters, reference, and whether its particles move
/// by each other and without noise.
#[pyfunction]
pub fn methods() -> Vec<(String, String, Vec<String>, String, bool)> {
    let auto = (
        AUTO.to_owned(),
        "Hamiltonian moves in learnt coordinates with an accept step".to_owned(),
        vec!["effective".to_owned(), "gradients".to_owned()],
        "Steinflow".to_owned(),
        false,
    );
    let named = Method::all().into_iter().map(|method| {
        let parameters = method.parameters();
        let parameters = parameters.iter().map(|p| p.name().replace('-', "_")).collect();
        let (formula, reference) = (method.formula(), method.reference().to_owned());
        let deterministic = method.field.has_kernel() && !method.field.is_random();
        (method.name, formula, parameters, reference, deterministic)
    });
    std::iter::once(auto).chain(named).collect()
}

/// Every model that ships: name, a few words, formula, reference.
#[pyfunction]
pub fn models() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    steinflow_models::catalogue()
        .iter()
        .map(|model| (model.name, model.title, model.formula, model.reference))
        .collect()
}
