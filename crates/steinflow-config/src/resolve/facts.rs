//! What a run's defaults depend on: the target, and where particles begin.

use steinflow::integrator;
use steinflow::precondition::RootMeanSquare;
use steinflow::{LogDensity, Matrix};
use steinflow_models::density::DENSITY;
use steinflow_models::stan::STAN;
use steinflow_models::{Model, ModelSpec, NETWORK, Start, posteriors};

use crate::Result;

/// What a run's defaults depend on.
pub struct Facts<'a> {
    /// The target.
    pub target: &'a dyn LogDensity<f64>,
    /// Whether it is a posterior, usually much narrower than momenta of unit variance.
    pub is_posterior: bool,
    /// Where particles begin.
    pub start: Begin,
    /// Whether that is a place where a sampler can begin.
    pub start_is_good: bool,
    /// Dynamics in place of the method's own: the method is then the name of a field.
    pub own_dynamics: Option<OwnDynamics>,
}

/// Where particles begin unless the settings say.
pub enum Begin {
    /// At N(mean, sd² I).
    Normal(Start),
    /// Where the target draws them, which is about there.
    Drawn(Start),
    /// At these places.
    Given(Matrix<f64>),
}

/// What matters of dynamics that are not in the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct OwnDynamics {
    /// σ of the momentum, if they have one.
    pub sigma: Option<f64>,
}

impl<'a> Facts<'a> {
    /// Of a model that ships.
    pub fn of(model: &'a dyn Model<f64>, spec: &ModelSpec) -> Self {
        let takes_data = spec.info().is_ok_and(|info| info.takes("data"));
        Self {
            target: model,
            is_posterior: takes_data && spec.name() != NETWORK,
            start: match model.start_sample(1, 0) {
                Some(_) => Begin::Drawn(model.start()),
                None => Begin::Normal(model.start()),
            },
            start_is_good: posteriors::find(spec.name()).is_none()
                && ![DENSITY, STAN].contains(&spec.name()),
            own_dynamics: None,
        }
    }

    /// How sharply the target is curved where particles start, in scaled coordinates if there is a rule
    /// for them.
    pub(super) fn sharpness(
        &self,
        start: Option<&Start>,
        rule: Option<RootMeanSquare>,
    ) -> Result<f64> {
        let around = |start: &Start| {
            let sd = start.sd.max(0.0);
            (integrator::places_around(&start.mean, sd), sd)
        };
        let (places, spread) = match (&self.start, start) {
            (Begin::Given(places), _) => (places.clone(), spread(places)),
            (_, Some(start)) | (Begin::Normal(start) | Begin::Drawn(start), None) => around(start),
        };
        // A start that does not fit is the sampler's to refuse.
        if places.rows() == 0 || places.cols() != self.target.dim() {
            return Ok(1.0);
        }
        Ok(integrator::sharpness(self.target, places.as_ref(), spread, rule)?)
    }
}

/// The standard deviation of the particles, pooled over coordinates.
fn spread(start: &Matrix<f64>) -> f64 {
    let (count, dim) = (start.rows() as f64, start.cols());
    let mut sum = 0.0;
    for j in 0..dim {
        let column = || (0..start.rows()).map(|i| start.row(i)[j]);
        let mean = column().sum::<f64>() / count;
        sum += column().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    }
    (sum / dim.max(1) as f64).sqrt()
}
