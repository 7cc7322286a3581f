//! The verdict on a run: whether its particles can be believed, why, and what to try next.
//!
//! The measure is what as many exact draws would show. Particles pass when their means and spreads, as
//! the score tells them, are off by no more than exact draws would be, or by so little that it does not
//! matter. `experiments/verdict` has how often that is right.

use super::identities::{Estimate, SteinIdentities, Unevenness, bound_of_largest};
use super::{
    ChainSummary, ModeSearch, ModeWeight, Modes, SteinKernel, auxiliary_marginals,
    directions_spanned,
};
use crate::dynamics::Structure;
use crate::kernel::{Bandwidth, Radial};
use crate::{MatRef, Matrix, Real, Result};

/// A difference of means, in standard deviations, that does not matter.
const NEGLIGIBLE_SHIFT: f64 = 0.1;
/// A change of the mean log density, in standard deviations of a Gaussian's, that does not matter.
const NEGLIGIBLE_DRIFT: f64 = 0.25;
/// A fall of the Stein discrepancy over the last third of a run, as a part of it, that does not matter.
const NEGLIGIBLE_FALL: f64 = 0.1;
/// A difference between a mode's share of the particles and its weight that does not matter.
const NEGLIGIBLE_WEIGHT: f64 = 0.1;
/// Relative variances within these are as good as 1.
const NEGLIGIBLE_SPREAD: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// Deviations of relative variances, in mean square over directions, that do not matter.
const NEGLIGIBLE_UNEVENNESS: f64 = 0.02;
/// Passing a test proves little where means or spreads are this much less certain than those of as many
/// draws of a Gaussian …
const LARGEST_EXCESS: f64 = 2.0;
/// (this much is enough where the spread is off) …
const OFF_EXCESS: f64 = 1.4;
/// … and their standard errors are above these.
const VAGUE_SHIFT: f64 = 0.25;
const VAGUE_SPREAD: f64 = 0.2;
/// How seldom exact draws fail one of the tests.
const TAIL: f64 = 0.001;
/// Chains whose R̂ is above this remember where they came from.
const FORGETFUL_R_HAT: f64 = 1.2;
/// Chains whose R̂ is above this have not been everywhere.
pub(super) const LARGEST_R_HAT: f64 = 1.05;
/// Fewer rows of a trace do not show a drift.
const FEWEST_ROWS: usize = 40;
/// Fewer Stein discrepancies do not show one either.
const FEWEST_DISCREPANCIES: usize = 12;
/// More particles than this are thinned for the test by Stein discrepancy.
const MOST_TESTED: usize = 500;
const REPLICATES: usize = 999;

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
    /// The reason for it, in a sentence.
    pub headline: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to try next, the most promising first.
    pub advice: Vec<String>,
}

/// What is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a, T> {
    /// The sample: the last particles, or draws collected along the run, one a row.
    pub theta: MatRef<'a, T>,
    /// ∇log π there, on all of the data.
    pub score: MatRef<'a, T>,
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
    /// Mean log density of the particles along the run, at even steps.
    pub history: &'a [f64],
    /// Stein discrepancy of the particles along the run, at even steps; may be empty.
    pub discrepancies: &'a [f64],
    /// What a search for modes without particles has found, if there was one.
    pub search: Option<&'a ModeSearch>,
    /// The modes that have particles, if they were weighed.
    pub modes: Option<&'a Modes>,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The log density has fallen far below what it was.
    Fallen,
    MissingMode,
    WrongWeights,
    /// A mean is off.
    Shifted,
    /// The log density still changes.
    Moving,
    /// Too few steps to see whether it does.
    TooShort,
    /// Chains that have not met.
    Remembering,
    Narrow,
    Wide,
    /// Narrow along some directions, wide along others.
    Uneven,
    Misshapen,
    WrongMomenta,
    /// Nothing is known to be wrong, but nothing could be.
    Vague,
}

/// What the tests said.
#[derive(Default)]
struct Findings {
    evidence: Vec<Evidence>,
    faults: Vec<Fault>,
    /// The lowest relative variance.
    narrowest: f64,
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
        let finite = |matrix: MatRef<'_, T>| matrix.as_slice().iter().all(|x| x.is_finite());
        if !finite(self.theta) || !finite(self.score) || !finite(self.state) {
            return Ok(diverged("particles or their scores are not finite", Vec::new()));
        }
        let mut found = Findings::default();
        self.look_at_the_course(&mut found);
        self.look_at_the_discrepancy(&mut found);
        let identities = match self.modes {
            Some(modes) => SteinIdentities::within(self.theta, self.score, &modes.mode_of)?,
            None => SteinIdentities::new(self.theta, self.score)?,
        };
        self.look_at_means(&identities, &mut found);
        self.look_at_spreads(&identities, &mut found);
        self.look_at_chains(&mut found);
        self.look_at_momenta(&mut found);
        self.look_at_the_shape(&mut found)?;
        self.look_at_modes(&mut found);
        self.look_at_the_rank(&mut found);
        Ok(self.conclude(found))
    }

    fn dim(&self) -> f64 {
        self.theta.cols() as f64
    }

    /// How seldom as many exact draws would fail a test. Particles that push one another are spread more
    /// evenly than draws, and have to do better.
    fn tail(&self) -> f64 {
        if self.is_even { 0.3 } else { TAIL }
    }

    /// How much larger errors are than those of independent draws.
    fn inflation(&self) -> f64 {
        (self.theta.rows() as f64 / self.effective).max(1.0).sqrt()
    }

    /// The mean log density of the last tenth of the run against that at two thirds of it.
    fn look_at_the_course(&self, found: &mut Findings) {
        let rows = self.history.len();
        // The log density of exact draws from a Gaussian has this standard deviation.
        let unit = (0.5 * self.dim()).sqrt();
        if let (Some(&last), Some(best)) =
            (self.history.last(), self.history.iter().copied().reduce(f64::max))
        {
            // The particles of a good run are about d/2 below the mode.
            found.note(Fault::Fallen, best - last > 10.0 + 2.0 * self.dim());
        }
        // No course at all is no run: draws that come from elsewhere.
        if rows < FEWEST_ROWS {
            found.note(Fault::TooShort, rows > 0);
            return;
        }
        let window = |from: usize, to: usize| {
            let values = &self.history[from..to];
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let square = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
            (mean, square / count)
        };
        let (before, late) = (window(rows * 13 / 20, rows * 3 / 4), window(rows * 9 / 10, rows));
        let change = (late.0 - before.0) / unit;
        // Rows that follow one another are alike: their errors count twice.
        let noise = 2.0 * (before.1 + late.1).sqrt() / unit;
        // The mean of independent particles is itself uncertain, for as long as they remember.
        let own = if self.is_even { 0.0 } else { 3.5 * (2.0 / self.state.rows() as f64).sqrt() };
        let bound = (4.0 * noise).max(NEGLIGIBLE_DRIFT).max(own);
        found.note(Fault::Moving, !(change.abs() <= bound));
        found.evidence.push(Evidence {
            name: "drift of the log density",
            value: change,
            expected: within(-bound, bound),
            passed: Some(!found.has(Fault::Moving)),
            meaning: "change of the mean log density over the last third of the run, in \
                      standard deviations of a Gaussian's",
        });
    }

    /// Particles without noise come to rest, and then their discrepancy does too.
    fn look_at_the_discrepancy(&self, found: &mut Findings) {
        let rows = self.discrepancies.len();
        if !self.is_even || rows < FEWEST_DISCREPANCIES {
            return;
        }
        let mean = |from: usize, to: usize| {
            self.discrepancies[from..to].iter().sum::<f64>() / (to - from) as f64
        };
        let fall = 1.0 - mean(rows * 9 / 10, rows) / mean(rows * 13 / 20, rows * 3 / 4 + 1);
        let is_falling = fall > NEGLIGIBLE_FALL;
        found.note(Fault::Moving, is_falling);
        found.evidence.push(Evidence {
            name: "fall of the Stein discrepancy",
            value: fall,
            expected: format!("at most {NEGLIGIBLE_FALL}"),
            passed: Some(!is_falling),
            meaning: "by what part it fell over the last third of the run: it still falls where \
                      particles creep along a ridge",
        });
    }

    fn look_at_means(&self, identities: &SteinIdentities, found: &mut Findings) {
        let z = self.inflation() * bound_of_largest(identities.shift.len(), self.tail());
        let floor =
            ((1.0 + self.dim() / self.theta.rows() as f64) / self.theta.rows() as f64).sqrt();
        let bound_of = |shift: &Estimate| z * shift.standard_error.max(floor);
        let worst = worst(&identities.shift, |shift| shift.value.abs() / bound_of(shift));
        let bound = bound_of(&worst).max(NEGLIGIBLE_SHIFT);
        found.note(Fault::Shifted, !(worst.value.abs() <= bound));
        found.note(
            Fault::Vague,
            self.inflation() * worst.standard_error > VAGUE_SHIFT.max(LARGEST_EXCESS * floor),
        );
        found.evidence.push(Evidence {
            name: "largest shift of a mean",
            value: worst.value.abs(),
            expected: format!("at most {}", short(bound)),
            passed: Some(!found.has(Fault::Shifted)),
            meaning: "how far a coordinate's mean has to go, in standard deviations: a Newton step by \
                      E s = 0",
        });
    }

    fn look_at_spreads(&self, identities: &SteinIdentities, found: &mut Findings) {
        let SteinIdentities { spread, total_spread, .. } = identities;
        found.narrowest = f64::INFINITY;
        let z = self.inflation() * bound_of_largest(spread.len() + 1, self.tail());
        let (count, dim) = (self.theta.rows() as f64, self.dim());
        let mut judge = |name, value: f64, low: f64, high: f64, meaning| {
            let (low, high) =
                (low.min(*NEGLIGIBLE_SPREAD.start()), high.max(*NEGLIGIBLE_SPREAD.end()));
            found.note(Fault::Narrow, !(value >= low));
            found.note(Fault::Wide, value > high);
            found.narrowest = found.narrowest.min(value);
            found.evidence.push(Evidence {
                name,
                value,
                expected: within(low, high),
                passed: Some(value >= low && value <= high),
                meaning,
            });
        };
        // Bounds of a mean of as many squared normals, wider where the products have heavier tails. Errors
        // go with the value, so that narrow particles are no surer than wide ones.
        let bounds = |estimate: &Estimate, numbers: f64| {
            let gaussian = (2.0 / numbers).sqrt();
            let excess = (estimate.standard_error / (gaussian * estimate.value.max(0.3))).max(1.0);
            let bound = |z: f64| {
                let unit = 2.0 / (9.0 * numbers);
                (1.0 - unit + z * unit.sqrt()).max(0.0).powi(3)
            };
            (bound(-z * excess), bound(z * excess))
        };
        let (low, high) = bounds(total_spread, count * dim);
        judge(
            "variance, all coordinates",
            total_spread.value,
            low,
            high,
            "the particles' variance relative to the target's, by −E (θ − c)·s = d",
        );
        if spread.len() > 1 {
            let narrow = worst(spread, |spread| bounds(spread, count).0 - spread.value);
            let wide = worst(spread, |spread| spread.value - bounds(spread, count).1);
            judge(
                "variance, narrowest coordinate",
                narrow.value,
                bounds(&narrow, count).0,
                f64::INFINITY,
                "the same, of the coordinate that is most certainly too narrow",
            );
            judge(
                "variance, widest coordinate",
                wide.value,
                f64::NEG_INFINITY,
                bounds(&wide, count).1,
                "the same, of the coordinate that is most certainly too wide",
            );
        }
        if spread.len() > 1 {
            let Unevenness { value, expected, standard_error } = identities.unevenness;
            let inflation = self.inflation().powi(2);
            let bound = inflation * (expected + bound_of_largest(1, TAIL) * standard_error);
            let bound = bound.max(NEGLIGIBLE_UNEVENNESS);
            found.note(Fault::Uneven, !(value <= bound));
            found.evidence.push(Evidence {
                name: "unevenness over directions",
                value,
                expected: format!("at most {}", short(bound)),
                passed: Some(!found.has(Fault::Uneven)),
                meaning: "mean square deviation from 1 of the relative variance, over all directions",
            });
        }
        let usual = (2.0 / (count * dim)).sqrt();
        let error = self.inflation() * total_spread.standard_error;
        // Off, and by less than what is uncertain only because that is so much.
        let is_off = !NEGLIGIBLE_SPREAD.contains(&total_spread.value);
        found.note(
            Fault::Vague,
            error > VAGUE_SPREAD.max(LARGEST_EXCESS * usual)
                || (is_off && error > OFF_EXCESS * usual),
        );
    }

    fn look_at_chains(&self, found: &mut Findings) {
        let Some(chains) = self.chains else { return };
        let has_forgotten = chains.r_hat <= FORGETFUL_R_HAT;
        found.note(Fault::Remembering, !has_forgotten);
        found.evidence.push(Evidence {
            name: "R̂ of the collected draws",
            value: chains.r_hat,
            expected: format!("at most {FORGETFUL_R_HAT}, {LARGEST_R_HAT} if all draws are to count"),
            passed: Some(has_forgotten),
            meaning: "whether the particles' paths, as chains, agree; the worst coordinate. Above the \
                      first they remember where they were, above the second they count as one draw each",
        });
        found.evidence.push(Evidence {
            name: "effective sample size",
            value: chains.effective_sample_size,
            expected: format!("up to {}", self.theta.rows()),
            passed: None,
            meaning: "how many independent draws the collected ones are worth; the worst coordinate",
        });
    }

    fn look_at_momenta(&self, found: &mut Findings) {
        for marginal in auxiliary_marginals(self.state, self.structure) {
            let error = (2.0 / marginal.count as f64).sqrt();
            let bound = bound_of_largest(1, TAIL) * error;
            let low = (1.0 - bound).min(*NEGLIGIBLE_SPREAD.start());
            let high = (1.0 + bound).max(*NEGLIGIBLE_SPREAD.end());
            let passed = marginal.square >= low && marginal.square <= high;
            found.note(Fault::WrongMomenta, !passed);
            found.evidence.push(Evidence {
                name: "variance, auxiliary variables",
                value: marginal.square,
                expected: within(low, high),
                passed: Some(passed),
                meaning: "mean square of an auxiliary variable relative to its Gaussian, which it has \
                          whatever the target is",
            });
        }
    }

    fn look_at_the_shape(&self, found: &mut Findings) -> Result<()> {
        // Draws along a chain are alike; the test is for independent ones.
        let count = self.theta.rows();
        let kept = count.min(MOST_TESTED).min(self.effective as usize).max(2);
        let thin = |matrix: MatRef<'_, T>| {
            Matrix::from_fn(kept, matrix.cols(), |i, j| matrix.row(i * count / kept)[j])
        };
        let (theta, score) = (thin(self.theta), thin(self.score));
        let bandwidth = Bandwidth::Median.of(theta.as_ref());
        let radial = Radial::InverseMultiquadric;
        let kernel = SteinKernel::new(theta.as_ref(), score.as_ref(), radial, bandwidth)?;
        let test = kernel.test(REPLICATES, 0)?;
        found.note(Fault::Misshapen, test.p_value < 2.0 * TAIL);
        found.evidence.push(Evidence {
            name: "p-value of the Stein discrepancy",
            value: test.p_value,
            expected: format!("at least {}", 2.0 * TAIL),
            passed: Some(!found.has(Fault::Misshapen)),
            meaning: "how often exact draws would be as far from the target; particles that repel one \
                      another are nearer than draws, with values close to 1",
        });
        found.evidence.push(Evidence {
            name: "squared Stein discrepancy",
            value: test.squared_discrepancy,
            expected: "about 0".to_owned(),
            passed: None,
            meaning: "inverse multiquadric kernel, median bandwidth, U-statistic",
        });
        Ok(())
    }

    fn look_at_modes(&self, found: &mut Findings) {
        let weights = self.modes.map_or(&[][..], |modes| &modes.weights);
        if weights.len() > 1 {
            let off = |mode: &ModeWeight| {
                let error = 3.0 * mode.log_error * mode.weight * (1.0 - mode.weight);
                (mode.share - mode.weight).abs() - error
            };
            let largest = weights.iter().map(off).fold(f64::NEG_INFINITY, f64::max);
            found.note(Fault::WrongWeights, !(largest <= NEGLIGIBLE_WEIGHT));
            found.evidence.push(Evidence {
                name: "weights of modes",
                value: largest,
                expected: format!("at most {NEGLIGIBLE_WEIGHT}"),
                passed: Some(!found.has(Fault::WrongWeights)),
                meaning: "how far a mode's share of the particles is from its weight, by log density \
                          and entropy, beyond what is uncertain",
            });
        }
        let Some(search) = self.search else { return };
        found.note(Fault::MissingMode, search.unvisited.is_some());
        found.evidence.push(Evidence {
            name: "probes in modes without particles",
            value: search.share,
            expected: "0".to_owned(),
            passed: Some(!found.has(Fault::MissingMode)),
            meaning: "share of points that climbed from around the particles to a place that a valley \
                      separates from all of them",
        });
    }

    fn look_at_the_rank(&self, found: &mut Findings) {
        if self.theta.cols() == 1 {
            return;
        }
        let spanned = directions_spanned(self.theta);
        found.evidence.push(Evidence {
            name: "directions spanned",
            value: spanned.found,
            expected: format!("{} if uncorrelated", short(spanned.if_uncorrelated)),
            passed: None,
            meaning: "effective degrees of freedom of the particles; N particles have at most N − 1",
        });
    }

    fn conclude(&self, found: Findings) -> Diagnosis {
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
            || found.has(Fault::WrongMomenta)
        {
            let why = if found.has(Fault::Wide) {
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
            let headline = if self.search.is_some() {
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
            Verdict::NotConverged => {
                advice.push("take more steps: the run can be resumed".to_owned());
                if found.has(Fault::Shifted) && !found.has(Fault::Moving) {
                    advice.push(
                        "or larger ones: the particles hardly move, but are not where they should be"
                            .to_owned(),
                    );
                }
                advice.push("try dynamics with momentum, such as sghmc-stein or sghmc".to_owned());
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

fn diverged(why: &str, evidence: Vec<Evidence>) -> Diagnosis {
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

/// The one with the largest `badness`; NaN is the worst.
fn worst(estimates: &[Estimate], badness: impl Fn(&Estimate) -> f64) -> Estimate {
    let rank = |estimate: &Estimate| {
        let badness = badness(estimate);
        if badness.is_nan() { f64::INFINITY } else { badness }
    };
    let worst = estimates.iter().max_by(|a, b| rank(a).total_cmp(&rank(b)));
    *worst.expect("particles have coordinates")
}

fn within(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}", short(low), short(high)),
        (true, false) => format!("at least {}", short(low)),
        _ => format!("at most {}", short(high)),
    }
}

/// Three digits.
fn short(x: f64) -> String {
    if x.abs() >= 1e6 {
        return format!("{x:.2e}");
    }
    let digits = if x == 0.0 { 2.0 } else { (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) };
    format!("{x:.0$}", digits as usize)
}
