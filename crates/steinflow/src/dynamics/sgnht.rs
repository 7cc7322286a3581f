//! SGNHT: a thermostat ξ per coordinate learns the friction that balances gradient noise.
//!
//! ```text
//! A = A·I on r,  C = SGHMC's, plus diag(r)/(μσ²) at (r,ξ) and −diag(r)/(μσ²) at (ξ,r)
//! r ~ N(0, σ²I),  ξ ~ N(A·1, I/μ)
//! f: θ′ = r/σ²,  r′ = ∇log π(θ) − ξ⊙r/σ²,  ξ′ = (r⊙r/σ² − 1)/(μσ²)
//! ```
//!
//! [Ding et al. 2014](https://papers.nips.cc/paper/5592); the paper's Table of methods.

use super::{Block, Dynamics, Point, R, Structure, THETA, XI};
use crate::Real;
use crate::method::Parameter::{Friction, Mu, Sigma};
use crate::method::{About, Catalogued, Parameters};

/// Stochastic-gradient Nosé–Hoover thermostat.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgnht {
    /// A, the friction that ξ fluctuates about.
    pub friction: f64,
    /// σ², the variance of the momentum.
    pub variance: f64,
    /// μ, the precision of ξ: small μ lets the thermostat react fast.
    pub thermostat_precision: f64,
}

impl<T: Real> Dynamics<T> for Sgnht {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim)
            .auxiliary("r", 0.0, self.variance)
            .auxiliary("xi", self.friction, 1.0 / self.thermostat_precision)
            .diffusion(R, Block::Scalar(self.friction))
            .curl(R, THETA, Block::Scalar(1.0))
            .curl(R, XI, Block::DiagonalCoefficients(0))
            .split(&[&[R], &[THETA, XI]])
            .coefficients_ignore_density()
            .each_coordinate_alone()
    }

    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        let rate = T::of(1.0 / (self.thermostat_precision * self.variance));
        for (c, &r) in coefficients.iter_mut().zip(at.block(R)) {
            *c = r * rate;
        }
    }

    fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        // Row ξᵢ of C holds −rᵢ/(μσ²) in column rᵢ.
        let rate = T::of(-1.0 / (self.thermostat_precision * self.variance));
        out[XI * at.dim..].fill(rate);
    }

    fn device_source(&self) -> Option<String> {
        let rate = 1.0 / (self.thermostat_precision * self.variance);
        Some(format!(
            "__device__ void locals(const real *z, real log_density, real score, real *c, real *of_a, real *of_c) {{
                c[0] = z[{R}] * real({rate:?});
                of_c[{XI}] = -real({rate:?});
            }}"
        ))
    }
}

impl Catalogued for Sgnht {
    const ABOUT: About = About {
        name: "sgnht",
        drift: "θ' = r/σ², r' = ∇log π − ξ⊙r/σ², ξ' = (r⊙r/σ² − 1)/(μσ²)",
        reference: "Ding et al. 2014",
        derandomised: None,
        parameters: &[Friction, Sigma, Mu],
    };

    fn with(parameters: &Parameters) -> Self {
        let &Parameters { friction, sigma, mu, .. } = parameters;
        Self { friction, variance: sigma * sigma, thermostat_precision: mu }
    }
}
