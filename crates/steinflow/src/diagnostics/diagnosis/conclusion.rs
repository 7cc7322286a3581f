//! From what the tests found to a verdict, what may be used and why, and what to try next.

use super::{Diagnosis, Evidence, Fault, Findings, Subject, Verdict};
use crate::Real;
use crate::diagnostics::With;

/// A relative variance below this is no narrowness: scores point outwards as much as those of exact draws
/// point inwards.
const OUTWARD: f64 = -1.0;
/// Means that might be off by more than this, in standard deviations, without anything showing it are not known: 100
/// exact draws of a Gaussian in 50 dimensions leave about as much open.
const LARGEST_UNSEEN_SHIFT: f64 = 0.6;

impl<T: Real> Subject<'_, T> {
    pub(super) fn conclude(&self, found: Findings) -> (Diagnosis, bool) {
        if found.has(Fault::Fallen) && found.has(Fault::Wide) && self.wrong_gradient.is_none() {
            let why = "the log density has fallen far, and the particles are wide";
            return (diverged(why, found.evidence), false);
        }
        let (verdict, flaw, why) = self.reason(&found);
        let use_of = match verdict {
            Verdict::MeansOnly if found.has(Fault::HeavyTails) || found.has(Fault::Outlying) => {
                "Means and quantiles may be used, standard deviations not"
            }
            Verdict::Trust => "Means, spreads and intervals may be used",
            Verdict::MeansOnly => "Means may be used, spreads and intervals not",
            Verdict::Collapsed
                if self.comparison.is_some_and(|known| known.means_agree())
                    && self.knows_means(&found) =>
            {
                "Means may be used, spreads and intervals not"
            }
            Verdict::Collapsed => "Use neither spreads nor intervals, and means with care",
            Verdict::NotConverged | Verdict::Diverged => "Use nothing of it yet",
        };
        let advice = self.advice(verdict, flaw, &found);
        let headline = format!("{use_of}: {why}.");
        let is_hopeful = verdict == Verdict::Trust || flaw.is_some();
        let evidence = found.evidence;
        (Diagnosis { verdict, headline, evidence, advice, evaluations: 0 }, is_hopeful)
    }

    /// The verdict, and the worst of what was found; with the flaw, where it is one that means may survive.
    fn reason(&self, found: &Findings) -> (Verdict, Option<Fault>, String) {
        let not_converged = |why: &str| (Verdict::NotConverged, None, why.to_owned());
        if let Some(fault) = self.wrong_gradient {
            return not_converged(&fault.to_string());
        }
        if found.has(Fault::MissingMode) {
            return not_converged("there is a mode without particles");
        }
        if let Some(rule) = self.stop_rule
            && found.has(Fault::Unsettled)
        {
            let why = rule.reasons.first().map_or("it ended early", String::as_str);
            return not_converged(&format!("the stop rule is not met: {why}"));
        }
        if found.has(Fault::WrongWeights) {
            return not_converged("the modes do not have the particles that they weigh");
        }
        if found.has(Fault::ShiftedFromKnown) {
            return not_converged(match self.comparison.map(|known| known.with) {
                Some(With::ExactMoments) => "means are not the target's own, which are known",
                Some(With::WarmUp) => "means are not those of the draws that the warm-up made",
                _ => "exact moves carry the means away",
            });
        }
        if let Some(why) = self.stop_rule.and_then(|rule| rule.heavy_tails()) {
            return (Verdict::MeansOnly, Some(Fault::HeavyTails), why.to_owned());
        }
        if found.has(Fault::UnsettledSource) {
            return not_converged(
                "the warm-up, whose draws the particles stand for, used up its gradients before its stop rule \
                 was met",
            );
        }
        let is_moving = found.has(Fault::Moving) || found.has(Fault::Falling);
        if found.has(Fault::Shifted) || is_moving {
            return not_converged(match (found.has(Fault::Shifted), is_moving) {
                (true, true) => "the particles are still moving, and their means are off",
                (true, false) => "the means are not where the score is zero on average",
                _ => "the particles are still moving",
            });
        }
        if found.has(Fault::Remembering) {
            return not_converged(if self.is_interacting {
                "the draws still drift: early and late ones differ"
            } else {
                "the particles still remember where they were when the first draws were collected"
            });
        }
        if found.has(Fault::TooShort) {
            return not_converged(&format!(
                "{} recorded steps are too few to show that the particles have come to rest",
                self.history.len()
            ));
        }
        if found.narrowest < OUTWARD {
            return not_converged(
                "the score drives the particles apart, not together: they are far from rest",
            );
        }
        if found.has(Fault::Narrow) {
            let left = 100.0 * found.narrowest.max(0.0);
            let why = format!(
                "the particles have {left:.0} % of the target's variance where they are narrowest"
            );
            return (Verdict::Collapsed, None, why);
        }
        if found.has(Fault::MissingMass) {
            return not_converged("there is probability further out than the particles reach");
        }
        let means_only = [
            (
                Fault::HeavyTails,
                "heavy tails: the draws that the particles stand for do not know a standard deviation to within \
                 a tenth",
            ),
            (
                Fault::Outlying,
                "a single particle, far out, makes much of a spread: one in a heavy tail, or one that has not \
                 come back",
            ),
            (Fault::UnlikeKnown, self.unlike()),
            (Fault::Wide, "the particles are wider than the target"),
            (
                Fault::Uneven,
                "the particles are too narrow along some directions, or too wide along others",
            ),
            (Fault::Misshapen, "the particles do not have the target's shape"),
            (
                Fault::WrongMomenta,
                "auxiliary variables do not have the variance that they must have",
            ),
            (
                Fault::Vague,
                "so few particles of this target cannot tell whether the spread is right",
            ),
        ];
        if let Some((flaw, why)) = means_only.into_iter().find(|(fault, _)| found.has(*fault)) {
            return if self.knows_means(found) {
                (Verdict::MeansOnly, Some(flaw), why.to_owned())
            } else {
                let why = format!("{why}, and nothing vouches for the means");
                (Verdict::NotConverged, Some(flaw), why)
            };
        }
        let why = match (self.stop_rule, self.search) {
            (Some(rule), Some(_)) => format!(
                "every move was accepted or refused by the density itself, the particles agree with each \
                 other on what {:.0} independent draws would say, and a search around them found no mode \
                 that they miss",
                rule.effective
            ),
            (None, Some(_)) => "they are as good as those of exact draws, and a search around the \
                                particles found no mode that they miss"
                .to_owned(),
            (_, None) => {
                "they are as good as those of exact draws, where there are particles; modes \
                          without particles were not searched for"
                    .to_owned()
            }
        };
        (Verdict::Trust, None, why)
    }

    /// Whether anything would have shown means that are off: a test that passes for want of numbers does not.
    fn knows_means(&self, found: &Findings) -> bool {
        let by_comparison = self
            .comparison
            .filter(|known| known.is_sure)
            .map_or(f64::INFINITY, |known| known.shift.1);
        self.stop_rule.is_some() || found.unseen_shift.min(by_comparison) <= LARGEST_UNSEEN_SHIFT
    }

    fn unlike(&self) -> &'static str {
        match self.comparison.map(|known| known.with) {
            Some(With::ExactMoments) => "the spread is not the target's own, which is known",
            Some(With::WarmUp) => {
                "the particles do not have the spread of the draws that their warm-up made"
            }
            _ => "exact moves change the spread of the particles",
        }
    }

    fn advice(&self, verdict: Verdict, flaw: Option<Fault>, found: &Findings) -> Vec<String> {
        let (count, dim) = (self.theta.rows(), self.theta.cols());
        let mut advice = Vec::new();
        let mut say = |text: &str| advice.push(text.to_owned());
        let on_its_way = [Fault::Shifted, Fault::Moving, Fault::Falling, Fault::TooShort];
        let is_on_its_way = on_its_way.iter().any(|&fault| found.has(fault));
        let auto = "take the default method, auto, which mends its own spreads";
        match verdict {
            Verdict::Trust => {
                say("to be sure of modes that are far away, start wider, and compare");
            }
            Verdict::NotConverged if found.has(Fault::WrongGradient) => {
                say("mend the gradient or the log density: their derivatives must agree");
                return advice;
            }
            Verdict::NotConverged | Verdict::MeansOnly if flaw == Some(Fault::Outlying) => {
                say(
                    "describe it by quantiles, or take the default method, auto, which draws until it knows spreads",
                );
            }
            Verdict::NotConverged | Verdict::MeansOnly if flaw == Some(Fault::HeavyTails) => {
                say("describe it by quantiles, or let it go on: ask for more gradients");
            }
            Verdict::NotConverged | Verdict::MeansOnly if flaw == Some(Fault::Vague) => {
                say("take the default method, auto, which draws until it has enough");
                say(&format!("or more particles, {} or more", 4 * count));
            }
            Verdict::NotConverged | Verdict::MeansOnly if flaw.is_some() => {
                say(auto);
                if found.has(Fault::Wide) || found.has(Fault::WrongMomenta) {
                    say("or smaller steps: too large ones widen the particles");
                }
                if self.is_even {
                    say("or more particles");
                }
            }
            Verdict::NotConverged
                if found.has(Fault::MissingMode)
                    || found.has(Fault::WrongWeights)
                    || (found.has(Fault::MissingMass) && !is_on_its_way) =>
            {
                say(
                    "start wider, so that every mode gets particles (start-sd), with the method auto, which \
                     jumps between modes",
                );
            }
            Verdict::NotConverged if found.has(Fault::UnsettledSource) && !is_on_its_way => {
                say(
                    "take the default method, auto: it says what holds it up, and goes on with more gradients \
                     (gradients)",
                );
            }
            Verdict::NotConverged if self.stop_rule.is_some() => {
                say("let it go on: ask for more gradients");
                say(
                    "if particles do not mix, take more of them, start them where the modes are, or write \
                     the model in other parameters",
                );
            }
            Verdict::NotConverged | Verdict::MeansOnly => {
                say("take more steps: the run can be resumed");
                if found.has(Fault::Shifted) && !found.has(Fault::Moving) {
                    say(
                        "or larger ones: the particles hardly move, but are not where they should be",
                    );
                }
                say("or take the default method, auto, which needs no steps");
            }
            Verdict::Collapsed if self.is_even => {
                say(auto);
                let more = (4 * dim).max(2 * count);
                say(&format!(
                    "or more particles, {more} or more ({dim} coordinates, {count} particles)"
                ));
            }
            Verdict::Collapsed => {
                say("take more steps, or larger ones: the start may be too narrow");
            }
            Verdict::Diverged => {}
        }
        if self.discards {
            say("collect draws along the run (collect-from): its last particles alone are few");
        }
        advice
    }
}

pub(super) fn diverged(why: &str, evidence: Vec<Evidence>) -> Diagnosis {
    Diagnosis {
        verdict: Verdict::Diverged,
        headline: format!("Use nothing of it: {why}."),
        evidence,
        advice: vec![
            "take steps a tenth as large".to_owned(),
            "start closer to the mode, or with the policy `shrink` for non-finite values"
                .to_owned(),
        ],
        evaluations: 0,
    }
}
