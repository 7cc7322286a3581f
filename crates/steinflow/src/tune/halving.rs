//! Successive halving (Jamieson and Talwalkar 2016): all candidates run a little, the better ones longer.

use crate::{Error, Result};

/// How many times as long as before a candidate runs when it goes on, and how many compete for a place.
const FACTOR: u64 = 4;
/// Places in a round, at least: short runs favour steps that ruin long ones, so the best of a short
/// round must not be alone in the long one.
const LEAST: usize = 4;
/// How many times as long as the last round the run itself is. Four candidates at half length say more
/// about it than two at full length, and cost as much.
const SHARE: u64 = 2;

/// A round: everyone who is still in runs until they have taken `steps`, and the `keep` best of every
/// group go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Steps since the start, those of the rounds before included.
    pub steps: u64,
    /// Places in the next round, for every group. In the last round it says nothing.
    pub keep: usize,
}

/// `count` rounds for so many candidates: every round is four times as long as the one before and
/// keeps a quarter, at least four; the last one has `steps`. Rounds that would be shorter than a step are left out.
///
/// ```
/// use steinflow::tune::{Rung, rungs};
/// let rung = |steps, keep| Rung { steps, keep };
/// assert_eq!(rungs(40, 1024, 4), [rung(16, 10), rung(64, 4), rung(256, 4), rung(1024, 4)]);
/// ```
pub fn rungs(candidates: usize, steps: u64, count: u32) -> Vec<Rung> {
    let mut keep = candidates;
    let lengths = (0..count.max(1)).rev().filter_map(|left| {
        let length = steps.checked_div(FACTOR.saturating_pow(left))?;
        (length > 0 || left == 0).then_some(length)
    });
    lengths
        .map(|steps| {
            keep = keep.div_ceil(FACTOR as usize).max(LEAST);
            Rung { steps, keep }
        })
        .collect()
}

/// The rounds of a search for a run of `steps`: the last one is half as long as the run, or as long as
/// `budget`, the steps of all pilot runs together, allows.
pub fn rungs_within(
    candidates: usize,
    steps: u64,
    count: u32,
    budget: Option<u64>,
) -> Result<Vec<Rung>> {
    if steps == 0 {
        let remedy = "runs without a step cannot be compared; give 1 or more";
        return Err(Error::setting("steps", 0, remedy));
    }
    if !(1..=16).contains(&count) {
        return Err(Error::setting("rungs", count, "give a number from 1 to 16"));
    }
    let steps = steps.div_ceil(SHARE);
    let whole = rungs(candidates, steps, count);
    let Some(budget) = budget else { return Ok(whole) };
    let cost = |steps| steps_of(candidates, &rungs(candidates, steps, count));
    // The shortest last round that leaves the first one a step.
    let shortest = FACTOR.saturating_pow(whole.len() as u32 - 1).min(steps);
    if cost(shortest) > budget {
        let remedy = format!(
            "{candidates} candidates in {} rounds take {} steps or more; give more, or set some of what is \
             searched yourself",
            whole.len(),
            cost(shortest)
        );
        return Err(Error::setting("budget-steps", budget, remedy));
    }
    let (mut longest, mut too_long) = (shortest, steps + 1);
    while too_long - longest > 1 {
        let middle = longest + (too_long - longest) / 2;
        *(if cost(middle) <= budget { &mut longest } else { &mut too_long }) = middle;
    }
    Ok(rungs(candidates, longest, count))
}

/// The steps of all pilot runs, if none of them ends early.
pub fn steps_of(candidates: usize, rungs: &[Rung]) -> u64 {
    let (mut running, mut before, mut total) = (candidates as u64, 0, 0_u64);
    for rung in rungs {
        total = total.saturating_add(running.saturating_mul(rung.steps.saturating_sub(before)));
        (running, before) = (running.min(rung.keep as u64), rung.steps);
    }
    total
}

/// What became of a candidate in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It ran away, or its score is not finite.
    Diverged,
    /// Others were better.
    Dropped,
    /// It went on to the next round.
    Kept,
    /// It won.
    Best,
}

impl Fate {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Diverged => "diverged",
            Self::Dropped => "dropped",
            Self::Kept => "kept",
            Self::Best => "best",
        }
    }
}

/// One candidate in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Which candidate.
    pub candidate: usize,
    /// Which round, from 0.
    pub rung: usize,
    /// The steps it was to have taken by the end of the round.
    pub steps: u64,
    /// The lower, the better; none where it diverged.
    pub score: Option<f64>,
    /// What became of it.
    pub fate: Fate,
}

/// All that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Round by round, and in each the candidates in their order.
    pub trials: Vec<Trial>,
    /// All candidates, best first: by the round they came to, and within it by score.
    pub ranking: Vec<usize>,
}

impl Search {
    /// The best candidate, unless all have diverged.
    pub fn best(&self) -> Option<usize> {
        self.trials.iter().find(|trial| trial.fate == Fate::Best).map(|trial| trial.candidate)
    }

    /// How the candidate fared in the last round it was in.
    pub fn last_trial(&self, candidate: usize) -> Option<&Trial> {
        self.trials.iter().rev().find(|trial| trial.candidate == candidate)
    }
}

/// Finds the best of `candidates`, given by number.
///
/// `advance` takes a candidate's run (none yet in the first round) to that many steps in all; `None`
/// says that it has run away, and so lost. `judge` scores the runs that are left, all of one round at a
/// time; the lower the better, and NaN loses. Ties go to the one that comes first. Candidates whose
/// `group` differs do not compete before the last round. An error of either ends the search.
///
/// ```
/// use steinflow::tune::{rungs, successive_halving};
/// // Runs that come the closer to their number the longer they run; 7 wins.
/// let search = successive_halving::<f64, ()>(
///     16,
///     &rungs(16, 64, 3),
///     |_| 0,
///     |candidate, _, steps| Ok(Some((candidate as f64 - 7.0).abs() + 1.0 / steps as f64)),
///     |runs| Ok(runs.iter().map(|(_, run)| *run).collect()),
/// )?;
/// assert_eq!(search.best(), Some(7));
/// # Ok::<(), ()>(())
/// ```
pub fn successive_halving<R, E>(
    candidates: usize,
    rungs: &[Rung],
    group: impl Fn(usize) -> usize,
    mut advance: impl FnMut(usize, Option<R>, u64) -> Result<Option<R>, E>,
    mut judge: impl FnMut(&[(usize, R)]) -> Result<Vec<f64>, E>,
) -> Result<Search, E> {
    let mut running: Vec<(usize, Option<R>)> = (0..candidates).map(|i| (i, None)).collect();
    let (mut trials, mut ranking) = (Vec::new(), Vec::new());
    for (index, rung) in rungs.iter().enumerate() {
        let is_last = index + 1 == rungs.len();
        let (mut runs, mut lost) = (Vec::new(), Vec::new());
        for (candidate, run) in running.drain(..) {
            match advance(candidate, run, rung.steps)? {
                Some(run) => runs.push((candidate, run)),
                None => lost.push(candidate),
            }
        }
        let scores = judge(&runs)?;
        let mut judged: Vec<(f64, usize, R)> =
            scores.into_iter().zip(runs).map(|(score, (i, run))| (score, i, run)).collect();
        lost.extend(judged.iter().filter(|(score, ..)| !score.is_finite()).map(|&(_, i, _)| i));
        judged.retain(|(score, ..)| score.is_finite());
        judged.sort_by(|a, b| a.0.total_cmp(&b.0));

        let mut out = Vec::new();
        let mut round: Vec<Trial> = Vec::new();
        let mut trial = |candidate, score, fate| {
            round.push(Trial { candidate, rung: index, steps: rung.steps, score, fate });
        };
        for (place, (score, candidate, run)) in judged.into_iter().enumerate() {
            let alike = running.iter().filter(|(other, _)| group(*other) == group(candidate));
            let fate = match is_last {
                true if place == 0 => Fate::Best,
                false if alike.count() < rung.keep => Fate::Kept,
                _ => Fate::Dropped,
            };
            trial(candidate, Some(score), fate);
            if fate == Fate::Kept {
                running.push((candidate, Some(run)));
            } else {
                out.push(candidate);
            }
        }
        lost.sort_unstable();
        for &candidate in &lost {
            trial(candidate, None, Fate::Diverged);
        }
        round.sort_by_key(|trial| trial.candidate);
        trials.extend(round);
        // Those who drop out later stand before those who dropped out earlier.
        out.extend(lost);
        ranking.splice(0..0, out);
        // Candidates run in their own order, whatever their place was.
        running.sort_by_key(|&(candidate, _)| candidate);
    }
    Ok(Search { trials, ranking })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Runs that remember their steps, with scores from a function of candidate and steps.
    fn search(
        candidates: usize,
        rungs: &[Rung],
        group: impl Fn(usize) -> usize,
        score: impl Fn(usize, u64) -> Option<f64>,
    ) -> (Search, u64) {
        let mut taken = 0;
        let found = successive_halving::<u64, Infallible>(
            candidates,
            rungs,
            group,
            |candidate, run, steps| {
                let before = run.unwrap_or(0);
                taken += steps - before;
                Ok(score(candidate, steps).map(|_| steps))
            },
            |runs| Ok(runs.iter().map(|&(i, steps)| score(i, steps).unwrap()).collect()),
        );
        let Ok(found) = found;
        (found, taken)
    }

    #[test]
    fn the_best_wins_and_survivors_go_on_instead_of_starting_again() {
        let schedule = rungs(64, 640, 4);
        let (found, taken) = search(64, &schedule, |_| 0, |i, _| Some((i as f64 - 41.0).abs()));
        assert_eq!(found.best(), Some(41));
        // 64 × 10, 16 × (40 − 10), 4 × (160 − 40), 4 × (640 − 160).
        assert_eq!((taken, steps_of(64, &schedule)), (3520, 3520));
        assert_eq!(found.ranking.len(), 64);
        assert_eq!(found.ranking[..3], [41, 40, 42]);
        let fates = |fate| found.trials.iter().filter(|trial| trial.fate == fate).count();
        assert_eq!((fates(Fate::Best), fates(Fate::Kept), fates(Fate::Dropped)), (1, 24, 63));
    }

    #[test]
    fn ties_go_to_the_first_and_nan_loses() {
        let (found, _) = search(8, &rungs(8, 16, 2), |_| 0, |_, _| Some(1.0));
        assert_eq!((found.best(), &found.ranking[..]), (Some(0), &[0, 1, 2, 3, 4, 5, 6, 7][..]));
        let score = |i, _| match i {
            0 => Some(f64::NAN),
            1 => None,
            2 => Some(f64::NEG_INFINITY),
            _ => Some(-(i as f64)),
        };
        let (found, _) = search(5, &rungs(5, 16, 2), |_| 0, score);
        assert_eq!(found.ranking, [4, 3, 0, 1, 2]);
        let diverged = found.trials.iter().filter(|trial| trial.fate == Fate::Diverged);
        assert_eq!(diverged.map(|trial| trial.candidate).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_run_that_goes_astray_late_leaves_its_place_to_another() {
        let score = |i, steps| if i == 0 && steps > 4 { None } else { Some(i as f64) };
        let (found, _) = search(8, &rungs(8, 16, 2), |_| 0, score);
        assert_eq!((found.best(), found.ranking[0]), (Some(1), 1));
        assert_eq!(found.last_trial(0).unwrap().fate, Fate::Diverged);
        let (found, _) = search(3, &rungs(3, 16, 2), |_| 0, |_, _| None);
        assert_eq!((found.best(), found.ranking.len()), (None, 3));
    }

    #[test]
    fn groups_compete_only_at_the_end() {
        let schedule = [Rung { steps: 1, keep: 1 }, Rung { steps: 2, keep: 0 }];
        // Group 1 looks worse until the end.
        let score = |i: usize, steps| Some(if i >= 2 && steps < 2 { 10.0 } else { 5.0 - i as f64 });
        let (found, _) = search(4, &schedule, |i| i / 2, score);
        assert_eq!(found.ranking, [2, 1, 0, 3]);
    }

    #[test]
    fn a_budget_makes_all_rounds_shorter() {
        let lengths = |budget| -> Result<Vec<u64>> {
            Ok(rungs_within(20, 1000, 3, budget)?.iter().map(|rung| rung.steps).collect())
        };
        assert_eq!(lengths(None).unwrap(), [31, 125, 500]);
        assert_eq!(lengths(Some(1_000_000)).unwrap(), [31, 125, 500]);
        // 20 × 4 + 5 × (17 − 4) + 4 × (71 − 17) = 361.
        assert_eq!(lengths(Some(361)).unwrap(), [4, 17, 71]);
        assert_eq!(lengths(Some(360)).unwrap(), [4, 17, 70]);
        let error = lengths(Some(10)).unwrap_err().to_string();
        // 20 × 1 + 5 × 3 + 4 × 12.
        assert!(error.contains("budget-steps is 10") && error.contains("take 83 steps"), "{error}");
        assert!(rungs_within(20, 0, 3, None).is_err() && rungs_within(20, 5, 0, None).is_err());
    }

    #[test]
    fn short_runs_have_fewer_rounds() {
        assert_eq!(rungs(10, 3, 4), [Rung { steps: 3, keep: 4 }]);
        assert_eq!(rungs(10, 5, 4).iter().map(|rung| rung.steps).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(rungs(10, 0, 2), [Rung { steps: 0, keep: 4 }]);
    }
}
