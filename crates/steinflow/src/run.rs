//! The loop: phases of steps, observers, stop rules, interrupts, and what to do with a NaN.

mod collect;
mod observer;
mod rewind;
mod trace;

pub use collect::Samples;
pub use observer::{Observer, Snapshot};
pub use trace::{Trace, TraceRow};

use rewind::{Past, Rewind};

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::dynamics::{Dynamics, Structure};
use crate::field::Field;
use crate::integrator::{Integrator, StepSize};
use crate::precondition::RootMeanSquare;
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::system::{System, check_batch_size};
use crate::{Error, LogDensity, Matrix, Real, Result};

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
    /// Wall-clock time.
    pub elapsed: Duration,
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

/// Where the particles begin.
enum Start<T> {
    Normal { count: usize, mean: Vec<f64>, sd: f64 },
    At(Matrix<T>),
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
    start: Start<T>,
    phases: Vec<Phase<T>>,
    seed: u64,
    batch_size: Option<usize>,
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    policy: NonFinitePolicy,
    budget: Option<Duration>,
    tolerance: Option<f64>,
    interrupt: Option<Arc<AtomicBool>>,
    resample_every: Option<u64>,
    preconditioner: Option<RootMeanSquare>,
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
            start: Start::Normal { count: 100, mean, sd: 1.0 },
            phases: Vec::new(),
            seed: 0,
            batch_size: None,
            observers: Vec::new(),
            policy: NonFinitePolicy::default(),
            budget: None,
            tolerance: None,
            interrupt: None,
            resample_every: None,
            preconditioner: None,
        }
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
    pub fn resample_every(mut self, steps: u64) -> Self {
        self.resample_every = Some(steps);
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

    /// Ends the run after this much wall-clock time. The result then depends on the machine.
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
        for phase in &self.phases {
            phase.integrator.validate(&structure, self.field.is_random())?;
            phase.step_size.validate(phase.steps)?;
        }
        if let Some(steps) = self.resample_every {
            if steps == 0 {
                let remedy = "resample every 1 or more steps, or leave it out";
                return Err(Error::setting("steps between resamplings", 0, remedy));
            }
            if structure.blocks() == 1 {
                let remedy = "these dynamics have no auxiliary variable to draw afresh; take one \
                              with momentum, such as sghmc";
                return Err(Error::setting("steps between resamplings", steps, remedy));
            }
        }
        match self.tolerance {
            Some(tolerance) if !(tolerance >= 0.0) => {
                Err(Error::setting("tolerance", tolerance, "it must be zero or positive"))
            }
            _ => Ok(()),
        }
    }

    /// Runs all phases, or until a stop rule.
    pub fn run(self) -> Result<Outcome<T>> {
        self.check()?;
        let begun = Instant::now();
        let theta = self.start.particles(self.seed);
        let mut system = System::new(self.target, self.dynamics, self.field, &theta, self.seed)?;
        if let Some(size) = self.batch_size {
            system = system.with_minibatches(size)?;
        }
        if let Some(rule) = self.preconditioner {
            system = system.with_preconditioner(rule)?;
        }

        let mut run = Progress {
            system,
            observers: self.observers,
            total: self.phases.iter().fold(0, |total, phase| total.saturating_add(phase.steps)),
            phase: 0,
            step: 0,
            time: 0.0,
            factor: 1.0,
            shrinks: 0,
            rewind: Rewind::default(),
            begun,
        };
        run.system.begin_step(0, self.phases.first().map_or(0.0, |p| p.step_size.at(0, p.steps)));
        run.system.evaluate_target()?;
        let mut ended = run.show(None)?;
        'phases: for (index, mut phase) in self.phases.into_iter().enumerate() {
            for k in 0..phase.steps {
                if self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    ended = Some(Ended::Interrupted);
                } else if self.budget.is_some_and(|budget| begun.elapsed() >= budget) {
                    ended = ended.or(Some(Ended::OutOfTime));
                }
                if ended.is_some() {
                    break 'phases;
                }
                run.phase = index;
                run.step(&mut *phase.integrator, phase.step_size.at(k, phase.steps), self.policy)?;
                if self.resample_every.is_some_and(|every| run.step.is_multiple_of(every)) {
                    run.system.resample_auxiliaries(run.step);
                }
                ended = run.show(Some(run.system.velocity_norm()))?;
                if ended.is_none()
                    && self.tolerance.is_some_and(|t| run.system.velocity_norm() <= t)
                {
                    ended = Some(Ended::AtRest);
                }
            }
        }
        run.system.evaluate_full_target()?;
        let (gradients, frozen) = (run.system.gradients(), run.system.frozen());
        let (state, log_density, structure) = run.system.into_state();
        Ok(Outcome {
            state,
            log_density,
            structure,
            ended: ended.unwrap_or(Ended::Finished),
            steps: run.step,
            gradients,
            frozen,
            shrinks: run.shrinks,
            elapsed: begun.elapsed(),
        })
    }
}

impl<T: Real> Start<T> {
    /// Checks the start against the target's dimension; returns the number of particles.
    fn check(&self, dim: usize) -> Result<usize> {
        /// A handful of matrices of this size fill 20 GiB; nobody means to ask for more.
        const MOST_NUMBERS: usize = 1 << 28;
        let (count, found) = match self {
            Self::At(theta) => (theta.rows(), theta.cols()),
            Self::Normal { count, mean, .. } => (*count, mean.len()),
        };
        if found != dim {
            return Err(Error::Shape {
                what: "the start",
                found: format!("{found} coordinates"),
                expected: format!("{dim}, the target's dimension"),
            });
        }
        if count == 0 {
            return Err(Error::setting("number of particles", 0, "take 2 or more"));
        }
        if count.checked_mul(dim.max(1)).is_none_or(|numbers| numbers > MOST_NUMBERS) {
            let remedy = format!("{dim} coordinates allow at most {}", MOST_NUMBERS / dim.max(1));
            return Err(Error::setting("number of particles", count, remedy));
        }
        if let Self::Normal { mean, sd, .. } = self {
            if !(*sd >= 0.0) || !sd.is_finite() {
                let remedy = "it must be finite, zero or more";
                return Err(Error::setting("spread of the start", sd, remedy));
            }
            if let Some(mean) = mean.iter().find(|mean| !mean.is_finite()) {
                return Err(Error::setting("mean of the start", mean, "it must be finite"));
            }
        }
        Ok(count)
    }

    fn particles(self, seed: u64) -> Matrix<T> {
        let (count, mean, sd) = match self {
            Self::At(theta) => return theta,
            Self::Normal { count, mean, sd } => (count, mean, sd),
        };
        let mut theta = Matrix::zeros(count, mean.len());
        for i in 0..count {
            fill_standard_normal(&mut stream(seed, Purpose::Start, 0, i as u64), theta.row_mut(i));
            for (x, &mean) in theta.row_mut(i).iter_mut().zip(&mean) {
                *x = T::of(mean) + T::of(sd) * *x;
            }
        }
        theta
    }
}

/// A run between two steps.
struct Progress<'a, T: Real> {
    system: System<'a, T>,
    observers: Vec<Box<dyn Observer<T> + 'a>>,
    total: u64,
    phase: usize,
    step: u64,
    time: f64,
    /// What shrinking has left of the scheduled step size.
    factor: f64,
    shrinks: u32,
    rewind: Rewind<T>,
    begun: Instant,
}

impl<T: Real> Progress<'_, T> {
    /// One step, which ends with the target evaluated where the particles now are: no gradient
    /// more than the next step needs, and every state that is kept has a finite score.
    fn step(
        &mut self,
        integrator: &mut dyn Integrator<T>,
        scheduled: f64,
        policy: NonFinitePolicy,
    ) -> Result<()> {
        /// Enough to go from 1 to 1e-12; if that does not help, the step size is not the trouble.
        const MOST_SHRINKS: u32 = 40;
        match policy {
            NonFinitePolicy::Freeze => self.rewind.keep_last(self.past(integrator)),
            NonFinitePolicy::Shrink if self.rewind.is_due(self.step) => {
                self.rewind.keep(self.past(integrator));
            }
            NonFinitePolicy::Stop | NonFinitePolicy::Shrink => {}
        }
        loop {
            let dt = scheduled * self.factor;
            self.system.begin_step(self.step, dt);
            let taken =
                integrator.step(&mut self.system, dt).and_then(|()| self.system.evaluate_target());
            match (taken, policy) {
                (Ok(()), _) => {
                    self.step += 1;
                    self.time += dt;
                    return Ok(());
                }
                (Err(Error::NonFinite { particle, .. }), NonFinitePolicy::Freeze)
                    if self.system.can_freeze(particle) =>
                {
                    self.go_back(integrator)?;
                    self.system.freeze(particle);
                }
                (Err(Error::NonFinite { .. }), NonFinitePolicy::Shrink)
                    if self.shrinks < MOST_SHRINKS =>
                {
                    self.go_back(integrator)?;
                    self.factor *= 0.5;
                    self.shrinks += 1;
                }
                (Err(Error::NonFinite { step, .. }), NonFinitePolicy::Shrink) => {
                    let (step_size, halvings) = (scheduled, self.shrinks);
                    return Err(Error::RanAway { step, step_size, halvings });
                }
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// All that would be needed to come back here.
    fn past(&self, integrator: &dyn Integrator<T>) -> Past<T> {
        let (phase, step) = (self.phase, self.step);
        Past { step, phase, system: self.system.save(), integrator: integrator.memory() }
    }

    /// Goes back to the oldest state that is kept. Steps are counted on, so that observers see
    /// every number once.
    fn go_back(&mut self, integrator: &mut dyn Integrator<T>) -> Result<()> {
        let past = self.rewind.back(self.step);
        self.system.restore(&past.system)?;
        // What another phase's integrator remembers is of no use to this one.
        integrator.recall(if past.phase == self.phase { &past.integrator } else { &[] })
    }

    fn show(&mut self, velocity_norm: Option<f64>) -> Result<Option<Ended>> {
        let snapshot = Snapshot {
            step: self.step,
            total_steps: self.total,
            time: self.time,
            step_size: self.system.step_size(),
            state: self.system.state(),
            dim: self.system.structure().dim(),
            log_density: self.system.log_density(),
            velocity_norm,
            bandwidths: self.system.bandwidths(),
            gradients: self.system.gradients(),
            elapsed: self.begun.elapsed(),
        };
        let mut ended = None;
        for observer in &mut self.observers {
            if let ControlFlow::Break(()) = observer.observe(&snapshot)? {
                ended = Some(Ended::Interrupted);
            }
        }
        Ok(ended)
    }
}
