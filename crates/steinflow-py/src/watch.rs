//! What sees every step of a run: signals, the progress bar, the user's callbacks.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use numpy::{PyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use steinflow::Result;
use steinflow::run::{Observer, Snapshot};

use crate::arrays::Number;
use crate::errors::from_python;

/// Between looks at signals and redraws of the bar, in a run that has no callbacks.
pub const TICK: Duration = Duration::from_millis(50);

/// An observer that speaks to Python.
pub struct Watch {
    /// Called now and then with (step, total, seconds, stage, effective draws and how many are wanted);
    /// the last two are None for methods that take steps.
    pub progress: Option<Py<PyAny>>,
    /// Called with a dictionary after every step; a true answer ends the run.
    pub callback: Option<Py<PyAny>>,
    /// The step that the run is in, for whoever reports an exception.
    pub step: Arc<AtomicU64>,
    /// When signals were last looked at.
    pub last: Instant,
}

impl<T: Number> Observer<T> for Watch {
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        self.callback.is_some() || step == total_steps || self.last.elapsed() >= TICK
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.step.store(at.step, Ordering::Relaxed);
        let tick = self.last.elapsed() >= TICK || at.step == at.total_steps;
        if !tick && self.callback.is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        Python::attach(|py| {
            if tick {
                self.last = Instant::now();
                // Signal handlers written in Python run here when the target is not Python.
                py.check_signals()?;
                if let Some(progress) = &self.progress {
                    let (step, total, stage) = match &at.ensemble {
                        Some(ensemble) => {
                            let share = (1000.0 * ensemble.share()) as u64;
                            (share, 1000, Some(ensemble.stage.name()))
                        }
                        None => (at.step, at.total_steps, None),
                    };
                    let effective = at.ensemble.as_ref().map(|ensemble| ensemble.effective);
                    let seconds = at.elapsed.as_secs_f64();
                    progress.call1(py, (step, total, seconds, stage, effective))?;
                }
            }
            match &self.callback {
                Some(callback) if callback.call1(py, (describe(py, at)?,))?.is_truthy(py)? => {
                    Ok(ControlFlow::Break(()))
                }
                _ => Ok(ControlFlow::Continue(())),
            }
        })
        .map_err(from_python)
    }
}

fn describe<'py, T: Number>(py: Python<'py>, at: &Snapshot<'_, T>) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    let state = PyArray::from_slice(py, at.state.as_slice());
    values.set_item("step", at.step)?;
    values.set_item("total_steps", at.total_steps)?;
    values.set_item("stage", at.ensemble.as_ref().map(|ensemble| ensemble.stage.name()))?;
    values.set_item("time", at.time)?;
    values.set_item("step_size", at.step_size)?;
    values.set_item("state", state.reshape([at.state.rows(), at.state.cols()])?)?;
    values.set_item("log_density", PyArray::from_slice(py, at.log_density))?;
    values.set_item("velocity_norm", at.velocity_norm)?;
    values.set_item("bandwidths", at.bandwidths.to_vec())?;
    values.set_item("gradients", at.gradients)?;
    values.set_item("seconds", at.elapsed.as_secs_f64())?;
    Ok(values)
}
