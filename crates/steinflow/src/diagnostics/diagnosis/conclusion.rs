//! From what the tests found to a verdict, its reason, and what to try next.

use super::{Diagnosis, Evidence, Fault, Findings, Subject, Verdict};
use crate::Real;

/// A relative variance below this is no narrowness: scores point outwards as much as those of exact draws
/// point inwards.
const OUTWARD: f64 = -1.0;

impl<T: Real> Subject<'_, T> {
    pub(super) fn conclude(&self, found: Findings) -> Diagnosis {
        if found.has(Fault::Fallen) && found.has(Fault::Wide) {
            return diverged(
                "log density has fallen far, and the particles are wide",
                found.evidence,
            );
        }
        let percent = |share: f64| format!("{:.0} %", 100.0 * share.max(0.0));
        let (verdict, headline) = if found.has(Fault::MissingMode) {
            let headline = "There is a mode without particles.".to_owned();
            (Verdict::NotConverged, headline)
        } else if let Some(rule) = self.stop_rule
            && found.has(Fault::Unsettled)
        {
            let why = rule.reasons.first().map_or("it ended early", String::as_str);
            (Verdict::NotConverged, format!("The stop rule is not met: {why}."))
        } else if found.has(Fault::WrongWeights) {
            let headline = "The modes do not have the particles that they weigh.";
            (Verdict::NotConverged, headline.to_owned())
        } else if found.has(Fault::Shifted) || found.has(Fault::Moving) {
            let why = match (found.has(Fault::Shifted), found.has(Fault::Moving)) {
                (true, true) => "particles are still moving, and their means are off",
                (true, false) => "means are not where the score is zero on average",
                _ => "particles are still moving",
            };
            (Verdict::NotConverged, format!("The {why}."))
        } else if found.has(Fault::Remembering) {
            let headline = "The particles still remember where they were when the first draws were \
                            collected.";
            (Verdict::NotConverged, headline.to_owned())
        } else if found.has(Fault::TooShort) {
            let headline = format!(
                "{} recorded steps are too few to show that the particles have come to rest.",
                self.history.len()
            );
            (Verdict::NotConverged, headline)
        } else if found.narrowest < OUTWARD {
            let headline =
                "The score drives the particles apart, not together: they are far from rest.";
            (Verdict::NotConverged, headline.to_owned())
        } else if found.has(Fault::Narrow) {
            let left = percent(found.narrowest);
            let headline = format!(
                "The particles have {left} of the target's variance where they are \
                 narrowest. Means may be used, spreads and intervals not."
            );
            (Verdict::Collapsed, headline)
        } else if found.has(Fault::Wide)
            || found.has(Fault::Uneven)
            || found.has(Fault::Misshapen)
            || found.has(Fault::UnlikeDraws)
            || found.has(Fault::WrongMomenta)
        {
            let why = if found.has(Fault::UnlikeDraws) {
                "particles do not have the spread of the draws that their warm-up made"
            } else if found.has(Fault::Wide) {
                "particles are wider than the target"
            } else if found.has(Fault::Uneven) {
                "particles are too narrow along some directions, or too wide along others"
            } else if found.has(Fault::Misshapen) {
                "particles do not have the target's shape"
            } else {
                "auxiliary variables do not have the variance that they must have"
            };
            (Verdict::MeansOnly, format!("The {why}."))
        } else if found.has(Fault::Vague) {
            let headline = "So few particles of this target's tails cannot tell \
                            whether the spread is right.";
            (Verdict::MeansOnly, headline.to_owned())
        } else {
            let headline = if self.stop_rule.is_some() && self.search.is_some() {
                "Every move was accepted or refused by the density itself, the particles agree with each \
                 other, and a search around them found no mode that they miss."
            } else if self.search.is_some() {
                "Means and spreads are as good as those of exact draws, and a search around the particles \
                 found no mode that they miss."
            } else {
                "Where there are particles, their means and spreads are as good as those of exact draws; \
                 modes without particles were not searched for."
            };
            (Verdict::Trust, headline.to_owned())
        };
        let advice = self.advice(verdict, &found);
        Diagnosis { verdict, headline, evidence: found.evidence, advice }
    }

    fn advice(&self, verdict: Verdict, found: &Findings) -> Vec<String> {
        let (count, dim) = (self.theta.rows(), self.theta.cols());
        let mut advice = Vec::new();
        match verdict {
            Verdict::Trust => {
                advice.push(
                    "to be sure of modes that are far away, start from elsewhere, or wider, and compare"
                        .to_owned(),
                );
            }
            Verdict::NotConverged
                if found.has(Fault::MissingMode) || found.has(Fault::WrongWeights) =>
            {
                advice.push("start wider, so that every mode gets particles".to_owned());
                advice.push(
                    "take dynamics that cross valleys: sghmc or sgrhmc-stein, with momentum"
                        .to_owned(),
                );
            }
            Verdict::NotConverged if self.stop_rule.is_some() => {
                advice.push("let it go on: ask for more gradients".to_owned());
                advice.push(
                    "if particles do not mix, take more of them, start them where the modes are, or \
                     write the model in other parameters"
                        .to_owned(),
                );
            }
            Verdict::NotConverged => {
                advice.push("take more steps: the run can be resumed".to_owned());
                if found.has(Fault::Shifted) && !found.has(Fault::Moving) {
                    advice.push(
                        "or larger ones: the particles hardly move, but are not where they should be"
                            .to_owned(),
                    );
                }
                if self.structure.blocks() == 1 {
                    advice.push(
                        "try dynamics with momentum, such as sghmc-stein or sghmc".to_owned(),
                    );
                }
            }
            Verdict::Collapsed if self.is_even => {
                advice.push(format!(
                    "collect draws of a sampler that keeps its spread with few particles: \
                     svgd-product, or the diffusion sghmc ({dim} coordinates, {count} particles)"
                ));
                advice
                    .push(format!("or take more particles, {} or more", (4 * dim).max(2 * count)));
            }
            Verdict::Collapsed => {
                advice.push(
                    "take more steps, or larger ones: the start may be too narrow".to_owned(),
                );
            }
            Verdict::MeansOnly
                if found.has(Fault::Vague)
                    && !found.has(Fault::Wide)
                    && !found.has(Fault::Uneven) =>
            {
                advice.push(format!("take more particles, {} or more", 4 * count));
            }
            Verdict::MeansOnly if found.has(Fault::UnlikeDraws) => {
                advice.push("take the draws of the default method, auto, for spreads".to_owned());
            }
            Verdict::MeansOnly => {
                if found.has(Fault::Wide) || found.has(Fault::WrongMomenta) {
                    advice
                        .push("take smaller steps: too large ones widen the particles".to_owned());
                }
                if self.is_even {
                    advice.push("take more particles, or a narrower kernel bandwidth".to_owned());
                }
                advice.push("compare with the diffusion of the same dynamics".to_owned());
            }
            Verdict::Diverged => {}
        }
        advice
    }
}

pub(super) fn diverged(why: &str, evidence: Vec<Evidence>) -> Diagnosis {
    Diagnosis {
        verdict: Verdict::Diverged,
        headline: format!("The {why}."),
        evidence,
        advice: vec![
            "take steps a tenth as large".to_owned(),
            "start closer to the mode, or with the policy `shrink` for non-finite values"
                .to_owned(),
        ],
    }
}
