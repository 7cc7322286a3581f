//! θ at up to a hundred evenly spaced steps of a run in one or two dimensions, for its animation.

use std::borrow::Cow;
use std::ops::ControlFlow;

use steinflow::run::{Observer, Outcome, Snapshot};
use steinflow::{Real, Result};
use steinflow_io::report::evenly;
use steinflow_io::{Collected, Column, Values};

use crate::config::Config;

/// Between half of these and all of them are kept.
const MOST_FRAMES: u64 = 100;
/// More particles than this are thinned evenly: they would hide each other.
const MOST_PARTICLES: usize = 1000;
/// What can be drawn as it is.
const MOST_DIMENSIONS: usize = 2;

/// What a run of few dimensions has looked like so far.
pub struct Frames {
    every: u64,
    dim: usize,
    particles: Vec<usize>,
    steps: Vec<u64>,
    /// Frame after frame, particle after particle; in single precision, which no eye can tell.
    values: Vec<f32>,
}

impl Frames {
    /// None for a target that has too many dimensions.
    pub fn new(config: &Config, dim: usize) -> Option<Self> {
        (1..=MOST_DIMENSIONS).contains(&dim).then(|| Self {
            every: every(config.total_steps()),
            dim,
            particles: evenly(config.particles, MOST_PARTICLES),
            steps: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Goes on with the frames of a checkpoint. A run that has become longer keeps every second of
    /// them, or every fourth, so that it has the frames of one that was as long from the beginning.
    pub fn resume(config: &Config, dim: usize, saved: Option<&Collected<'_, f32>>) -> Option<Self> {
        let mut frames = Self::new(config, dim)?;
        let size = frames.particles.len() * dim;
        if let Some(saved) = saved.filter(|saved| saved.values.len() == saved.steps.len() * size) {
            for (&step, values) in saved.steps.iter().zip(saved.values.chunks(size)) {
                if step.is_multiple_of(frames.every) {
                    frames.steps.push(step);
                    frames.values.extend(values);
                }
            }
        }
        Some(frames)
    }

    /// For a checkpoint.
    pub fn saved(&self) -> Collected<'_, f32> {
        Collected {
            chains: self.particles.len(),
            steps: Cow::from(&self.steps),
            values: Cow::from(&self.values),
        }
    }

    /// The table of a run that has ended: with its last particles, whatever step that was.
    pub fn columns<T: Real>(&self, names: &[String], outcome: &Outcome<T>) -> Vec<Column> {
        let (mut steps, mut values) = (self.steps.clone(), self.values.clone());
        if steps.last() != Some(&outcome.steps) {
            steps.push(outcome.steps);
            self.copy(&mut values, |i| outcome.state.row(i));
        }
        let particles = self.particles.len();
        let count = |name: &str, of: &dyn Fn(usize) -> u64| Column {
            name: name.to_owned(),
            values: Values::U64((0..steps.len() * particles).map(of).collect()),
        };
        let mut columns = vec![
            count("frame", &|row| (row / particles) as u64),
            count("step", &|row| steps[row / particles]),
            count("particle", &|row| self.particles[row % particles] as u64),
        ];
        columns.extend(names.iter().enumerate().map(|(j, name)| Column {
            name: name.clone(),
            values: Values::F32(values.iter().skip(j).step_by(self.dim).copied().collect()),
        }));
        columns
    }

    fn copy<'a, T: Real>(&self, values: &mut Vec<f32>, row: impl Fn(usize) -> &'a [T]) {
        for &i in &self.particles {
            values.extend(row(i)[..self.dim].iter().map(|x| x.as_f64() as f32));
        }
    }
}

impl<T: Real> Observer<T> for &mut Frames {
    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        if at.step.is_multiple_of(self.every) {
            self.steps.push(at.step);
            let mut values = std::mem::take(&mut self.values);
            self.copy(&mut values, |i| at.state.row(i));
            self.values = values;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Steps from frame to frame: a power of two, so that the frames of a run are among those of a
/// shorter one and it does not matter whether it was planned as long as it became.
fn every(total_steps: u64) -> u64 {
    total_steps.div_ceil(MOST_FRAMES).max(1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_longer_run_are_frames_of_a_shorter_one() {
        for total in [0, 1, 99, 100, 101, 600, 12_345, u64::MAX] {
            assert!(total / every(total) <= MOST_FRAMES, "{total}");
            assert!(total < MOST_FRAMES || total / every(total) >= MOST_FRAMES / 2, "{total}");
            assert!(every(total.saturating_mul(7)).is_multiple_of(every(total)), "{total}");
        }
    }
}
