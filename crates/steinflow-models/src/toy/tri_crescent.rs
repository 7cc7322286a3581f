//! Three crescents stacked in y, the toy target of the paper:
//! π(x, y) ∝ ⅓ Σᵢ exp(−x⁴/10 − ½(4(y − zᵢ) − x²)²), z ∈ {−2, 0, 2}.

use rand_distr::{Distribution, Uniform};
use steinflow::{Matrix, Real};

use super::crescent::{self, MEAN_X_SQUARED};
use super::{OneParticle, plane_names, sample_rows};
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Parts, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "tri-crescent",
    title: "three crescents stacked in y",
    formula: "⅓ Σᵢ exp(−x⁴/10 − ½(4(y − zᵢ) − x²)²), z ∈ {−2, 0, 2}",
    reference: "after Ma, Chen and Fox (2015), arXiv:1506.04696",
    options: &[],
    single: build,
    double: build,
};

fn build<T: Real>(_: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(TriCrescent))
}

/// Where the ridges 4(y − zᵢ) = x² cross the y axis.
const RIDGES: [f64; 3] = [-2.0, 0.0, 2.0];

/// Three equal crescents with a barrier of 7.3 nats between neighbours; all particles start in the
/// middle one.
///
/// log π keeps the ⅓ and no other constant: metrics that use U = −log π depend on it. As printed in
/// the paper the square has no minus sign and zᵢ multiplies y, which is not integrable; this is the
/// form of Ma, Chen and Fox (2015), whom the paper follows, once for every zᵢ.
///
/// The normalising constant of the form above is ∫π = 2.0201379263864103.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriCrescent;

impl OneParticle for TriCrescent {
    fn coordinates(&self) -> usize {
        2
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let (x, y) = (theta[0], theta[1]);
        let (two, four) = (T::of(2.0), T::of(4.0));
        let x_squared = x * x;
        let heights = RIDGES.map(|z| four * (y - T::of(z)) - x_squared);
        let exponents = heights.map(|u| -u * u / two);
        // log Σ exp(eᵢ) = max + log Σ exp(eᵢ − max) neither overflows nor underflows.
        let largest = exponents.iter().copied().fold(T::neg_infinity(), T::max);
        let weights = exponents.map(|e| (e - largest).exp());
        let total: T = weights.iter().copied().sum();
        let mean_height = weights.iter().zip(heights).map(|(&w, u)| w * u).sum::<T>() / total;
        score[0] = two * x * mean_height - T::of(0.4) * x * x_squared;
        score[1] = -four * mean_height;
        largest + (total / T::of(3.0)).ln() - x_squared * x_squared / T::of(10.0)
    }

    fn device_code(&self) -> String {
        let [a, b, c] = RIDGES;
        format!(
            "const real ridges[3] = {{{a:?}, {b:?}, {c:?}}}, x = theta[0], square = x * x;
             real heights[3], exponents[3], largest = real(-1e30), total = 0, mean = 0;
             for (int k = 0; k < 3; k++) {{
                 heights[k] = 4 * (theta[1] - ridges[k]) - square;
                 exponents[k] = -heights[k] * heights[k] / 2;
                 largest = max(largest, exponents[k]);
             }}
             for (int k = 0; k < 3; k++) {{
                 const real weight = exp(exponents[k] - largest);
                 total += weight;
                 mean += weight * heights[k];
             }}
             mean /= total;
             score[0] = 2 * x * mean - real(0.4) * x * square;
             score[1] = -4 * mean;
             return largest + log(total / 3) - square * square / 10;"
        )
    }
}

impl Describe for TriCrescent {
    fn parameter_names(&self) -> Vec<String> {
        plane_names()
    }

    fn start(&self) -> Start {
        Start::around_zero(2, 0.1)
    }

    fn exact_moments(&self) -> Option<Moments> {
        // zᵢ is independent of the place within the crescent, and Var zᵢ = 8/3.
        Some(Moments::uncorrelated(
            vec![0.0, MEAN_X_SQUARED / 4.0],
            &[MEAN_X_SQUARED, 8.0 / 3.0 + crescent::VARIANCE_OF_HEIGHT],
        ))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let ridge = Uniform::new(0, RIDGES.len()).ok()?;
        Some(sample_rows(count, 2, seed, |generator, point| {
            let z = RIDGES[ridge.sample(generator)];
            crescent::draw(generator, z, point);
        }))
    }

    /// The crescent with the nearest ridge, argminᵢ |4(y − zᵢ) − x²|.
    ///
    /// The shares are exactly ⅓ although the crescents overlap: what an inner boundary lets through
    /// one way, it lets through the other way.
    fn parts(&self) -> Option<Parts> {
        let names = ["lower", "middle", "upper"];
        Some(Parts::new(names.map(|name| (name.to_owned(), 1.0 / 3.0)), |theta| {
            let distance = |z: f64| (4.0 * (theta[1] - z) - theta[0] * theta[0]).abs();
            (0..RIDGES.len())
                .min_by(|&i, &j| distance(RIDGES[i]).total_cmp(&distance(RIDGES[j])))
                .unwrap_or_default()
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        Some([[-3.5, 3.5], [-3.5, 5.5]])
    }
}
