//! A density that is written as a formula: log π of the coordinates that it names, each of which may have
//! limits. Within limits a coordinate is carried on the whole line, x = a + eᶻ above a, x = b − eᶻ below b,
//! x = a + (b − a)/(1 + e⁻ᶻ) between, with the Jacobian |dx/dz| as a factor of the density.

mod expression;
mod limits;

use std::sync::Arc;

use steinflow::{LogDensity, MatMut, MatRef, Minibatch, Real};

use crate::one_particle::evaluate_in_f64;
use crate::{Describe, Model, ModelInfo, ModelSpec, Result, Start, Units};
use expression::Expression;
use limits::Limits;

/// The name of the model of a formula.
pub const DENSITY: &str = "density";

/// The formula that is taken where none is given: a banana.
pub const EXAMPLE: &str = "-(x^2)/2 - 2*(y - x^2)^2";

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: DENSITY,
    title: "your own formula",
    formula: "exp(f(x, y, …)) for f of --density, such as -(x^2)/2 - 2*(y - x^2)^2, within --support",
    reference: "yours",
    options: &["density", "support"],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    let support = spec.support.as_deref().unwrap_or_default();
    Ok(Box::new(Density::new(spec.density.as_deref().unwrap_or(EXAMPLE), support)?))
}

/// A log density given as text.
///
/// ```
/// use steinflow_models::{Describe, Density};
/// let gamma = Density::new("2*log(x) - x", &["x > 0".to_owned()])?;
/// assert_eq!(gamma.parameter_names(), ["x"]);
/// let error = Density::new("x^2 +* y", &[]).unwrap_err();
/// assert!(error.to_string().contains("x^2 +* y\n       ^"));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Density {
    formula: Arc<Expression>,
    limits: Arc<[Limits]>,
}

impl Density {
    /// `formula` has numbers, names of coordinates, `+ - * / ^`, brackets and functions; `support` limits
    /// such as `x > 0` or `0 < p < 1`.
    pub fn new(formula: &str, support: &[String]) -> Result<Self> {
        let formula = Expression::parse(formula)?;
        let limits = Limits::of(formula.names(), support)?;
        Ok(Self { formula: Arc::new(formula), limits: limits.into() })
    }

    /// log π(z) with the Jacobian, and its score.
    fn log_density_and_score(&self, z: &[f64], score: &mut [f64]) -> f64 {
        let x: Vec<f64> = z.iter().zip(&*self.limits).map(|(&z, limits)| limits.show(z)).collect();
        let mut value = self.formula.evaluate(&x, score);
        for ((&z, limits), score) in z.iter().zip(&*self.limits).zip(score) {
            let (stretch, log_stretch, slope) = limits.jacobian(z);
            value += log_stretch;
            *score = *score * stretch + slope;
        }
        value
    }
}

impl<T: Real> LogDensity<T> for Density {
    fn dim(&self) -> usize {
        self.limits.len()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        evaluate_in_f64(self.limits.len(), theta, log_density, score, |theta, score| {
            self.log_density_and_score(theta, score)
        })
    }
}

impl Describe for Density {
    fn parameter_names(&self) -> Vec<String> {
        self.formula.names().to_vec()
    }

    fn start(&self) -> Start {
        Start::around_zero(self.limits.len(), 1.0)
    }

    fn units(&self) -> Option<Units> {
        if self.limits.iter().all(Limits::are_none) {
            return None;
        }
        let (to, from) = (Arc::clone(&self.limits), Arc::clone(&self.limits));
        let show = move |z: &mut [f64]| {
            z.iter_mut().zip(&*to).for_each(|(z, limits)| *z = limits.show(*z));
        };
        let hide = move |x: &mut [f64]| {
            x.iter_mut().zip(&*from).for_each(|(x, limits)| *x = limits.hide(*x));
        };
        Some(Units::new(self.limits.len(), false, show, hide))
    }
}
