//! A target from a log density alone, differentiated in forward mode.

use num_dual::Dual;
pub use num_dual::DualNum;

use super::{LogDensity, Minibatch, PerParticle};
use crate::{MatMut, MatRef, Real, Result};

/// A log density written once, over any number that can carry a derivative.
///
/// ```
/// use steinflow::target::{Autodiff, DualNum, GenericLogDensity};
///
/// /// Neal's funnel in two dimensions.
/// struct Funnel;
/// impl GenericLogDensity for Funnel {
///     fn dim(&self) -> usize {
///         2
///     }
///     fn log_density<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D]) -> D {
///         let (v, x) = (theta[0], theta[1]);
///         -v * v / 18.0 - x * x * (-v).exp() / 2.0 - v / 2.0
///     }
/// }
/// let target = Autodiff::new(Funnel);
/// # let _: &dyn steinflow::LogDensity<f64> = &target;
/// ```
pub trait GenericLogDensity: Send + Sync {
    /// The number of coordinates of θ.
    fn dim(&self) -> usize;

    /// log π(θ), up to a constant.
    fn log_density<D: DualNum<Primitive = f64> + Copy>(&self, theta: &[D]) -> D;
}

/// Differentiates a [`GenericLogDensity`] with one forward pass per coordinate: exact, and right
/// for small d. Derivatives are taken in `f64` whatever the precision of the particles.
#[derive(Clone, Debug)]
pub struct Autodiff<G> {
    density: G,
}

impl<G: GenericLogDensity> Autodiff<G> {
    /// Wraps a density.
    pub fn new(density: G) -> Self {
        Self { density }
    }

    fn differentiate<T: Real>(&self, theta: &[T], score: &mut [T]) -> T {
        let mut dual: Vec<_> = theta.iter().map(|x| Dual::<f64>::from_re(x.as_f64())).collect();
        let mut value = f64::NAN;
        for j in 0..dual.len() {
            dual[j].eps = 1.0;
            let result = self.density.log_density(&dual);
            dual[j].eps = 0.0;
            value = result.re;
            score[j] = T::of(result.eps);
        }
        T::of(value)
    }
}

impl<T: Real, G: GenericLogDensity> LogDensity<T> for Autodiff<G> {
    fn dim(&self) -> usize {
        self.density.dim()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        score: MatMut<'_, T>,
    ) -> Result<()> {
        PerParticle::new(self.density.dim(), |x: &[T], s: &mut [T]| self.differentiate(x, s))
            .evaluate(theta, rows, log_density, score)
    }
}
