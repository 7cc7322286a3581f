//! Learnt coordinates u in which a target is near N(0, I): θ = bend(centre + L u).
//!
//! [`Linear`] takes out offsets, scales and correlations, [`Warp`] straightens funnels and bananas; both are
//! fitted from particles and their scores. [`InCoordinates`] is the target as a density of u, so that every
//! dynamics and every field runs there without knowing: with a constant L, dynamics (A, C) in u are
//! (L A Lᵀ, L C Lᵀ) in θ.
//!
//! ```
//! use steinflow::coordinates::{Coordinates, InCoordinates, Linear};
//! use steinflow::{LogDensity, Matrix, target::PerParticle};
//! // N(10⁴, 10⁻⁶).
//! let narrow = PerParticle::new(1, |theta: &[f64], score: &mut [f64]| {
//!     score[0] = -(theta[0] - 1e4) * 1e6;
//!     -0.5e6 * (theta[0] - 1e4).powi(2)
//! });
//! let coordinates = Coordinates::from(Linear::diagonal(vec![1e4], vec![1e-3]));
//! let unit = InCoordinates::new(narrow, coordinates)?;
//! let (mut log_density, mut score) = ([0.0], Matrix::zeros(1, 1));
//! let u = Matrix::from_fn(1, 1, |_, _| 2.0);
//! unit.evaluate(u.as_ref(), None, &mut log_density, score.as_mut())?;
//! assert!((log_density[0] + 2.0).abs() < 1e-5 && (score.row(0)[0] + 2.0).abs() < 1e-5);
//! # Ok::<(), steinflow::Error>(())
//! ```

mod balance;
mod bend;
mod bend_fit;
mod frame;
mod linear;
mod regression;
mod warp;
mod within;

pub use bend::Bend;
pub use linear::Linear;
pub use warp::Warp;
pub use within::InCoordinates;

use crate::arrays::Arrays;
use crate::{MatRef, Matrix, Result};

/// θ = warp(centre + L u).
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    pub(crate) warp: Warp,
    pub(crate) linear: Linear,
}

impl From<Linear> for Coordinates {
    fn from(linear: Linear) -> Self {
        Self { warp: Warp::default(), linear }
    }
}

impl Coordinates {
    /// u = θ.
    pub fn identity(dim: usize) -> Self {
        Linear::identity(dim).into()
    }

    /// Fits a warp to rows of θ and scores at them where `bends` says so, and linear coordinates to
    /// what it leaves.
    pub fn fit(theta: MatRef<'_, f64>, scores: MatRef<'_, f64>, bends: bool) -> Self {
        let warp = if bends { Warp::fit(theta, scores) } else { Warp::default() };
        let (z, scores) = straightened(&warp, theta, scores);
        Self { linear: Linear::fit(z.as_ref(), scores.as_ref()), warp }
    }

    /// The number of coordinates.
    pub fn dim(&self) -> usize {
        self.linear.dim()
    }

    /// What takes out offsets, scales and correlations.
    pub fn linear(&self) -> &Linear {
        &self.linear
    }

    /// What straightens funnels and bananas.
    pub fn warp(&self) -> &Warp {
        &self.warp
    }

    /// θ of rows of u.
    pub fn to_theta(&self, white: MatRef<'_, f64>) -> Matrix<f64> {
        let mut theta = Matrix::zeros(white.rows(), white.cols());
        self.linear.to_position(white.as_slice(), theta.as_mut_slice());
        self.warp.forward(theta.as_mut_slice(), self.dim());
        theta
    }

    /// u of rows of θ.
    pub fn from_theta(&self, theta: MatRef<'_, f64>) -> Matrix<f64> {
        let mut z = theta.as_slice().to_vec();
        self.warp.backward(&mut z, self.dim());
        let mut white = Matrix::zeros(theta.rows(), theta.cols());
        self.linear.from_position(&z, white.as_mut_slice());
        white
    }

    /// As named arrays, to be kept and given to another run.
    pub fn save(&self) -> Arrays {
        let mut arrays = Arrays::default();
        self.save_into(&mut arrays);
        arrays
    }

    /// What [`Self::save`] gave.
    pub fn restore(dim: usize, arrays: &Arrays) -> Result<Self> {
        Ok(Self {
            warp: Warp::restore("warp", dim, arrays)?,
            linear: Linear::restore("linear", dim, arrays)?,
        })
    }

    pub(crate) fn save_into(&self, arrays: &mut Arrays) {
        self.warp.save("warp", arrays);
        self.linear.save("linear", arrays);
    }
}

/// Rows of θ and scores there, as rows of z and scores of its density.
pub(crate) fn straightened(
    warp: &Warp,
    theta: MatRef<'_, f64>,
    scores: MatRef<'_, f64>,
) -> (Matrix<f64>, Matrix<f64>) {
    let (rows, dim) = (theta.rows(), theta.cols());
    let copy = |from: MatRef<'_, f64>| Matrix::from_fn(rows, dim, |i, j| from.row(i)[j]);
    let (mut z, mut scores) = (copy(theta), copy(scores));
    warp.backward(z.as_mut_slice(), dim);
    warp.pull(z.as_slice(), &mut vec![0.0; rows], scores.as_mut_slice(), dim);
    (z, scores)
}
