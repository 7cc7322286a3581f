//! The default sampler as a run: an ensemble with observers, a wall-clock budget, checkpoints.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::observer::Camera;
use super::same_target::check_ensemble;
use super::{Checkpoint, Ended, EnsembleView, Observer, Outcome, Saved, Snapshot};
use crate::arrays::Arrays;
use crate::diagnostics::require_gradient;
use crate::dynamics::{Dynamics, Langevin, Structure};
use crate::ensemble::{Ensemble, Moment, Options, Stage, Status};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, LogDensity, MatRef, Matrix, Real, Result};

/// Builds and runs the sampler that needs no settings; see [`crate::ensemble`].
///
/// ```
/// use steinflow::run::{Auto, Samples};
/// use steinflow::target::PerParticle;
/// let target = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
///     score.copy_from_slice(&[-theta[0], -theta[1] * 1e6]);
///     -0.5 * (theta[0].powi(2) + 1e6 * theta[1].powi(2))
/// });
/// let mut draws = Samples::of_ensemble();
/// let outcome = Auto::new(&target).observe(draws.observer()).run()?;
/// assert!(outcome.report.unwrap().done && draws.theta().rows() > 1000);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub struct Auto<'a, T: Real> {
    target: Box<dyn LogDensity<T> + 'a>,
    options: Options,
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    budget: Option<Duration>,
    interrupt: Option<Arc<AtomicBool>>,
    checkpoint: Option<Box<Checkpoint<T>>>,
    check_gradient: bool,
}

impl<'a, T: Real> Auto<'a, T> {
    /// With no option set.
    pub fn new(target: impl LogDensity<T> + 'a) -> Self {
        Self {
            target: Box::new(target),
            options: Options::default(),
            observers: Vec::new(),
            budget: None,
            interrupt: None,
            checkpoint: None,
            check_gradient: true,
        }
    }

    /// Whether the score is compared with differences of the log density first; it is. A difference is an
    /// error.
    pub fn check_gradient(mut self, check: bool) -> Self {
        self.check_gradient = check;
        self
    }

    /// What there is to say.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Shows every evaluation of the climb and every move to an observer.
    pub fn observe(mut self, observer: impl Observer<T> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Ends the run after this much wall-clock time. The result then depends on the machine.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Ends the run after the current move once the flag is up, with everything so far kept.
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Goes on where another run with the same target and options was, to the same bits. One that had ended
    /// goes on drawing where the options ask for more effective draws or gradients.
    pub fn resume_from(mut self, checkpoint: Checkpoint<T>) -> Self {
        self.checkpoint = Some(Box::new(checkpoint));
        self
    }

    /// Checks everything that can be checked before a particle moves.
    pub fn check(&self) -> Result<()> {
        self.ensemble().map(drop)
    }

    fn ensemble(&self) -> Result<Ensemble> {
        let (dim, options) = (self.target.dim(), self.options.clone());
        match &self.checkpoint {
            Some(checkpoint) if checkpoint.particles.state.cols() != dim => {
                Err(Error::ForeignState { whose: "another target" })
            }
            Some(checkpoint) => Ensemble::restore(options, &checkpoint.learnt),
            None => Ensemble::new(dim, options),
        }
    }

    /// Where to look at the gradient: the start, or where it is usual to start.
    fn first_places(&self) -> Matrix<T> {
        if let Some(start) = &self.options.start {
            return start.cast();
        }
        let mut places = Matrix::zeros(2, self.target.dim());
        for i in 0..2 {
            let mut generator = stream(self.options.seed, Purpose::Probe, 0, i as u64);
            fill_standard_normal(&mut generator, places.row_mut(i));
        }
        places
    }

    /// Runs until the stop rule is content, or the budget is spent.
    pub fn run(self) -> Result<Outcome<T>> {
        self.check()?;
        // On one of the threads that share the work.
        rayon::scope(|_| self.run_here())
    }

    /// As [`Auto::run`], with target and observers called on the calling thread.
    pub fn run_here(self) -> Result<Outcome<T>> {
        let mut ensemble = self.ensemble()?;
        let begun = Instant::now();
        if self.check_gradient && self.checkpoint.is_none() {
            require_gradient(&*self.target, self.first_places().as_ref())?;
        }
        let (earlier, mut step) = match &self.checkpoint {
            Some(checkpoint) => (checkpoint.elapsed, checkpoint.step),
            None => (Duration::ZERO, 0),
        };
        let elapsed = || earlier.saturating_add(begun.elapsed());
        let target = T::widen(self.target);
        if self.checkpoint.is_some() {
            check_ensemble::<T>(&ensemble, &*target)?;
        }
        let (mut observers, mut failed, mut ended) = (self.observers, None, None);
        let options = self.options;
        let out_of_time = || self.budget.is_some_and(|budget| elapsed() >= budget);
        let raised = || self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        let mut watch = |at: &Moment<'_>| -> ControlFlow<()> {
            let saved = || (step + 1, at.save());
            let rows = at.theta.rows();
            let shown = show(at, rows, step, elapsed(), &options, &mut observers, &saved);
            step += 1;
            match shown {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => ended = Some(Ended::Interrupted),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            if raised() {
                ended = Some(Ended::Interrupted);
            } else if out_of_time() {
                ended = ended.or(Some(Ended::OutOfTime));
            }
            if ended.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        while !ensemble.is_done() {
            if ensemble.advance(&*target, &mut watch)? == Status::Interrupted {
                break;
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let report = ensemble.report();
        let by_itself = if report.done { Ended::Finished } else { Ended::Unsettled };
        let checkpoint = checkpoint(
            step,
            gradients(report.evaluations, ensemble.particles()),
            (ensemble.theta(), ensemble.log_density(), ensemble.score()),
            elapsed(),
            ensemble.save(),
        );
        Ok(Outcome {
            state: checkpoint.particles.state.clone(),
            log_density: checkpoint.particles.log_density.clone(),
            structure: structure(target.dim()),
            ended: ended.unwrap_or(by_itself),
            steps: step,
            gradients: checkpoint.gradients,
            frozen: Vec::new(),
            shrinks: 0,
            elapsed: checkpoint.elapsed,
            acceptance: None,
            report: Some(report),
            warm_moments: None,
            checkpoint,
        })
    }
}

/// θ alone: what momenta outlive a move are among what was learnt.
fn structure(dim: usize) -> Structure {
    Dynamics::<f64>::structure(&Langevin::new(), dim)
}

/// Evaluations of all particles at once, to which those of some add up.
fn gradients(evaluations: u64, particles: usize) -> u64 {
    evaluations.div_ceil(particles.max(1) as u64)
}

fn narrow<T: Real>(from: MatRef<'_, f64>) -> Matrix<T> {
    Matrix::from_fn(from.rows(), from.cols(), |i, j| T::of(from.row(i)[j]))
}

fn checkpoint<T: Real>(
    step: u64,
    gradients: u64,
    (theta, log_density, score): (MatRef<'_, f64>, &[f64], MatRef<'_, f64>),
    elapsed: Duration,
    learnt: Arrays,
) -> Checkpoint<T> {
    Checkpoint {
        step,
        phase: 0,
        time: 0.0,
        step_size_factor: 1.0,
        shrinks: 0,
        gradients,
        frozen: Vec::new(),
        squared_speeds: vec![0.0],
        particles: Saved {
            state: narrow(theta),
            log_density: log_density.iter().map(|&x| T::of(x)).collect(),
            score: narrow(score),
            batches: 0,
            preconditioner: None,
            field: Vec::new(),
        },
        integrator: Vec::new(),
        past: Vec::new(),
        elapsed,
        learnt,
    }
}

/// Shows a moment of an ensemble to those who watch a run of `count` particles: the ensemble's come again where
/// it has fewer. `saved` is the step of a checkpoint taken now, and what was learnt until then.
pub(super) fn show<T: Real>(
    moment: &Moment<'_>,
    count: usize,
    step: u64,
    elapsed: Duration,
    options: &Options,
    observers: &mut [Box<dyn Observer<T> + '_>],
    saved: &dyn Fn() -> (u64, Arrays),
) -> Result<ControlFlow<()>> {
    if observers.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    let rows = moment.theta.rows();
    let again = |from: MatRef<'_, f64>| {
        Matrix::from_fn(count, from.cols(), |i, j| T::of(from.row(i % rows)[j]))
    };
    let theta = again(moment.theta);
    // Before there are draws, scores may be those of walls.
    let score = (moment.stage == Stage::Produce).then(|| again(moment.score));
    let log_density: Vec<T> = (0..count).map(|i| T::of(moment.log_density[i % rows])).collect();
    let gradients = gradients(moment.evaluations, count);
    let take = || {
        let again = |from: MatRef<'_, f64>| {
            Matrix::from_fn(count, from.cols(), |i, j| from.row(i % rows)[j])
        };
        let heights: Vec<f64> = (0..count).map(|i| moment.log_density[i % rows]).collect();
        let (theta, score) = (again(moment.theta), again(moment.score));
        let particles = (theta.as_ref(), &*heights, score.as_ref());
        let (step, learnt) = saved();
        Ok(checkpoint(step, gradients, particles, elapsed, learnt))
    };
    let verdict = moment.verdict;
    let snapshot = Snapshot {
        step,
        total_steps: 0,
        time: 0.0,
        step_size: moment.step_size,
        state: theta.as_ref(),
        dim: theta.cols(),
        log_density: &log_density,
        score: score.as_ref().map(Matrix::as_ref),
        velocity_norm: None,
        bandwidths: &[],
        gradients,
        elapsed,
        ensemble: Some(EnsembleView {
            stage: moment.stage,
            draw: moment.draw,
            effective: (verdict.map_or(0.0, |verdict| verdict.effective), options.effective),
            rhat: verdict.map(|verdict| verdict.rhat),
            used: moment.gradients / options.gradients as f64,
        }),
        camera: Camera(&take),
    };
    let mut flow = ControlFlow::Continue(());
    for observer in observers {
        if observer.observe(&snapshot)?.is_break() {
            flow = ControlFlow::Break(());
        }
    }
    Ok(flow)
}
