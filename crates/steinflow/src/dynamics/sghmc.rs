//! SGHMC: friction on the momentum, rotation between θ and r.
//!
//! ```text
//! A = [0 0; 0 A·I],  C = [0 −I; I 0],  r ~ N(0, σ²I)
//! f: θ′ = r/σ²,  r′ = ∇log π(θ) − A r/σ²
//! ```
//!
//! [Chen, Fox and Guestrin 2014](https://arxiv.org/abs/1402.4102).

use super::{Block, Dynamics, R, Structure, THETA};
use crate::Real;
use crate::method::Parameter::{Friction, Sigma};
use crate::method::{About, Catalogued, Parameters};

/// Stochastic-gradient Hamiltonian Monte Carlo.
#[derive(Clone, Debug, PartialEq)]
pub struct Sghmc {
    /// A, how fast momentum is forgotten.
    pub friction: f64,
    /// σ², the variance of the momentum.
    pub variance: f64,
}

impl<T: Real> Dynamics<T> for Sghmc {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim)
            .auxiliary("r", 0.0, self.variance)
            .diffusion(R, Block::Scalar(self.friction))
            .curl(R, THETA, Block::Scalar(1.0))
    }
}

impl Catalogued for Sghmc {
    const ABOUT: About = About {
        name: "sghmc",
        drift: "θ' = r/σ², r' = ∇log π − A r/σ²",
        reference: "Chen, Fox & Guestrin 2014",
        derandomised: None,
        parameters: &[Friction, Sigma],
    };

    fn with(parameters: &Parameters) -> Self {
        Self { friction: parameters.friction, variance: parameters.sigma.powi(2) }
    }
}
