//! Successive halving (Jamieson and Talwalkar 2016): all candidates run a little, the better ones longer.

use serde::Deserialize;

/// A round: everyone who is still in runs for `steps`, and the `keep` best of every group go on.
/// Learning rates are groups: they are not compared before the end, because a short run favours those
/// that ruin a long one.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    pub steps: u64,
    /// Places in the next round, for every group. In the last round it says nothing.
    pub keep: usize,
}

/// All candidates, best first: by the round they came to, and within it by what they scored there; with
/// the scores of those that went all the way. One that ran away (none) loses; so does a score that is not
/// finite. Ties go to the one that comes first.
pub fn rank(
    candidates: usize,
    rungs: &[Rung],
    group: impl Fn(usize) -> usize,
    mut score: impl FnMut(usize, u64) -> Option<f64>,
) -> Vec<(usize, Option<f64>)> {
    let mut running: Vec<usize> = (0..candidates).collect();
    let mut ranking = Vec::new();
    for (index, rung) in rungs.iter().enumerate() {
        let is_last = index + 1 == rungs.len();
        let mut judged: Vec<(usize, Option<f64>)> = running
            .drain(..)
            .map(|candidate| (candidate, score(candidate, rung.steps)))
            .map(|(candidate, score)| (candidate, score.filter(|score| score.is_finite())))
            .collect();
        let worth = |score: Option<f64>| score.unwrap_or(f64::NEG_INFINITY);
        judged.sort_by(|a, b| worth(b.1).total_cmp(&worth(a.1)));
        let mut out = Vec::new();
        for (candidate, score) in judged {
            let alike = running.iter().filter(|other| group(**other) == group(candidate)).count();
            if score.is_some() && !is_last && alike < rung.keep {
                running.push(candidate);
            } else {
                out.push((candidate, score.filter(|_| is_last)));
            }
        }
        // Those who drop out later stand before those who dropped out earlier.
        ranking.splice(0..0, out);
        // Candidates run in their own order, whatever their place was.
        running.sort_unstable();
    }
    ranking
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: [Rung; 3] =
        [Rung { steps: 1, keep: 4 }, Rung { steps: 4, keep: 2 }, Rung { steps: 16, keep: 0 }];

    fn order(ranking: &[(usize, Option<f64>)]) -> Vec<usize> {
        ranking.iter().map(|(candidate, _)| *candidate).collect()
    }

    #[test]
    fn the_best_wins_and_longer_runs_stand_before_shorter_ones() {
        let mut taken = 0;
        let ranking = rank(
            16,
            &ROUNDS,
            |_| 0,
            |i, steps| {
                taken += steps;
                Some(-(i as f64 - 11.0).abs())
            },
        );
        assert_eq!(order(&ranking)[..4], [11, 10, 12, 9]);
        assert_eq!((ranking.len(), taken), (16, 16 + 4 * 4 + 2 * 16));
    }

    #[test]
    fn ties_go_to_the_first_and_what_runs_away_loses() {
        assert_eq!(order(&rank(4, &ROUNDS, |_| 0, |_, _| Some(1.0))), [0, 1, 2, 3]);
        let ranking = rank(
            4,
            &ROUNDS,
            |_| 0,
            |i, steps| match i {
                0 => Some(f64::NAN),
                1 if steps > 4 => None,
                1 => Some(9.0),
                _ => Some(i as f64),
            },
        );
        assert_eq!(order(&ranking), [3, 1, 2, 0]);
    }

    #[test]
    fn groups_compete_only_at_the_end() {
        let rounds = [Rung { steps: 1, keep: 1 }, Rung { steps: 2, keep: 0 }];
        // Group 1 looks worse until the end.
        let score = |i: usize, steps| Some(if i >= 2 && steps < 2 { -9.0 } else { i as f64 });
        assert_eq!(order(&rank(4, &rounds, |i| i / 2, score)), [2, 1, 0, 3]);
    }
}
