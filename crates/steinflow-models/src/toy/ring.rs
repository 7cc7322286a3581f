//! A ring whose squared radius is normal:
//! log π(θ) = −(|θ|² − R²)²/(8R²w²).
//!
//! Near the ring |θ|² − R² ≈ 2R(|θ| − R), so the radius is close to N(R, w²). The square of the
//! radius, not the radius, makes the density smooth at the centre and exactly sampled: r dr is half
//! of d(r²), so r² ~ N(R², (2Rw)²) cut off at 0 and the angle is uniform.

use std::f64::consts::{PI, TAU};

use rand_distr::{Distribution, StandardUniform};
use steinflow::{Matrix, Real};

use super::{OneParticle, plane_names, sample_rows, standard_normal};
use crate::checks::require_scale;
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "ring",
    title: "ring of radius 2",
    formula: "exp(−(|θ|² − R²)²/(8R²w²)), R = 2, w = 0.2",
    reference: "textbook",
    options: &[],
    single: build,
    double: build,
};

fn build<T: Real>(_: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(Ring::default()))
}

/// A closed curve of constant density: particles must spread along it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    radius: f64,
    width: f64,
}

impl Ring {
    /// A ring of the given radius R and standard deviation w of the radius.
    pub fn new(radius: f64, width: f64) -> Result<Self> {
        require_scale("radius", radius)?;
        require_scale("width", width)?;
        Ok(Self { radius, width })
    }

    /// The standard deviation 2Rw of the squared radius before it is cut off.
    fn sd_of_square(&self) -> f64 {
        2.0 * self.radius * self.width
    }
}

impl OneParticle for Ring {
    fn coordinates(&self) -> usize {
        2
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let (x, y) = (theta[0], theta[1]);
        let excess =
            (x * x + y * y - T::of(self.radius * self.radius)) / T::of(self.sd_of_square());
        let pull = T::of(-2.0 / self.sd_of_square()) * excess;
        score[0] = pull * x;
        score[1] = pull * y;
        -excess * excess / T::of(2.0)
    }

    fn device_code(&self) -> String {
        let (square, sd) = (self.radius * self.radius, self.sd_of_square());
        format!(
            "const real x = theta[0], y = theta[1], excess = (x * x + y * y - real({square:?})) / real({sd:?});
             const real pull = -2 / real({sd:?}) * excess;
             score[0] = pull * x;
             score[1] = pull * y;
             return -excess * excess / 2;"
        )
    }
}

impl Default for Ring {
    /// Radius 2, width 0.2.
    fn default() -> Self {
        Self { radius: 2.0, width: 0.2 }
    }
}

impl Describe for Ring {
    fn parameter_names(&self) -> Vec<String> {
        plane_names()
    }

    fn start(&self) -> Start {
        Start::around_zero(2, 1.0)
    }

    fn exact_moments(&self) -> Option<Moments> {
        // The mean of a normal cut off at 0, α standard deviations below its centre.
        let alpha = self.radius / (2.0 * self.width);
        let mean_of_square = self.radius * self.radius
            + self.sd_of_square() * normal_density(alpha) / normal_distribution(alpha);
        Some(Moments::uncorrelated(vec![0.0; 2], &[mean_of_square / 2.0; 2]))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, 2, seed, |generator, point| {
            // More than half of the proposals are positive, whatever the width.
            let square = loop {
                let proposal =
                    self.radius * self.radius + self.sd_of_square() * standard_normal(generator);
                if proposal > 0.0 {
                    break proposal;
                }
            };
            let turn: f64 = StandardUniform.sample(generator);
            let (sine, cosine) = (TAU * turn).sin_cos();
            point[0] = square.sqrt() * cosine;
            point[1] = square.sqrt() * sine;
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        let edge = self.radius + 4.0 * self.width;
        Some([[-edge, edge]; 2])
    }
}

fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}

/// Φ(x) = ½ + φ(x)(x + x³/3 + x⁵/(3·5) + …) for x ≥ 0 (Marsaglia 2004); all terms are positive.
fn normal_distribution(x: f64) -> f64 {
    // 1 − Φ(9) < 2e-19.
    if x > 9.0 {
        return 1.0;
    }
    let (mut term, mut sum, mut odd) = (x, x, 3.0);
    while term > f64::EPSILON * sum / 4.0 {
        term *= x * x / odd;
        sum += term;
        odd += 2.0;
    }
    0.5 + normal_density(x) * sum
}

#[cfg(test)]
mod tests {
    use super::normal_distribution;

    #[test]
    fn the_normal_distribution_matches_tables() {
        // Abramowitz and Stegun, table 26.1.
        for (x, value) in [
            (0.0, 0.5),
            (0.5, 0.691_462_461_274_013),
            (1.0, 0.841_344_746_068_543),
            (2.0, 0.977_249_868_051_821),
            (4.0, 0.999_968_328_758_167),
        ] {
            assert!((normal_distribution(x) - value).abs() < 1e-14, "Φ({x})");
        }
    }
}
