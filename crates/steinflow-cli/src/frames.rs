//! θ at fifty to a hundred evenly spaced steps of a run in one or two dimensions, for its animation.
//!
//! Which steps depends on how many were taken and not on how many were planned, so that a run that was
//! cut or continued has the frames of one that was not.

use std::borrow::Cow;
use std::ops::ControlFlow;

use steinflow::run::{Observer, Outcome, Snapshot};
use steinflow::{Matrix, Real, Result};
use steinflow_io::record::column;
use steinflow_io::report::evenly;
use steinflow_io::{Collected, Column, Values};
use steinflow_models::Units;

use steinflow_config::Config;

/// When there would be more, every second is forgotten.
const MOST_FRAMES: u64 = 100;
/// More particles than this are thinned evenly: they would hide each other.
const MOST_PARTICLES: usize = 1000;
/// What can be drawn as it is.
const MOST_DIMENSIONS: usize = 2;

/// What a run of few dimensions has looked like so far.
pub struct Frames {
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
            dim,
            particles: evenly(config.particles, MOST_PARTICLES),
            steps: Vec::new(),
            values: Vec::new(),
        })
    }

    /// Goes on with the frames of a checkpoint.
    pub fn resume(config: &Config, dim: usize, saved: Option<&Collected<'_, f32>>) -> Option<Self> {
        let mut frames = Self::new(config, dim)?;
        let size = frames.particles.len() * dim;
        if let Some(saved) = saved.filter(|saved| saved.values.len() == saved.steps.len() * size) {
            (frames.steps, frames.values) = (saved.steps.to_vec(), saved.values.to_vec());
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
    pub fn columns<T: Real>(
        &self,
        names: &[String],
        units: Option<&Units>,
        outcome: &Outcome<T>,
    ) -> Vec<Column> {
        let (mut steps, mut values) = (self.steps.clone(), self.values.clone());
        if steps.last() != Some(&outcome.steps) {
            steps.push(outcome.steps);
            self.copy(&mut values, |i| outcome.state.row(i));
        }
        if let Some(units) = units
            && let Some(theta) = Matrix::from_vec(values.clone(), values.len() / self.dim, self.dim)
        {
            values = units.show(&theta).into_vec();
        }
        let particles = self.particles.len();
        let count = |name: &str, of: &dyn Fn(usize) -> u64| Column {
            name: name.to_owned(),
            values: Values::U64((0..steps.len() * particles).map(of).collect()),
        };
        let mut columns = vec![
            count(column::FRAME, &|row| (row / particles) as u64),
            count(column::STEP, &|row| steps[row / particles]),
            count(column::PARTICLE, &|row| self.particles[row % particles] as u64),
        ];
        columns.extend(names.iter().enumerate().map(|(j, name)| Column {
            name: name.clone(),
            values: Values::F32(values.iter().skip(j).step_by(names.len()).copied().collect()),
        }));
        columns
    }

    /// Forgets all but the frames of multiples of `spacing`.
    fn thin(&mut self, spacing: u64) {
        if self.steps.iter().all(|step| step.is_multiple_of(spacing)) {
            return;
        }
        let frames = self.values.chunks(self.particles.len() * self.dim);
        let kept = self.steps.iter().zip(frames).filter(|(step, _)| step.is_multiple_of(spacing));
        self.values = kept.flat_map(|(_, frame)| frame).copied().collect();
        self.steps.retain(|step| step.is_multiple_of(spacing));
    }

    /// Whether a frame is due after this step.
    pub fn are_due(step: u64) -> bool {
        step.is_multiple_of(spacing(step))
    }

    fn copy<'a, T: Real>(&self, values: &mut Vec<f32>, row: impl Fn(usize) -> &'a [T]) {
        for &i in &self.particles {
            values.extend(row(i)[..self.dim].iter().map(|x| x.as_f64() as f32));
        }
    }
}

impl<T: Real> Observer<T> for &mut Frames {
    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        // A warm-up before the first step has many moments and no step.
        if self.steps.last() == Some(&at.step) {
            return Ok(ControlFlow::Continue(()));
        }
        if Frames::are_due(at.step) {
            self.thin(spacing(at.step));
            self.steps.push(at.step);
            let mut values = std::mem::take(&mut self.values);
            self.copy(&mut values, |i| at.state.row(i));
            self.values = values;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Steps from frame to frame once so many are taken: a power of two, so that there are frames to forget
/// and none that are missing, however long a run was meant to be.
fn spacing(steps: u64) -> u64 {
    (steps / (MOST_FRAMES + 1) + 1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fifty_to_a_hundred_frames_evenly_spaced() {
        let mut frames: Vec<u64> = Vec::new();
        for step in 0..10_000 {
            let spacing = spacing(step);
            if step.is_multiple_of(spacing) {
                frames.retain(|step| step.is_multiple_of(spacing));
                frames.push(step);
            }
            let last = frames.len() as u64 - 1;
            assert!((MOST_FRAMES / 2..=MOST_FRAMES).contains(&last) || step < MOST_FRAMES);
            let gap = frames.get(1).copied().unwrap_or(1);
            assert!(frames.iter().zip(0..).all(|(&at, k)| at == k * gap), "{step}");
        }
        assert!(spacing(u64::MAX) > u64::MAX / 200);
    }
}
