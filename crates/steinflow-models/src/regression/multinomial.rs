//! Multinomial regression: P(y = k) = e^(ηₖ)/Σⱼ e^(ηⱼ), with a predictor for every class but the first,
//! whose η is 0.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardUniform};
use serde::{Deserialize, Serialize};
use steinflow::Real;

use super::elementary::{CHUNK, LANES, shares, vectorised};
use super::family::Family;
use super::listed::{Listed, Observed};
use super::{Design, with_options};
use crate::{ModelSpec, Result};

/// Classes without an order.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Multinomial {
    /// By name; predictors compare with the first.
    pub(super) classes: Vec<String>,
}

impl Listed for Multinomial {
    const NAME: &'static str = "multinomial-regression";
    const TITLE: &'static str = "Bayesian regression of classes";
    const FORMULA: &'static str = "P(y = k) = exp(Xβₖ)/Σⱼ exp(Xβⱼ), β = 0 for the first class, others ~ N(0, s²) for \
              standardised features, s = prior-sd";
    const OPTIONS: &'static [&'static str] = with_options!();

    fn observe(design: Design, _spec: &ModelSpec) -> Result<Observed<Self>> {
        let (classes, target) = design.classes()?;
        Ok(Observed { family: Self { classes }, design, target, base: 0.0 })
    }
}

impl Family for Multinomial {
    fn predictors(&self) -> usize {
        self.classes.len() - 1
    }

    fn line_names(&self) -> Vec<String> {
        self.classes[1..].to_vec()
    }

    fn log_likelihood<T: Real>(
        &self,
        eta: &mut [T],
        y: &[T],
        _extras: &[f64],
        _slopes: &mut [f64],
    ) -> f64 {
        let (rows, mut found) = (y.len(), 0.0);
        let mut terms = vec![[T::zero(); LANES]; self.classes.len() * CHUNK / LANES];
        for first in (0..rows).step_by(CHUNK) {
            let own = first..rows.min(first + CHUNK);
            let y = &y[own.clone()];
            let blocks = y.len().div_ceil(LANES);
            let terms = &mut terms[..self.classes.len() * blocks];
            // Less that of the class that was seen, so that no large numbers are left that cancel.
            let seen = &mut [T::zero(); CHUNK][..y.len()];
            for (k, eta) in eta.chunks_exact(rows).enumerate() {
                let (class, eta) = (T::of((k + 1) as f64), &eta[own.clone()]);
                vectorised(
                    #[inline(always)]
                    || {
                        for ((seen, &eta), &y) in seen.iter_mut().zip(eta).zip(y) {
                            *seen += if y == class { eta } else { T::zero() };
                        }
                    },
                );
            }
            let (base, others) = terms.split_at_mut(blocks);
            vectorised(
                #[inline(always)]
                || {
                    let base = base.as_flattened_mut().iter_mut();
                    base.zip(&*seen).for_each(|(term, &seen)| *term = -seen);
                    for (line, eta) in others.chunks_exact_mut(blocks).zip(eta.chunks_exact(rows)) {
                        let terms = line.as_flattened_mut().iter_mut();
                        for ((term, &eta), &seen) in terms.zip(&eta[own.clone()]).zip(&*seen) {
                            *term = eta - seen;
                        }
                    }
                },
            );
            found -= shares(terms, y.len());
            let shares = terms.chunks_exact(blocks).skip(1);
            for (k, (eta, shares)) in eta.chunks_exact_mut(rows).zip(shares).enumerate() {
                let class = T::of((k + 1) as f64);
                let rows = eta[own.clone()].iter_mut().zip(shares.as_flattened()).zip(y);
                vectorised(
                    #[inline(always)]
                    || {
                        for ((eta, &share), &y) in rows {
                            let seen = if y == class { T::one() } else { T::zero() };
                            *eta = seen - share;
                        }
                    },
                );
            }
        }
        found
    }

    fn moments(&self, eta: &[f64], extras: &[f64]) -> (f64, f64) {
        moments_of(&self.probabilities(eta, extras).unwrap_or_default())
    }

    fn draw(&self, eta: &[f64], extras: &[f64], random: &mut ChaCha8Rng) -> f64 {
        draw_class(&self.probabilities(eta, extras).unwrap_or_default(), random)
    }

    fn log_density(&self, eta: &[f64], extras: &[f64], y: f64) -> f64 {
        let probabilities = self.probabilities(eta, extras).unwrap_or_default();
        probabilities.get(y as usize).map_or(f64::NEG_INFINITY, |p| p.ln())
    }

    fn probabilities(&self, eta: &[f64], _extras: &[f64]) -> Option<Vec<f64>> {
        let top = eta.iter().copied().fold(0.0, f64::max);
        let weights: Vec<f64> = [0.0].iter().chain(eta).map(|eta| (eta - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        Some(weights.into_iter().map(|weight| weight / total).collect())
    }
}

/// Mean and variance of the number of a class.
pub(super) fn moments_of(probabilities: &[f64]) -> (f64, f64) {
    let moment = |power: i32| -> f64 {
        probabilities.iter().zip(0..).map(|(p, k)| p * f64::from(k).powi(power)).sum()
    };
    (moment(1), moment(2) - moment(1).powi(2))
}

/// The number of a class that is drawn.
pub(crate) fn draw_class(probabilities: &[f64], random: &mut ChaCha8Rng) -> f64 {
    let level: f64 = StandardUniform.sample(random);
    let mut sum = 0.0;
    let below = probabilities.iter().take_while(|&&p| {
        sum += p;
        sum <= level
    });
    below.count().min(probabilities.len().saturating_sub(1)) as f64
}
