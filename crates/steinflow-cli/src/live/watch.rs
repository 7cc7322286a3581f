//! What a run under way shows of itself.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use steinflow::run::{Observer, Snapshot};
use steinflow::{Matrix, Real, Result};
use steinflow_io::record::{Moment, column};
use steinflow_io::report::{Frames, Points, Run, Trace, evenly};

use steinflow_models::Units;

use super::Shared;
use steinflow_config::Config;

/// Between two looks at the particles.
const PAUSE: Duration = Duration::from_millis(100);
/// Numbers that are copied in a look.
const MOST_NUMBERS: usize = 20_000;
const MOST_POINTS: usize = 1000;
/// Of a trace with more rows, every second is forgotten.
const MOST_ROWS: usize = 1000;
/// What can be drawn in a plane.
const MOST_MOVING: usize = 2;

/// Shares a look at the run, now and then.
pub struct Watch {
    shared: Arc<Shared>,
    last: Option<Instant>,
}

impl Watch {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, last: None }
    }
}

impl<T: Real> Observer<T> for Watch {
    fn is_due(&mut self, step: u64, total_steps: u64) -> bool {
        step == total_steps || self.last.is_none_or(|last| last.elapsed() >= PAUSE)
    }

    fn observe(&mut self, at: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= PAUSE);
        // Where the server is reading just now, the next step will do.
        if (is_due || at.step == at.total_steps)
            && let Ok(mut seen) = self.shared.seen.try_lock()
        {
            seen.look(at);
            self.last = Some(Instant::now());
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The last look, and the course until then.
#[derive(Clone)]
pub struct Seen {
    step: u64,
    under_way: String,
    gradients: u64,
    seconds: f64,
    mean_log_density: f64,
    particles: Vec<usize>,
    points: Points,
    units: Option<Units>,
    trace: Trace,
    has_moments: bool,
}

impl Seen {
    pub fn new(
        config: &Config,
        mut names: Vec<String>,
        units: Option<Units>,
        has_moments: bool,
    ) -> Self {
        let particles = evenly(config.particles, MOST_POINTS);
        let dim = names.len();
        names.truncate((MOST_NUMBERS / particles.len().max(1)).max(MOST_MOVING));
        let columns =
            [column::MEAN_LOG_DENSITY, column::VELOCITY_NORM, column::BANDWIDTH, column::STEP_SIZE];
        Self {
            step: 0,
            under_way: "not begun".to_owned(),
            gradients: 0,
            seconds: 0.0,
            mean_log_density: f64::NAN,
            points: Points {
                kind: "particles".to_owned(),
                count: config.particles,
                dim,
                columns: vec![Vec::new(); names.len()],
                names,
            },
            particles,
            units,
            trace: Trace {
                columns: columns.map(|name| (name.to_owned(), Vec::new())).to_vec(),
                ..Trace::default()
            },
            has_moments,
        }
    }

    fn look<T: Real>(&mut self, at: &Snapshot<'_, T>) {
        (self.step, self.gradients) = (at.step, at.gradients);
        self.under_way = match &at.ensemble {
            Some(ensemble) => format!("at {}, under way", ensemble.stage.name()),
            None => format!("of {}, under way", at.total_steps),
        };
        self.seconds = at.elapsed.as_secs_f64();
        let sum: f64 = at.log_density.iter().map(|x| x.as_f64()).sum();
        self.mean_log_density = sum / at.log_density.len() as f64;
        let theta = |i: usize, j: usize| at.state.row(self.particles[i])[j].as_f64();
        let state = || Matrix::from_fn(self.particles.len(), at.state.cols(), &theta);
        let shown = self.units.as_ref().map(|units| units.show(&state()));
        for (j, column) in self.points.columns.iter_mut().enumerate() {
            column.clear();
            column.extend((0..self.particles.len()).map(|i| match &shown {
                Some(shown) => shown.row(i)[j],
                None => theta(i, j),
            }));
        }
        if at.step == 0 {
            return;
        }
        let velocity_norm = at.velocity_norm.unwrap_or(f64::NAN);
        let bandwidth = at.bandwidths.first().copied().unwrap_or(f64::NAN);
        self.trace.step.push(at.step);
        self.trace.gradients.push(at.gradients);
        self.trace.seconds.push(self.seconds);
        let row = [self.mean_log_density, velocity_norm, bandwidth, at.step_size];
        for ((_, column), value) in self.trace.columns.iter_mut().zip(row) {
            column.push(value);
        }
        if self.trace.step.len() > MOST_ROWS {
            every_second(&mut self.trace.step);
            every_second(&mut self.trace.gradients);
            every_second(&mut self.trace.seconds);
            self.trace.columns.iter_mut().for_each(|(_, column)| every_second(column));
        }
    }

    /// Completes a run by what was seen of it.
    pub(super) fn onto(self, mut run: Run, exact: Option<&[(f64, f64)]>) -> Run {
        let summary = &mut run.summary;
        (summary.steps, summary.gradients) = (self.step, self.gradients);
        summary.seconds = self.seconds;
        summary.mean_log_density = self.mean_log_density;
        summary.ended = self.under_way;
        summary.particles = self.points.count;
        if self.has_moments {
            summary.moments = moments(&self.points, exact);
        }
        if self.points.dim <= MOST_MOVING {
            let values = vec![self.points.columns.clone()];
            run.frames = Some(Frames { steps: vec![self.step], values });
        }
        let shown = self.particles.len();
        if shown < self.points.count {
            let count = self.points.count;
            run.notes
                .push(format!("{shown} of {count} particles are shown, and moments are theirs"));
        }
        if self.points.names.len() < self.points.dim {
            let (shown, dim) = (self.points.names.len(), self.points.dim);
            run.notes.push(format!("the first {shown} of {dim} coordinates are shown"));
        }
        run.points = self.points;
        run.trace = self.trace;
        // A diffusion has no bandwidth.
        run.trace.columns.retain(|(_, values)| values.iter().any(|x| x.is_finite()));
        run
    }
}

fn moments(points: &Points, exact: Option<&[(f64, f64)]>) -> Vec<Moment> {
    let row = |(j, (name, values)): (usize, (&String, &Vec<f64>))| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        Moment {
            name: name.clone(),
            mean,
            sd: variance.sqrt(),
            exact_mean: exact.map(|exact| exact[j].0),
            exact_sd: exact.map(|exact| exact[j].1),
        }
    };
    points.names.iter().zip(&points.columns).enumerate().map(row).collect()
}

fn every_second<X: Copy>(values: &mut Vec<X>) {
    *values = values.iter().copied().step_by(2).collect();
}
