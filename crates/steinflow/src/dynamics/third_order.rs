//! Third-order Langevin dynamics: noise reaches θ through two integrations.
//!
//! ```text
//! A = A·I on u,  C = −I at (θ,r), I at (r,θ), −γI at (r,u), γI at (u,r)
//! f: θ′ = r/σ²,  r′ = ∇log π(θ) + γu/σᵤ²,  u′ = −γr/σ² − A u/σᵤ²
//! ```
//!
//! [Mou et al. 2021](https://arxiv.org/abs/1908.10859); the paper's supplement.

use super::{Block, Dynamics, R, Structure, THETA};
use crate::Real;
use crate::method::Parameter::{Friction, Gamma, Sigma, SigmaU};
use crate::method::{About, Catalogued, Parameters};

/// The block of u.
const U: usize = 2;

/// Third-order Langevin dynamics.
#[derive(Clone, Debug, PartialEq)]
pub struct ThirdOrder {
    /// A, the friction on u.
    pub friction: f64,
    /// γ, how strongly r and u are coupled.
    pub coupling: f64,
    /// σ², the variance of r.
    pub variance: f64,
    /// σᵤ², the variance of u.
    pub variance_u: f64,
}

impl<T: Real> Dynamics<T> for ThirdOrder {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim)
            .auxiliary("r", 0.0, self.variance)
            .auxiliary("u", 0.0, self.variance_u)
            .diffusion(U, Block::Scalar(self.friction))
            .curl(R, THETA, Block::Scalar(1.0))
            .curl(U, R, Block::Scalar(self.coupling))
    }
}

impl Catalogued for ThirdOrder {
    const ABOUT: About = About {
        name: "third-order",
        drift: "θ' = r/σ², r' = ∇log π + γu/σᵤ², u' = −γr/σ² − A u/σᵤ²",
        reference: "Mou et al. 2021",
        derandomised: None,
        parameters: &[Friction, Sigma, Gamma, SigmaU],
    };

    fn with(parameters: &Parameters) -> Self {
        let &Parameters { friction, sigma, gamma, sigma_u, .. } = parameters;
        let (variance, variance_u) = (sigma * sigma, sigma_u * sigma_u);
        Self { friction, coupling: gamma, variance, variance_u }
    }
}
