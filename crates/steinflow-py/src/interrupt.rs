//! A flag that ends a run after the step it is in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Raised by a signal handler; the run keeps everything so far.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// The flag as the library wants it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

#[pymethods]
impl Interrupt {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Raises the flag; returns whether it was up already.
    fn raise_flag(&self) -> bool {
        self.flag.swap(true, Ordering::Relaxed)
    }
}
