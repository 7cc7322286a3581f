//! One crescent, after Ma, Chen and Fox (2015), arXiv:1506.04696:
//! log π(x, y) = −x⁴/10 − ½(4(y + 1.2) − x²)².

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardUniform};
use steinflow::{Matrix, Real};

use super::{OneParticle, plane_names, sample_rows, standard_normal};
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "crescent",
    title: "one crescent",
    formula: "exp(−x⁴/10 − ½(4(y + 1.2) − x²)²)",
    reference: "Ma, Chen and Fox (2015), arXiv:1506.04696",
    options: &[],
    single: build,
    double: build,
};

fn build<T: Real>(_: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(Crescent))
}

/// E x² = √10 Γ(3/4)/Γ(1/4) where x⁴/10 ~ Gamma(1/4, 1).
pub(super) const MEAN_X_SQUARED: f64 = 1.068_815_443_662_356_3;

/// Var (x² + n)/4 with n ~ N(0, 1), where E x⁴ = 10 · ¼.
pub(super) const VARIANCE_OF_HEIGHT: f64 = (2.5 - MEAN_X_SQUARED * MEAN_X_SQUARED + 1.0) / 16.0;

/// Where the ridge 4(y − z) = x² crosses the y axis.
const RIDGE: f64 = -1.2;

/// A single curved ridge, the test density of the (A, C) recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crescent;

/// Fills `point` with an exact draw around the ridge that crosses the y axis at `z`: x⁴/10 ~
/// Gamma(1/4, 1) with a random sign, 4(y − z) − x² ~ N(0, 1).
pub(super) fn draw(generator: &mut ChaCha8Rng, z: f64, point: &mut [f64]) {
    let gamma = Gamma::new(0.25, 1.0).expect("a positive shape and scale make a Gamma");
    let fourth_power: f64 = 10.0 * gamma.sample(generator);
    let positive: bool = StandardUniform.sample(generator);
    let x_squared = fourth_power.sqrt();
    point[0] = if positive { x_squared.sqrt() } else { -x_squared.sqrt() };
    point[1] = z + (x_squared + standard_normal(generator)) / 4.0;
}

impl OneParticle for Crescent {
    fn coordinates(&self) -> usize {
        2
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let (x, y) = (theta[0], theta[1]);
        let (two, four) = (T::of(2.0), T::of(4.0));
        let x_squared = x * x;
        let height = four * (y - T::of(RIDGE)) - x_squared;
        score[0] = two * x * height - T::of(0.4) * x * x_squared;
        score[1] = -four * height;
        -x_squared * x_squared / T::of(10.0) - height * height / two
    }

    fn device_code(&self) -> String {
        format!(
            "const real x = theta[0], square = x * x, height = 4 * (theta[1] - real({RIDGE:?})) - square;
             score[0] = 2 * x * height - real(0.4) * x * square;
             score[1] = -4 * height;
             return -square * square / 10 - height * height / 2;"
        )
    }
}

impl Describe for Crescent {
    fn parameter_names(&self) -> Vec<String> {
        plane_names()
    }

    fn start(&self) -> Start {
        Start::around_zero(2, 0.1)
    }

    fn exact_moments(&self) -> Option<Moments> {
        Some(Moments::uncorrelated(
            vec![0.0, RIDGE + MEAN_X_SQUARED / 4.0],
            &[MEAN_X_SQUARED, VARIANCE_OF_HEIGHT],
        ))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, 2, seed, |generator, point| draw(generator, RIDGE, point)))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        Some([[-3.5, 3.5], [-2.5, 2.5]])
    }
}
