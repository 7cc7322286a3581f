//! A regression whose errors come from several components: y ~ Σₖ wₖ N(η + dₖ, σₖ²) with 0 = d₁ < d₂ < …, so that
//! components cannot change places. Without features it is a mixture of normal distributions, the intercept the
//! smallest of their means.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use steinflow::{Error, Real};

use super::elementary::{CHUNK, LANES, shares as shares_of, sums_over_rows, vectorised};
use super::family::{Family, log_exponential};
use super::listed::{Listed, Observed};
use super::multinomial::draw_class;
use super::normal::standardised;
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// Components unless the user says otherwise.
pub const DEFAULT_COMPONENTS: usize = 2;

/// More are a mistake.
const MOST_COMPONENTS: usize = 50;

/// log σ is N(log ½, this²): a component cannot become a single row, whose density would have no bound.
const LOG_NOISE_SD: f64 = 0.75;

/// Weights are Dirichlet with this for each.
const CONCENTRATION: f64 = 2.0;

/// Components with ψ = (log of the gaps between their means, log σ, log w of all but the first less that of the first).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Mixture {
    /// How many.
    pub(super) components: usize,
    /// Mean and standard deviation of the target.
    pub(super) units: (f64, f64),
}

/// ψ as it is used.
struct Parts {
    shifts: Vec<f64>,
    noises: Vec<f64>,
    weights: Vec<f64>,
}

impl Mixture {
    fn parts(&self, extras: &[f64]) -> Parts {
        let (gaps, rest) = extras.split_at(self.components - 1);
        let (noises, logits) = rest.split_at(self.components);
        let mut shifts = vec![0.0];
        for (k, gap) in gaps.iter().enumerate() {
            shifts.push(shifts[k] + gap.exp());
        }
        let top = logits.iter().copied().fold(0.0, f64::max);
        let mut weights: Vec<f64> =
            std::iter::once(&0.0).chain(logits).map(|x| (x - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= total;
        }
        Parts { shifts, noises: noises.iter().map(|x| x.exp()).collect(), weights }
    }
}

impl Parts {
    /// Leaves in `shares`, component after component, how much of the density of every row is from each, and returns
    /// the sum of its logarithms.
    fn shares<T: Real>(&self, residuals: &[T], shares: &mut [[T; LANES]]) -> f64 {
        let blocks = residuals.len().div_ceil(LANES);
        for (k, terms) in shares.chunks_exact_mut(blocks).enumerate() {
            let (noise, weight) = (self.noises[k], self.weights[k]);
            let (shift, rate) = (T::of(self.shifts[k]), T::of(1.0 / noise));
            let (log, half) = (T::of((weight / noise).ln()), T::of(0.5));
            vectorised(
                #[inline(always)]
                || {
                    for (term, &residual) in terms.as_flattened_mut().iter_mut().zip(residuals) {
                        let z = (residual - shift) * rate;
                        *term = log - half * z * z;
                    }
                },
            );
        }
        shares_of(shares, residuals.len())
    }

    /// log(wₖ/σₖ) − ((r − dₖ)/σₖ)²/2 of every component, and the logarithm of the sum of their exponentials.
    fn terms(&self, residual: f64, terms: &mut Vec<f64>) -> f64 {
        terms.clear();
        for ((shift, noise), weight) in self.shifts.iter().zip(&self.noises).zip(&self.weights) {
            let z = (residual - shift) / noise;
            terms.push((weight / noise).ln() - 0.5 * z * z);
        }
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return top;
        }
        top + terms.iter().map(|x| (x - top).exp()).sum::<f64>().ln()
    }
}

impl Listed for Mixture {
    const NAME: &'static str = "mixture-regression";
    const TITLE: &'static str =
        "mixture of normal distributions, in the order of their means, with features or without";
    const FORMULA: &'static str = "y ~ Σₖ wₖ N(Xβ + dₖ, σₖ²), 0 = d₁ < d₂ < …, β ~ N(0, s²) for standardised features \
        and target, s = prior-sd, gaps ~ Exponential(1), log σ ~ N(log ½, 0.75²), w ~ Dirichlet(2, …, 2)";
    const OPTIONS: &'static [&'static str] = with_options!("components", "groups", "slopes");
    const NEEDS_FEATURES: bool = false;

    fn observe(design: Design, spec: &ModelSpec) -> Result<Observed<Self>> {
        let components = spec.components.unwrap_or(DEFAULT_COMPONENTS);
        if !(2..=MOST_COMPONENTS).contains(&components) {
            let remedy = format!("give 2 to {MOST_COMPONENTS}; one is linear-regression");
            return Err(Error::setting("components", components, remedy).into());
        }
        let scaling = design.target_scaling()?;
        let target = standardised(&design, scaling);
        let family = Self { components, units: (scaling.mean, scaling.sd) };
        Ok(Observed { family, design, target, base: 0.0 })
    }
}

impl Family for Mixture {
    fn extra_names(&self) -> Vec<String> {
        let (all, others) = (1..=self.components, 2..=self.components);
        let shifts = others.clone().map(|k| format!("shift[{k}]"));
        let noises = all.map(|k| format!("noise[{k}]"));
        shifts.chain(noises).chain(others.map(|k| format!("weight[{k}]"))).collect()
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        extras: &[f64],
        slopes: &mut [f64],
    ) -> f64 {
        let (count, parts) = (self.components, self.parts(extras));
        let (mut terms, mut sum) = (vec![[T::zero(); LANES]; count * CHUNK / LANES], 0.0);
        let mut of_shifts = vec![0.0; count];
        for (eta, y) in eta.chunks_mut(CHUNK).zip(y.chunks(CHUNK)) {
            let blocks = y.len().div_ceil(LANES);
            let terms = &mut terms[..count * blocks];
            let residuals = &mut [T::zero(); CHUNK][..y.len()];
            vectorised(
                #[inline(always)]
                || {
                    for ((residual, eta), &y) in residuals.iter_mut().zip(&mut *eta).zip(y) {
                        *residual = y - *eta;
                        *eta = T::zero();
                    }
                },
            );
            sum += parts.shares(residuals, terms);
            for (k, shares) in terms.chunks_exact_mut(blocks).enumerate() {
                let (shift, rate) = (T::of(parts.shifts[k]), T::of(1.0 / parts.noises[k]));
                let [pull, of_noise, share] = sums_over_rows(
                    eta,
                    residuals,
                    &mut shares.as_flattened_mut()[..y.len()],
                    #[inline(always)]
                    |eta, residual, share| {
                        let z = (residual - shift) * rate;
                        let weighted = *share * z;
                        let pull = weighted * rate;
                        *eta += pull;
                        [pull, weighted * z - *share, *share]
                    },
                );
                of_shifts[k] += pull;
                slopes[count - 1 + k] += of_noise;
                if k > 0 {
                    slopes[2 * count - 2 + k] += share - parts.weights[k] * y.len() as f64;
                }
            }
        }
        // A gap moves all components after it.
        let mut after = 0.0;
        for k in (1..count).rev() {
            after += of_shifts[k];
            slopes[k - 1] += after * extras[k - 1].exp();
        }
        sum
    }

    fn log_prior(&self, extras: &[f64], slopes: &mut [f64]) -> f64 {
        let (count, weights) = (self.components, self.parts(extras).weights);
        let mut value = 0.0;
        for (x, slope) in extras[..count - 1].iter().zip(&mut *slopes) {
            let (density, derivative) = log_exponential(*x);
            value += density;
            *slope += derivative;
        }
        for k in count - 1..2 * count - 1 {
            let z = (extras[k] - 0.5_f64.ln()) / LOG_NOISE_SD;
            value -= 0.5 * z * z;
            slopes[k] -= z / LOG_NOISE_SD;
        }
        // With the Jacobian of the weights, which is their product.
        for (k, weight) in weights.iter().enumerate() {
            value += CONCENTRATION * weight.ln();
            if k > 0 {
                slopes[2 * count - 2 + k] += CONCENTRATION * (1.0 - count as f64 * weight);
            }
        }
        value
    }

    /// Evenly over two standard deviations of the target on either side of the intercept's share.
    fn start(&self) -> Vec<f64> {
        let count = self.components as f64;
        let mut start = vec![(2.0 / count).ln(); self.components - 1];
        start.extend(vec![0.5_f64.ln(); self.components]);
        start.extend(vec![0.0; self.components - 1]);
        start
    }

    fn show(&self, extras: &mut [f64], _shift: f64) {
        let Parts { shifts, noises, weights } = self.parts(extras);
        let unit = self.units.1;
        let shown = shifts[1..].iter().chain(&noises).map(|x| unit * x);
        let shown: Vec<f64> = shown.chain(weights[1..].iter().copied()).collect();
        extras.copy_from_slice(&shown);
    }

    fn hide(&self, extras: &mut [f64], _shift: f64) {
        let (lengths, weights) = extras.split_at_mut(2 * self.components - 1);
        let (shifts, noises) = lengths.split_at_mut(self.components - 1);
        for k in (1..shifts.len()).rev() {
            shifts[k] -= shifts[k - 1];
        }
        for x in shifts.iter_mut().chain(noises) {
            *x = (*x / self.units.1).ln();
        }
        let first = 1.0 - weights.iter().sum::<f64>();
        for weight in weights {
            *weight = (*weight / first).ln();
        }
    }

    fn units(&self) -> (f64, f64) {
        self.units
    }

    fn in_own_units(&self) -> Self {
        Self { units: (0.0, 1.0), ..self.clone() }
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        let (Parts { shifts, noises, weights }, (mean, sd)) = (self.parts(extras), self.units);
        let first: f64 = weights.iter().zip(&shifts).map(|(w, d)| w * d).sum();
        let spread = |k: usize| weights[k] * (noises[k].powi(2) + (shifts[k] - first).powi(2));
        let variance: f64 = (0..self.components).map(spread).sum();
        (mean + sd * (eta[0] + first), sd * sd * variance)
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        let parts = self.parts(extras);
        let component = draw_class(&parts.weights, random) as usize;
        let normal: f64 = StandardNormal.sample(random);
        let own = parts.shifts[component] + parts.noises[component] * normal;
        self.units.0 + self.units.1 * (eta[0] + own)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let residual = (y - self.units.0) / self.units.1 - eta[0];
        let total = self.parts(extras).terms(residual, &mut Vec::new());
        total - 0.5 * std::f64::consts::TAU.ln() - self.units.1.ln()
    }
}
