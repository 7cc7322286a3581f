//! Where an ensemble is, as named arrays, and back to the same bits.

use super::climb::Climb;
use super::cloud::Cloud;
use super::learn::Learning;
use super::produce::Production;
use super::regions::Regions;
use super::search::Search;
use super::signs::Signs;
use super::track::Track;
use super::walk::Walk;
use super::{Ensemble, Moves, Options, Stage};
use crate::Result;
use crate::arrays::{Arrays, FOREIGN, as_count};
use crate::coordinates::Coordinates;

const STAGES: [Stage; 7] = [
    Stage::Start,
    Stage::Climb,
    Stage::Walk,
    Stage::Learn,
    Stage::Produce,
    Stage::Search,
    Stage::Done,
];

impl Ensemble {
    /// All that [`Self::restore`] needs, besides the options.
    pub fn save(&self) -> Arrays {
        let mut arrays = Arrays::default();
        let stage = STAGES.iter().position(|&stage| stage == self.stage).unwrap_or_default();
        let counts = [
            self.dim as f64,
            self.count as f64,
            stage as f64,
            self.dice.event as f64,
            self.moves as f64,
            self.evaluations as f64,
            self.weeded as f64,
            f64::from(u8::from(self.tried_signs)),
            self.walk.blocks as f64,
        ];
        arrays.put("counts", counts);
        arrays.put("walk", [self.walk.level]);
        arrays.put("warm_up", self.warm_up.into_iter().collect::<Vec<_>>());
        arrays.put("steps", &*self.steps);
        self.cloud.save(&mut arrays);
        if self.options.moves == Moves::Persistent {
            arrays.put_matrix("momentum", &self.flight.momentum);
        }
        self.coordinates.save_into(&mut arrays);
        self.regions.save(&mut arrays);
        self.track.save(&mut arrays);
        self.learning.save(&mut arrays);
        self.production.save(&mut arrays);
        self.search.save(&mut arrays);
        if let Some(climb) = &self.climb {
            climb.save(&mut arrays);
        }
        if let Some(signs) = &self.signs {
            signs.save(&mut arrays);
        }
        arrays
    }

    /// An ensemble that goes on from what was saved to the same bits. The options must be the same, but for
    /// more effective draws or gradients: a run that ended for want of them goes on drawing.
    pub fn restore(options: Options, arrays: &Arrays) -> Result<Self> {
        let counts = arrays.get_exactly("counts", 9)?;
        let count_at = |k: usize| as_count(counts[k]).map(|count| count as usize);
        let (dim, count) = (count_at(0)?, count_at(1)?);
        let mut ensemble = Self::new(dim, options)?;
        if ensemble.count != count {
            return Err(FOREIGN);
        }
        ensemble.stage = *STAGES.get(count_at(2)?).ok_or(FOREIGN)?;
        ensemble.dice.event = as_count(counts[3])?;
        ensemble.moves = as_count(counts[4])?;
        ensemble.evaluations = as_count(counts[5])?;
        ensemble.weeded = count_at(6)?;
        ensemble.tried_signs = counts[7] != 0.0;
        ensemble.walk = Walk { blocks: count_at(8)?, level: arrays.get_number("walk")? };
        ensemble.warm_up = arrays.get("warm_up")?.first().copied();
        ensemble.steps = arrays.get_exactly("steps", count)?;
        ensemble.cloud = Cloud::restore(count, dim, arrays)?;
        if ensemble.options.moves == Moves::Persistent {
            ensemble.flight.momentum = arrays.get_matrix("momentum", count, dim)?;
        }
        ensemble.coordinates = Coordinates::restore(dim, arrays)?;
        ensemble.regions = Regions::restore(dim, arrays)?;
        ensemble.track = Track::restore(count, dim, arrays)?;
        ensemble.learning = Learning::restore(dim, arrays)?;
        ensemble.production = Production::restore(count, dim, arrays)?;
        ensemble.search = Search::restore(dim, arrays)?;
        if arrays.get("climb.numbers").is_ok() {
            ensemble.climb = Some(Climb::restore(count, dim, arrays)?);
        }
        if arrays.get("signs.theta").is_ok() {
            ensemble.signs = Some(Signs::restore(count, dim, arrays)?);
        }
        if ensemble.stage == Stage::Climb && ensemble.climb.is_none() {
            return Err(FOREIGN);
        }
        ensemble.reopen();
        Ok(ensemble)
    }
}
