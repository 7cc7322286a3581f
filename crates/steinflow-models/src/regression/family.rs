//! What a regression says about a target, given its linear predictors: the likelihood p(y | η, ψ), with
//! parameters ψ of its own under their prior.

use std::fmt::Debug;

use rand_chacha::ChaCha8Rng;
use steinflow::{Matrix, Real};

use crate::Result;

/// A likelihood with linear predictors.
///
/// A row has one predictor η or several; those of many rows stand predictor after predictor.
pub trait Family: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Predictors of a row.
    fn predictors(&self) -> usize {
        1
    }

    /// The names of the predictors, where there are several.
    fn line_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The names of ψ as a user sees it.
    fn extra_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Replaces η of some rows by ∂ℓ/∂η, adds ∂Σℓ/∂ψ to `slopes`, and returns Σℓ.
    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64;

    /// Whether [`Family::of_targets`] has anything to say. Then rows come in the order of their targets.
    fn looks_at_targets(&self) -> bool {
        false
    }

    /// The part of Σℓ that has no η in it, which is not in [`Family::log_likelihood`], from the targets in ascending
    /// order and how many rows have each; adds its ∂/∂ψ to `slopes`.
    fn of_targets(&self, counted: &[(f64, f64)], extras: &[f64], slopes: &mut [f64]) -> f64 {
        let _ = (counted, extras, slopes);
        0.0
    }

    /// The likelihood of a row as CUDA C++, `real likelihood(real eta, real y, real *slope)`, where there is one
    /// predictor and no ψ.
    fn device_code(&self) -> Option<String> {
        None
    }

    /// Adds ∂log p(ψ)/∂ψ to `slopes` and returns log p(ψ).
    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let _ = (extras, slopes);
        0.0
    }

    /// Where ψ begins.
    fn start(&self) -> Vec<f64> {
        vec![0.0; self.extra_names().len()]
    }

    /// From ψ as it is sampled to what a user sees; what features of mean 0 take from η is `shift`.
    fn show(&self, extras: &mut [f64], shift: f64) {
        let _ = (extras, shift);
    }

    /// The way back.
    fn hide(&self, extras: &mut [f64], shift: f64) {
        let _ = (extras, shift);
    }

    /// The mean and standard deviation by which the target is standardised: (0, 1) where it is not.
    fn units(&self) -> (f64, f64) {
        (0.0, 1.0)
    }

    /// The same for predictors in the target's own units.
    #[must_use]
    fn in_own_units(&self) -> Self {
        self.clone()
    }

    /// Predictors that are no lines, for every draw of the parameters and every row of features, both as a user sees
    /// them; `without_the_row`, for rows of the fit, each by all others.
    fn conditionals(
        &self,
        parameters: &Matrix<f64>,
        rows: &[Vec<f64>],
        without_the_row: bool,
    ) -> Option<Result<Vec<Vec<[f64; 2]>>>> {
        let _ = (parameters, rows, without_the_row);
        None
    }

    /// How many draws of the parameters predict at most, where each takes long.
    fn most_draws(&self) -> Option<usize> {
        None
    }

    /// E y and its variance, in the target's own units, given the predictors of a row.
    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64);

    /// One draw of y, in the target's own units.
    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64;

    /// A target as it is, or, where only a bound of it is known, a draw of what is beyond.
    fn complete(&self, eta: &[f64], extras: &[f64], y: f64, random: &mut ChaCha8Rng) -> f64 {
        let _ = (eta, extras, random);
        y
    }

    /// log p(y) of a target in its own units.
    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64;

    /// The probability of every class, for a target of classes.
    fn probabilities(&self, eta: &[f64], extras: &[f64]) -> Option<Vec<f64>> {
        let _ = (eta, extras);
        None
    }
}

/// The density of the logarithm x of a number under Exponential(1): x − eˣ, and its derivative.
pub(super) fn log_exponential(x: f64) -> (f64, f64) {
    (x - x.exp(), 1.0 - x.exp())
}

/// ψ(x) = Γ′(x)/Γ(x), for x > 0: upwards by its recurrence to where its series is exact to the last digits.
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = square
        * (1.0 / 12.0
            - square
                * (1.0 / 120.0
                    - square * (1.0 / 252.0 - square * (1.0 / 240.0 - square * (1.0 / 132.0)))));
    sum + x.ln() - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use steinflow::random::{Purpose, stream};

    use super::super::{
        Bernoulli, Mixture, Multinomial, NegativeBinomial, Normal, Ordinal, Poisson, StudentT,
        Weibull,
    };
    use super::{Family, digamma};

    #[test]
    fn digamma_is_the_derivative_of_the_logarithm_of_gamma() {
        // −γ, and ψ(½) = −γ − 2 log 2.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-13);
        assert!((digamma(0.5) + 1.963_510_026_021_423_5).abs() < 1e-13);
        for x in [0.01, 0.7, 3.0, 9.9, 10.1, 250.0] {
            let step = 1e-5 * x;
            let slope = (libm::lgamma(x + step) - libm::lgamma(x - step)) / (2.0 * step);
            assert!((digamma(x) - slope).abs() < 1e-6 * slope.abs().max(1.0), "{x}");
        }
    }

    const DRAWS: u32 = 20_000;

    /// The density sums to 1 over `values`, its moments are those that the family states, and draws have
    /// its mean.
    fn is_sound(family: &impl Family, eta: &[f64], extras: &[f64], values: &[f64], width: f64) {
        let density = |y: f64| family.log_density(eta, extras, y).exp() * width;
        let moment = |power: i32| values.iter().map(|&y| density(y) * y.powi(power)).sum::<f64>();
        assert!((moment(0) - 1.0).abs() < 1e-6, "{family:?}: {}", moment(0));
        let (mean, variance) = family.moments(eta, extras);
        assert!((moment(1) - mean).abs() < 1e-4 * mean.abs().max(1.0), "{family:?}: {mean}");
        let found = moment(2) - moment(1).powi(2);
        assert!((found / variance - 1.0).abs() < 1e-3, "{family:?}: {found} and {variance}");
        let mut random = stream(1, Purpose::Prediction, 0, 0);
        let sum: f64 = (0..DRAWS).map(|_| family.draw(eta, extras, &mut random)).sum();
        let error = (variance / f64::from(DRAWS)).sqrt();
        assert!((sum / f64::from(DRAWS) - mean).abs() < 4.0 * error, "{family:?}: {sum}");
    }

    #[test]
    fn densities_moments_and_draws_belong_together() {
        let line: Vec<f64> = (-40_000..40_000).map(|i| f64::from(i) * 0.01).collect();
        let counts: Vec<f64> = (0..2000).map(f64::from).collect();
        let classes = |count: usize| (0..count).map(|k| format!("c{k}")).collect::<Vec<_>>();
        let numbers = [0.0, 1.0, 2.0];
        let units = (3.0, 2.0);
        is_sound(&Normal { known: None, units }, &[0.4], &[-0.3], &line, 0.01);
        is_sound(&Normal { known: Some(0.7), units }, &[0.4], &[], &line, 0.01);
        is_sound(&StudentT { units }, &[0.4], &[-0.3, 2.2], &line, 0.01);
        let extras = [-0.2, 0.4, -0.7, 0.1, -1.2, 0.3, -0.5];
        is_sound(&Mixture { components: 3, units }, &[0.4], &extras, &line, 0.01);
        is_sound(&Poisson, &[1.3], &[], &counts, 1.0);
        is_sound(&NegativeBinomial, &[1.3], &[-0.5], &counts, 1.0);
        // Near 0 the density is a root, which a coarser sum would not have to six digits.
        let times: Vec<f64> = (0..800_000).map(|i| (f64::from(i) + 0.5) * 1e-4).collect();
        is_sound(&Weibull, &[0.4], &[-0.3], &times, 1e-4);
        let family = Bernoulli { classes: ["no".into(), "yes".into()] };
        is_sound(&family, &[-0.8], &[], &numbers[..2], 1.0);
        is_sound(&Multinomial { classes: classes(3) }, &[0.5, -1.0], &[], &numbers, 1.0);
        is_sound(&Ordinal { classes: classes(3) }, &[0.5], &[-0.2, 0.4], &numbers, 1.0);
    }
}
