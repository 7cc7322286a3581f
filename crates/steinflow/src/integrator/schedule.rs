//! Step sizes over the course of a phase.

use crate::{Error, Result};

/// The step size ε as a function of the step k = 0 … K − 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// ε at every step.
    Constant(f64),
    /// From the first value to the second, linearly.
    Linear(f64, f64),
    /// From the first value to the second along half a cosine.
    Cosine(f64, f64),
    /// a (b + k)^(−γ), as in [Welling and Teh
    /// 2011](https://www.stats.ox.ac.uk/~teh/research/compstats/WelTeh2011a.pdf).
    Polynomial {
        /// a.
        scale: f64,
        /// b.
        offset: f64,
        /// γ.
        power: f64,
    },
}

impl StepSize {
    /// ε at step `k` of `steps`.
    ///
    /// ```
    /// use steinflow::integrator::StepSize;
    /// assert_eq!(StepSize::Linear(1.0, 0.0).at(5, 11), 0.5);
    /// ```
    pub fn at(&self, k: u64, steps: u64) -> f64 {
        let progress = k as f64 / steps.saturating_sub(1).max(1) as f64;
        match *self {
            Self::Constant(size) => size,
            Self::Linear(from, to) => from * (1.0 - progress) + to * progress,
            Self::Cosine(from, to) => {
                to + 0.5 * (from - to) * (1.0 + (std::f64::consts::PI * progress).cos())
            }
            Self::Polynomial { scale, offset, power } => scale * (offset + k as f64).powf(-power),
        }
    }

    /// Reads a number, `linear:FROM:TO`, `cosine:FROM:TO` or `polynomial:A:B:GAMMA`.
    ///
    /// ```
    /// use steinflow::integrator::StepSize;
    /// assert_eq!(StepSize::parse("linear:1:0.1")?, StepSize::Linear(1.0, 0.1));
    /// # Ok::<(), steinflow::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split(':').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let numbers: Option<Vec<f64>> = parts.map(|part| part.parse().ok()).collect();
        let parsed = match (kind, numbers.as_deref()) {
            (number, Some([])) => number.parse().ok().map(Self::Constant),
            ("linear", Some(&[from, to])) => Some(Self::Linear(from, to)),
            ("cosine", Some(&[from, to])) => Some(Self::Cosine(from, to)),
            ("polynomial", Some(&[scale, offset, power])) => {
                Some(Self::Polynomial { scale, offset, power })
            }
            _ => None,
        };
        parsed.ok_or_else(|| {
            let remedy = "write a number, linear:FROM:TO, cosine:FROM:TO or polynomial:A:B:GAMMA";
            Error::setting("step-size", text, remedy)
        })
    }

    /// Checks that every step is positive and finite.
    pub fn validate(&self, steps: u64) -> Result<()> {
        let last = steps.saturating_sub(1);
        if let Self::Polynomial { offset, .. } = *self
            && !(offset > 0.0)
        {
            let remedy = "b in a (b + k)^(−γ) must be positive";
            return Err(Error::setting("offset of the step size", offset, remedy));
        }
        for size in [self.at(0, steps), self.at(last, steps)] {
            if !(size > 0.0) || !size.is_finite() {
                return Err(Error::setting(
                    "step size",
                    size,
                    "it must be positive and finite; 0.1 is a common start",
                ));
            }
        }
        Ok(())
    }
}
