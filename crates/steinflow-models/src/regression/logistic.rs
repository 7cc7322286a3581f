//! Bayesian logistic regression: P(yᵢ = 1) = 1/(1 + e^(−ηᵢ)), η = Xθ, θ ~ N(0, s² I).

use steinflow::{LogDensity, MatMut, MatRef, Minibatch, Real};

use super::predictor::Predictor;
use super::{Design, START_SD};
use crate::checks::require_scale;
use crate::data::{Table, TableError};
use crate::{Describe, Result, Start};

/// The posterior of the coefficients of a logistic regression. It has no closed form.
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticRegression<T> {
    predictor: Predictor<T>,
    design: Design,
}

impl<T: Real> LogisticRegression<T> {
    /// Predicts column `target` of `table` (the last one when `None`), which holds 0 and 1, from all
    /// others.
    pub fn new(table: &Table, target: Option<&str>, prior_sd: f64) -> Result<Self> {
        require_scale("prior-sd", prior_sd)?;
        let design = Design::new(table, target)?;
        let not_binary = |&(_, &y): &(usize, &f64)| y != 0.0 && y != 1.0;
        if let Some((row, &value)) = design.target().iter().enumerate().find(not_binary) {
            return Err(TableError::NotBinary {
                file: table.file().to_owned(),
                line: table.line(row),
                column: design.target_name().to_owned(),
                value,
            }
            .into());
        }
        let first = design.target()[0];
        if design.target().iter().all(|&y| y == first) {
            return Err(TableError::OneClass {
                file: table.file().to_owned(),
                column: design.target_name().to_owned(),
                value: first,
            }
            .into());
        }
        let predictor = Predictor::new(design.rows(), design.target(), prior_sd);
        Ok(Self { predictor, design })
    }

    /// The data as the model sees it.
    pub fn design(&self) -> &Design {
        &self.design
    }
}

/// ℓ = −log(1 + e^(−m)) and ∂ℓ/∂η = ±1/(1 + e^m), where the margin m = ±η is positive on the side of
/// the class that was seen. All of it by e^(−|m|) ≤ 1: nothing overflows or cancels.
fn log_likelihood<T: Real>(eta: T, y: T) -> (T, T) {
    let sign = if y > T::of(0.5) { T::one() } else { -T::one() };
    let margin = sign * eta;
    let decay = (-margin.abs()).exp();
    let surprise = if margin >= T::zero() { decay } else { T::one() } / (T::one() + decay);
    (margin.min(T::zero()) - decay.ln_1p(), sign * surprise)
}

impl<T: Real> LogDensity<T> for LogisticRegression<T> {
    fn dim(&self) -> usize {
        self.predictor.dim()
    }

    fn data_rows(&self) -> usize {
        self.predictor.data_rows()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        self.predictor.evaluate(theta, rows, log_density, score, log_likelihood)
    }
}

impl<T: Real> Describe for LogisticRegression<T> {
    fn parameter_names(&self) -> Vec<String> {
        self.design.parameter_names().to_vec()
    }

    fn start(&self) -> Start {
        Start::around_zero(self.predictor.dim(), START_SD)
    }
}

#[cfg(test)]
mod tests {
    use super::log_likelihood;

    #[test]
    fn the_likelihood_is_stable_at_both_ends() {
        assert_eq!(log_likelihood(1000.0_f64, 0.0), (-1000.0, -1.0));
        assert_eq!(log_likelihood(-1000.0_f64, 1.0), (-1000.0, 1.0));
        assert_eq!(log_likelihood(1000.0_f32, 1.0), (0.0, 0.0));
        // e⁻⁴⁰ would be lost beside 1 or beside 40.
        let (value, derivative) = log_likelihood(-40.0_f64, 0.0);
        assert!((value / -(-40.0_f64).exp() - 1.0).abs() < 1e-14);
        assert!((derivative / -(-40.0_f64).exp() - 1.0).abs() < 1e-14);
        let (value, derivative) = log_likelihood(40.0_f64, 1.0);
        assert!((value / -(-40.0_f64).exp() - 1.0).abs() < 1e-14);
        assert!((derivative / (-40.0_f64).exp() - 1.0).abs() < 1e-14);
        assert!(log_likelihood(f64::NAN, 1.0).0.is_nan());
    }
}
