//! Errors of the library as Python exceptions: a wrong request is a `ValueError`, a run that failed
//! a `SamplingError`, and what the user's own function raised comes back as it was.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use steinflow::Error;
use steinflow_config::in_python;

create_exception!(
    steinflow,
    SamplingError,
    PyRuntimeError,
    "A run that failed while it was under way; the message says what to change."
);

create_exception!(
    steinflow,
    LawBroken,
    PyValueError,
    "A law that does not hold for what you wrote, with the place and the numbers."
);

/// The exception for an error of the library.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::User(own) => match own.downcast::<PyErr>() {
            Ok(raised) => *raised,
            Err(other) => SamplingError::new_err(other.to_string()),
        },
        error if error.is_usage() => PyValueError::new_err(in_python(&error.to_string())),
        error => SamplingError::new_err(error.to_string()),
    }
}

/// The exception for a description of a run that cannot be carried out.
pub fn refused(error: steinflow_config::Error) -> PyErr {
    match error {
        steinflow_config::Error::Library(error) => to_python(error),
        error => PyValueError::new_err(in_python(&error.to_string())),
    }
}

/// An exception of the user's own code, carried through the library.
pub fn from_python(raised: PyErr) -> Error {
    Error::User(Box::new(raised))
}

/// The same exception with a line that says where in the run it was raised.
pub fn at_step(py: Python<'_>, raised: PyErr, step: u64) -> PyErr {
    let note = match step {
        0 => "steinflow: raised while the target was evaluated at the start".to_owned(),
        step => format!("steinflow: raised after {step} steps"),
    };
    // An exception that takes no notes is still the user's.
    let _ = raised.value(py).call_method1("add_note", (note,));
    raised
}
