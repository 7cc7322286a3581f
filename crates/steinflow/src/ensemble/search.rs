//! The search for modes that no particle visits, and for mass further out than all of them, once draws would be
//! enough: what it finds is visited.
//!
//! A quarter of the particles is taken there, and all walk and learn again. Whether they stay is for their
//! own tracks to say: a place of little mass is weeded, and not gone to twice.

use super::cloud::evaluate;
use super::walk::Walk;
use super::{Ensemble, Pace, Stage};
use crate::arrays::{Arrays, FOREIGN};
use crate::diagnostics::search_modes;
use crate::{LogDensity, Matrix, Result};

/// How often a run may go to places that were found.
const MOST_VISITS: usize = 3;
/// One particle in so many goes there.
const SHARE: usize = 4;
/// A mode that holds less of the probability than this is not worth going to.
const WORTH: f64 = 0.02;
/// Places that are this near in u are one.
const SAME: f64 = 1.0;

/// Whether there was a search, what it left, and where particles were taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Search {
    is_over: bool,
    /// The part of the probability that a mode holds which was found, and not visited; 0 if there is none.
    pub(super) missed: f64,
    /// Places that were visited, one a row.
    places: Vec<f64>,
}

impl Search {
    /// Draws that are to come are searched around again.
    pub(super) fn reopen(&mut self) {
        (self.is_over, self.missed) = (false, 0.0);
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put("search", [f64::from(u8::from(self.is_over)), self.missed]);
        into.put("search.places", &*self.places);
    }

    pub(super) fn restore(dim: usize, from: &Arrays) -> Result<Self> {
        let numbers = from.get_exactly("search", 2)?;
        let places = from.get("search.places")?.to_vec();
        if !places.len().is_multiple_of(dim) {
            return Err(FOREIGN);
        }
        Ok(Self { is_over: numbers[0] != 0.0, missed: numbers[1], places })
    }
}

impl Ensemble {
    /// Whether draws that are enough are searched around before they count.
    pub(super) fn search_is_due(&self) -> bool {
        self.options.jumps && !self.search.is_over
    }

    pub(super) fn search_step(&mut self, target: &dyn LogDensity<f64>) -> Result<Pace> {
        let visits = self.search.places.len() / self.dim;
        let seed = self.options.seed.wrapping_add(1 + visits as u64);
        let found = search_modes(target, self.cloud.theta.as_ref(), seed)?;
        self.evaluations += found.evaluations;
        // Where particles have been and did not stay, there is nothing to miss.
        let mode = found.unvisited.filter(|_| found.weight > WORTH);
        let place = mode.or(found.beyond).filter(|place| !self.was_visited(place));
        match place {
            Some(place) if visits < MOST_VISITS && !self.warm_up_is_over() => {
                self.visit(&place, target)?;
            }
            place => {
                self.search.is_over = true;
                self.search.missed = place.map_or(0.0, |_| found.weight.max(found.mass_beyond));
                self.stage = Stage::Done;
            }
        }
        Ok(Pace::Between)
    }

    fn was_visited(&self, place: &[f64]) -> bool {
        let white = |place: &[f64]| {
            let place = Matrix::from_fn(1, self.dim, |_, j| place[j]);
            self.coordinates.from_theta(place.as_ref()).into_vec()
        };
        let here = white(place);
        self.search.places.chunks_exact(self.dim).any(|known| {
            let square: f64 = white(known).iter().zip(&here).map(|(a, b)| (a - b).powi(2)).sum();
            square < SAME * SAME
        })
    }

    fn visit(&mut self, place: &[f64], target: &dyn LogDensity<f64>) -> Result<()> {
        let theta = Matrix::from_fn(1, self.dim, |_, j| place[j]);
        let (mut log_density, mut score) = ([0.0], Matrix::zeros(1, self.dim));
        evaluate(target, theta.as_ref(), &mut log_density, score.as_mut())?;
        self.evaluations += 1;
        self.search.places.extend(place);
        for i in (0..self.count).step_by(SHARE) {
            self.cloud.theta.row_mut(i).copy_from_slice(place);
            self.cloud.log_density[i] = log_density[0];
            self.cloud.score.row_mut(i).copy_from_slice(score.row(0));
        }
        self.cloud.follow(&self.coordinates);
        self.regions = super::Regions::default();
        self.walk = Walk::default();
        self.stage = Stage::Walk;
        Ok(())
    }
}
