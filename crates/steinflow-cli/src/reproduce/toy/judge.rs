//! How good particles are: the share of them in every crescent, and their distance to the target.

use serde::{Deserialize, Serialize};
use steinflow::diagnostics::EnergyDistance;
use steinflow::{MatRef, Matrix};
use steinflow_models::{Describe as _, Parts, toy::TriCrescent};

use super::samples::Plan;
use crate::error::Result;

/// Exact samples that particles are compared with.
pub struct Reference(Matrix<f64>);

impl Reference {
    pub fn new(plan: &Plan, quick: bool) -> Self {
        let count = if quick { plan.reference / 10 } else { plan.reference };
        let sample = TriCrescent.exact_sample(count, plan.reference_seed);
        Self(sample.expect("the tri-crescent can be sampled exactly"))
    }

    pub fn len(&self) -> usize {
        self.0.rows()
    }
}

pub struct Judge<'a> {
    parts: &'a Parts,
    distance: EnergyDistance<'a, f64>,
}

/// What the judge says of a set of particles.
#[derive(Clone, Deserialize, Serialize)]
pub struct Verdict {
    /// One for every crescent, from the lowest.
    pub shares: Vec<f64>,
    /// Energy distance to exact samples.
    pub distance: f64,
}

impl<'a> Judge<'a> {
    pub fn new(parts: &'a Parts, reference: &'a Reference) -> Result<Self> {
        Ok(Self { parts, distance: EnergyDistance::to(reference.0.as_ref())? })
    }

    pub fn of(&self, points: MatRef<'_, f64>) -> Result<Verdict> {
        Ok(Verdict { shares: self.parts.shares_of(points), distance: self.distance.of(points)? })
    }
}

impl Verdict {
    /// Shares in per cent, from the lowest crescent.
    pub fn percentages(&self) -> String {
        let percent: Vec<String> =
            self.shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
        percent.join(" / ")
    }

    /// The lines for a panel's corner.
    pub fn corner(&self) -> Vec<String> {
        vec![format!("{} %", self.percentages()), format!("distance {:.3}", self.distance)]
    }
}
