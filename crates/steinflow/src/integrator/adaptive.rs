//! Adagrad, RMSprop and Adam on the velocity, as SVGD's users expect; for first-order flows.
//!
//! The velocity plays the part of the ascent direction: θ ← θ + ε · (scaled v).

use std::fmt;
use std::sync::Arc;

use super::Integrator;
use crate::dynamics::Structure;
use crate::flow::Flow;
use crate::{Error, Real, Result};

/// How past velocities scale the next step. ε₀ = 1e-8 keeps divisions finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// v/√Σv² ([Duchi et al. 2011](https://jmlr.org/papers/v12/duchi11a.html)).
    Adagrad,
    /// v/√(moving average of v²), as Liu and Wang's SVGD code does with decay 0.9.
    RmsProp {
        /// Decay of the average.
        decay: f64,
    },
    /// [Kingma and Ba 2015](https://arxiv.org/abs/1412.6980).
    Adam {
        /// Decay of the mean velocity.
        first: f64,
        /// Decay of the mean squared velocity.
        second: f64,
    },
}

/// A rule with the averages it carries from step to step.
#[derive(Clone, Debug)]
pub struct Adaptive<T> {
    rule: Rule,
    steps: i32,
    averages: Averages<T>,
}

/// A rule in numbers, for one step: v becomes rate · m/(√(square_scale · q) + 1e-8) with the averages
/// m ← keep_mean · m + (1 − keep_mean) v and q ← keep_square · q + add_square · v².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rescaling {
    /// What is kept of m.
    pub keep_mean: f64,
    /// What is kept of q.
    pub keep_square: f64,
    /// What v² adds to q.
    pub add_square: f64,
    /// The length of the step, over what m has lost by its start from 0.
    pub rate: f64,
    /// One over what q has lost by it.
    pub square_scale: f64,
}

impl Rescaling {
    /// Keeps divisions finite.
    pub const TINY: f64 = 1e-8;

    /// Turns velocities into displacements.
    pub(crate) fn apply<T: Real>(&self, averages: &mut Averages<T>, velocity: &mut [T]) {
        let (mean, square) = averages.here();
        mean.resize(velocity.len(), T::zero());
        square.resize(velocity.len(), T::zero());
        let Self { keep_mean, keep_square, add_square, rate, square_scale } = *self;
        let [keep_mean, keep_square, add_square] = [keep_mean, keep_square, add_square].map(T::of);
        let [rate, square_scale, tiny] = [rate, square_scale, Self::TINY].map(T::of);
        for (v, (mean, square)) in velocity.iter_mut().zip(mean.iter_mut().zip(square)) {
            *mean = keep_mean * *mean + (T::one() - keep_mean) * *v;
            *square = keep_square * *square + add_square * (*v * *v);
            *v = rate * *mean / ((square_scale * *square).sqrt() + tiny);
        }
    }
}

/// m and q of every coordinate that moves: where the particles are.
#[derive(Clone, Debug)]
pub enum Averages<T> {
    /// On this machine's processor; empty before the first step.
    Here {
        /// m.
        mean: Vec<T>,
        /// q.
        square: Vec<T>,
    },
    /// With a flow that keeps its particles elsewhere.
    There(Arc<dyn Away<T>>),
}

/// Averages that are elsewhere.
pub trait Away<T>: fmt::Debug + Send + Sync {
    /// m and q.
    fn fetch(&self) -> Result<[Vec<T>; 2]>;
}

impl<T> Default for Averages<T> {
    fn default() -> Self {
        Self::Here { mean: Vec::new(), square: Vec::new() }
    }
}

impl<T: Real> Averages<T> {
    /// Brings them here, if they are not.
    fn here(&mut self) -> (&mut Vec<T>, &mut Vec<T>) {
        if let Self::There(away) = self {
            let [mean, square] = away.fetch().unwrap_or_default();
            *self = Self::Here { mean, square };
        }
        match self {
            Self::Here { mean, square } => (mean, square),
            Self::There(_) => unreachable!("they were brought here"),
        }
    }
}

impl<T: Real> Adaptive<T> {
    /// Starts with empty averages.
    pub fn new(rule: Rule) -> Self {
        Self { rule, steps: 0, averages: Averages::default() }
    }

    /// Adagrad.
    pub fn adagrad() -> Self {
        Self::new(Rule::Adagrad)
    }

    /// `RMSprop` with decay 0.9.
    pub fn rmsprop() -> Self {
        Self::new(Rule::RmsProp { decay: 0.9 })
    }

    /// Adam with decays 0.9 and 0.999.
    pub fn adam() -> Self {
        Self::new(Rule::Adam { first: 0.9, second: 0.999 })
    }

    /// The next step in numbers.
    fn next(&self, dt: f64) -> Rescaling {
        let steps = self.steps.saturating_add(1);
        let (keep_mean, keep_square, add_square) = match self.rule {
            Rule::Adagrad => (0.0, 1.0, 1.0),
            Rule::RmsProp { decay } => (0.0, decay, 1.0 - decay),
            Rule::Adam { first, second } => (first, second, 1.0 - second),
        };
        // Adam divides its averages by what their start from zero has cost them.
        let (mean_bias, square_bias) = match self.rule {
            Rule::Adam { first, second } => (1.0 - first.powi(steps), 1.0 - second.powi(steps)),
            _ => (1.0, 1.0),
        };
        let (rate, square_scale) = (dt / mean_bias, 1.0 / square_bias);
        Rescaling { keep_mean, keep_square, add_square, rate, square_scale }
    }
}

impl<T: Real> Integrator<T> for Adaptive<T> {
    fn validate(&self, structure: &Structure, random: bool) -> Result<()> {
        let decays = match self.rule {
            Rule::Adagrad => [0.0; 2],
            Rule::RmsProp { decay } => [decay; 2],
            Rule::Adam { first, second } => [first, second],
        };
        if let Some(decay) = decays.into_iter().find(|decay| !(0.0..1.0).contains(decay)) {
            return Err(Error::setting("decay", decay, "it must be at least 0 and below 1"));
        }
        if structure.blocks() > 1 || random {
            return Err(Error::setting(
                "integrator",
                match self.rule {
                    Rule::Adagrad => "adagrad",
                    Rule::RmsProp { .. } => "rmsprop",
                    Rule::Adam { .. } => "adam",
                },
                "it is for first-order deterministic flows such as svgd; use euler or splitting",
            ));
        }
        Ok(())
    }

    fn step(&mut self, flow: &mut dyn Flow<T>, dt: f64) -> Result<()> {
        let rescaling = self.next(dt);
        if flow.advance_rescaled(&[crate::dynamics::THETA], &rescaling, &mut self.averages)? {
            self.steps = self.steps.saturating_add(1);
        }
        Ok(())
    }

    fn memory(&self) -> Vec<f64> {
        if self.steps == 0 {
            return Vec::new();
        }
        let mut averages = self.averages.clone();
        // What cannot be fetched is missed with the particles, too.
        let (mean, square) = averages.here();
        let averages = mean.iter().chain(square.iter()).map(|x| x.as_f64());
        [f64::from(self.steps)].into_iter().chain(averages).collect()
    }

    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        let Some((&steps, averages)) = memory.split_first() else {
            (self.steps, self.averages) = (0, Averages::default());
            return Ok(());
        };
        let counted = (1.0..=f64::from(i32::MAX)).contains(&steps);
        if !(averages.len().is_multiple_of(2) && counted) {
            return Err(Error::ForeignState { whose: "the integrator" });
        }
        let (mean, square) = averages.split_at(averages.len() / 2);
        let numbers = |from: &[f64]| from.iter().map(|&x| T::of(x)).collect();
        #[expect(clippy::cast_possible_truncation, reason = "checked above")]
        let steps = steps as i32;
        self.steps = steps;
        self.averages = Averages::Here { mean: numbers(mean), square: numbers(square) };
        Ok(())
    }
}
