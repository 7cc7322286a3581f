//! A sampler as it is put together: target, dynamics, field, start, phases, and what else a run may be told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::start::Start;
use super::{Checkpoint, NonFinitePolicy, Observer, Resampling};
use crate::dynamics::Dynamics;
use crate::ensemble::Options;
use crate::field::Field;
use crate::flow::{Engine, Host};
use crate::integrator::{Integrator, StepSize};
use crate::precondition::RootMeanSquare;
use crate::{LogDensity, Matrix, Real};

/// Some steps with one integrator and one schedule.
pub(super) struct Phase<T> {
    pub(super) integrator: Box<dyn Integrator<T>>,
    pub(super) steps: u64,
    pub(super) step_size: StepSize,
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
    pub(super) target: Box<dyn LogDensity<T> + 'a>,
    pub(super) dynamics: Box<dyn Dynamics<T> + 'a>,
    pub(super) field: Box<dyn Field<T> + 'a>,
    pub(super) engine: Box<dyn Engine<T> + 'a>,
    pub(super) start: Start<T>,
    pub(super) phases: Vec<Phase<T>>,
    pub(super) seed: u64,
    pub(super) batch_size: Option<usize>,
    pub(super) observers: Vec<Box<dyn Observer<T> + 'a>>,
    pub(super) policy: NonFinitePolicy,
    pub(super) budget: Option<Duration>,
    pub(super) tolerance: Option<f64>,
    pub(super) interrupt: Option<Arc<AtomicBool>>,
    pub(super) resampling: Option<Resampling>,
    pub(super) preconditioner: Option<RootMeanSquare>,
    pub(super) warm_up: Option<Options>,
    pub(super) check_gradient: bool,
    pub(super) joint_accept: bool,
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
    /// [`Outcome::acceptance`](super::Outcome::acceptance).
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
}
