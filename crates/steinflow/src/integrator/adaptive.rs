//! Adagrad, RMSprop and Adam on the velocity, as SVGD's users expect; for first-order flows.
//!
//! The velocity plays the part of the ascent direction: θ ← θ + ε · (scaled v).

use super::Integrator;
use crate::dynamics::Structure;
use crate::flow::Flow;
use crate::{Error, Matrix, Real, Result};

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
    averages: Averages<T>,
}

/// What past steps have left.
#[derive(Clone, Debug, Default)]
struct Averages<T> {
    steps: i32,
    mean: Vec<T>,
    square: Vec<T>,
}

impl<T: Real> Adaptive<T> {
    /// Starts with empty averages.
    pub fn new(rule: Rule) -> Self {
        Self { rule, averages: Averages::default() }
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

    fn rescale(&mut self, velocity: &mut Matrix<T>, dt: f64) {
        let size = velocity.as_slice().len();
        let Averages { steps, mean, square } = &mut self.averages;
        mean.resize(size, T::zero());
        square.resize(size, T::zero());
        *steps = steps.saturating_add(1);
        let (keep_mean, keep_square, add_square) = match self.rule {
            Rule::Adagrad => (0.0, 1.0, 1.0),
            Rule::RmsProp { decay } => (0.0, decay, 1.0 - decay),
            Rule::Adam { first, second } => (first, second, 1.0 - second),
        };
        // Adam divides its averages by what their start from zero has cost them.
        let (mean_bias, square_bias) = match self.rule {
            Rule::Adam { first, second } => (1.0 - first.powi(*steps), 1.0 - second.powi(*steps)),
            _ => (1.0, 1.0),
        };
        let [keep_mean, keep_square, add_square] = [keep_mean, keep_square, add_square].map(T::of);
        let [rate, square_scale, tiny] = [dt / mean_bias, 1.0 / square_bias, 1e-8].map(T::of);
        let averages = mean.iter_mut().zip(square);
        for (v, (mean, square)) in velocity.as_mut_slice().iter_mut().zip(averages) {
            *mean = keep_mean * *mean + (T::one() - keep_mean) * *v;
            *square = keep_square * *square + add_square * (*v * *v);
            *v = rate * *mean / ((square_scale * *square).sqrt() + tiny);
        }
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
        flow.advance_rescaled(&[crate::dynamics::THETA], &mut |velocity| {
            self.rescale(velocity, dt);
        })
    }

    fn memory(&self) -> Vec<f64> {
        let Averages { steps, mean, square } = &self.averages;
        let averages = mean.iter().chain(square).map(|x| x.as_f64());
        if *steps == 0 {
            Vec::new()
        } else {
            [f64::from(*steps)].into_iter().chain(averages).collect()
        }
    }

    fn recall(&mut self, memory: &[f64]) -> Result<()> {
        let Some((&steps, averages)) = memory.split_first() else {
            self.averages = Averages::default();
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
        self.averages = Averages { steps, mean: numbers(mean), square: numbers(square) };
        Ok(())
    }
}
