//! MCMC dynamics (A, C): A positive semidefinite, C skew, and the auxiliary variables they need.
//!
//! Every continuous Itô process that leaves π invariant has the form
//!
//! ```text
//! dz = f(z) dt + √(2A) dW,   f = (A + C) ∇log π(z) + ∇·(A + C)
//! ```
//!
//! ([Ma et al. 2015](https://arxiv.org/abs/1506.04696); the paper's eqs. for f and Σ). A dynamics
//! states the *structure* of M = A + C once, and per particle only the few numbers that vary.

mod evaluated;
mod langevin;
pub mod metric;
mod operator;
mod riemannian;
mod sghmc;
mod sgnht;
mod sgrhmc;
mod structure;
mod third_order;

pub use evaluated::Evaluated;
pub(crate) use evaluated::Repulsion;
pub use langevin::Langevin;
pub use metric::Metric;
pub use operator::{Operator, Terms};
pub use riemannian::Riemannian;
pub use sghmc::Sghmc;
pub use sgnht::Sgnht;
pub use sgrhmc::Sgrhmc;
pub use structure::{Auxiliary, Block, Structure};
pub use third_order::ThirdOrder;

use crate::Real;

/// The block of the state that holds the parameters θ.
pub const THETA: usize = 0;
/// The first auxiliary block, by custom the momentum r.
pub const R: usize = 1;
/// The second auxiliary block: the thermostat ξ of SGNHT, the u of third-order dynamics.
pub const XI: usize = 2;

/// A pair (A, C): what a methods person writes.
///
/// This is SGHMC, whole:
///
/// ```
/// use steinflow::dynamics::{Block, Dynamics, R, Structure, THETA};
/// use steinflow::Real;
///
/// struct Sghmc {
///     friction: f64,
///     variance: f64,
/// }
/// impl<T: Real> Dynamics<T> for Sghmc {
///     fn structure(&self, dim: usize) -> Structure {
///         Structure::new(dim)
///             .auxiliary("r", 0.0, self.variance)
///             .diffusion(R, Block::Scalar(self.friction))
///             .curl(R, THETA, Block::Scalar(1.0))
///     }
/// }
/// ```
///
/// Check a new one with [`crate::testing`].
pub trait Dynamics<T: Real = f64>: Send + Sync {
    /// The blocks of A and C for a target in `dim` dimensions.
    fn structure(&self, dim: usize) -> Structure;

    /// Writes the numbers that the structure's `…Coefficient` blocks refer to, at one particle.
    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        let _ = (at, coefficients);
    }

    /// Writes ∇·A by rows, `out[i] = Σⱼ ∂Aᵢⱼ/∂zⱼ`, at one particle. `out` has one entry per
    /// coordinate of z = (θ, r, …) and holds zeros on entry; a constant A leaves it so.
    fn diffusion_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        let _ = (at, out);
    }

    /// Writes ∇·C by rows, as [`Dynamics::diffusion_divergence`] does for A.
    fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        let _ = (at, out);
    }

    /// What varies as text, where it is known at a coordinate from that coordinate alone: then a device needs no
    /// help from the host. A function of CUDA C++,
    ///
    /// ```text
    /// __device__ void locals(const real *z, real log_density, real score, real *c, real *of_a, real *of_c)
    /// ```
    ///
    /// is given the coordinate in every block, log π(θ) of the particle and its score at the coordinate. It writes a
    /// coefficient for every block of A and C that varies, in the order of their numbers, and of ∇·A and ∇·C the
    /// rows of the coordinate in every block, which hold zeros on entry.
    fn device_source(&self) -> Option<String> {
        None
    }
}

/// One particle, as a dynamics sees it.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a, T> {
    /// z = (θ, r, …), each block `dim` long.
    pub state: &'a [T],
    /// The number of coordinates of θ.
    pub dim: usize,
    /// log π(θ), up to the target's constant.
    pub log_density: T,
    /// ∇log π(θ).
    pub score: &'a [T],
}

impl<'a, T> Point<'a, T> {
    /// A block of the state: `at.block(THETA)`, `at.block(R)`.
    pub fn block(&self, block: usize) -> &'a [T] {
        &self.state[block * self.dim..(block + 1) * self.dim]
    }
}

macro_rules! delegate_to_pointee {
    ($($pointer:ty),*) => {$(
        impl<T: Real, D: Dynamics<T> + ?Sized> Dynamics<T> for $pointer {
            fn structure(&self, dim: usize) -> Structure {
                (**self).structure(dim)
            }
            fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
                (**self).coefficients(at, coefficients);
            }
            fn diffusion_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
                (**self).diffusion_divergence(at, out);
            }
            fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
                (**self).curl_divergence(at, out);
            }
            fn device_source(&self) -> Option<String> {
                (**self).device_source()
            }
        }
    )*};
}
delegate_to_pointee!(&D, Box<D>);
