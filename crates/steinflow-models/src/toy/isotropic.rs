//! The standard normal N(0, I): log π(θ) = −|θ|²/2, at a cost of O(d) a particle.

use steinflow::{Matrix, Real};

use super::{OneParticle, plane_names, sample_rows, standard_normal};
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "standard-normal",
    title: "standard normal",
    formula: "N(0, I), in the plane unless dim says otherwise",
    reference: "textbook",
    options: &["dim"],
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(Isotropic::new(spec.dim.unwrap_or(2))?))
}

/// N(0, I) in any dimension: where a method's own bias is plain to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isotropic {
    dim: usize,
}

impl Isotropic {
    /// In `dim` dimensions, at least one.
    pub fn new(dim: usize) -> Result<Self> {
        if dim == 0 {
            let remedy = "a density needs at least one coordinate";
            return Err(steinflow::Error::setting("dim", dim, remedy).into());
        }
        Ok(Self { dim })
    }
}

impl OneParticle for Isotropic {
    fn coordinates(&self) -> usize {
        self.dim
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let mut square = T::zero();
        for (score, &x) in score.iter_mut().zip(theta) {
            *score = -x;
            square += x * x;
        }
        -square / T::of(2.0)
    }

    fn device_code(&self) -> String {
        "real square = 0;
         for (int c = LANE; c < DIMENSION; c += LANES) score[c] = -theta[c], square += theta[c] * theta[c];
         return -total(square) / 2;"
            .to_owned()
    }
}

impl Describe for Isotropic {
    fn parameter_names(&self) -> Vec<String> {
        match self.dim {
            2 => plane_names(),
            dim => (0..dim).map(|i| format!("theta_{i}")).collect(),
        }
    }

    fn start(&self) -> Start {
        Start::around_zero(self.dim, 1.0)
    }

    fn exact_moments(&self) -> Option<Moments> {
        Some(Moments::uncorrelated(vec![0.0; self.dim], &vec![1.0; self.dim]))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, self.dim, seed, |generator, point| {
            for x in point {
                *x = standard_normal(generator);
            }
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        (self.dim == 2).then_some([[-4.0, 4.0]; 2])
    }
}
