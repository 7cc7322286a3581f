//! From a config to the sampler that it describes.

use steinflow::dynamics::Dynamics;
use steinflow::field::Field;
use steinflow::method::{FieldKind, Region};
use steinflow::{LogDensity, Matrix, Real, Sampler};
use steinflow_models::{Describe, Model};

use crate::{Config, Result, Way};

/// Where particles begin.
pub enum Start<T> {
    /// At N(mean, sd² I).
    Normal(steinflow_models::Start),
    /// At these places, one a row.
    At(Matrix<T>),
}

impl Config {
    /// The sampler of the run on a model that ships, in the config's precision.
    pub fn sampler<'a, T: Real>(&self, model: &'a dyn Model<T>) -> Result<Sampler<'a, T>> {
        let start = self.start(model);
        // A grid is laid over the model in double precision.
        let wide = match self.needs_region() {
            true => Some(steinflow_models::build::<f64>(self.spec())?),
            false => None,
        };
        let limits = wide.as_ref().and_then(|wide| window(&**wide));
        let region = match (&wide, &limits) {
            (Some(wide), Some(window)) => Some(Region { target: &**wide, window }),
            _ => None,
        };
        self.sampler_on(model, start, None, region)
    }

    /// Whether the field needs a grid over a region of the target.
    pub fn needs_region(&self) -> bool {
        self.flow().is_some_and(|(method, _)| method.field == FieldKind::Lawgd)
    }

    /// The field, on a region where it needs one.
    pub fn field<T: Real>(&self, region: Option<Region<'_>>) -> Result<Box<dyn Field<T>>> {
        let Way::Flow { method, parameters, kernel } = &self.way;
        Ok(method.build_field::<T>(kernel.clone().unwrap_or_default(), parameters, region)?)
    }

    /// Where the particles of a model begin.
    pub fn start<T: Real>(&self, model: &dyn Model<T>) -> Start<T> {
        match (&self.start, model.start_sample(self.particles, self.seed)) {
            (Some(start), _) => Start::Normal(start.clone()),
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
    ) -> Result<Sampler<'a, T>> {
        let dynamics = dynamics.unwrap_or_else(|| self.dynamics());
        let mut sampler = Sampler::new(target, dynamics, self.field::<T>(region)?);
        sampler = match start {
            Start::Normal(start) => sampler.start_normal(self.particles, &start.mean, start.sd),
            Start::At(theta) => sampler.start_at(theta),
        };
        sampler = sampler.seed(self.seed).on_non_finite(self.policy);
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
        if let Some(steps) = self.resample_every {
            sampler = sampler.resample_every(steps);
        }
        Ok(sampler)
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
