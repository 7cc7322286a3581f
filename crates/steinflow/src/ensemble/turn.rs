//! Lengths of trajectories: how many leapfrogs each particle flies until it turns back.

use super::Ensemble;
use super::flight::Route;
use crate::{LogDensity, Result};

/// Leapfrogs of a trajectory that is flown to see where it turns.
const FARTHEST: usize = 200;
/// The share of particles that must have turned.
const ENOUGH: f64 = 0.95;

impl Ensemble {
    /// Flies all particles until they turn: (u − u₀)·p < 0, or a wall.
    pub(super) fn learn_lengths(&mut self, target: &dyn LogDensity<f64>) -> Result<()> {
        let (event, farthest) = (self.dice.throw(), self.affordable(FARTHEST));
        let steps = vec![self.learning.step(); self.count];
        let Self { flight, cloud, coordinates, .. } = self;
        let mut turned = vec![0.0; cloud.count()];
        let taken = flight.launch(
            cloud,
            target,
            coordinates,
            &Route { steps: &steps, length: farthest, persistence: 0.0 },
            event,
            |step, proposal, momentum| {
                for (i, at) in turned.iter_mut().enumerate().filter(|(_, at)| **at == 0.0) {
                    let away = proposal.white.row(i).iter().zip(cloud.white.row(i));
                    let outward: f64 =
                        away.zip(momentum.row(i)).map(|((y, x), p)| (y - x) * p).sum();
                    if outward < 0.0 || !proposal.white_log_density[i].is_finite() {
                        *at = step as f64;
                    }
                }
                let back = turned.iter().filter(|&&at| at > 0.0).count();
                back as f64 >= ENOUGH * turned.len() as f64
            },
        )?;
        self.evaluations += (taken * self.count) as u64;
        turned.iter_mut().filter(|at| **at == 0.0).for_each(|at| *at = taken as f64);
        self.learning.lengths = turned;
        Ok(())
    }
}
