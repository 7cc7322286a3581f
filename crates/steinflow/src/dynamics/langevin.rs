//! Langevin dynamics (LD, SGLD): A = I, C = 0; f = ∇log π. De-randomised it is SVGD.
//!
//! [Welling and Teh 2011](https://www.stats.ox.ac.uk/~teh/research/compstats/WelTeh2011a.pdf);
//! [Liu and Wang 2016](https://arxiv.org/abs/1608.04471).

use super::{Block, Dynamics, Structure, THETA};
use crate::Real;
use crate::method::{About, Catalogued, Parameters};

/// A = I, or a constant positive semidefinite preconditioner.
#[derive(Clone, Debug, PartialEq)]
pub struct Langevin {
    diffusion: Block,
}

impl Langevin {
    /// A = I.
    pub fn new() -> Self {
        Self { diffusion: Block::Scalar(1.0) }
    }

    /// A = a constant scalar, diagonal or full block.
    pub fn preconditioned(diffusion: Block) -> Self {
        Self { diffusion }
    }
}

impl Default for Langevin {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Real> Dynamics<T> for Langevin {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim).diffusion(THETA, self.diffusion.clone())
    }
}

impl Catalogued for Langevin {
    const ABOUT: About = About {
        name: "ld",
        drift: "f = ∇log π",
        reference: "Welling & Teh 2011",
        derandomised: Some(("svgd", "Liu & Wang 2016")),
        parameters: &[],
    };

    fn with(_parameters: &Parameters) -> Self {
        Self::new()
    }
}
