//! The `steinflow` command, in the wheel.

use std::ffi::OsString;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Does what the command does with these arguments, the first of which is its own name; its exit code.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| steinflow_cli::command(arguments));
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(u8::MAX)
}
