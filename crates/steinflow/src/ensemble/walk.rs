//! The walk: from where the climb ended to where the mass is, every particle with its own step size.
//!
//! Blocks of 10 moves of 3 leapfrogs; coordinates are fitted to the particles twice a block. It ends when the
//! median log density has stopped rising.

use super::flight::Route;
use super::weed::weed;
use super::{Ensemble, Pace, Stage, Watch};
use crate::coordinates::{Coordinates, Linear};
use crate::quantiles::{median, quantile};
use crate::{LogDensity, Matrix, Result};

const MOVES: usize = 10;
const LEAPFROGS: usize = 3;
const FITS_EVERY: usize = 5;
const FEWEST_BLOCKS: usize = 2;
const MOST_BLOCKS: usize = 12;
const LARGEST_STEP: f64 = 2.0;
/// Particles below this quantile of the log density are not fitted to.
const STRAGGLERS: f64 = 0.25;

/// How far the walk has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Walk {
    pub(super) blocks: usize,
    /// The median log density at the end of the last block.
    pub(super) level: f64,
}

impl Ensemble {
    pub(super) fn walk_step(
        &mut self,
        target: &dyn LogDensity<f64>,
        watch: &mut Watch<'_>,
    ) -> Result<Pace> {
        if self.warm_up_is_over() {
            self.begin_learning();
            return Ok(Pace::Between);
        }
        if self.track.moves() == MOVES {
            self.finish_block();
            return Ok(Pace::Between);
        }
        if self.track.moves().is_multiple_of(FITS_EVERY) {
            self.fit_to_particles();
        }
        let jitter = super::dice::between(&mut self.dice.throw().shared(), 0.8, 1.2);
        let steps: Vec<f64> = self.steps.iter().map(|step| step * jitter).collect();
        self.transition(target, &Route { steps: &steps, length: LEAPFROGS, persistence: 0.0 })?;
        for (step, accepted) in self.steps.iter_mut().zip(self.flight.acceptance()) {
            *step *= match accepted {
                a if a > 0.8 => 1.25,
                a if a < 0.4 => 0.5,
                a if a < 0.6 => 0.9,
                _ => 1.0,
            };
            *step = step.min(LARGEST_STEP);
        }
        self.track.push(&self.cloud, self.flight.hard());
        Ok(Pace::Moved(self.show(watch, None)))
    }

    /// Coordinates from the particles or, at first, from the curvature that their climbs met.
    fn fit_to_particles(&mut self) {
        let cloud = &self.cloud;
        let finite = cloud.log_density.iter().copied().filter(|v| v.is_finite());
        let least = quantile(&finite.collect::<Vec<_>>(), STRAGGLERS);
        let chosen: Vec<usize> =
            (0..self.count).filter(|&i| cloud.log_density[i] >= least).collect();
        let of =
            |m: &Matrix<f64>| Matrix::from_fn(chosen.len(), self.dim, |i, j| m.row(chosen[i])[j]);
        let fresh = self.climb.take();
        let mut linear = Linear::fit_roughly(of(&cloud.theta).as_ref(), of(&cloud.score).as_ref());
        if let Some((steps, changes)) = fresh.as_ref().and_then(super::Climb::pairs) {
            let centre = linear.centre().to_vec();
            linear = Linear::fit_roughly(steps.as_ref(), changes.as_ref());
            linear.set_centre(centre);
        }
        self.coordinates = Coordinates::from(linear);
        self.cloud.follow(&self.coordinates);
        if fresh.is_some() {
            self.steps.fill(1.0);
        }
        // No first kick longer than a typical momentum, √d.
        let typical = (self.dim as f64).sqrt();
        for (i, step) in self.steps.iter_mut().enumerate() {
            let score = self.cloud.white_score.row(i).iter().map(|g| g * g).sum::<f64>().sqrt();
            *step = step.min((2.0 * typical / score.max(1e-150)).sqrt());
        }
    }

    fn finish_block(&mut self) {
        let masses = self.track.masses(&self.coordinates, self.count);
        let fluctuation = self.fluctuation();
        let slack = 10.0 + 6.0 * fluctuation;
        let event = self.dice.throw();
        let lost = weed(&mut self.cloud, &mut self.steps, &masses, 0.95, |_| slack, event);
        self.weeded += lost;
        let level = median(self.track.log_density_since(MOVES / 2).to_vec());
        let rose = level - self.walk.level;
        self.walk.blocks += 1;
        self.walk.level = level;
        self.track.clear();
        // Where many were replaced, the median of the block is not that of those who are left.
        let few = lost * 10 <= self.count;
        let settled = self.walk.blocks >= FEWEST_BLOCKS && few && rose < 1.0 + fluctuation;
        if settled || self.walk.blocks >= MOST_BLOCKS {
            self.begin_learning();
        }
    }

    /// Learns from where the particles are.
    pub(super) fn begin_warm(&mut self) {
        self.fit_to_particles();
        self.begin_learning();
    }

    fn begin_learning(&mut self) {
        self.track.clear();
        self.climb = None;
        let step = median(self.steps.clone());
        self.learning.begin(step, &self.cloud);
        self.stage = Stage::Learn;
    }
}
