//! Riemannian Langevin dynamics (SGRLD): A = G⁻¹(θ), C = 0; f = G⁻¹∇log π + ∇·G⁻¹.
//!
//! De-randomised it is Riemannian SVGD. [Girolami and Calderhead
//! 2011](https://doi.org/10.1111/j.1467-9868.2010.00765.x); [Liu and Zhu
//! 2018](https://arxiv.org/abs/1711.11216).

use super::metric::EnergyMetric;
use super::{Dynamics, Metric, Point, Structure, THETA};
use crate::Real;
use crate::method::Parameter::{MetricOffset, MetricScale, MetricSign};
use crate::method::{About, Catalogued, Parameters};

/// Langevin dynamics in a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Riemannian<G> {
    /// G⁻¹(θ).
    pub metric: G,
}

impl<T: Real, G: Metric<T>> Dynamics<T> for Riemannian<G> {
    fn structure(&self, dim: usize) -> Structure {
        Structure::new(dim).diffusion(THETA, self.metric.shape().block(0))
    }

    fn coefficients(&self, at: &Point<'_, T>, coefficients: &mut [T]) {
        self.metric.evaluate(at, coefficients, &mut []);
    }

    fn diffusion_divergence(&self, at: &Point<'_, T>, out: &mut [T]) {
        let shape = self.metric.shape();
        let mut values = vec![T::zero(); shape.values(at.dim)];
        let mut derivatives = vec![T::zero(); shape.derivatives(at.dim)];
        self.metric.evaluate(at, &mut values, &mut derivatives);
        shape.divergence(&derivatives, out);
    }

    fn device_source(&self) -> Option<String> {
        let metric = self.metric.device_source()?;
        Some(format!(
            "{metric}
            __device__ void locals(const real *z, real log_density, real score, real *c, real *of_a, real *of_c) {{
                c[0] = metric(z[{THETA}], log_density, score, &of_a[{THETA}]);
            }}"
        ))
    }
}

impl Catalogued for Riemannian<EnergyMetric> {
    const ABOUT: About = About {
        name: "sgrld",
        drift: "f = G⁻¹∇log π + ∇·G⁻¹",
        reference: "Girolami & Calderhead 2011",
        derandomised: Some(("rsvgd", "Liu & Zhu 2018")),
        parameters: &[MetricScale, MetricOffset, MetricSign],
    };

    fn with(parameters: &Parameters) -> Self {
        Self { metric: parameters.metric.clone() }
    }
}
