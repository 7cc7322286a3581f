//! From a config to the sampler that it describes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use steinflow::dynamics::Dynamics;
use steinflow::ensemble::Options;
use steinflow::field::Field;
use steinflow::flow::Shared;
use steinflow::method::{FieldKind, Region};
use steinflow::run::{Auto, Checkpoint, Observer, Outcome};
use steinflow::team::Team;
use steinflow::{LogDensity, Matrix, Real, Sampler};
use steinflow_models::{Describe, Model};

use crate::{Config, Result, Way, device};

/// Where particles begin.
pub enum Start<T> {
    /// At N(mean, sd² I).
    Normal(steinflow_models::Start),
    /// At these places, one a row.
    At(Matrix<T>),
    /// Wherever an ensemble finds.
    Open,
}

/// A run that is ready to start, whichever way its particles move.
#[expect(clippy::large_enum_variant, reason = "a process has a handful of them")]
pub enum Run<'a, T: Real> {
    /// The ensemble that needs no settings.
    Auto(Auto<'a, T>),
    /// A method of the catalogue.
    Flow(Sampler<'a, T>),
}

/// Does the same to either.
macro_rules! either {
    ($run:expr, $sampler:ident => $result:expr) => {
        match $run {
            Run::Auto($sampler) => Run::Auto($result),
            Run::Flow($sampler) => Run::Flow($result),
        }
    };
}

impl<'a, T: Real> Run<'a, T> {
    /// Lets others share the kernel sums of a method that has some.
    pub fn with_team(self, team: Arc<dyn Team<T>>) -> Self {
        match self {
            Self::Auto(sampler) => Self::Auto(sampler),
            Self::Flow(sampler) => Self::Flow(sampler.on(Shared(team))),
        }
    }

    /// Moves the particles of a method that has a field by another.
    pub fn with_field(self, field: impl Field<T> + 'a) -> Self {
        match self {
            Self::Auto(sampler) => Self::Auto(sampler),
            Self::Flow(sampler) => Self::Flow(sampler.with_field(field)),
        }
    }

    /// Shows every step to an observer.
    pub fn observe(self, observer: impl Observer<T> + 'a) -> Self {
        either!(self, sampler => sampler.observe(observer))
    }

    /// Ends the run after the current step once the flag is up, with everything so far kept.
    pub fn interrupt(self, flag: Arc<AtomicBool>) -> Self {
        either!(self, sampler => sampler.interrupt(flag))
    }

    /// Goes on where another run with the same settings was.
    pub fn resume_from(self, checkpoint: Checkpoint<T>) -> Self {
        either!(self, sampler => sampler.resume_from(checkpoint))
    }

    /// Checks everything that can be checked before a particle moves.
    pub fn check(&self) -> steinflow::Result<()> {
        match self {
            Self::Auto(sampler) => sampler.check(),
            Self::Flow(sampler) => sampler.check(),
        }
    }

    /// Runs, on the threads that share the work.
    pub fn run(self) -> steinflow::Result<Outcome<T>> {
        match self {
            Self::Auto(sampler) => sampler.run(),
            Self::Flow(sampler) => sampler.run(),
        }
    }

    /// As [`Run::run`], with target and observers called on the calling thread.
    pub fn run_here(self) -> steinflow::Result<Outcome<T>> {
        match self {
            Self::Auto(sampler) => sampler.run_here(),
            Self::Flow(sampler) => sampler.run_here(),
        }
    }
}

impl Config {
    /// The sampler of the run on a model that ships, in the config's precision.
    pub fn sampler<'a, T: Real>(&self, model: &'a dyn Model<T>) -> Result<Run<'a, T>> {
        self.sampler_through(model, model)
    }

    /// As [`Config::sampler`], with the model evaluated through another target that says the same.
    pub fn sampler_through<'a, T: Real>(
        &self,
        model: &dyn Model<T>,
        target: impl LogDensity<T> + 'a,
    ) -> Result<Run<'a, T>> {
        let start = self.start(model);
        // A grid is laid over the model in double precision.
        let wide = if self.needs_region() {
            Some(steinflow_models::build::<f64>(self.spec())?)
        } else {
            None
        };
        let limits = wide.as_ref().and_then(|wide| window(&**wide));
        let region = match (&wide, &limits) {
            (Some(wide), Some(window)) => Some(Region { target: &**wide, window }),
            _ => None,
        };
        self.sampler_on(target, start, None, region)
    }

    /// Whether the field needs a grid over a region of the target.
    pub fn needs_region(&self) -> bool {
        self.flow().is_some_and(|(method, _)| method.field == FieldKind::Lawgd)
    }

    /// The field, on a region where it needs one.
    pub fn field<T: Real>(&self, region: Option<Region<'_>>) -> Result<Box<dyn Field<T>>> {
        let Way::Flow { method, parameters, kernel, .. } = &self.way else {
            let remedy = "it has no velocity; name a method such as svgd";
            return Err(steinflow::Error::setting("method", &self.method, remedy).into());
        };
        Ok(method.build_field::<T>(kernel.clone().unwrap_or_default(), parameters, region)?)
    }

    /// Where the particles of a model begin.
    pub fn start<T: Real>(&self, model: &dyn Model<T>) -> Start<T> {
        let is_open = matches!(self.way, Way::Auto { .. } | Way::Flow { warm_up: true, .. });
        match (&self.start, model.start_sample(self.particles, self.seed)) {
            (Some(start), _) => Start::Normal(start.clone()),
            (None, _) if is_open => Start::Open,
            (None, Some(drawn)) => Start::At(drawn.cast()),
            (None, None) => Start::Normal(model.start()),
        }
    }

    /// As [`Config::sampler`], for any target: with dynamics in place of the method's own, and the
    /// region that a grid is laid over, if there are.
    pub fn sampler_on<'a, T: Real>(
        &self,
        target: impl LogDensity<T> + 'a,
        start: Start<T>,
        dynamics: Option<Box<dyn Dynamics<T> + 'a>>,
        region: Option<Region<'_>>,
    ) -> Result<Run<'a, T>> {
        let Way::Flow { warm_up, .. } = self.way else {
            return Ok(Run::Auto(self.auto(target, start)));
        };
        let dynamics = dynamics.unwrap_or_else(|| self.dynamics());
        let zeros = vec![0.0; target.dim()];
        let mut sampler = Sampler::new(target, dynamics, self.field::<T>(region)?);
        sampler = match start {
            Start::Normal(start) if warm_up => {
                sampler.start_at(start.draw(self.particles, self.seed))
            }
            Start::Normal(start) => sampler.start_normal(self.particles, &start.mean, start.sd),
            Start::At(theta) => sampler.start_at(theta),
            Start::Open => sampler.start_normal(self.particles, &zeros, 1.0),
        };
        if warm_up {
            sampler = sampler.warm_up(Options::default());
        }
        sampler =
            sampler.seed(self.seed).on_non_finite(self.policy).check_gradient(self.check_gradient);
        for (integrator, steps, step_size) in self.motions::<T>()? {
            sampler = sampler.phase(integrator, steps, step_size);
        }
        if let Some(rule) = self.preconditioner {
            sampler = sampler.precondition(rule);
        }
        if let Some(rows) = self.batch_size {
            sampler = sampler.batch_size(rows);
        }
        if let Some(budget) = self.budget {
            sampler = sampler.budget(budget);
        }
        if let Some(tolerance) = self.tolerance {
            sampler = sampler.tolerance(tolerance);
        }
        if let Some(resampling) = self.resampling {
            sampler = sampler.resample(resampling);
        }
        if self.settings.accept == Some(true) {
            sampler = sampler.joint_accept();
        }
        if let Some(ordinal) = self.device {
            let engine = device::engine(ordinal, &self.way)?;
            sampler = sampler.on(if self.is_fast { engine.fast() } else { engine });
        }
        Ok(Run::Flow(sampler))
    }

    fn auto<'a, T: Real>(&self, target: impl LogDensity<T> + 'a, start: Start<T>) -> Auto<'a, T> {
        let mut options = Options {
            particles: Some(self.particles),
            seed: self.seed,
            start: match start {
                Start::Open => None,
                Start::At(theta) => Some(theta.cast()),
                Start::Normal(start) => Some(start.draw(self.particles, self.seed)),
            },
            ..Options::default()
        };
        if let Way::Auto { moves, with_bends_and_jumps, effective, gradients } = self.way {
            (options.moves, options.effective, options.gradients) = (moves, effective, gradients);
            (options.bends, options.jumps) = (with_bends_and_jumps, with_bends_and_jumps);
        }
        let auto = Auto::new(target).options(options).check_gradient(self.check_gradient);
        match self.budget {
            Some(budget) => auto.budget(budget),
            None => auto,
        }
    }
}

/// Limits that hold nearly all of a model: what it is plotted in, or its mean ± 6 standard deviations.
pub fn window(model: &dyn Describe) -> Option<Vec<(f64, f64)>> {
    if let Some(window) = model.window() {
        return Some(window.map(Into::into).to_vec());
    }
    let exact = model.exact_moments()?;
    let around = |j: usize| {
        let (mean, sd) = (exact.mean[j], exact.covariance.row(j)[j].sqrt());
        (mean - 6.0 * sd, mean + 6.0 * sd)
    };
    Some((0..exact.mean.len()).map(around).collect())
}
