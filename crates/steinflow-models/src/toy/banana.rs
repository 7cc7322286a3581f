//! A bent Gaussian, after Haario, Saksman and Tamminen (1999):
//! log π(x, y) = −x²/(2σ²) − ½(y + b(x² − σ²))².

use steinflow::{Matrix, Real};

use super::{OneParticle, plane_names, sample_rows, standard_normal};
use crate::checks::require_scale;
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "banana",
    title: "bent Gaussian",
    formula: "x ~ N(0, 2²), y + ½(x² − 2²) ~ N(0, 1)",
    reference: "after Haario, Saksman and Tamminen (1999), Computational Statistics 14",
    options: &[],
    single: build,
    double: build,
};

fn build<T: Real>(_: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(Banana::default()))
}

/// x ~ N(0, σ²) and y + b(x² − σ²) ~ N(0, 1): bending keeps volumes, so the normalising constant is
/// the Gaussian's, and the mean stays at 0.
///
/// The default, σ = 2 and b = ½, fits a plot; the original paper has σ = 10 and b = 0.03 or 0.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Banana {
    sd: f64,
    bend: f64,
}

impl Banana {
    /// A banana of half length `sd` (σ) and curvature `bend` (b).
    pub fn new(sd: f64, bend: f64) -> Result<Self> {
        require_scale("sd", sd)?;
        if !bend.is_finite() {
            return Err(steinflow::Error::setting("bend", bend, "give a finite number").into());
        }
        Ok(Self { sd, bend })
    }
}

impl OneParticle for Banana {
    fn coordinates(&self) -> usize {
        2
    }

    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let (x, y) = (theta[0], theta[1]);
        let (variance, bend, two) = (T::of(self.sd * self.sd), T::of(self.bend), T::of(2.0));
        let straightened = y + bend * (x * x - variance);
        score[0] = -x / variance - two * bend * x * straightened;
        score[1] = -straightened;
        -x * x / (two * variance) - straightened * straightened / two
    }

    fn device_code(&self) -> String {
        let (variance, bend) = (self.sd * self.sd, self.bend);
        format!(
            "const real variance = {variance:?}, bend = {bend:?}, x = theta[0];
             const real straightened = theta[1] + bend * (x * x - variance);
             score[0] = -x / variance - 2 * bend * x * straightened;
             score[1] = -straightened;
             return -x * x / (2 * variance) - straightened * straightened / 2;"
        )
    }
}

impl Default for Banana {
    fn default() -> Self {
        Self { sd: 2.0, bend: 0.5 }
    }
}

impl Describe for Banana {
    fn parameter_names(&self) -> Vec<String> {
        plane_names()
    }

    fn start(&self) -> Start {
        Start::around_zero(2, 0.1)
    }

    fn exact_moments(&self) -> Option<Moments> {
        let variance = self.sd * self.sd;
        // Var x² = 2σ⁴; x and x² are uncorrelated.
        let bent = 1.0 + 2.0 * (self.bend * variance).powi(2);
        Some(Moments::uncorrelated(vec![0.0; 2], &[variance, bent]))
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        Some(sample_rows(count, 2, seed, |generator, point| {
            point[0] = self.sd * standard_normal(generator);
            let bend = self.bend * (point[0] * point[0] - self.sd * self.sd);
            point[1] = standard_normal(generator) - bend;
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        let x_max = 3.0 * self.sd;
        let (at_centre, at_ends) =
            (self.bend * self.sd * self.sd, -8.0 * self.bend * self.sd * self.sd);
        Some([[-x_max, x_max], [at_centre.min(at_ends) - 3.0, at_centre.max(at_ends) + 3.0]])
    }
}
