//! The loop: phases of steps, observers, stop rules, interrupts, and what to do with a NaN.

mod auto;
mod checkpoint;
mod collect;
mod joint;
mod observer;
mod progress;
mod representative;
mod resampling;
mod rest;
mod rewind;
mod same_target;
mod start;
mod stepper;
mod trace;
mod warm_up;

pub use auto::Auto;
pub use checkpoint::{Checkpoint, Past};
pub use collect::{Collecting, Samples};
pub use observer::{EnsembleView, Observer, Snapshot};
pub use resampling::Resampling;
pub use stepper::{Halted, Stepper};
pub use trace::{Trace, TraceRow, Tracing};
pub use warm_up::WarmMoments;

pub use crate::precondition::Learnt;
pub use crate::system::Saved;

use joint::Joint;
use progress::{Position, Progress};
use resampling::Clock;
use start::Start;
use warm_up::Warmth;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::coordinates::InCoordinates;
use crate::diagnostics::require_gradient;
use crate::dynamics::{Dynamics, Structure};
use crate::ensemble::{Options, Report};
use crate::field::Field;
use crate::flow::{Engine, Host, Parts, Request};
use crate::integrator::{Integrator, StepSize};
use crate::precondition::RootMeanSquare;
use crate::system::check_batch_size;
use crate::{Error, LogDensity, Matrix, Real, Result};

/// Particles of the ensemble that warms up, at the least.
const LEAST_WARM: usize = 32;
/// Effective draws that chosen particles stand for, in terms of those that are enough by themselves.
const TWICE: f64 = 2.0;

/// What happens when a score, a log density or a position is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NonFinitePolicy {
    /// The run ends with an error that names the particle, the step and the step size.
    #[default]
    Stop,
    /// The particle goes back to where it was before the step and stays there.
    Freeze,
    /// All particles go back to where they were 100 to 200 steps ago (a particle that runs away has
    /// been lost for some time before its score says so), and from there steps are half as long.
    Shrink,
}

impl NonFinitePolicy {
    /// Reads a policy's name: `stop`, `freeze` or `shrink`.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "stop" => Ok(Self::Stop),
            "freeze" => Ok(Self::Freeze),
            "shrink" => Ok(Self::Shrink),
            other => {
                let known = ["stop", "freeze", "shrink"];
                Err(Error::unknown("policy for non-finite values", other, known))
            }
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All steps were taken.
    Finished,
    /// The velocity norm fell below the tolerance.
    AtRest,
    /// The wall-clock budget was used up.
    OutOfTime,
    /// The interrupt flag was raised, or an observer asked for the end.
    Interrupted,
    /// An ensemble ended without meeting its stop rule: its report says why.
    Unsettled,
}

impl Ended {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::AtRest => "at rest",
            Self::OutOfTime => "out of time",
            Self::Interrupted => "interrupted",
            Self::Unsettled => "not done",
        }
    }
}

/// A run's result: the particles, whatever ended it.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// z = (θ, r, …), `N × (blocks · dim)`.
    pub state: Matrix<T>,
    /// log π(θ) of every particle, on all of the data.
    pub log_density: Vec<T>,
    /// The blocks of the state.
    pub structure: Structure,
    /// Why the run ended.
    pub ended: Ended,
    /// Steps taken.
    pub steps: u64,
    /// Evaluations of the target, each for all particles.
    pub gradients: u64,
    /// Particles frozen because their score was not finite.
    pub frozen: Vec<usize>,
    /// How often the step size was halved.
    pub shrinks: u32,
    /// Wall-clock time, over all processes that worked on the run.
    pub elapsed: Duration,
    /// The share of stretches that a joint accept step has accepted.
    pub acceptance: Option<f64>,
    /// How an ensemble fared.
    pub report: Option<Report>,
    /// Moments of draws that a warm-up has made, to compare with.
    pub warm_moments: Option<WarmMoments>,
    /// Where the run is: hand it to [`Sampler::resume_from`] for more steps.
    pub checkpoint: Checkpoint<T>,
}

impl<T: Real> Outcome<T> {
    /// The parameters θ, `N × dim`.
    pub fn theta(&self) -> Matrix<T> {
        self.block(crate::dynamics::THETA)
    }

    /// One block of the state, `N × dim`.
    pub fn block(&self, block: usize) -> Matrix<T> {
        let dim = self.structure.dim();
        Matrix::from_fn(self.state.rows(), dim, |i, j| self.state.row(i)[block * dim + j])
    }
}

/// Some steps with one integrator and one schedule.
struct Phase<T> {
    integrator: Box<dyn Integrator<T>>,
    steps: u64,
    step_size: StepSize,
}

/// Builds and runs a sampler.
///
/// ```
/// use steinflow::dynamics::Sghmc;
/// use steinflow::field::Stein;
/// use steinflow::integrator::{StepSize, SymmetricSplitting};
/// use steinflow::kernel::Kernel;
/// use steinflow::target::PerParticle;
/// use steinflow::Sampler;
///
/// let gaussian = PerParticle::new(2, |theta: &[f64], score: &mut [f64]| {
///     score.copy_from_slice(&[-theta[0], -theta[1]]);
///     -0.5 * (theta[0].powi(2) + theta[1].powi(2))
/// });
/// let dynamics = Sghmc { friction: 1.0, variance: 1.0 };
/// let outcome = Sampler::new(gaussian, dynamics, Stein::new(Kernel::default()))
///     .start_normal(50, &[1.0, 1.0], 0.5)
///     .phase(SymmetricSplitting, 1000, StepSize::Constant(0.3))
///     .seed(1)
///     .run()?;
/// let theta = outcome.theta();
/// let mean: f64 = (0..50).map(|i| theta.row(i)[0]).sum::<f64>() / 50.0;
/// assert!(mean.abs() < 0.1);
/// # Ok::<(), steinflow::Error>(())
/// ```
pub struct Sampler<'a, T: Real> {
    target: Box<dyn LogDensity<T> + 'a>,
    dynamics: Box<dyn Dynamics<T> + 'a>,
    field: Box<dyn Field<T> + 'a>,
    engine: Box<dyn Engine<T> + 'a>,
    start: Start<T>,
    phases: Vec<Phase<T>>,
    seed: u64,
    batch_size: Option<usize>,
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    policy: NonFinitePolicy,
    budget: Option<Duration>,
    tolerance: Option<f64>,
    interrupt: Option<Arc<AtomicBool>>,
    resampling: Option<Resampling>,
    preconditioner: Option<RootMeanSquare>,
    warm_up: Option<Options>,
    check_gradient: bool,
    joint_accept: bool,
}

impl<'a, T: Real> Sampler<'a, T> {
    /// 100 particles that start at N(0, I), and no phase yet.
    pub fn new(
        target: impl LogDensity<T> + 'a,
        dynamics: impl Dynamics<T> + 'a,
        field: impl Field<T> + 'a,
    ) -> Self {
        let mean = vec![0.0; target.dim()];
        Self {
            target: Box::new(target),
            dynamics: Box::new(dynamics),
            field: Box::new(field),
            engine: Box::new(Host),
            start: Start::Normal { count: 100, mean, sd: 1.0 },
            phases: Vec::new(),
            seed: 0,
            batch_size: None,
            observers: Vec::new(),
            policy: NonFinitePolicy::default(),
            budget: None,
            tolerance: None,
            interrupt: None,
            resampling: None,
            preconditioner: None,
            warm_up: None,
            check_gradient: true,
            joint_accept: false,
        }
    }

    /// Whether the score is compared with differences of the log density before the first step; it is,
    /// except with minibatches. A difference is an error.
    pub fn check_gradient(mut self, check: bool) -> Self {
        self.check_gradient = check;
        self
    }

    /// Lets an [ensemble](crate::ensemble) find where the mass is before the first step. The particles
    /// start there, and move in the coordinates that it has learnt: step sizes, bandwidths and momenta
    /// are then in units in which the target is near N(0, I). Observers see θ.
    ///
    /// Particles that are given are where the ensemble starts; without, it finds its own start.
    pub fn warm_up(mut self, options: Options) -> Self {
        self.warm_up = Some(options);
        self
    }

    /// Moves the particles by another field.
    pub fn with_field(mut self, field: impl Field<T> + 'a) -> Self {
        self.field = Box::new(field);
        self
    }

    /// Keeps the particles elsewhere than on this machine's processor.
    pub fn on(mut self, engine: impl Engine<T> + 'a) -> Self {
        self.engine = Box::new(engine);
        self
    }

    /// Starts `count` particles at N(mean, sd²·I).
    pub fn start_normal(mut self, count: usize, mean: &[f64], sd: f64) -> Self {
        self.start = Start::Normal { count, mean: mean.to_vec(), sd };
        self
    }

    /// Starts at given particles, `N × dim`.
    pub fn start_at(mut self, theta: Matrix<T>) -> Self {
        self.start = Start::At(theta);
        self
    }

    /// Goes on where another run was: with the same target, dynamics, field, seed and settings, to
    /// the same bits as that run would have.
    ///
    /// The phases are those of the whole run, the steps already taken included; a phase that is
    /// longer than it was, or one more, continues a run that has ended. Observers see the steps that
    /// are new.
    ///
    /// ```
    /// use steinflow::dynamics::Langevin;
    /// use steinflow::field::Stein;
    /// use steinflow::integrator::{Euler, StepSize};
    /// use steinflow::kernel::Kernel;
    /// use steinflow::target::PerParticle;
    /// use steinflow::Sampler;
    ///
    /// let gaussian = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
    ///     score[0] = -theta[0];
    ///     -0.5 * theta[0].powi(2)
    /// });
    /// let sampler = |steps| {
    ///     Sampler::new(&gaussian, Langevin::new(), Stein::new(Kernel::default()))
    ///         .phase(Euler, steps, StepSize::Constant(0.1))
    /// };
    /// let half = sampler(50).run()?;
    /// let resumed = sampler(100).resume_from(half.checkpoint).run()?;
    /// assert_eq!(resumed.state, sampler(100).run()?.state);
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn resume_from(mut self, checkpoint: Checkpoint<T>) -> Self {
        self.start = Start::Checkpoint(Box::new(checkpoint));
        self
    }

    /// Adds a phase of `steps` steps; phases follow one another.
    pub fn phase(
        mut self,
        integrator: impl Integrator<T> + 'static,
        steps: u64,
        step_size: StepSize,
    ) -> Self {
        self.phases.push(Phase { integrator: Box::new(integrator), steps, step_size });
        self
    }

    /// The seed of every random number of the run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Evaluates the target on this many rows of its data at a time.
    pub fn batch_size(mut self, rows: usize) -> Self {
        self.batch_size = Some(rows);
        self
    }

    /// Shows every step to an observer: an owned one, or `&mut` to keep what it gathers.
    pub fn observe(mut self, observer: impl Observer<T> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Draws all auxiliary variables afresh from their Gaussians after every `steps` steps.
    pub fn resample_every(self, steps: u64) -> Self {
        self.resample(Resampling::Steps(steps))
    }

    /// Draws all auxiliary variables afresh from their Gaussians, by steps or by time.
    pub fn resample(mut self, resampling: Resampling) -> Self {
        self.resampling = Some(resampling);
        self
    }

    /// Accepts or refuses every stretch between two draws of the auxiliary variables as a whole, for all
    /// particles together: what a step size does wrong is then corrected. For flows without friction whose
    /// kernel sees θ and is held, by [`ImplicitDrift`](crate::integrator::ImplicitDrift); see
    /// [`Outcome::acceptance`].
    pub fn joint_accept(mut self) -> Self {
        self.joint_accept = true;
        self
    }

    /// Moves the particles in coordinates that are learnt from their gradients.
    pub fn precondition(mut self, rule: RootMeanSquare) -> Self {
        self.preconditioner = Some(rule);
        self
    }

    /// What to do with non-finite numbers.
    pub fn on_non_finite(mut self, policy: NonFinitePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Ends the run after this much wall-clock time, that before a checkpoint included. The result
    /// then depends on the machine.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Ends the run once √(mean |v|²) is below `tolerance`.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Ends the run after the current step once the flag is up, with everything so far kept.
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Checks everything that can be checked before a particle moves.
    pub fn check(&self) -> Result<()> {
        let dim = self.target.dim();
        let structure = self.dynamics.structure(dim);
        structure.validate()?;
        let particles = self.start.check(dim)?;
        self.field.validate(structure.blocks(), particles)?;
        if let Start::Checkpoint(checkpoint) = &self.start {
            checkpoint.check(dim, structure.blocks(), self.total_steps())?;
            if checkpoint.is_of_warm_up() && self.warm_up.is_none() {
                return Err(Error::ForeignState { whose: "a run without a warm-up" });
            }
        }
        if let Some(size) = self.batch_size {
            check_batch_size(size, self.target.data_rows())?;
        }
        if let Some(rule) = &self.preconditioner {
            rule.validate()?;
            if self.field.needs_own_coordinates() {
                let remedy =
                    "this field has a grid over the target's own coordinates; leave it out";
                return Err(Error::setting("preconditioner", "root mean square", remedy));
            }
        }
        if self.warm_up.is_some() {
            let clash = |what: &'static str, remedy: &str| {
                Err(Error::setting(what, "given with a warm-up", remedy))
            };
            if self.batch_size.is_some() {
                let remedy = "the warm-up looks at all of the data; leave one of them out";
                return clash("batch size", remedy);
            }
            if self.preconditioner.is_some() {
                return clash("preconditioner", "both learn coordinates; leave one of them out");
            }
            if self.field.needs_own_coordinates() {
                return clash("field", "it has a grid over the target's own coordinates");
            }
        }
        for phase in &self.phases {
            phase.integrator.validate(&structure, self.field.is_random())?;
            phase.step_size.validate(phase.steps)?;
        }
        if let Some(resampling) = self.resampling {
            resampling.validate(&structure)?;
        }
        if self.joint_accept {
            self.check_joint(&structure)?;
        }
        self.engine.check(&self.request(particles))?;
        match self.tolerance {
            Some(tolerance) if !(tolerance >= 0.0) => {
                Err(Error::setting("tolerance", tolerance, "it must be zero or positive"))
            }
            _ => Ok(()),
        }
    }

    /// What the engine is asked for.
    fn request(&self, particles: usize) -> Request {
        Request {
            structure: self.dynamics.structure(self.target.dim()),
            particles,
            batch_size: self.batch_size,
            preconditioner: self.preconditioner,
            policy: self.policy,
            joint_accept: self.joint_accept,
        }
    }

    /// A joint accept step asks for a flow that preserves π⊗…⊗π, and for steps whose volume is known.
    fn check_joint(&self, structure: &Structure) -> Result<()> {
        let refuse = |remedy: &str| Err(Error::setting("joint accept step", "asked for", remedy));
        let varies = structure.coefficients() > 0;
        if !self.field.preserves_volume_of_auxiliaries() || structure.has_diffusion() || varies {
            return refuse(
                "it is for sghmc-stein and third-order-stein without friction, with a kernel on \
                 theta, time in units of lambda and all pairs",
            );
        }
        if !self.phases.iter().all(|phase| phase.integrator.tracks_volume()) {
            return refuse("take the integrator implicit-drift, which knows how volumes change");
        }
        if self.resampling.is_none() {
            return refuse(
                "momenta must be drawn afresh: say when, with a time between resamplings",
            );
        }
        if self.batch_size.is_some() || self.preconditioner.is_some() {
            return refuse("it needs one density: leave out minibatches and preconditioner");
        }
        Ok(())
    }

    /// The steps of all phases.
    fn total_steps(&self) -> u64 {
        self.phases.iter().fold(0, |total, phase| total.saturating_add(phase.steps))
    }

    /// Runs all phases, or until a stop rule.
    pub fn run(self) -> Result<Outcome<T>> {
        self.check()?;
        // On one of the threads that share the work: handing every small piece over to them from
        // outside would cost more than the piece.
        rayon::scope(|_| self.take_steps())
    }

    /// As [`Sampler::run`], with target and observers called on the calling thread: for those that are
    /// bound to it. A little slower for small problems.
    pub fn run_here(self) -> Result<Outcome<T>> {
        self.check()?;
        self.take_steps()
    }

    fn take_steps(mut self) -> Result<Outcome<T>> {
        let (begun, total_steps) = (Instant::now(), self.total_steps());
        let request = self.request(self.start.check(self.target.dim())?);
        let is_given = matches!(self.start, Start::At(_));
        let (mut theta, checkpoint) = self.start.particles(self.seed);
        if self.check_gradient && self.batch_size.is_none() && checkpoint.is_none() {
            require_gradient(&*self.target, theta.as_ref())?;
        }
        let (warming, checkpoint) = match checkpoint {
            Some(found) if found.is_of_warm_up() => (Some(found), None),
            found => (None, found),
        };
        let earlier = warming.as_ref().map_or(Duration::ZERO, |checkpoint| checkpoint.elapsed);
        let warmth = match (self.warm_up.take(), &checkpoint) {
            (None, _) => None,
            (Some(_), Some(checkpoint)) => {
                Some(Warmth::restore(self.target.dim(), &checkpoint.learnt)?)
            }
            (Some(options), None) => {
                // Deterministic particles keep of their start whatever their kernel does not see.
                // Many stand for the target by their number, and there may be no more draws than of them.
                let count = theta.rows();
                let is_chosen = !self.field.is_random() && count <= representative::MOST;
                let given = is_given.then(|| theta.cast::<f64>());
                let fewer = count.clamp(LEAST_WARM, Options::default_particles(theta.cols()));
                let options = Options {
                    particles: Some(if is_given { count } else { fewer }),
                    seed: self.seed,
                    start: given,
                    // The error of all draws is what particles that stand for them begin with, and in part keep.
                    // Otherwise it ends when there are draws enough to compare with.
                    effective: if is_chosen { TWICE * options.effective } else { f64::MAX },
                    ..options
                };
                let stop = warm_up::Stop { budget: self.budget, interrupt: self.interrupt.clone() };
                let target = T::widen(Box::new(&*self.target));
                let (warming, observers) = (warming.as_deref(), &mut self.observers);
                let wanted = warm_up::Wanted { count, is_chosen };
                let found =
                    warm_up::run(&*target, &options, wanted, warming, observers, &stop, begun)?;
                theta = found.white();
                Some(found)
            }
        };
        let target: Box<dyn LogDensity<T> + 'a> = match &warmth {
            Some(warmth) => Box::new(InCoordinates::new(self.target, warmth.coordinates.clone())?),
            None => self.target,
        };
        let (dynamics, field, seed) = (self.dynamics, self.field, self.seed);
        let parts = Parts { target, dynamics, field, theta, seed };
        let flow = self.engine.start(parts, &request)?;
        let mut phases = self.phases;
        let joint = self.joint_accept.then(|| Joint::new(self.seed));
        let at = Position::start(flow, self.policy, (begun, earlier), warmth, joint);
        let mut run = Progress { at, observers: self.observers, total_steps };
        let mut ended = None;
        // Steps into the phase where the run goes on; those before it are done.
        let (first, done) = if let Some(checkpoint) = checkpoint {
            let place = place(&phases, checkpoint.step);
            if let Some(phase) = phases.get_mut(checkpoint.phase) {
                phase.integrator.recall(&checkpoint.integrator)?;
            }
            run.at.take_up(*checkpoint)?;
            // The process may have died between the step that came to rest and the end.
            if run.at.step > 0 && is_at_rest(&run.at, self.tolerance)? {
                ended = Some(Ended::AtRest);
            }
            place
        } else {
            let step_size = phases.first().map_or(0.0, |p| p.step_size.at(0, p.steps));
            run.at.flow.begin_step(0, step_size);
            run.at.flow.evaluate_target()?;
            run.at.begin_stretch()?;
            ended = run.show(None)?;
            (0, 0)
        };
        let mut clock = self.resampling.map(|resampling| Clock::new(resampling, self.seed));
        if let Some(clock) = &mut clock {
            // It is the clock of the whole run.
            let sizes =
                phases.iter().flat_map(|p| (0..p.steps).map(|k| p.step_size.at(k, p.steps)));
            for (step, size) in (1..=run.at.step).zip(sizes) {
                clock.is_due(step, size);
            }
        }
        'phases: for (index, phase) in phases.iter_mut().enumerate().skip(first) {
            for k in if index == first { done } else { 0 }..phase.steps {
                if self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    ended = Some(Ended::Interrupted);
                } else if self.budget.is_some_and(|budget| run.at.elapsed() >= budget) {
                    ended = ended.or(Some(Ended::OutOfTime));
                }
                if ended.is_some() {
                    break 'phases;
                }
                run.at.phase = index;
                let step_size = phase.step_size.at(k, phase.steps);
                run.at.step(&mut *phase.integrator, step_size)?;
                let step = run.at.step;
                if clock.as_mut().is_some_and(|clock| clock.is_due(step, step_size)) {
                    run.at.flow.resample_auxiliaries(run.at.step)?;
                    run.at.begin_stretch()?;
                }
                ended = match run.show(Some(&*phase.integrator)) {
                    Err(error @ Error::NonFinite { .. }) if run.at.flow.is_remote() => {
                        run.at.recover(error, &mut *phase.integrator, step_size)?;
                        None
                    }
                    shown => shown?,
                };
                if ended.is_none() && is_at_rest(&run.at, self.tolerance)? {
                    ended = Some(Ended::AtRest);
                }
            }
        }
        let integrator = phases.get(run.at.phase).map(|phase| &*phase.integrator);
        let mut checkpoint = run.at.checkpoint(integrator)?;
        run.at.flow.evaluate_full_target()?;
        checkpoint.elapsed = run.at.elapsed();
        let gradients = checkpoint.gradients.max(run.at.gradients());
        let acceptance = run.at.joint.as_ref().and_then(Joint::acceptance);
        let warmth = run.at.warmth.take();
        let structure = run.at.flow.structure().clone();
        let particles = run.at.flow.particles()?;
        let state = match &warmth {
            Some(warmth) => warmth.in_theta(particles.state, structure.dim()),
            None => particles.state.copied(),
        };
        let log_density = particles.log_density.to_vec();
        Ok(Outcome {
            state,
            log_density,
            structure,
            ended: ended.unwrap_or(Ended::Finished),
            steps: checkpoint.step,
            gradients,
            frozen: checkpoint.frozen.clone(),
            shrinks: checkpoint.shrinks,
            elapsed: checkpoint.elapsed,
            acceptance,
            report: None,
            warm_moments: warmth.map(|warmth| warmth.moments),
            checkpoint,
        })
    }
}

/// Whether there is a tolerance, and the velocity norm within it.
fn is_at_rest<T: Real>(at: &Position<'_, T>, tolerance: Option<f64>) -> Result<bool> {
    tolerance.map_or(Ok(false), |tolerance| at.is_at_rest(tolerance))
}

/// The phase that the step after `steps` steps is in, and how many of its steps are done. After the
/// last step of all: the last phase, with all of its steps done.
fn place<T>(phases: &[Phase<T>], steps: u64) -> (usize, u64) {
    let mut before = 0;
    for (index, phase) in phases.iter().enumerate() {
        if steps - before < phase.steps || index + 1 == phases.len() {
            return (index, steps - before);
        }
        before += phase.steps;
    }
    (0, 0)
}
