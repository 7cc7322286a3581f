//! A run, complete: what `config.toml` holds and all that the result depends on.

use std::time::Duration;

use steinflow::dynamics::{Dynamics, Langevin};
use steinflow::ensemble::Moves;
use steinflow::integrator::{self, Integrator, StepSize};
use steinflow::kernel::Kernel;
use steinflow::method::{FieldKind, Method, Parameters};
use steinflow::precondition::RootMeanSquare;
use steinflow::run::{NonFinitePolicy, Resampling, Samples};
use steinflow::{Matrix, Real};
use steinflow_models::{ModelSpec, Start};

use crate::{Phase, Result, Settings, resolve};

/// A complete and checked run, every word of its settings understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// All settings, those left out filled in.
    pub(crate) settings: Settings,
    /// The model's name.
    pub model: String,
    /// The method's name.
    pub method: String,
    /// How particles move.
    pub way: Way,
    /// How many there are.
    pub particles: usize,
    /// Seed of every random number.
    pub seed: u64,
    /// Whether particles are f32.
    pub is_f32: bool,
    /// Whether kernel sums on a GPU are less accurate and faster.
    pub is_fast: bool,
    /// The number of the GPU that particles are kept on, if they are.
    pub device: Option<usize>,
    /// Where particles begin; none where the model draws starts of its own, or they are given.
    pub start: Option<Start>,
    /// Rows of a minibatch.
    pub batch_size: Option<usize>,
    /// What to do with non-finite numbers.
    pub policy: NonFinitePolicy,
    /// Whether gradient and log density are compared.
    pub check_gradient: bool,
    /// The wall-clock limit.
    pub budget: Option<Duration>,
    /// Ends the run at rest.
    pub tolerance: Option<f64>,
    /// Steps between rows of the trace.
    pub trace_every: u64,
    /// How coordinates are scaled, if they are.
    pub preconditioner: Option<RootMeanSquare>,
    /// When auxiliary variables are drawn afresh.
    pub resampling: Option<Resampling>,
    /// The first step at which samples are collected, and the steps between them.
    pub collect: Option<(u64, u64)>,
    /// Integrators, steps and schedules.
    pub phases: Vec<Phase>,
}

/// Integrator, steps, schedule.
type Motion<T> = (Box<dyn Integrator<T>>, u64, StepSize);

/// How particles move.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// The ensemble that needs no settings.
    Auto {
        /// What moves are made, and whether funnels are straightened and modes jumped between.
        moves: Moves,
        /// Whether it is `auto` itself.
        with_bends_and_jumps: bool,
        /// Effective draws wanted.
        effective: f64,
        /// Gradients for each particle.
        gradients: u64,
    },
    /// A method of the catalogue, step by step.
    Flow {
        /// Dynamics and field.
        method: Method,
        /// What the method takes.
        parameters: Box<Parameters>,
        /// The kernel of a method whose particles interact.
        kernel: Option<Kernel>,
        /// Whether an ensemble finds start and coordinates first.
        warm_up: bool,
    },
}

impl Config {
    /// The model and its options.
    pub fn spec(&self) -> &ModelSpec {
        &self.settings.spec
    }

    /// All settings, those left out filled in.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The text of `config.toml`.
    pub fn to_toml(&self) -> String {
        self.settings.to_toml()
    }

    /// The method of the catalogue, where the run has one.
    pub fn flow(&self) -> Option<(&Method, &Parameters)> {
        match &self.way {
            Way::Flow { method, parameters, .. } => Some((method, parameters)),
            Way::Auto { .. } => None,
        }
    }

    /// (A, C) of the run. Momenta of the ensemble live no longer than a move, so that it has those of θ
    /// alone.
    pub fn dynamics<T: Real>(&self) -> Box<dyn Dynamics<T>> {
        match self.flow() {
            Some((method, parameters)) => method.build_dynamics(parameters),
            None => Box::new(Langevin::new()),
        }
    }

    /// Whether particles feel each other.
    pub fn is_interacting(&self) -> bool {
        self.flow().is_some_and(|(method, _)| {
            method.field.has_kernel() || method.field == FieldKind::Lawgd
        })
    }

    /// Whether there is noise.
    pub fn is_random(&self) -> bool {
        self.flow().is_none_or(|(method, _)| method.field.is_random())
    }

    /// The steps of all phases.
    pub fn steps(&self) -> u64 {
        self.phases.iter().fold(0, |sum, phase| sum.saturating_add(phase.steps))
    }

    /// Gives the last phase as many steps as make so many in all.
    pub fn set_steps(&mut self, total: u64) -> Result<()> {
        let Some((last, before)) = self.phases.split_last_mut() else { return Ok(()) };
        let before = before.iter().fold(0_u64, |sum, phase| sum.saturating_add(phase.steps));
        last.steps = total.checked_sub(before).ok_or_else(|| {
            let remedy = format!("the phases before the last have {before} already");
            steinflow::Error::setting("steps", total, remedy)
        })?;
        last.validate()?;
        self.settings.phase = Some(self.phases.clone());
        Ok(())
    }

    /// Sets the wall-clock limit, in seconds.
    pub fn set_budget(&mut self, seconds: Option<f64>) -> Result<()> {
        self.budget = resolve::budget(seconds)?;
        self.settings.budget = seconds;
        Ok(())
    }

    /// Sets the velocity below which the run ends.
    pub fn set_tolerance(&mut self, tolerance: f64) -> Result<()> {
        self.tolerance = resolve::not_negative("tolerance", Some(tolerance))?;
        self.settings.tolerance = self.tolerance;
        Ok(())
    }

    /// Where samples are collected, if they are.
    pub fn samples<T: Real>(&self) -> Option<Samples<T>> {
        match self.way {
            Way::Auto { .. } => Some(Samples::of_ensemble()),
            Way::Flow { .. } => self.collect.map(|(from, every)| Samples::new(from, every)),
        }
    }

    /// As [`Config::samples`], with what was collected before a checkpoint: the particles of a draw, the
    /// step of every draw, and all of θ.
    pub fn resumed_samples<T: Real>(
        &self,
        chains: usize,
        steps: &[u64],
        values: &[T],
    ) -> Result<Option<Samples<T>>> {
        let rows = steps.len() * chains;
        if rows == 0 {
            return Ok(self.samples());
        }
        let theta = Matrix::from_vec(values.to_vec(), rows, values.len() / rows)
            .ok_or(steinflow::Error::ForeignState { whose: "the collected samples" })?;
        Ok(match (&self.way, self.collect) {
            (Way::Auto { .. }, _) => Some(Samples::resume_ensemble(chains, steps.to_vec(), theta)?),
            (Way::Flow { .. }, Some((from, every))) => {
                Some(Samples::resume(from, every, chains, steps.to_vec(), theta)?)
            }
            (Way::Flow { .. }, None) => None,
        })
    }

    /// The integrators and schedules of the phases.
    pub(crate) fn motions<T: Real>(&self) -> steinflow::Result<Vec<Motion<T>>> {
        let motion = |phase: &Phase| {
            let integrator = integrator::named(&phase.integrator)?;
            Ok((integrator, phase.steps, StepSize::parse(&phase.step_size)?))
        };
        self.phases.iter().map(motion).collect()
    }
}
