//! The metric of the paper's toy experiment: G⁻¹ = D √|U + c| · I, wide where π is small.

use super::{Metric, Shape};
use crate::Real;
use crate::dynamics::Point;

/// Which sign U takes. The paper prints +log π; Ma et al. (2015), whom it follows, take the energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EnergySign {
    /// U = −log π.
    #[default]
    Energy,
    /// U = +log π, as printed.
    LogDensity,
}

/// G⁻¹(θ) = D √|U(θ) + c| · I, with U = ∓log π of the target as given, unnormalised.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyMetric {
    /// D.
    pub scale: f64,
    /// c.
    pub offset: f64,
    /// The sign of U.
    pub sign: EnergySign,
}

impl Default for EnergyMetric {
    /// D = 1.5, c = 0.5.
    fn default() -> Self {
        Self { scale: 1.5, offset: 0.5, sign: EnergySign::Energy }
    }
}

impl<T: Real> Metric<T> for EnergyMetric {
    fn shape(&self) -> Shape {
        Shape::Scalar
    }

    fn evaluate(&self, at: &Point<'_, T>, values: &mut [T], derivatives: &mut [T]) {
        let sign = T::of(match self.sign {
            EnergySign::Energy => -1.0,
            EnergySign::LogDensity => 1.0,
        });
        let shifted = sign * at.log_density + T::of(self.offset);
        // √ has no slope at 0: on that contour g is held at its floor, and flat.
        let floor = T::of(1e-6);
        let distance = shifted.abs().max(floor);
        let g = T::of(self.scale) * distance.sqrt();
        values[0] = g;
        let slope = if shifted.abs() < floor {
            T::zero()
        } else {
            sign * shifted.signum() * g / (distance + distance)
        };
        for (out, &score) in derivatives.iter_mut().zip(at.score) {
            *out = slope * score;
        }
    }

    fn device_source(&self) -> Option<String> {
        let (scale, offset) = (self.scale, self.offset);
        let sign = match self.sign {
            EnergySign::Energy => -1,
            EnergySign::LogDensity => 1,
        };
        Some(format!(
            "__device__ real metric(real theta, real log_density, real score, real *slope) {{
                const real shifted = {sign} * log_density + real({offset:?}), size = fabs(shifted);
                const real floor = real(1e-6), distance = size < floor ? floor : size;
                const real g = real({scale:?}) * sqrt(distance);
                *slope = size < floor ? real(0) : ({sign} * copysign(g, shifted)) / (2 * distance) * score;
                return g;
            }}"
        ))
    }
}
