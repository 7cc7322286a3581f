//! The tests: each looks at one thing, keeps what it found, and notes what is wrong.

use super::{Evidence, Fault, Findings, Subject};
use crate::diagnostics::identities::{Estimate, SteinIdentities, Unevenness, bound_of_largest};
use crate::diagnostics::judge::MOST_PARTICLES;
use crate::diagnostics::{
    Comparison, SteinKernel, StopRule, With, auxiliary_marginals, directions_spanned,
};
use crate::kernel::{Bandwidth, Radial};
use crate::{MatRef, Matrix, Real, Result};

/// A difference of means, in standard deviations, that does not matter.
const NEGLIGIBLE_SHIFT: f64 = 0.1;
/// A change of the mean log density, in standard deviations of a Gaussian's, that does not matter.
const NEGLIGIBLE_DRIFT: f64 = 0.25;
/// A fall of the Stein discrepancy over the last third of a run, as a part of it, that does not matter.
const NEGLIGIBLE_FALL: f64 = 0.1;
/// Relative variances within these are as good as 1.
const NEGLIGIBLE_SPREAD: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// Deviations of relative variances, in mean square over directions, that do not matter.
const NEGLIGIBLE_UNEVENNESS: f64 = 0.04;
/// Passing a test proves little where means or spreads are this much less certain than those of as many
/// draws of a Gaussian …
const LARGEST_EXCESS: f64 = 2.0;
/// (this much is enough where the spread is off) …
const OFF_EXCESS: f64 = 1.4;
/// … and their standard errors are above these.
const VAGUE_SHIFT: f64 = 0.25;
/// A mean that may be this far off, in standard deviations, is not known at all.
const BLIND_SHIFT: f64 = 0.8;
const VAGUE_SPREAD: f64 = 0.2;
/// How seldom exact draws fail one of the tests.
const TAIL: f64 = 0.001;
/// Chains whose R̂ is above this remember where they came from.
const FORGETFUL_R_HAT: f64 = 1.2;
/// So many chains need not have met, if what they say together is right, …
const MANY_CHAINS: usize = 20;
/// … unless their R̂ is above this.
const MANY_R_HAT: f64 = 1.6;
/// The same for an ensemble, whose means over all particles hardly vary.
const STEADY_R_HAT: f64 = 1.03;
/// Chains whose R̂ is above this have not been everywhere.
pub(in crate::diagnostics) const LARGEST_R_HAT: f64 = 1.05;
/// Parts of a run that are compared for a fall.
const TENTHS: usize = 10;
/// Fewer rows of a trace do not show a drift.
const FEWEST_ROWS: usize = 40;
/// Fewer Stein discrepancies do not show one either.
const FEWEST_DISCREPANCIES: usize = 12;
/// More particles than this are thinned for the test by Stein discrepancy.
const MOST_TESTED: usize = 500;
const REPLICATES: usize = 999;

impl<T: Real> Subject<'_, T> {
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
    pub(super) fn look_at_the_course(&self, found: &mut Findings) {
        let rows = self.history.len();
        // The log density of exact draws from a Gaussian has this standard deviation.
        let unit = (0.5 * self.dim()).sqrt();
        let window = |from: usize, to: usize| {
            let values = &self.history[from..to];
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let square =
                values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
            (mean, square / count)
        };
        // Single rows may be those of minibatches: tenths of the run are compared, by the noise of the earlier,
        // for that of particles that run away is their flight.
        if rows >= 2 * TENTHS {
            let tenth = |k: usize| window(rows * k / TENTHS, rows * (k + 1) / TENTHS);
            let last = tenth(TENTHS - 1);
            let fall = |before: (f64, f64)| before.0 - last.0 - 4.0 * (2.0 * before.1).sqrt();
            let largest = (0..TENTHS - 1).map(|k| fall(tenth(k))).fold(0.0, f64::max);
            // The particles of a good run are about d/2 below the mode.
            found.note(Fault::Fallen, !(largest <= 10.0 + 2.0 * self.dim()));
        }
        // No course at all is no run: draws that come from elsewhere.
        if rows < FEWEST_ROWS {
            found.note(Fault::TooShort, rows > 0);
            return;
        }
        let (before, late) = (window(rows * 13 / 20, rows * 3 / 4), window(rows * 9 / 10, rows));
        let change = (late.0 - before.0) / unit;
        // Rows that follow one another are alike: their errors count twice.
        let noise = 2.0 * (before.1 + late.1).sqrt() / unit;
        // The mean of independent particles is itself uncertain, for as long as they remember.
        let own = if self.is_even {
            0.0
        } else {
            let excess = (self.density_sd / unit).max(1.0);
            3.5 * (2.0 / self.state.rows() as f64).sqrt() * excess
        };
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
    pub(super) fn look_at_the_discrepancy(&self, found: &mut Findings) {
        let rows = self.discrepancies.len();
        if !self.is_even || rows < FEWEST_DISCREPANCIES {
            return;
        }
        let mean = |from: usize, to: usize| {
            self.discrepancies[from..to].iter().sum::<f64>() / (to - from) as f64
        };
        let fall = 1.0 - mean(rows * 9 / 10, rows) / mean(rows * 13 / 20, rows * 3 / 4 + 1);
        let is_falling = fall > NEGLIGIBLE_FALL;
        found.note(Fault::Falling, is_falling);
        found.evidence.push(Evidence {
            name: "fall of the Stein discrepancy",
            value: fall,
            expected: format!("at most {NEGLIGIBLE_FALL}"),
            passed: Some(!is_falling),
            meaning: "by what part it fell over the last third of the run: it still falls where \
                      particles creep along a ridge",
        });
    }

    pub(super) fn look_at_means(&self, identities: &SteinIdentities, found: &mut Findings) {
        let z = self.inflation() * bound_of_largest(identities.shift.len(), self.tail());
        let floor =
            ((1.0 + self.dim() / self.theta.rows() as f64) / self.theta.rows() as f64).sqrt();
        let bound_of = |shift: &Estimate| z * shift.standard_error.max(floor);
        let worst = worst(&identities.shift, |shift| shift.value.abs() / bound_of(shift));
        let bound = bound_of(&worst).max(NEGLIGIBLE_SHIFT);
        // Wide particles overrate how far they have to go by as much as their variance is too large.
        found.unseen_shift = bound / identities.total_spread.value.max(1.0).sqrt();
        found.note(Fault::Shifted, !(worst.value.abs() <= bound));
        // By more than as many draws of a Gaussian would be.
        let is_blind = bound > BLIND_SHIFT && worst.standard_error > OFF_EXCESS * floor;
        for fault in [Fault::Vague, Fault::Blind] {
            found.note(fault, is_blind);
        }
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

    pub(super) fn look_at_spreads(&self, identities: &SteinIdentities, found: &mut Findings) {
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
                // Scores that point outwards make it negative, which no variance is.
                value: value.max(0.0),
                expected: within(low.max(0.0), high),
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
            let noise = inflation * (expected + bound_of_largest(1, TAIL) * standard_error);
            let bound = noise + NEGLIGIBLE_UNEVENNESS;
            let passed = value <= bound;
            // Tails that a few particles decide make it large by chance.
            let is_vague = identities.excess > LARGEST_EXCESS;
            found.note(if is_vague { Fault::Vague } else { Fault::Uneven }, !passed);
            found.evidence.push(Evidence {
                name: "unevenness over directions",
                value,
                expected: format!("at most {}", short(bound)),
                passed: Some(passed),
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

    /// Means and spreads against those that are known.
    pub(super) fn look_at_what_is_known(&self, found: &mut Findings) {
        let Some(comparison) = &self.comparison else { return };
        let (of_means, of_spreads) = match comparison.with {
            With::ExactMoments => ("mean, against the exact one", "spread, against the exact one"),
            With::WarmUp => ("mean, against draws", "spread, against draws"),
            With::MovedOn => ("mean, after exact moves", "spread, after exact moves"),
        };
        found.note(Fault::ShiftedFromKnown, !comparison.means_agree());
        found.note(Fault::UnlikeKnown, !comparison.spreads_agree());
        found.note(Fault::Vague, comparison.is_vague());
        found.evidence.push(Evidence {
            name: of_means,
            value: comparison.shift.0,
            expected: format!("at most {}", short(comparison.shift.1)),
            passed: Some(comparison.means_agree()),
            meaning: "the largest difference of a mean from that of the target, of draws that a warm-up made, \
                      or of the particles after moves with an accept step, in standard deviations",
        });
        found.evidence.push(Evidence {
            name: of_spreads,
            value: comparison.spread.0,
            expected: format!("at most {}", short(comparison.spread.1)),
            passed: Some(comparison.spreads_agree()),
            meaning: "the largest difference of a standard deviation from the same, as the logarithm of their \
                      ratio",
        });
    }

    /// Draws that are enough, and have the same spread, vouch for it, whoever makes much of it.
    pub(super) fn look_at_outlying_particles(&self, found: &mut Findings) {
        let is_known = self.comparison.is_some_and(|known| known.is_sure && known.is_close());
        let is_usual = self.outlying.is_usual();
        found.note(Fault::Outlying, !is_usual && !is_known);
        found.evidence.push(Evidence {
            name: "share of a variance that one particle has",
            value: self.outlying.share,
            expected: format!("at most {}", short(self.outlying.allowed)),
            passed: Some(is_usual || is_known),
            meaning: "of the coordinate where it is largest; over all its draws, where they were collected",
        });
    }

    /// Whether a comparison makes up for what the score cannot tell: at all, only one with what is sure.
    pub(super) fn is_close_to_what_is_known(&self, found: &Findings) -> bool {
        let is_close =
            |known: Comparison| known.is_close() && (known.is_sure || !found.has(Fault::Blind));
        self.comparison.is_some_and(is_close)
    }

    pub(super) fn look_at_chains(&self, found: &mut Findings) {
        let Some(chains) = self.chains else { return };
        let bound = if self.is_interacting { STEADY_R_HAT } else { FORGETFUL_R_HAT };
        // Many chains that agree with what is known do not need to have met.
        let are_many = self.state.rows() >= MANY_CHAINS && chains.r_hat <= MANY_R_HAT;
        let agrees = self.is_close_to_what_is_known(found);
        let is_sure = self.comparison.is_some_and(|known| known.is_sure);
        let need_not = is_sure || (are_many && !self.is_interacting);
        let has_forgotten = chains.r_hat <= bound || (agrees && need_not);
        found.note(Fault::Remembering, !has_forgotten);
        found.evidence.push(Evidence {
            name: "R̂ of the collected draws",
            value: chains.r_hat,
            expected: format!("at most {bound}"),
            passed: Some(has_forgotten),
            meaning: "whether the particles' paths, as chains, agree; of particles that push one another, \
                      whether stretches of time do. The worst coordinate. Above 1.05 chains count as one draw \
                      each",
        });
        found.evidence.push(Evidence {
            name: "effective sample size",
            value: chains.effective_sample_size,
            expected: format!("up to {}", self.theta.rows()),
            passed: None,
            meaning: "how many independent draws the collected ones are worth; the worst coordinate",
        });
    }

    /// Of several auxiliary variables the one that is furthest off.
    pub(super) fn look_at_momenta(&self, found: &mut Findings) {
        let marginals = auxiliary_marginals(self.state, self.structure);
        let off = |square: f64| square.max(1e-300).ln().abs();
        let worst = marginals.iter().max_by(|a, b| off(a.square).total_cmp(&off(b.square)));
        let Some(marginal) = worst else { return };
        let bound = bound_of_largest(1, TAIL) * (2.0 / marginal.count as f64).sqrt();
        let low = (1.0 - bound).min(*NEGLIGIBLE_SPREAD.start());
        let high = (1.0 + bound).max(*NEGLIGIBLE_SPREAD.end());
        let passed = marginal.square >= low && marginal.square <= high;
        found.note(Fault::WrongMomenta, !passed);
        found.evidence.push(Evidence {
            name: "variance, auxiliary variables",
            value: marginal.square,
            expected: within(low, high),
            passed: Some(passed),
            meaning: "mean square of an auxiliary variable relative to its Gaussian, which it has whatever \
                      the target is; of several the one that is furthest off",
        });
    }

    pub(super) fn look_at_the_shape(&self, found: &mut Findings) -> Result<()> {
        // Draws along a chain are alike, and the test is for independent ones: what little two have in common
        // shifts the sum over all pairs, by more of its noise the more directions there are.
        let count = self.theta.rows();
        let most =
            if self.is_interacting { self.state.rows().min(MOST_PARTICLES) } else { MOST_TESTED };
        let alike = if self.collects { 1.0 + 0.25 * self.dim().sqrt() } else { 1.0 };
        let kept = count.min(most).min((self.effective / alike) as usize).max(2);
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

    pub(super) fn look_at_the_rank(&self, found: &mut Findings) {
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
}

/// What the sampler itself says.
pub(super) fn look_at_the_stop_rule(rule: &StopRule, found: &mut Findings) {
    found.note(Fault::Unsettled, !rule.is_settled());
    found.note(Fault::HeavyTails, rule.has_heavy_tails());
    let mut note = |name, value, expected: String, meaning| {
        found.evidence.push(Evidence {
            name,
            value,
            expected,
            passed: Some(rule.is_settled()),
            meaning,
        });
    };
    note(
        "R̂ over particles",
        rule.rhat,
        "below 1.1".to_owned(),
        "whether the particles agree, as chains, on means, spreads and squares; the worst",
    );
    note(
        "effective draws",
        rule.effective,
        "200 or more".to_owned(),
        "how many independent draws they are worth: of coordinates, their distances from the middle, and \
         their squares; the least",
    );
    note(
        "drift of a mean",
        rule.drift,
        "below 5".to_owned(),
        "between the halves of the draws, in standard errors; the largest",
    );
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
pub(super) fn short(x: f64) -> String {
    if x.abs() >= 1e6 {
        return format!("{x:.2e}");
    }
    let digits = if x == 0.0 { 2.0 } else { (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) };
    format!("{x:.0$}", digits as usize)
}
