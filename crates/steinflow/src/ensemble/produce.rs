//! Production: coordinates, modes, step size and lengths are frozen, so every move is exact.
//!
//! Draws are judged in blocks. A block that shows a lost particle or a drift was still warm-up: the draws so
//! far are discarded.

use super::judge::{Judge, Verdict};
use super::learn::{TOO_HARD, late_slack};
use super::weed::{log_mass, weed};
use super::{Ensemble, Moves, Pace, Stage, Watch};
use crate::arrays::{Arrays, FOREIGN};
use crate::{LogDensity, Matrix, Result};

/// How often draws may be discarded.
const MOST_RESTARTS: usize = 3;
/// Looks at a block.
const LOOKS: usize = 5;
/// A drift of so many standard errors is no chance.
pub(super) const DRIFT: f64 = 5.0;

/// What production keeps.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Production {
    pub(super) judge: Judge,
    tally: Tally,
    /// Least effective draws after every block.
    seen: Vec<f64>,
    /// Draws when they were last judged.
    looked: usize,
    pub(super) restarts: usize,
    /// Sums over draws: hard failures, acceptance, jumps, and how many moves tried to jump.
    hard: f64,
    acceptance: f64,
    jumps: (f64, f64),
    pub(super) verdict: Option<Verdict>,
}

impl Production {
    pub(super) fn new(count: usize, dim: usize) -> Self {
        Self {
            judge: Judge::new(vec![0.0; dim], vec![1.0; dim], count),
            tally: Tally::new(count, dim),
            seen: Vec::new(),
            looked: 0,
            restarts: 0,
            hard: 0.0,
            acceptance: 0.0,
            jumps: (0.0, 0.0),
            verdict: None,
        }
    }

    /// Discards all draws.
    fn forget(&mut self, judge: Judge) {
        let (count, dim) = (self.tally.mean.rows(), self.tally.mean.cols());
        let restarts = self.restarts;
        *self = Self { judge, restarts, ..Self::new(count, dim) };
    }

    pub(super) fn jumped(&mut self, particles: usize) {
        self.jumps.0 += particles as f64 / self.tally.log_density.len() as f64;
        self.jumps.1 += 1.0;
    }

    /// Of every draw: the share of hard failures, the mean acceptance, the share that jumped.
    pub(super) fn rates(&self) -> [f64; 3] {
        let draws = self.judge.draws.max(1) as f64;
        [self.hard / draws, self.acceptance / draws, self.jumps.0 / self.jumps.1.max(1.0)]
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        self.judge.save(into);
        self.tally.save(into);
        into.put("production.seen", &*self.seen);
        let sums = [self.hard, self.acceptance, self.jumps.0, self.jumps.1];
        into.put("production.sums", sums);
        into.put("production.counts", [self.restarts, self.looked].map(|count| count as f64));
        let verdict = self.verdict.map(|v| vec![v.effective, v.rhat, v.drift, v.sd_error]);
        into.put("production.verdict", verdict.unwrap_or_default());
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        let sums = from.get_exactly("production.sums", 4)?;
        let verdict = from.get("production.verdict")?;
        let counts = from.get_exactly("production.counts", 2)?;
        Ok(Self {
            judge: Judge::restore(count, dim, from)?,
            tally: Tally::restore(count, dim, from)?,
            seen: from.get("production.seen")?.to_vec(),
            restarts: counts[0] as usize,
            looked: counts[1] as usize,
            hard: sums[0],
            acceptance: sums[1],
            jumps: (sums[2], sums[3]),
            verdict: match *verdict {
                [effective, rhat, drift, sd_error] => {
                    Some(Verdict { effective, rhat, drift, sd_error })
                }
                [] => None,
                _ => return Err(FOREIGN),
            },
        })
    }
}

/// Running moments of every particle in u, by Welford's rule: what weeding asks for.
#[derive(Clone, Debug, PartialEq)]
struct Tally {
    draws: f64,
    mean: Matrix<f64>,
    squares: Matrix<f64>,
    log_density: Vec<f64>,
}

impl Tally {
    fn new(count: usize, dim: usize) -> Self {
        let zeros = || Matrix::zeros(count, dim);
        Self { draws: 0.0, mean: zeros(), squares: zeros(), log_density: vec![0.0; count] }
    }

    fn add(&mut self, white: &Matrix<f64>, log_density: &[f64]) {
        self.draws += 1.0;
        let share = self.draws.recip();
        let moments = self.mean.as_mut_slice().iter_mut().zip(self.squares.as_mut_slice());
        for ((mean, square), x) in moments.zip(white.as_slice()) {
            let away = x - *mean;
            *mean += away * share;
            *square += away * (x - *mean);
        }
        self.log_density.iter_mut().zip(log_density).for_each(|(sum, v)| *sum += v);
    }

    fn masses(&self) -> Vec<f64> {
        let mass = |i: usize| {
            let variances: Vec<f64> = self.squares.row(i).iter().map(|s| s / self.draws).collect();
            log_mass(self.log_density[i] / self.draws, &variances)
        };
        (0..self.log_density.len()).map(mass).collect()
    }

    fn save(&self, into: &mut Arrays) {
        into.put("tally.draws", [self.draws]);
        into.put_matrix("tally.mean", &self.mean);
        into.put_matrix("tally.squares", &self.squares);
        into.put("tally.log_density", &*self.log_density);
    }

    fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        Ok(Self {
            draws: from.get_number("tally.draws")?,
            mean: from.get_matrix("tally.mean", count, dim)?,
            squares: from.get_matrix("tally.squares", count, dim)?,
            log_density: from.get_exactly("tally.log_density", count)?,
        })
    }
}

impl Ensemble {
    pub(super) fn begin_production(&mut self) {
        self.stage = Stage::Produce;
        if self.options.moves != Moves::Turning {
            self.learning.begin_single();
        }
        let gradients = self.gradients();
        self.warm_up.get_or_insert(gradients);
        self.track.clear();
        self.discard();
    }

    fn discard(&mut self) {
        let (middle, spread) = (self.learning.middle.clone(), self.learning.spread.clone());
        self.production.forget(Judge::new(middle, spread, self.count));
    }

    pub(super) fn produce_step(
        &mut self,
        target: &dyn LogDensity<f64>,
        watch: &mut Watch<'_>,
    ) -> Result<Pace> {
        let draws = self.production.judge.draws;
        let looked = self.production.looked;
        let gap = self.until_the_next_look();
        if draws == looked + gap || (draws > looked && self.budget_is_spent()) {
            self.finish_draws();
            return Ok(Pace::Between);
        }
        self.stride(target)?;
        let production = &mut self.production;
        production.hard += self.flight.hard();
        production.acceptance += self.flight.mean_acceptance();
        production.judge.add(&self.cloud.theta);
        production.tally.add(&self.cloud.white, &self.cloud.white_log_density);
        Ok(Pace::Moved(self.show(watch, Some(draws))))
    }

    /// Draws are looked at in blocks and, from the second on, more often: whether they are enough.
    fn until_the_next_look(&self) -> usize {
        let block = self.options.moves.block();
        if self.production.looked < 2 * block { block } else { block / LOOKS }
    }

    /// Judges the draws so far: discards them, goes on, or ends.
    fn finish_draws(&mut self) {
        let (draws, block) = (self.production.judge.draws, self.options.moves.block());
        self.production.looked = draws;
        let whole = draws.is_multiple_of(block);
        let again = whole && self.production.restarts < MOST_RESTARTS && !self.warm_up_is_over();
        if again {
            let (masses, event) = (self.production.tally.masses(), self.dice.throw());
            let lost = weed(&mut self.cloud, &mut self.steps, &masses, 0.5, late_slack, event);
            if lost > 0 {
                self.weeded += lost;
                self.production.restarts += 1;
                self.discard();
                return;
            }
        }
        let production = &mut self.production;
        let verdict = production.judge.verdict();
        if whole {
            production.seen.push(verdict.effective);
        }
        production.verdict = Some(verdict);
        let several = draws >= 2 * block;
        let apart = verdict.rhat >= 1.3 && several && production.restarts == 0;
        if again && (verdict.drift >= DRIFT || apart) {
            production.restarts += 1;
            self.learning.begin_again();
            self.stage = Stage::Learn;
            return;
        }
        if again && several && self.production.rates()[0] > TOO_HARD && self.learning.soften() {
            self.production.restarts += 1;
            self.stage = Stage::Learn;
            return;
        }
        if self.nothing_is_left(&verdict) {
            let enough = self.is_enough(&verdict) && self.search_is_due();
            self.stage = if enough { Stage::Search } else { Stage::Done };
        }
    }

    /// Whether draws are enough, cannot become enough, or have used the budget up.
    fn nothing_is_left(&self, verdict: &Verdict) -> bool {
        let Production { judge, seen, .. } = &self.production;
        // Where particles do not mix, more draws do not help.
        let blocks = seen.len();
        let half = if blocks.is_multiple_of(2) { seen[..blocks / 2].last() } else { None };
        let half = half.copied().unwrap_or(0.0);
        let many = judge.draws >= 8 * self.options.moves.block();
        let hopeless = many && verdict.rhat > 1.5 && verdict.effective < 1.2 * half;
        self.is_enough(verdict) || hopeless || self.budget_is_spent()
    }

    fn is_enough(&self, verdict: &Verdict) -> bool {
        verdict.effective >= self.options.effective && verdict.drift < DRIFT
    }

    /// Goes on drawing where options ask for more than what ended the run.
    pub(super) fn reopen(&mut self) {
        let Some(verdict) = self.production.verdict.filter(|_| self.is_done()) else { return };
        if !self.nothing_is_left(&verdict) {
            self.stage = Stage::Produce;
            self.search.reopen();
            // A look that the budget brought forward is not one of the plan.
            let (draws, block) = (self.production.judge.draws, self.options.moves.block());
            let gap = if draws < 2 * block { block } else { block / LOOKS };
            self.production.looked = draws / gap * gap;
        }
    }
}
