//! What a run records as it goes, and when it puts all of it into a checkpoint.

use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steinflow::Real;
use steinflow::run::{Checkpoint, Observer, Samples, Snapshot, Trace};
use steinflow_io::{Collected, SavedRun, Unfinished, write_checkpoint};

use crate::error::Result;
use crate::frames::Frames;
use steinflow_config::Config;

/// When checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    Steps(u64),
    Time(Duration),
    Never,
}

impl Default for Every {
    /// What a crash may cost; shorter runs write none.
    fn default() -> Self {
        Self::Time(Duration::from_secs(30))
    }
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "write a number of steps as in 1000, a time as in 30s, 5m or 1h, or never".to_owned()
        };
        if text == "never" {
            return Ok(Self::Never);
        }
        if let Ok(steps) = text.parse() {
            return if steps == 0 { Err(wrong()) } else { Ok(Self::Steps(steps)) };
        }
        let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let time = units.into_iter().find_map(|(unit, seconds)| {
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        });
        time.map(Self::Time).ok_or_else(wrong)
    }
}

/// Writes checkpoints into the folder of an unfinished run.
pub struct Writer<'a> {
    pub folder: &'a Unfinished,
    pub every: Every,
    /// The text of `config.toml`.
    pub config: String,
    /// Fingerprints of the files that the run reads.
    pub inputs: String,
    last: Instant,
    /// Moves of a warm-up, which has no steps.
    moves: u64,
    /// Up once the run was asked to stop, which a warm-up does without an outcome to save.
    stop: Arc<AtomicBool>,
    /// The step of the last one that is good.
    good: Option<u64>,
    /// What the last one has cost.
    cost: Duration,
    is_failing: bool,
}

impl<'a> Writer<'a> {
    pub fn new(
        folder: &'a Unfinished,
        every: Every,
        (config, inputs): (String, String),
        stop: Arc<AtomicBool>,
    ) -> Self {
        let last = Instant::now();
        let (moves, good, cost, is_failing) = (0, None, Duration::ZERO, false);
        Self { folder, every, config, inputs, last, moves, stop, good, cost, is_failing }
    }

    /// Whether one is due after this step of a method.
    fn is_due_after(&self, step: u64) -> bool {
        match self.every {
            Every::Never => false,
            Every::Steps(steps) => step > 0 && step.is_multiple_of(steps),
            // At most a twentieth of the run's time.
            Every::Time(time) => step > 0 && self.last.elapsed() >= time.max(self.cost * 20),
        }
    }

    fn is_due<T>(&mut self, at: &Snapshot<'_, T>) -> bool {
        let is_warm_up = at.step == 0 && at.ensemble.is_some();
        self.moves += u64::from(is_warm_up);
        // Before the first of either there is nothing to go on from.
        let taken = if is_warm_up { self.moves } else { at.step };
        let is_stopping = is_warm_up && self.stop.load(Ordering::Relaxed);
        (is_stopping && self.every != Every::Never) || self.is_due_after(taken)
    }

    /// Writes one. A disk that is full now may not be at the end, and until then the run is worth
    /// more than its checkpoint: a failure is told, not final.
    pub fn write<T: Real>(&mut self, recorder: &Record<T>, checkpoint: Checkpoint<T>) {
        let (begun, step) = (Instant::now(), checkpoint.step);
        let run = recorder.saved_run(&self.config, &self.inputs, checkpoint);
        match self.folder.write_checkpoint(step, |file| write_checkpoint(&run, file)) {
            Ok(()) => {
                (self.good, self.is_failing) = (Some(step), false);
            }
            Err(_) if self.is_failing => {}
            Err(error) => {
                self.is_failing = true;
                let last = match self.good {
                    Some(step) => format!("the last checkpoint, of step {step}, is good"),
                    None => "there is no checkpoint yet".to_owned(),
                };
                tell!("warning: {error}; {last}, and the run goes on");
            }
        }
        (self.last, self.cost) = (Instant::now(), begun.elapsed());
    }
}

/// The trace, the samples and the frames of a run.
pub struct Record<T> {
    pub trace: Trace,
    pub samples: Option<Samples<T>>,
    pub frames: Option<Frames>,
}

impl<T: Real> Record<T> {
    /// For a target of `dim` coordinates.
    pub fn new(config: &Config, dim: usize) -> Self {
        Self {
            trace: Trace::new(config.trace_every),
            samples: config.samples(),
            frames: Frames::new(config, dim),
        }
    }

    /// Goes on with what a checkpoint holds.
    pub fn resume(config: &Config, dim: usize, run: &SavedRun<'_, T>) -> Result<Self> {
        let trace = Trace::resume(config.trace_every, run.trace.to_vec());
        let samples = match &run.samples {
            Some(Collected { chains, steps, values }) => {
                config.resumed_samples(*chains, steps, values)?
            }
            None => config.samples(),
        };
        let frames = Frames::resume(config, dim, run.frames.as_ref());
        Ok(Self { trace, samples, frames })
    }

    /// All of the run, for a checkpoint file.
    pub fn saved_run(
        &self,
        config: &str,
        inputs: &str,
        checkpoint: Checkpoint<T>,
    ) -> SavedRun<'_, T> {
        SavedRun {
            config: config.to_owned(),
            inputs: inputs.to_owned(),
            checkpoint,
            trace: self.trace.rows().into(),
            samples: self.samples.as_ref().map(Collected::from),
            frames: self.frames.as_ref().map(Frames::saved),
        }
    }
}

/// Records every step, and writes a checkpoint where one is due.
pub struct Recorder<'a, 'b, T> {
    pub record: &'a mut Record<T>,
    pub writer: &'a mut Writer<'b>,
}

impl<T: Real> Observer<T> for Recorder<'_, '_, T> {
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        let Record { trace, samples, frames } = &self.record;
        trace.is_due(step, total_steps)
            || samples.as_ref().is_some_and(|samples| samples.is_due(step))
            || (frames.is_some() && Frames::are_due(step))
            || self.writer.is_due_after(step)
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> steinflow::Result<ControlFlow<()>> {
        let mut flow = self.record.trace.observer().observe(at)?;
        if let Some(samples) = &mut self.record.samples
            && samples.observer().observe(at)?.is_break()
        {
            flow = ControlFlow::Break(());
        }
        if let Some(mut frames) = self.record.frames.as_mut()
            && frames.observe(at)?.is_break()
        {
            flow = ControlFlow::Break(());
        }
        if self.writer.is_due(at) {
            self.writer.write(self.record, at.checkpoint()?);
        }
        Ok(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_steps_or_times() {
        let parse = |text: &str| text.parse::<Every>();
        assert_eq!(parse("1000"), Ok(Every::Steps(1000)));
        assert_eq!(parse("never"), Ok(Every::Never));
        for (text, seconds) in [("30s", 30.0), ("0.5m", 30.0), ("2h", 7200.0), ("20ms", 0.02)] {
            assert_eq!(parse(text), Ok(Every::Time(Duration::from_secs_f64(seconds))), "{text}");
        }
        for text in ["", "0", "s", "-1s", "nans", "1e400h", "5 parsecs", "-3"] {
            assert!(parse(text).unwrap_err().contains("30s"), "{text}");
        }
    }
}
