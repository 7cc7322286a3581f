//! The verdict on a run: whether its particles can be believed, why, and what to try next.
//!
//! The measure is what as many exact draws would show. Particles pass when their means and spreads, as
//! the score tells them, are off by no more than exact draws would be, or by so little that it does not
//! matter. `experiments/verdict` has how often that is right.

mod conclusion;
mod examination;
mod modes;

pub(super) use examination::LARGEST_R_HAT;
use examination::look_at_the_stop_rule;

use super::identities::SteinIdentities;
use super::{ChainSummary, Comparison, ModeSearch, Modes, Outlying, StopRule, WrongGradient};
use crate::dynamics::Structure;
use crate::run::Standing;
use crate::{MatRef, Real, Result};

/// Whether the particles can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Means and spreads are as good as those of exact draws.
    Trust,
    /// Means are; spreads or shape are not.
    MeansOnly,
    /// The particles are still on their way.
    NotConverged,
    /// The particles are at rest, and much narrower than the target.
    Collapsed,
    /// The particles have run away.
    Diverged,
}

impl Verdict {
    /// All verdicts, best first.
    pub const ALL: [Self; 5] =
        [Self::Trust, Self::MeansOnly, Self::NotConverged, Self::Collapsed, Self::Diverged];

    /// What it says, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Trust => "Trust",
            Self::MeansOnly => "Trust the means only",
            Self::NotConverged => "Not converged",
            Self::Collapsed => "Collapsed",
            Self::Diverged => "Diverged",
        }
    }

    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::MeansOnly => "means-only",
            Self::NotConverged => "not-converged",
            Self::Collapsed => "collapsed",
            Self::Diverged => "diverged",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub value: f64,
    /// What exact draws would show.
    pub expected: String,
    /// Whether it is that; none where it decides nothing.
    pub passed: Option<bool>,
    /// What it means, in a sentence.
    pub meaning: &'static str,
}

/// The verdict, what it rests on, and what to try next.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Whether the particles can be believed.
    pub verdict: Verdict,
    /// What may be used, and why no more than that.
    pub headline: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to try next, the most promising first.
    pub advice: Vec<String>,
    /// Points that the target was evaluated at for it.
    pub evaluations: u64,
}

/// What is to be judged.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Subject<'a, T> {
    /// The sample: the last particles, or draws collected along the run, one a row.
    pub theta: MatRef<'a, T>,
    /// ∇log π there, on all of the data.
    pub score: MatRef<'a, T>,
    /// Standard deviation of the log density over the sample.
    pub density_sd: f64,
    /// How many independent draws the sample is worth.
    pub effective: f64,
    /// For draws collected from chains that do not push one another: the worst R̂ and the smallest
    /// effective sample size of the coordinates.
    pub chains: Option<ChainSummary>,
    /// The last particles with their auxiliary variables, z = (θ, r, …), one a row.
    pub state: MatRef<'a, T>,
    /// The blocks of those.
    pub structure: &'a Structure,
    /// Whether particles push one another without noise, and so are spread more evenly than draws.
    pub is_even: bool,
    /// Whether particles push one another.
    pub is_interacting: bool,
    /// Mean log density of the particles along the run, at even steps.
    pub history: &'a [f64],
    /// Stein discrepancy of the particles along the run, at even steps; may be empty.
    pub discrepancies: &'a [f64],
    /// What a sampler with an accept step says of its draws.
    pub stop_rule: Option<&'a StopRule>,
    /// What the sampler says that made the draws which the particles stand for, if there are such.
    pub source: Option<Standing>,
    /// How means and spreads compare with what is known from elsewhere.
    pub comparison: Option<Comparison>,
    /// How much of a spread a single particle makes.
    pub outlying: Outlying,
    /// A score that is not the gradient of the log density, if one was found.
    pub wrong_gradient: Option<&'a WrongGradient>,
    /// What a search for modes without particles has found, if there was one.
    pub search: Option<&'a ModeSearch>,
    /// The modes that have particles, if they were weighed.
    pub modes: Option<&'a Modes>,
    /// Whether the sample was collected along the run.
    pub collects: bool,
    /// Whether there was a run whose draws were worth collecting, and were not.
    pub discards: bool,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The log density has fallen far below what it was.
    Fallen,
    /// The score is not the gradient of the log density.
    WrongGradient,
    MissingMode,
    /// There is probability further out than any particle.
    MissingMass,
    WrongWeights,
    /// A mean is off.
    Shifted,
    /// The log density still changes.
    Moving,
    /// Tails decide a standard deviation, and too few draws have been there.
    HeavyTails,
    /// A single particle far out makes much of a spread.
    Outlying,
    /// The Stein discrepancy still falls.
    Falling,
    /// Too few steps to see whether it does.
    TooShort,
    /// Chains that have not met.
    Remembering,
    /// A stop rule that is not met.
    Unsettled,
    /// One of a warm-up, whose draws the particles stand for.
    UnsettledSource,
    Narrow,
    Wide,
    /// Narrow along some directions, wide along others.
    Uneven,
    Misshapen,
    /// Another mean than what it was compared with.
    ShiftedFromKnown,
    /// Another spread than what it was compared with.
    UnlikeKnown,
    WrongMomenta,
    /// Nothing is known to be wrong, but nothing could be.
    Vague,
    /// The same, and so much that nothing else can make up for it.
    Blind,
}

/// What the tests said.
#[derive(Default)]
struct Findings {
    evidence: Vec<Evidence>,
    faults: Vec<Fault>,
    /// The lowest relative variance.
    narrowest: f64,
    /// How far off a mean would have to be for the score to show it, in standard deviations.
    unseen_shift: f64,
}

impl Findings {
    fn note(&mut self, fault: Fault, is_there: bool) {
        if is_there {
            self.faults.push(fault);
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

impl<T: Real> Subject<'_, T> {
    /// Judges it.
    pub fn diagnose(&self) -> Result<Diagnosis> {
        Ok(self.diagnose_and_hope()?.0)
    }

    /// The same, and whether all that is wrong could be so for want of numbers, or is nothing to the means.
    pub(super) fn diagnose_and_hope(&self) -> Result<(Diagnosis, bool)> {
        let finite = |matrix: MatRef<'_, T>| matrix.as_slice().iter().all(|x| x.is_finite());
        let clouds = [self.theta, self.score, self.state];
        if !self.density_sd.is_finite() || !clouds.into_iter().all(finite) {
            let why = "particles, their log densities or their scores are not finite";
            return Ok((conclusion::diverged(why, Vec::new()), false));
        }
        let mut found = Findings::default();
        found.note(Fault::WrongGradient, self.wrong_gradient.is_some());
        if let Some(rule) = self.stop_rule {
            look_at_the_stop_rule(rule, &mut found);
            self.look_at_missing_mass(&mut found);
            self.look_at_what_is_known(&mut found);
            self.look_at_the_rank(&mut found);
            return Ok(self.conclude(found));
        }
        found.note(Fault::UnsettledSource, self.source == Some(Standing::Unsettled));
        found.note(Fault::HeavyTails, self.source == Some(Standing::HeavyTails));
        self.look_at_the_course(&mut found);
        self.look_at_the_discrepancy(&mut found);
        let identities = match self.modes {
            Some(modes) => SteinIdentities::within(self.theta, self.score, &modes.mode_of)?,
            None => SteinIdentities::new(self.theta, self.score)?,
        };
        self.look_at_means(&identities, &mut found);
        self.look_at_spreads(&identities, &mut found);
        self.look_at_what_is_known(&mut found);
        self.look_at_outlying_particles(&mut found);
        self.look_at_chains(&mut found);
        self.look_at_momenta(&mut found);
        self.look_at_the_shape(&mut found)?;
        self.look_at_modes(&mut found);
        self.look_at_the_rank(&mut found);
        if self.is_close_to_what_is_known(&found) {
            // What the score could not tell, the comparison has.
            found.faults.retain(|fault| !matches!(fault, Fault::Vague | Fault::Falling));
        }
        Ok(self.conclude(found))
    }
}
