//! Neal's funnel (2003): v ~ N(0, 3²), xᵢ | v ~ N(0, eᵛ), so
//! log π(v, x) = −v²/18 − Σᵢ (xᵢ² e⁻ᵛ + v)/2.

use steinflow::{Matrix, Real};

use super::{OneParticle, sample_rows, standard_normal};
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "funnel",
    title: "Neal's funnel",
    formula: "v ~ N(0, 3²), xᵢ | v ~ N(0, eᵛ), i = 1 … dim − 1; dim is 2 by default",
    reference: "Neal (2003), Annals of Statistics 31",
    options: &["dim"],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(spec.dim.map_or_else(|| Ok(Funnel::default()), Funnel::new)?))
}

/// The standard deviation of v.
const SD_OF_V: f64 = 3.0;

/// A mouth and a neck whose widths differ by orders of magnitude: no single step size fits both.
///
/// The first coordinate is v, the log variance of all others. Every Var xᵢ = E eᵛ = e^4.5 ≈ 90 is
/// finite, but so heavy-tailed that samples of it are a poor check: look at v.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funnel {
    dim: usize,
}

impl Funnel {
    /// v and `dim − 1` coordinates that it governs.
    pub fn new(dim: usize) -> Result<Self> {
        if dim < 2 {
            return Err(steinflow::Error::setting(
                "dim",
                dim,
                "the funnel needs at least 2 coordinates, v and one that it governs",
            )
            .into());
        }
        Ok(Self { dim })
    }
}

impl OneParticle for Funnel {
    fn coordinates(&self) -> usize {
        self.dim
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let v = theta[0];
        let (two, variance_of_v) = (T::of(2.0), T::of(SD_OF_V * SD_OF_V));
        let precision = (-v).exp();
        let mut squares = T::zero();
        for (s, &x) in score[1..].iter_mut().zip(&theta[1..]) {
            *s = -x * precision;
            squares += x * x;
        }
        let governed = T::of((self.dim - 1) as f64);
        score[0] = -v / variance_of_v + (squares * precision - governed) / two;
        -v * v / (two * variance_of_v) - (squares * precision + governed * v) / two
    }

    fn device_code(&self) -> String {
        format!(
            "const real v = theta[0], variance = {:?}, precision = exp(-v), governed = DIMENSION - 1;
             real squares = 0;
             for (int c = 1 + LANE; c < DIMENSION; c += LANES)
                 score[c] = -theta[c] * precision, squares += theta[c] * theta[c];
             squares = total(squares);
             score[0] = -v / variance + (squares * precision - governed) / 2;
             return -v * v / (2 * variance) - (squares * precision + governed * v) / 2;",
            SD_OF_V * SD_OF_V
        )
    }
}

impl Default for Funnel {
    /// Two coordinates, to plot.
    fn default() -> Self {
        Self { dim: 2 }
    }
}

impl Describe for Funnel {
    fn parameter_names(&self) -> Vec<String> {
        std::iter::once("v".to_owned()).chain((1..self.dim).map(|i| format!("x_{i}"))).collect()
    }

    fn start(&self) -> Start {
        Start::around_zero(self.dim, 1.0)
    }

    fn exact_moments(&self) -> Option<Moments> {
        let variance_of_v = SD_OF_V * SD_OF_V;
        let mut variances = vec![(variance_of_v / 2.0).exp(); self.dim];
        variances[0] = variance_of_v;
        Some(Moments::uncorrelated(vec![0.0; self.dim], &variances))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, self.dim, seed, |generator, point| {
            point[0] = SD_OF_V * standard_normal(generator);
            let sd = (point[0] / 2.0).exp();
            for x in &mut point[1..] {
                *x = sd * standard_normal(generator);
            }
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        (self.dim == 2).then_some([[-9.0, 9.0], [-20.0, 20.0]])
    }
}
