//! What came of it, in plain words.

use std::fmt;

use super::learn::TOO_HARD;
use super::produce::DRIFT;
use super::{Ensemble, Stage, Verdict};

/// R̂ from which particles do not mix.
const UNMIXED: f64 = 1.1;

/// Why draws are not to be trusted yet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Too large a share of moves failed hard.
    Stiff(f64),
    /// R̂.
    DoesNotMix(f64),
    /// |z|.
    Drifts(f64),
    /// The relative standard error of a standard deviation.
    HeavyTails(f64),
    /// Effective draws, and how many were asked for.
    ShortOfDraws(f64, f64),
    /// The part of the probability that a mode without particles holds.
    MissesMode(f64),
    /// Gradients of each particle.
    OutOfBudget(f64),
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stiff(share) => write!(
                out,
                "stiff: {:.1} % of the moves failed hard; the narrowest parts may be missing",
                100.0 * share
            ),
            Self::DoesNotMix(rhat) => write!(
                out,
                "does not mix (R̂ {}): several modes, or too few steps; the weights between modes \
                 come from the start",
                if *rhat < 100.0 { format!("{rhat:.2}") } else { format!("{rhat:.0e}") }
            ),
            Self::Drifts(drift) if drift.is_infinite() => {
                write!(out, "too few draws to tell whether means drift")
            }
            Self::Drifts(drift) => {
                write!(out, "drifts: means still move by {drift:.0} standard errors")
            }
            Self::HeavyTails(error) => write!(
                out,
                "heavy tails: a standard deviation is known to within {:.0} % only",
                200.0 * error
            ),
            Self::ShortOfDraws(found, wanted) => {
                write!(out, "short of effective draws: {found:.0} of {wanted:.0} asked for")
            }
            Self::MissesMode(weight) => write!(
                out,
                "misses a mode with about {:.0} % of the probability; start some particles there",
                100.0 * weight
            ),
            Self::OutOfBudget(gradients) => {
                write!(out, "out of budget: {gradients:.0} gradients for each particle")
            }
        }
    }
}

/// Where a run stands, or how it ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// What the ensemble is at.
    pub stage: Stage,
    /// Whether it ended and every condition is met.
    pub done: bool,
    /// What is not met; empty when done.
    pub reasons: Vec<Reason>,
    /// Draws of every particle.
    pub draws: usize,
    /// Least effective draws of what is watched.
    pub effective: f64,
    /// The largest R̂ over particles.
    pub rhat: f64,
    /// The largest drift, in its standard errors.
    pub drift: f64,
    /// The largest relative standard error of a standard deviation.
    pub sd_error: f64,
    /// The share of moves that failed hard while drawing.
    pub hard: f64,
    /// Mean acceptance while drawing.
    pub acceptance: f64,
    /// Step size, in u.
    pub step_size: f64,
    /// Leapfrogs until particles turn back, on average, at the step size of [`Moves::Turning`](super::Moves).
    pub turn: f64,
    /// Modes that moves jump between; 1 where no second was found.
    pub modes: usize,
    /// The share of tried jumps that were accepted.
    pub jumps: f64,
    /// Bends: the coordinate, or the direction where bends have their own, that others depend on, and how many do.
    pub bends: Vec<(usize, usize)>,
    /// Particles that were replaced.
    pub weeded: usize,
    /// How often draws were discarded.
    pub restarts: usize,
    /// Gradients of each particle before the first draw.
    pub warm_up: f64,
    /// Gradients of each particle in all.
    pub gradients: f64,
    /// Evaluations of all particles together.
    pub evaluations: u64,
}

impl Ensemble {
    /// Where the run stands.
    pub fn report(&self) -> Report {
        let production = &self.production;
        let [hard, acceptance, jumps] = production.rates();
        let nothing =
            Verdict { effective: 0.0, rhat: f64::NAN, drift: f64::NAN, sd_error: f64::NAN };
        let Verdict { effective, rhat, drift, sd_error } = production.verdict.unwrap_or(nothing);
        let wanted = self.options.effective;
        let mut reasons = Vec::new();
        if hard > TOO_HARD {
            reasons.push(Reason::Stiff(hard));
        }
        if rhat >= UNMIXED && drift.is_finite() {
            reasons.push(Reason::DoesNotMix(rhat));
        }
        if drift >= DRIFT {
            reasons.push(Reason::Drifts(drift));
        }
        if !(effective >= wanted) {
            // Draws that are worth no more than the worst standard deviation says may be many.
            let by_tails = effective == sd_error.powi(-2) && rhat < UNMIXED;
            reasons.push(if by_tails {
                Reason::HeavyTails(sd_error)
            } else {
                Reason::ShortOfDraws(effective, wanted)
            });
            if self.budget_is_spent() {
                reasons.push(Reason::OutOfBudget(self.gradients()));
            }
        }
        if self.search.missed > 0.0 {
            reasons.push(Reason::MissesMode(self.search.missed));
        }
        let lengths = &self.learning.lengths;
        let bends = self.coordinates.warp.bends().iter();
        Report {
            stage: self.stage,
            done: self.is_done() && reasons.is_empty(),
            reasons,
            draws: production.judge.draws,
            effective,
            rhat,
            drift,
            sd_error,
            hard,
            acceptance,
            step_size: self.learning.step(),
            turn: lengths.iter().sum::<f64>() / lengths.len().max(1) as f64,
            modes: self.regions.all.len().max(1),
            jumps,
            bends: bends.map(|bend| (bend.parent(), bend.children().len())).collect(),
            weeded: self.weeded,
            restarts: production.restarts,
            warm_up: self.warm_up.unwrap_or_else(|| self.gradients()),
            gradients: self.gradients(),
            evaluations: self.evaluations,
        }
    }
}
