//! From a run to its diagnosis: what is needed beside the particles is worked out here.

use super::counted::Counted;
use super::diagnosis::LARGEST_R_HAT;
use super::modes::{Survey, View, survey};
use super::moved::moments_after_moves;
use super::{
    ChainSummary, Comparison, Diagnosis, Evidence, Outlying, Subject, Verdict, With, gradient,
    summarise_chains, summarise_ensemble,
};
use crate::coordinates::Linear;
use crate::dynamics::Structure;
use crate::ensemble::Report;
use crate::run::{Samples, TraceRow, WarmMoments};
use crate::{LogDensity, Matrix, Real, Result};

/// More particles than this are thinned: tests over all pairs of them would cost more than the run.
pub(super) const MOST_PARTICLES: usize = 2000;
/// More draws than this are thinned before the target is evaluated at them.
const MOST_DRAWS: usize = 1000;
/// Evaluations of all particles that a verdict may take, however short the run was.
pub const ALWAYS_ALLOWED: u64 = 200;
/// Draws along paths without noise are worth no more than this for each particle: momenta that are drawn afresh
/// now and then are all that is new in them.
const MOST_WITHOUT_NOISE: f64 = 3.0;
/// Effective draws that know a standard deviation to within a tenth, however heavy tails are.
const KNOWN_SPREAD: f64 = 400.0;
/// Fewer particles cannot be moved on, …
const FEWEST_TO_MOVE: u64 = 8;
/// … and not with fewer gradients, …
const FEWEST_MOVES: u64 = 50;
/// … for which so many are kept.
const KEPT_FOR_MOVES: u64 = 60;
/// What one look may take of all evaluations: at the gradient, at draws.
const MOST_OF_ALL: u64 = 4;

/// What a trace tells of a run's course, at even steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Mean log density of the particles.
    pub log_densities: Vec<f64>,
    /// Their Stein discrepancy, where it was computed.
    pub discrepancies: Vec<f64>,
}

impl From<&[TraceRow]> for Course {
    fn from(rows: &[TraceRow]) -> Self {
        Self {
            log_densities: rows.iter().map(|row| row.mean_log_density).collect(),
            discrepancies: rows.iter().filter_map(|row| row.stein_discrepancy).collect(),
        }
    }
}

/// What a sampler with an accept step says of its draws. Their law is exact once the sampler has been
/// everywhere, so that this, and modes that it has missed, is all that can be wrong with them.
#[derive(Clone, Debug, PartialEq)]
pub struct StopRule {
    /// Whether it is content.
    pub is_met: bool,
    /// What it is not content with.
    pub reasons: Vec<String>,
    /// Least effective draws.
    pub effective: f64,
    /// The largest R̂ over particles.
    pub rhat: f64,
    /// The largest drift of a mean, in standard errors.
    pub drift: f64,
}

impl StopRule {
    /// Whether the draws may be used: there may be fewer of them than were asked for, or tails so heavy that
    /// a standard deviation means little, as long as the particles agree, nothing drifts and no move failed
    /// hard.
    pub fn is_settled(&self) -> bool {
        let enough = self.effective >= 200.0 || self.has_heavy_tails();
        let agrees = self.rhat < 1.05 && self.drift < 4.0 && enough;
        self.is_met || (agrees && self.said("stiff").is_none())
    }

    /// Whether tails are too heavy for standard deviations.
    pub(crate) fn has_heavy_tails(&self) -> bool {
        self.heavy_tails().is_some()
    }

    /// What it says of tails that are too heavy for standard deviations: one is known to within 2/√effective.
    pub(super) fn heavy_tails(&self) -> Option<&str> {
        self.said("heavy tails").filter(|_| self.effective < KNOWN_SPREAD)
    }

    fn said(&self, word: &str) -> Option<&str> {
        self.reasons.iter().map(String::as_str).find(|reason| reason.starts_with(word))
    }
}

impl From<&Report> for StopRule {
    fn from(report: &Report) -> Self {
        Self {
            is_met: report.done,
            reasons: report.reasons.iter().map(ToString::to_string).collect(),
            effective: report.effective,
            rhat: report.rhat,
            drift: report.drift,
        }
    }
}

/// The sample and its scores in coordinates fitted to both. What exact draws show, E s = 0 and
/// E (θ − c)sᵀ = −I, they show in any; but single coordinates of a correlated target on raw scales show it
/// with noise that hides everything.
fn whitened(theta: &Matrix<f64>, score: &Matrix<f64>) -> (Matrix<f64>, Matrix<f64>) {
    let (rows, dim) = (theta.rows(), theta.cols());
    let linear = Linear::fit(theta.as_ref(), score.as_ref());
    let (mut white, mut pulled) = (Matrix::zeros(rows, dim), Matrix::zeros(rows, dim));
    linear.from_position(theta.as_slice(), white.as_mut_slice());
    linear.down(score.as_slice(), pulled.as_mut_slice());
    (white, pulled)
}

/// At most so many of the rows.
pub(super) fn evenly<T: Real>(all: &Matrix<T>, most: usize) -> Matrix<T> {
    let kept = all.rows().min(most);
    Matrix::from_fn(kept, all.cols(), |i, j| all.row(i * all.rows() / kept)[j])
}

/// Their standard deviation, which is not finite where one of them is not.
fn spread(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// A run that has ended.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Judged<'a, T: Real> {
    /// What was sampled from.
    pub target: &'a dyn LogDensity<T>,
    /// The last particles with their auxiliary variables, z = (θ, r, …), one a row.
    pub state: &'a Matrix<T>,
    /// The blocks of those.
    pub structure: &'a Structure,
    /// Whether particles push one another.
    pub is_interacting: bool,
    /// Whether there is noise.
    pub is_random: bool,
    /// The course of the run; empty where there was none.
    pub course: &'a Course,
    /// Draws collected along the run, if there are any: they are judged then.
    pub draws: Option<&'a Samples<T>>,
    /// What a sampler with an accept step says of its draws.
    pub stop_rule: Option<&'a StopRule>,
    /// Moments of draws that a warm-up has made.
    pub warm_moments: Option<&'a WarmMoments>,
    /// The target's own moments, where they are known; whatever their `draws` says, they are exact.
    pub exact_moments: Option<&'a WarmMoments>,
    /// Evaluations of all particles that the run took: the verdict may take a tenth as many, or
    /// [`ALWAYS_ALLOWED`] where that is more.
    pub gradients: u64,
    /// Whether the gradient is compared with differences of the log density: not with minibatches.
    pub check_gradient: bool,
    /// Whether to look for mass without particles, and to move the particles on. Not for networks, whose units
    /// can change places: they have more modes than anybody has particles.
    pub search_modes: bool,
}

impl<'a, T: Real> Judged<'a, T> {
    /// A cloud of particles of which no more is known: as of noise, and without a course.
    pub fn cloud(
        target: &'a dyn LogDensity<T>,
        state: &'a Matrix<T>,
        structure: &'a Structure,
    ) -> Self {
        const NONE: &Course = &Course { log_densities: Vec::new(), discrepancies: Vec::new() };
        Self {
            target,
            state,
            structure,
            is_interacting: false,
            is_random: true,
            course: NONE,
            draws: None,
            stop_rule: None,
            warm_moments: None,
            exact_moments: None,
            gradients: 0,
            check_gradient: true,
            search_modes: true,
        }
    }

    /// Judges it.
    pub fn diagnose(&self) -> Result<Diagnosis> {
        let dim = self.structure.dim();
        let last = Matrix::from_fn(self.state.rows(), dim, |i, j| self.state.row(i)[j]);
        let some = evenly(&last, MOST_PARTICLES);
        let target = Counted::new(self.target);
        let batch = self.state.rows().max(1) as u64;
        let allowed = ALWAYS_ALLOWED.max(self.gradients / 10);
        target.allow(batch.saturating_mul(allowed));
        let wrong_gradient = if self.check_gradient {
            let most = target.left() / MOST_OF_ALL;
            let (found, points) = gradient::compare(self.target, last.as_ref(), most)?;
            target.charge(points);
            found
        } else {
            None
        };
        let all = self.draws.map(Samples::theta).filter(|all| all.rows() > 0);
        let (theta, chains) = match &all {
            Some(all) => {
                let most = usize::try_from(target.left() / MOST_OF_ALL).unwrap_or(MOST_DRAWS);
                (self.thinned(all, most.min(MOST_DRAWS)).cast(), self.worst_of(all))
            }
            None => (some.cast::<f64>(), None),
        };
        let (log_density, score) = target.at(&theta)?;
        let density_sd = spread(&log_density);
        let is_finite = density_sd.is_finite()
            && score.as_slice().iter().chain(theta.as_slice()).all(|x| x.is_finite());
        let may_move = self.stop_rule.is_none()
            && self.exact_moments.is_none()
            && self.warm_moments.is_none()
            && self.search_modes
            && batch >= FEWEST_TO_MOVE;
        let mut around = Survey { search: None, modes: None };
        if self.search_modes && is_finite && theta.rows() > 1 {
            let left = target.left();
            let kept = if may_move { KEPT_FOR_MOVES * batch } else { 0 };
            target.allow(left.saturating_sub(kept));
            let before = target.points();
            let view = View::new(&target, &theta, &score);
            around = survey(&view, &log_density, Some(0), self.stop_rule.is_none())?;
            target.allow(left - (target.points() - before));
        }
        let particles = self.state.rows() as f64;
        // Chains that have not been everywhere, and particles that push one another, are worth one draw
        // each.
        let effective = chains
            .filter(|chains| chains.r_hat <= LARGEST_R_HAT)
            .map_or(0.0, |chains| chains.effective_sample_size)
            .min(if self.is_random { f64::INFINITY } else { MOST_WITHOUT_NOISE * particles })
            .max(particles);
        let is_resting = self.is_resting();
        let worth = if is_resting { f64::INFINITY } else { effective };
        let compare = |with, known: &WarmMoments| {
            Comparison::new(all.as_ref().unwrap_or(&last).as_ref(), worth, with, known)
        };
        let comparison = match (self.exact_moments, self.warm_moments) {
            (Some(exact), _) => compare(With::ExactMoments, exact),
            (None, Some(warm)) => compare(With::WarmUp, warm),
            (None, None) => None,
        };
        let (white, pulled) =
            if is_finite { whitened(&theta, &score) } else { (theta.clone(), score) };
        let (white, pulled) = (white.cast::<T>(), pulled.cast::<T>());
        // Thinned draws are fewer, and remember as much of one another as all of them do.
        let kept = theta.rows() as f64;
        let thinned = (kept.recip() + effective.recip()).recip();
        let effective =
            if all.is_some() { thinned.max(particles).min(effective) } else { effective };
        let mut subject = Subject {
            theta: white.as_ref(),
            score: pulled.as_ref(),
            density_sd,
            effective,
            chains,
            state: self.state.as_ref(),
            structure: self.structure,
            // Some of many are spread no more evenly than draws.
            is_even: is_resting && some.rows() == last.rows(),
            is_interacting: self.is_interacting,
            history: &self.course.log_densities,
            discrepancies: &self.course.discrepancies,
            stop_rule: self.stop_rule,
            // Without noise, particles keep the tails that they were given.
            source: self.warm_moments.filter(|_| !self.is_random).map(|warm| warm.standing),
            comparison,
            outlying: Outlying::of(all.as_ref().unwrap_or(&last).as_ref(), self.chains()),
            wrong_gradient: wrong_gradient.as_ref(),
            search: around.search.as_ref(),
            modes: around.modes.as_ref(),
            collects: self.draws.is_some(),
            discards: self.is_random
                && self.draws.is_none()
                && !self.course.log_densities.is_empty(),
        };
        let (mut found, hope) = subject.diagnose_and_hope()?;
        let left = target.left() / batch;
        // Chains that have not met, and particles that still settle, may be right all the same.
        let may_be_right = self.draws.is_some() || is_resting;
        let is_hopeful =
            hope || (found.verdict == Verdict::NotConverged && is_finite && may_be_right);
        if is_hopeful && may_move && left >= FEWEST_MOVES {
            let moved = moments_after_moves(&target, &some.cast(), batch * left * 9 / 10)?;
            subject.comparison = moved.and_then(|moved| compare(With::MovedOn, &moved));
            if subject.comparison.is_some() {
                found = subject.diagnose()?;
            }
        }
        found.evaluations = target.points();
        if some.rows() < last.rows() {
            found.evidence.push(Evidence {
                name: "particles looked at",
                value: some.rows() as f64,
                expected: format!("of {}", last.rows()),
                passed: None,
                meaning: "every so many of more than 2000; means and spreads are compared with known ones over all",
            });
        }
        found.evidence.push(Evidence {
            name: "cost of this verdict",
            value: target.points().div_ceil(batch) as f64,
            expected: format!("at most {allowed}"),
            passed: None,
            meaning: "evaluations of the target, each at as many points as there are particles",
        });
        Ok(found)
    }

    /// Whether the particles have no noise, and are at rest or on their way to it.
    fn is_resting(&self) -> bool {
        self.is_interacting && !self.is_random && self.draws.is_none()
    }

    /// At most so many of the draws, evenly.
    fn thinned(&self, all: &Matrix<T>, most: usize) -> Matrix<T> {
        let chains = self.chains();
        let kept = all.rows().min(most);
        // Evenly in time, and every time another particle: an even stride may meet the same one for ever.
        let row = |i: usize| {
            let row = i * all.rows() / kept;
            let turn = (i.wrapping_mul(2_654_435_761) >> 7) % chains;
            row - row % chains + (row % chains + turn) % chains
        };
        Matrix::from_fn(kept, all.cols(), |i, j| all.row(row(i))[j])
    }

    /// The worst of the draws' coordinates; none where there are too few for that.
    fn worst_of(&self, all: &Matrix<T>) -> Option<ChainSummary> {
        let (chains, draws) = (self.chains(), all.rows() / self.chains());
        let summaries = (0..all.cols()).map(|j| {
            let chain = |c: usize| -> Vec<f64> {
                (0..draws).map(|t| all.row(t * chains + c)[j].as_f64()).collect()
            };
            let chains: Vec<Vec<f64>> = (0..chains).map(chain).collect();
            if self.is_interacting {
                summarise_ensemble(&chains)
            } else {
                summarise_chains(&chains)
            }
        });
        summaries.collect::<Option<Vec<_>>>()?.into_iter().reduce(|a, b| ChainSummary {
            r_hat: a.r_hat.max(b.r_hat),
            effective_sample_size: a.effective_sample_size.min(b.effective_sample_size),
        })
    }

    /// Particles that drew, or that are there.
    fn chains(&self) -> usize {
        self.draws.map_or(self.state.rows(), Samples::chains).max(1)
    }
}
