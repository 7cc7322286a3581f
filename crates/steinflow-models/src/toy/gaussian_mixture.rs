//! A mixture of Gaussians: π(θ) ∝ Σₖ wₖ |Σₖ|^(−1/2) exp(−½(θ − μₖ)ᵀ Σₖ⁻¹ (θ − μₖ)).

use std::sync::Arc;

use rand_distr::{Distribution, StandardUniform};
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use super::gaussian::Rounded;
use super::{Gaussian, plane_names, sample_rows};
use crate::checks::require_scale;
use crate::one_particle::evaluate_each;
use crate::{Describe, Model, ModelInfo, ModelSpec, Moments, Parts, Result, Start};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: "mixture",
    title: "three Gaussians of unequal weight",
    formula: "0.5 N((−3, −1), ·) + 0.3 N((3, −2), ·) + 0.2 N((0.5, 4), ·)",
    reference: "textbook",
    options: &[],
    single: build,
    double: build,
};

fn build<T: Real>(_: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(GaussianMixture::default()))
}

/// Several Gaussians with weights. Parts are the components; a point belongs to the one that most
/// probably made it, and the shares are the weights, which is exact up to the components' overlap
/// (below 10⁻⁴ for the default).
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    dim: usize,
    components: Arc<[Component]>,
}

#[derive(Clone, Debug, PartialEq)]
struct Component {
    weight: f64,
    gaussian: Gaussian,
    /// log wₖ − ½ log |Σₖ|.
    log_height: f64,
}

impl GaussianMixture {
    /// A mixture of (weight, mean, covariance); the weights are divided by their sum.
    pub fn new(components: Vec<(f64, Vec<f64>, Matrix<f64>)>) -> Result<Self> {
        let total: f64 = components.iter().map(|(weight, ..)| weight).sum();
        let Some(dim) = components.first().map(|(_, mean, _)| mean.len()) else {
            let remedy = "a mixture needs at least 1 component";
            return Err(steinflow::Error::setting("components", 0, remedy).into());
        };
        let components = components
            .into_iter()
            .map(|(weight, mean, covariance)| {
                require_scale("weight", weight)?;
                if mean.len() != dim {
                    return Err(steinflow::Error::Shape {
                        what: "mean of a component",
                        found: format!("{} coordinates", mean.len()),
                        expected: format!("{dim}, as for the first component"),
                    }
                    .into());
                }
                let weight = weight / total;
                let gaussian = Gaussian::new(mean, covariance)?;
                let log_height = weight.ln() - gaussian.log_determinant() / 2.0;
                Ok(Component { weight, gaussian, log_height })
            })
            .collect::<Result<_>>()?;
        Ok(Self { dim, components })
    }

    fn rounded<T: Real>(&self) -> Vec<(T, Rounded<T>)> {
        self.components.iter().map(|c| (T::of(c.log_height), c.gaussian.rounded())).collect()
    }
}

impl Default for GaussianMixture {
    /// Weights ½, 0.3, 0.2 at (−3, −1), (3, −2), (0.5, 4): a round, a long and a tilted component.
    fn default() -> Self {
        let component = |weight, mean: [f64; 2], covariance: [[f64; 2]; 2]| {
            (weight, mean.to_vec(), Matrix::from_fn(2, 2, |i, j| covariance[i][j]))
        };
        Self::new(vec![
            component(0.5, [-3.0, -1.0], [[0.4, 0.0], [0.0, 0.4]]),
            component(0.3, [3.0, -2.0], [[0.8, 0.0], [0.0, 0.2]]),
            component(0.2, [0.5, 4.0], [[0.5, -0.3], [-0.3, 0.5]]),
        ])
        .expect("positive weights and positive definite covariances")
    }
}

/// log Σₖ exp(log densityₖ), and its gradient: the components' scores, weighted by how probably
/// each made θ.
fn log_density_and_score<T: Real>(
    components: &[(T, Rounded<T>)],
    theta: &[T],
    score: &mut [T],
) -> T {
    // One pass with a running maximum: neither overflow nor a buffer per component.
    let (mut largest, mut total) = (T::neg_infinity(), T::zero());
    let mut of_component = vec![T::zero(); theta.len()];
    score.fill(T::zero());
    for (log_height, gaussian) in components {
        let exponent = *log_height + gaussian.log_density_and_score(theta, &mut of_component);
        let raised = largest.max(exponent);
        let (keep, add) = ((largest - raised).exp(), (exponent - raised).exp());
        total = total * keep + add;
        for (s, &c) in score.iter_mut().zip(&of_component) {
            *s = *s * keep + add * c;
        }
        largest = raised;
    }
    for s in score {
        *s /= total;
    }
    largest + total.ln()
}

impl<T: Real> LogDensity<T> for GaussianMixture {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        _rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> steinflow::Result<()> {
        let components = self.rounded::<T>();
        evaluate_each(self.dim, theta, log_density, score, |theta, score| {
            log_density_and_score(&components, theta, score)
        })
    }
}

impl Describe for GaussianMixture {
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
        let mean: Vec<f64> = (0..self.dim)
            .map(|i| self.components.iter().map(|c| c.weight * c.gaussian.mean[i]).sum())
            .collect();
        // Variance within the components plus variance between them.
        let covariance = Matrix::from_fn(self.dim, self.dim, |i, j| {
            let of_component = |c: &Component| {
                let between = (c.gaussian.mean[i] - mean[i]) * (c.gaussian.mean[j] - mean[j]);
                c.weight * (c.gaussian.covariance.row(i)[j] + between)
            };
            self.components.iter().map(of_component).sum()
        });
        Some(Moments { mean, covariance })
    }

    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let last = self.components.last()?;
        Some(sample_rows(count, self.dim, seed, |generator, point| {
            let mut left: f64 = StandardUniform.sample(generator);
            let component = self.components.iter().find(|c| {
                left -= c.weight;
                left < 0.0
            });
            // Rounded weights may sum to a little less than 1.
            component.unwrap_or(last).gaussian.draw(generator, point);
        }))
    }

    fn parts(&self) -> Option<Parts> {
        let named =
            self.components.iter().enumerate().map(|(k, c)| (format!("component {k}"), c.weight));
        let components = self.rounded::<f64>();
        Some(Parts::new(named, move |theta| {
            let mut score = vec![0.0; theta.len()];
            let exponents: Vec<f64> = components
                .iter()
                .map(|(height, c)| height + c.log_density_and_score(theta, &mut score))
                .collect();
            (0..exponents.len())
                .max_by(|&i, &j| exponents[i].total_cmp(&exponents[j]))
                .unwrap_or_default()
        }))
    }

    fn window(&self) -> Option<[[f64; 2]; 2]> {
        let windows = self.components.iter().map(|c| c.gaussian.window());
        windows.reduce(|a, b| {
            let (a, b) = (a?, b?);
            Some([0, 1].map(|axis| [a[axis][0].min(b[axis][0]), a[axis][1].max(b[axis][1])]))
        })?
    }
}
