//! The compiled half of the Python package `steinflow`: arrays in, arrays out.
//!
//! What a user sees (adapters, results, plots) is Python, in `python/steinflow`.

#![allow(clippy::needless_pass_by_value, reason = "what Python passes is extracted, and so owned")]

mod arrays;
mod built_in;
mod catalogue;
mod checkpoint;
mod command;
mod config;
mod diagnose;
mod dynamics;
mod errors;
mod field;
mod interrupt;
mod laws;
mod low_level;
mod report;
mod run;
mod stepper;
mod table;
mod target;
mod threads;
mod watch;

use pyo3::prelude::*;

/// What the package is built on.
#[pymodule]
fn _steinflow(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SamplingError", module.py().get_type::<errors::SamplingError>())?;
    module.add("LawBroken", module.py().get_type::<errors::LawBroken>())?;
    module.add_class::<built_in::BuiltIn>()?;
    module.add_class::<checkpoint::Checkpoint>()?;
    module.add_class::<config::Config>()?;
    module.add_class::<interrupt::Interrupt>()?;
    module.add_class::<stepper::State>()?;
    module.add_class::<stepper::Stepper>()?;
    module.add_function(wrap_pyfunction!(catalogue::methods, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::models, module)?)?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(config::settings, module)?)?;
    module.add_function(wrap_pyfunction!(report::report_page, module)?)?;
    module.add_function(wrap_pyfunction!(config::model_options, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose::diagnose_draws, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose::ksd_test, module)?)?;
    module.add_function(wrap_pyfunction!(diagnose::distances, module)?)?;
    module.add_function(wrap_pyfunction!(laws::check_dynamics, module)?)?;
    module.add_function(wrap_pyfunction!(low_level::velocity, module)?)?;
    module.add_function(wrap_pyfunction!(low_level::kernel_sums, module)?)?;
    module.add_function(wrap_pyfunction!(low_level::squared_ksd, module)?)?;
    module.add_function(wrap_pyfunction!(low_level::bandwidth, module)?)?;
    module.add_function(wrap_pyfunction!(low_level::minibatch, module)?)?;
    module.add_function(wrap_pyfunction!(table::write_parquet, module)?)
}
