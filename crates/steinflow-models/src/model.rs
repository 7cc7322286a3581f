//! What is known about a target beyond its density: names, a start, and exact answers to compare
//! with.

use std::fmt;
use std::sync::Arc;

use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::{LogDensity, MatRef, Matrix, Real};

/// A target that describes itself. Every density that implements [`Describe`] is one.
///
/// ```
/// use steinflow_models::{Model, toy::Funnel};
/// let model: Box<dyn Model<f32>> = Box::new(Funnel::new(3)?);
/// assert_eq!((model.dim(), model.parameter_names().len()), (3, 3));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
pub trait Model<T: Real>: LogDensity<T> + Describe {}

impl<T: Real, M: LogDensity<T> + Describe + ?Sized> Model<T> for M {}

/// The part of a [`Model`] that does not depend on the precision of the particles.
///
/// Answers that have no closed form are `None`, the default.
pub trait Describe: Send + Sync {
    /// One name for every coordinate of θ.
    fn parameter_names(&self) -> Vec<String>;

    /// Where particles begin unless the user says otherwise.
    fn start(&self) -> Start;

    /// `count` starting points, one a row, for a model whose coordinates need starts of their own;
    /// `None` where [`Describe::start`] says it all. Point `i` depends on `seed` and `i` alone.
    fn start_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let _ = (count, seed);
        None
    }

    /// The mean and covariance of the normalised density.
    fn exact_moments(&self) -> Option<Moments> {
        None
    }

    /// `count` independent exact draws, one a row. Draw `i` depends on `seed` and `i` alone, so a
    /// longer sample begins with the shorter one.
    fn exact_sample(&self, count: usize, seed: u64) -> Option<Matrix<f64>> {
        let _ = (count, seed);
        None
    }

    /// The regions (modes, mixture components) whose shares a sampler should get right.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// What was made of the model's data, a line each; nothing without data.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// For two coordinates: `[[x_min, x_max], [y_min, y_max]]` of a plot that shows the density.
    fn window(&self) -> Option<[[f64; 2]; 2]> {
        None
    }
}

/// A Gaussian start: θ₀ ~ N(mean, sd² I).
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Centre of the particles.
    pub mean: Vec<f64>,
    /// Standard deviation of every coordinate.
    pub sd: f64,
}

impl Start {
    /// `count` starting points, one a row; point `i` depends on `seed` and `i` alone.
    pub fn draw<T: Real>(&self, count: usize, seed: u64) -> Matrix<T> {
        let mut theta = Matrix::zeros(count, self.mean.len());
        for i in 0..count {
            let row = theta.row_mut(i);
            fill_standard_normal(&mut stream(seed, Purpose::Start, 0, i as u64), row);
            for (x, &mean) in row.iter_mut().zip(&self.mean) {
                *x = T::of(mean) + T::of(self.sd) * *x;
            }
        }
        theta
    }

    /// N(0, sd² I) in `dim` coordinates.
    pub(crate) fn around_zero(dim: usize, sd: f64) -> Self {
        Self { mean: vec![0.0; dim], sd }
    }
}

/// The first two moments of a density.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// E θ.
    pub mean: Vec<f64>,
    /// E (θ − Eθ)(θ − Eθ)ᵀ.
    pub covariance: Matrix<f64>,
}

impl Moments {
    /// Uncorrelated coordinates.
    pub(crate) fn uncorrelated(mean: Vec<f64>, variance: &[f64]) -> Self {
        let dim = variance.len();
        let covariance = Matrix::from_fn(dim, dim, |i, j| if i == j { variance[i] } else { 0.0 });
        Self { mean, covariance }
    }
}

type Classify = dyn Fn(&[f64]) -> usize + Send + Sync;

/// A partition of the space into named regions of known probability.
///
/// ```
/// use steinflow_models::{Describe, toy::TriCrescent};
/// let parts = TriCrescent.parts().expect("three crescents");
/// assert_eq!(parts.names()[parts.classify(&[0.0, 2.1])], "upper");
/// ```
#[derive(Clone)]
pub struct Parts {
    names: Vec<String>,
    shares: Vec<f64>,
    classify: Arc<Classify>,
}

impl Parts {
    /// Regions by name and exact share, and the function that says in which one a point lies.
    pub fn new(
        parts: impl IntoIterator<Item = (String, f64)>,
        classify: impl Fn(&[f64]) -> usize + Send + Sync + 'static,
    ) -> Self {
        let (names, shares) = parts.into_iter().unzip();
        Self { names, shares, classify: Arc::new(classify) }
    }

    /// The regions' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The regions' probabilities under the target; they sum to 1.
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The index of the region that `theta` lies in.
    pub fn classify(&self, theta: &[f64]) -> usize {
        (self.classify)(theta)
    }

    /// The fraction of the rows of `points` in every region; zeros when there are no rows.
    pub fn shares_of<T: Real>(&self, points: MatRef<'_, T>) -> Vec<f64> {
        let mut counts = vec![0usize; self.names.len()];
        let mut point = vec![0.0; points.cols()];
        for i in 0..points.rows() {
            for (to, from) in point.iter_mut().zip(points.row(i)) {
                *to = from.as_f64();
            }
            counts[self.classify(&point)] += 1;
        }
        counts.into_iter().map(|count| count as f64 / points.rows() as f64).collect()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Parts")
            .field("names", &self.names)
            .field("shares", &self.shares)
            .finish_non_exhaustive()
    }
}
