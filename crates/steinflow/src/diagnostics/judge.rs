//! From a run to its diagnosis: what is needed beside the particles is worked out here.

use super::diagnosis::LARGEST_R_HAT;
use super::{ChainSummary, Diagnosis, Subject, search_modes, summarise_chains, weigh_modes};
use crate::coordinates::Linear;
use crate::dynamics::Structure;
use crate::ensemble::Report;
use crate::run::{Samples, TraceRow, WarmMoments};
use crate::{LogDensity, MatRef, Matrix, Real, Result};

/// More draws than this are thinned before the target is evaluated at them.
const MOST_DRAWS: usize = 2000;

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

/// The largest difference of a standard deviation from that of draws, as a logarithm, and how large a
/// difference matters: a tenth, beyond what so many draws leave uncertain.
fn unlike<T: Real>(theta: MatRef<'_, T>, draws: &WarmMoments) -> (f64, f64) {
    let count = theta.rows() as f64;
    let difference = |j: usize| {
        let column = || (0..theta.rows()).map(|i| theta.row(i)[j].as_f64());
        let mean = column().sum::<f64>() / count;
        let square = column().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (square.sqrt() / draws.sd[j]).ln().abs()
    };
    let fits = draws.sd.len() == theta.cols();
    let largest = if fits { (0..theta.cols()).map(difference).fold(0.0, f64::max) } else { 0.0 };
    // Draws of one chain are worth about half as many; an error of a standard deviation is 1/√(2n).
    (largest, 0.1 + 3.0 / (draws.draws.max(1) as f64).sqrt())
}

/// The sample and its scores in coordinates fitted to both. What exact draws show, E s = 0 and
/// E (θ − c)sᵀ = −I, they show in any; but single coordinates of a correlated target on raw scales show it
/// with noise that hides everything.
fn whitened<T: Real>(theta: MatRef<'_, T>, score: MatRef<'_, T>) -> (Matrix<T>, Matrix<T>) {
    let (rows, dim) = (theta.rows(), theta.cols());
    let wide = |from: MatRef<'_, T>| Matrix::from_fn(rows, dim, |i, j| from.row(i)[j].as_f64());
    let (theta, score) = (wide(theta), wide(score));
    let linear = Linear::fit(theta.as_ref(), score.as_ref());
    let (mut white, mut pulled) = (Matrix::zeros(rows, dim), Matrix::zeros(rows, dim));
    linear.from_position(theta.as_slice(), white.as_mut_slice());
    linear.down(score.as_slice(), pulled.as_mut_slice());
    (white.cast(), pulled.cast())
}

/// A run that has ended.
#[derive(Clone, Copy)]
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
    /// Whether to look for modes without particles. Not for networks, whose units can change places:
    /// they have more modes than anybody has particles.
    pub search_modes: bool,
}

impl<T: Real> Judged<'_, T> {
    /// Judges it. Takes one evaluation of the target at the particles, on all of its data, and some
    /// hundred at a few points for the search.
    pub fn diagnose(&self) -> Result<Diagnosis> {
        let dim = self.structure.dim();
        let last = Matrix::from_fn(self.state.rows(), dim, |i, j| self.state.row(i)[j]);
        let (theta, chains) = self.draws().unwrap_or((last, None));
        let mut score = Matrix::zeros(theta.rows(), dim);
        let mut log_density = vec![T::zero(); theta.rows()];
        self.target.evaluate(theta.as_ref(), None, &mut log_density, score.as_mut())?;
        let is_finite = score.as_slice().iter().chain(theta.as_slice()).all(|x| x.is_finite());
        let (search, modes) = if self.search_modes && is_finite {
            let theta = theta.as_ref();
            (Some(search_modes(self.target, theta, 0)?), Some(weigh_modes(self.target, theta)?))
        } else {
            (None, None)
        };
        // Chains that have not been everywhere, and particles that push one another, are worth one draw
        // each.
        let effective = chains
            .filter(|chains| chains.r_hat <= LARGEST_R_HAT)
            .map_or(0.0, |chains| chains.effective_sample_size)
            .max(self.state.rows() as f64);
        let unlike_draws = self.warm_moments.map(|draws| unlike(theta.as_ref(), draws));
        let (theta, score) =
            if is_finite { whitened(theta.as_ref(), score.as_ref()) } else { (theta, score) };
        Subject {
            theta: theta.as_ref(),
            score: score.as_ref(),
            effective,
            chains,
            state: self.state.as_ref(),
            structure: self.structure,
            is_even: self.is_interacting && !self.is_random,
            history: &self.course.log_densities,
            discrepancies: &self.course.discrepancies,
            stop_rule: self.stop_rule,
            unlike_draws,
            search: search.as_ref(),
            modes: modes.as_ref(),
        }
        .diagnose()
    }

    /// The draws, evenly thinned, with the worst of their coordinates; none where there are too few for
    /// that.
    fn draws(&self) -> Option<(Matrix<T>, Option<ChainSummary>)> {
        let draws = self.draws?;
        let (all, chains) = (draws.theta(), draws.chains());
        let kept = all.rows().min(MOST_DRAWS);
        let thin = Matrix::from_fn(kept, all.cols(), |i, j| all.row(i * all.rows() / kept)[j]);
        if kept == 0 {
            return None;
        }
        // Of particles that push one another without noise, paths are not chains.
        if self.is_interacting && !self.is_random {
            return Some((thin, None));
        }
        let summaries = (0..all.cols()).map(|j| {
            let chain = |c: usize| -> Vec<f64> {
                (0..draws.steps().len()).map(|t| all.row(t * chains + c)[j].as_f64()).collect()
            };
            summarise_chains(&(0..chains).map(chain).collect::<Vec<_>>())
        });
        let worst =
            summaries.collect::<Option<Vec<_>>>()?.into_iter().reduce(|a, b| ChainSummary {
                r_hat: a.r_hat.max(b.r_hat),
                effective_sample_size: a.effective_sample_size.min(b.effective_sample_size),
            })?;
        Some((thin, Some(worst)))
    }
}
