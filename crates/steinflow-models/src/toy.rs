//! Densities with known answers, in a few dimensions: what a sampler is tried on first.

pub(crate) mod banana;
pub(crate) mod crescent;
pub(crate) mod funnel;
pub(crate) mod gaussian;
pub(crate) mod gaussian_mixture;
pub(crate) mod isotropic;
pub(crate) mod ring;
pub(crate) mod tri_crescent;

pub use banana::Banana;
pub use crescent::Crescent;
pub use funnel::Funnel;
pub use gaussian::Gaussian;
pub use gaussian_mixture::GaussianMixture;
pub use isotropic::Isotropic;
pub use ring::Ring;
pub use tri_crescent::TriCrescent;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use steinflow::random::{Purpose, stream};
use steinflow::target::DeviceSource;
use steinflow::{LogDensity, MatMut, MatRef, Matrix, Minibatch, Real};

use crate::one_particle::evaluate_each;

/// A density that is evaluated one particle at a time.
trait OneParticle: Send + Sync {
    /// The number of coordinates of θ.
    fn coordinates(&self) -> usize;

    /// Writes ∇log π(θ) to `score` and returns log π(θ).
    fn log_density_and_score<T: Real>(&self, theta: &[T], score: &mut [T]) -> T;

    /// The same as the body of a C++ function of `theta` and `score`: see [`DeviceSource::PerParticle`].
    fn device_code(&self) -> String;
}

/// A body of C++ with the numbers that it reads as `data`.
fn device_source(body: &str, data: Vec<f64>) -> DeviceSource {
    let code = format!(
        "real log_density(const real *theta, real *score, const real *data) {{\n{body}\n}}"
    );
    DeviceSource::PerParticle { code, data }
}

// A macro, because the library's trait cannot be implemented for all of ours at once.
macro_rules! log_density_of_one_particle {
    ($($toy:ty),*) => {$(
        impl<T: Real> LogDensity<T> for $toy {
            fn dim(&self) -> usize {
                self.coordinates()
            }

            fn evaluate(
                &self,
                theta: MatRef<'_, T>,
                _rows: Option<&Minibatch>,
                log_density: &mut [T],
                score: MatMut<'_, T>,
            ) -> steinflow::Result<()> {
                evaluate_each(self.coordinates(), theta, log_density, score, |theta, score| {
                    self.log_density_and_score(theta, score)
                })
            }

            fn device_source(&self) -> Option<DeviceSource> {
                Some(device_source(&self.device_code(), Vec::new()))
            }
        }
    )*};
}
log_density_of_one_particle!(Banana, Crescent, Funnel, Isotropic, Ring, TriCrescent);

/// `count` rows, row `i` filled from its own stream.
fn sample_rows(
    count: usize,
    dim: usize,
    seed: u64,
    mut draw: impl FnMut(&mut ChaCha8Rng, &mut [f64]),
) -> Matrix<f64> {
    let mut sample = Matrix::zeros(count, dim);
    for i in 0..count {
        draw(&mut stream(seed, Purpose::Exact, 0, i as u64), sample.row_mut(i));
    }
    sample
}

fn standard_normal(generator: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(generator)
}

/// The names of the coordinates of a plane.
fn plane_names() -> Vec<String> {
    vec!["x".to_owned(), "y".to_owned()]
}
