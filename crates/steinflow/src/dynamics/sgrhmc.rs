//! SGRHMC: Hamiltonian dynamics whose friction and rotation follow a metric.
//!
//! ```text
//! A = [0 0; 0 G⁻¹(θ)],  C = [0 −G^{-1/2}; G^{-1/2} 0],  r ~ N(0, σ²I)
//! f: θ′ = G^{-1/2} r/σ²,  r′ = G^{-1/2}∇log π − G⁻¹r/σ² + ∇·G^{-1/2}
//! ```
//!
//! [Ma et al. 2015](https://arxiv.org/abs/1506.04696).

use super::metric::{EnergyMetric, square_root};
use super::{Dynamics, Metric, Point, R, Structure, THETA};
use crate::Real;
use crate::method::Parameter::{MetricOffset, MetricScale, MetricSign, Sigma};
use crate::method::{About, Catalogued, Parameters};

/// Stochastic-gradient Riemannian Hamiltonian Monte Carlo.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgrhmc<G> {
    /// G⁻¹(θ).
    pub metric: G,
    /// σ², the variance of the momentum.
    pub variance: f64,
}

impl<T: Real, G: Metric<T>> Dynamics<T> for Sgrhmc<G> {
    fn structure(&self, dim: usize) -> Structure {
        let shape = self.metric.shape();
        Structure::new(dim).auxiliary("r", 0.0, self.variance).diffusion(R, shape.block(0)).curl(
            R,
            THETA,
            shape.block(shape.values(dim)),
        )
    }

    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        let shape = self.metric.shape();
        let (inverse, root) = coefficients.split_at_mut(shape.values(at.dim));
        self.metric.evaluate(at, inverse, &mut []);
        square_root(shape, at.dim, inverse, &[], root, &mut []);
    }

    fn curl_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        let shape = self.metric.shape();
        let zeros = |n| vec![T::zero(); n];
        let (mut inverse, mut root) = (zeros(shape.values(at.dim)), zeros(shape.values(at.dim)));
        let (mut slope, mut root_slope) =
            (zeros(shape.derivatives(at.dim)), zeros(shape.derivatives(at.dim)));
        self.metric.evaluate(at, &mut inverse, &mut slope);
        square_root(shape, at.dim, &inverse, &slope, &mut root, &mut root_slope);
        shape.divergence(&root_slope, &mut out[R * at.dim..]);
    }

    fn device_source(&self) -> Option<String> {
        let metric = self.metric.device_source()?;
        Some(format!(
            "{metric}
            __device__ void locals(const real *z, real log_density, real score, real *c, real *of_a, real *of_c) {{
                real slope;
                c[0] = metric(z[{THETA}], log_density, score, &slope);
                c[1] = sqrt(c[0]);
                of_c[{R}] = slope / (2 * c[1]);
            }}"
        ))
    }
}

impl Catalogued for Sgrhmc<EnergyMetric> {
    const ABOUT: About = About {
        name: "sgrhmc",
        drift: "θ' = G^-½ r/σ², r' = G^-½∇log π − G⁻¹r/σ² + ∇·G^-½",
        reference: "Ma, Chen & Fox 2015",
        derandomised: None,
        parameters: &[MetricScale, MetricOffset, MetricSign, Sigma],
    };

    fn with(parameters: &Parameters) -> Self {
        Self { metric: parameters.metric.clone(), variance: parameters.sigma.powi(2) }
    }
}
