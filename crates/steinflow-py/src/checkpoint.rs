//! Where a run is, with what it has recorded: to go on from, in memory or from a file.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use steinflow::run::{Observer, Samples, Snapshot, Trace};
use steinflow::{Result, run};
use steinflow_config::Config;
use steinflow_io::{CheckpointFile, Collected, SavedRun, WholeFile, write_checkpoint};

use crate::arrays::Number;
use crate::errors::from_python;

/// A run between two steps, in its precision.
enum Saved {
    Double(SavedRun<'static, f64>),
    Single(SavedRun<'static, f32>),
}

/// A run between two steps.
#[pyclass(frozen)]
pub struct Checkpoint(Saved);

/// A number that a checkpoint can be of.
pub trait Saveable: Number {
    /// Wraps a run.
    fn wrap(run: SavedRun<'static, Self>) -> Checkpoint;
    /// The run, if it is in this precision.
    fn unwrap(checkpoint: &Checkpoint) -> Option<&SavedRun<'static, Self>>;
}

impl Saveable for f64 {
    fn wrap(run: SavedRun<'static, Self>) -> Checkpoint {
        Checkpoint(Saved::Double(run))
    }
    fn unwrap(checkpoint: &Checkpoint) -> Option<&SavedRun<'static, Self>> {
        if let Saved::Double(run) = &checkpoint.0 { Some(run) } else { None }
    }
}

impl Saveable for f32 {
    fn wrap(run: SavedRun<'static, Self>) -> Checkpoint {
        Checkpoint(Saved::Single(run))
    }
    fn unwrap(checkpoint: &Checkpoint) -> Option<&SavedRun<'static, Self>> {
        if let Saved::Single(run) = &checkpoint.0 { Some(run) } else { None }
    }
}

fn not_readable(error: &steinflow_io::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

#[pymethods]
impl Checkpoint {
    /// Reads a file that a run has written; `dtype` is the precision of its particles.
    #[staticmethod]
    fn read(path: PathBuf, dtype: &str) -> PyResult<Self> {
        let file = CheckpointFile::open(&path).map_err(|error| not_readable(&error))?;
        let named = |error: steinflow_io::Error| not_readable(&error);
        Ok(match dtype {
            "float32" => f32::wrap(file.decode::<f32>().map_err(named)?),
            _ => f64::wrap(file.decode::<f64>().map_err(named)?),
        })
    }

    /// The settings of the run, as they were given to it.
    #[getter]
    fn config(&self) -> &str {
        match &self.0 {
            Saved::Double(run) => &run.config,
            Saved::Single(run) => &run.config,
        }
    }

    /// Steps taken.
    #[getter]
    fn step(&self) -> u64 {
        match &self.0 {
            Saved::Double(run) => run.checkpoint.step,
            Saved::Single(run) => run.checkpoint.step,
        }
    }
}

/// Where a run is saved to while it is under way.
#[derive(FromPyObject)]
pub struct Save {
    path: PathBuf,
    seconds: f64,
    config: String,
}

/// Records the trace and the samples of a run, and saves it from time to time.
pub struct Recorder<T: Number> {
    pub trace: Trace,
    pub samples: Option<Samples<T>>,
    save: Option<Save>,
    last: Instant,
}

impl<T: Number> Recorder<T> {
    /// Goes on with what an earlier part of the run has recorded, if there was one.
    pub fn new(
        config: &Config,
        earlier: Option<&SavedRun<'static, T>>,
        save: Option<Save>,
    ) -> steinflow_config::Result<Self> {
        let trace = match earlier {
            Some(run) => Trace::resume(config.trace_every, run.trace.to_vec()),
            None => Trace::new(config.trace_every),
        };
        let samples = match earlier.and_then(|run| run.samples.as_ref()) {
            Some(kept) => config.resumed_samples(kept.chains, &kept.steps, &kept.values)?,
            None => config.samples(),
        };
        Ok(Self { trace, samples, save, last: Instant::now() })
    }

    /// The run as it is at a checkpoint, with all that was recorded.
    pub fn saved(&self, checkpoint: run::Checkpoint<T>) -> SavedRun<'_, T> {
        SavedRun {
            config: self.save.as_ref().map(|save| save.config.clone()).unwrap_or_default(),
            inputs: String::new(),
            checkpoint,
            trace: self.trace.rows().into(),
            samples: self.samples.as_ref().map(Collected::from),
            frames: None,
        }
    }

    /// Writes the file, where one was asked for.
    pub fn save(&self, checkpoint: run::Checkpoint<T>) -> PyResult<()> {
        let Some(save) = &self.save else { return Ok(()) };
        let mut bytes = Vec::new();
        write_checkpoint(&self.saved(checkpoint), &mut bytes)?;
        WholeFile::create(&save.path, true)
            .and_then(|file| file.write(&bytes))
            .map_err(|error| not_readable(&error))
    }

    /// Whether the file is due.
    fn is_save_due(&self) -> bool {
        self.save.as_ref().is_some_and(|save| {
            let pause = Duration::try_from_secs_f64(save.seconds).unwrap_or_default();
            self.last.elapsed() >= pause
        })
    }
}

impl<T: Number> Observer<T> for &mut Recorder<T> {
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        self.trace.is_due(step, total_steps)
            || self.samples.as_ref().is_some_and(|samples| samples.is_due(step))
            || (step > 0 && self.is_save_due())
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        let _ = self.trace.observer().observe(at)?;
        if let Some(samples) = &mut self.samples {
            let _ = samples.observer().observe(at)?;
        }
        // Also in a warm-up, which has no steps.
        if (at.step > 0 || at.ensemble.is_some()) && self.is_save_due() {
            self.save(at.checkpoint()?).map_err(from_python)?;
            self.last = Instant::now();
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The part of a checkpoint that is in the precision of the particles.
pub fn in_precision<T: Saveable>(
    checkpoint: Option<&Checkpoint>,
) -> PyResult<Option<&SavedRun<'static, T>>> {
    let Some(checkpoint) = checkpoint else { return Ok(None) };
    T::unwrap(checkpoint).map(Some).ok_or_else(|| {
        PyValueError::new_err("the checkpoint is in another precision than the particles")
    })
}
