//! The Stein identity: E_π[k(z, z′) f(z′) + M(z′) ∇₂k(z, z′)] = 0 over z′ ~ π, for every z.
//!
//! It holds because f = (1/π)∇·(πM); drop a divergence term and it breaks. Checked by Monte Carlo:
//! exact draws of θ, and auxiliary variables from their Gaussians.

use super::LawBroken;
use crate::dynamics::{Dynamics, Terms};
use crate::field::Diffusion;
use crate::{LogDensity, Matrix, System};

/// The mean of the Stein operator at one point z, with its standard error.
#[derive(Clone, Debug)]
pub struct SteinIdentity {
    /// The coordinate of z whose mean is furthest from zero, in standard errors.
    pub coordinate: usize,
    /// Its mean.
    pub mean: f64,
    /// The standard error of that mean.
    pub standard_error: f64,
}

impl SteinIdentity {
    /// |mean| in standard errors.
    pub fn deviation(&self) -> f64 {
        self.mean.abs() / self.standard_error
    }
}

/// Checks the identity at the point `z` with draws `theta` from π, within `standard_errors`.
///
/// The kernel is the squared exponential of the joint state with the given bandwidth.
pub fn check_stein_identity(
    target: &impl LogDensity<f64>,
    dynamics: &impl Dynamics<f64>,
    theta: &Matrix<f64>,
    z: &[f64],
    bandwidth: f64,
    standard_errors: f64,
) -> Result<SteinIdentity, LawBroken> {
    // The auxiliary variables of a new system are exact draws already.
    let mut system = System::new(target, dynamics, Diffusion, theta, 1)?;
    let structure = system.structure().clone();
    let at = system.evaluated()?;
    let drift = at.drift();
    let size = at.state.cols();
    let (mut sum, mut squares) = (vec![0.0; size], vec![0.0; size]);
    let count = at.state.rows();
    let mut gradient = vec![0.0; size];
    for j in 0..count {
        let other = at.state.row(j);
        let square: f64 = z.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
        let k = (-square / bandwidth).exp();
        for (g, (a, b)) in gradient.iter_mut().zip(z.iter().zip(other)) {
            *g = 2.0 / bandwidth * (a - b) * k;
        }
        let mut term: Vec<f64> = drift.row(j).iter().map(|f| k * f).collect();
        let blocks: Vec<usize> = (0..structure.blocks()).collect();
        at.operator.apply(at.coefficients.row(j), &gradient, &blocks, Terms::All, 1.0, &mut term);
        for (i, x) in term.into_iter().enumerate() {
            sum[i] += x;
            squares[i] += x * x;
        }
    }
    let worst = (0..size)
        .map(|i| {
            let mean = sum[i] / count as f64;
            let variance = squares[i] / count as f64 - mean * mean;
            let standard_error = (variance / count as f64).sqrt().max(f64::MIN_POSITIVE);
            SteinIdentity { coordinate: i, mean, standard_error }
        })
        .max_by(|a, b| a.deviation().total_cmp(&b.deviation()))
        .expect("a state has coordinates");
    if worst.deviation() <= standard_errors {
        Ok(worst)
    } else {
        Err(LawBroken::Disagreement {
            law: "Stein identity E[T k] = 0",
            place: format!("coordinate {}", worst.coordinate),
            found: worst.mean,
            expected: 0.0,
            tolerance: standard_errors * worst.standard_error,
        })
    }
}
