//! What is known about a target beyond its density: names, a start, and exact answers to compare
//! with.

use std::fmt;
use std::sync::Arc;

use steinflow::random::{Purpose, fill_standard_normal, stream};
use steinflow::run::{Standing, WarmMoments};
use steinflow::{LogDensity, MatRef, Matrix, Real};

use crate::regression::Fitted;

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
    /// One name for every parameter as it is shown: for every coordinate of θ, unless [`Describe::units`] say
    /// otherwise.
    fn parameter_names(&self) -> Vec<String>;

    /// One name for every coordinate of θ as it is sampled.
    fn coordinate_names(&self) -> Vec<String> {
        self.parameter_names()
    }

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

    /// How θ is shown to users, where that is not as it is: in the units of a table, and positive where a
    /// parameter is.
    fn units(&self) -> Option<Units> {
        None
    }

    /// The moments of the parameters as they are shown.
    fn shown_moments(&self) -> Option<Moments> {
        let exact = self.exact_moments()?;
        match self.units() {
            Some(units) => units.moments(&exact),
            None => Some(exact),
        }
    }

    /// What predicts new rows, together with parameters as they are shown.
    fn fitted(&self) -> Option<Fitted> {
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

/// As what a verdict compares draws with.
impl From<Moments> for WarmMoments {
    fn from(exact: Moments) -> Self {
        Self {
            draws: usize::MAX,
            sd: (0..exact.mean.len()).map(|j| exact.covariance.row(j)[j].sqrt()).collect(),
            mean: exact.mean,
            standing: Standing::Settled,
        }
    }
}

type Map = dyn Fn(&[f64], &mut [f64]) + Send + Sync;

/// A one-to-one map from θ, as samplers move it, to parameters as users speak of them. There may be more of these
/// than coordinates: the last of some shares follows from the others.
#[derive(Clone)]
pub struct Units {
    is_affine: bool,
    dim: usize,
    shown: usize,
    show: Arc<Map>,
    hide: Arc<Map>,
}

impl Units {
    /// The map of `dim` coordinates and its inverse, both in place.
    pub fn new(
        dim: usize,
        is_affine: bool,
        show: impl Fn(&mut [f64]) + Send + Sync + 'static,
        hide: impl Fn(&mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        fn copying(map: impl Fn(&mut [f64]) + Send + Sync + 'static) -> Arc<Map> {
            Arc::new(move |from, to| {
                to.copy_from_slice(from);
                map(to);
            })
        }
        Self { is_affine, dim, shown: dim, show: copying(show), hide: copying(hide) }
    }

    /// The map from `dim` coordinates to `shown` parameters, and its inverse.
    pub fn between(
        dim: usize,
        shown: usize,
        show: impl Fn(&[f64], &mut [f64]) + Send + Sync + 'static,
        hide: impl Fn(&[f64], &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        Self { is_affine: false, dim, shown, show: Arc::new(show), hide: Arc::new(hide) }
    }

    /// Rows that begin with θ, with θ as users see it.
    pub fn show<T: Real>(&self, theta: &Matrix<T>) -> Matrix<T> {
        mapped(theta, self.dim, self.shown, &*self.show)
    }

    /// The way back.
    pub fn hide<T: Real>(&self, shown: &Matrix<T>) -> Matrix<T> {
        mapped(shown, self.shown, self.dim, &*self.hide)
    }

    /// The moments of what is shown, where they follow from those of θ.
    pub fn moments(&self, moments: &Moments) -> Option<Moments> {
        if !self.is_affine {
            return None;
        }
        let dim = moments.mean.len();
        let shown = |theta: Vec<f64>| {
            let mut shown = vec![0.0; dim];
            (self.show)(&theta, &mut shown);
            shown
        };
        let origin = shown(vec![0.0; dim]);
        // Column by column; a sparse one stays sparse.
        let columns: Vec<Vec<(usize, f64)>> = (0..dim)
            .map(|j| {
                let mut unit = vec![0.0; dim];
                unit[j] = 1.0;
                let column = shown(unit).into_iter().zip(&origin).map(|(x, o)| x - o);
                column.enumerate().filter(|(_, slope)| *slope != 0.0).collect()
            })
            .collect();
        let mut half: Matrix<f64> = Matrix::zeros(dim, dim);
        let mut covariance: Matrix<f64> = Matrix::zeros(dim, dim);
        for (j, column) in columns.iter().enumerate() {
            for &(i, slope) in column {
                for k in 0..dim {
                    half.row_mut(i)[k] += slope * moments.covariance.row(j)[k];
                }
            }
        }
        for (j, column) in columns.iter().enumerate() {
            for &(i, slope) in column {
                for k in 0..dim {
                    covariance.row_mut(k)[i] += slope * half.row(k)[j];
                }
            }
        }
        Some(Moments { mean: shown(moments.mean.clone()), covariance })
    }
}

impl fmt::Debug for Units {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Units").field("is_affine", &self.is_affine).finish_non_exhaustive()
    }
}

/// Rows whose first `before` numbers are replaced by `after` others.
fn mapped<T: Real>(rows: &Matrix<T>, before: usize, after: usize, map: &Map) -> Matrix<T> {
    let mut out = Matrix::zeros(rows.rows(), rows.cols() - before + after);
    let (mut own, mut image) = (vec![0.0; before], vec![0.0; after]);
    for i in 0..rows.rows() {
        let (first, rest) = rows.row(i).split_at(before);
        for (to, from) in own.iter_mut().zip(first) {
            *to = from.as_f64();
        }
        map(&own, &mut image);
        let (to, others) = out.row_mut(i).split_at_mut(after);
        for (to, &from) in to.iter_mut().zip(&image) {
            *to = T::of(from);
        }
        others.copy_from_slice(rest);
    }
    out
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
