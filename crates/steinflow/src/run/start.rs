//! Where the particles begin.

use super::{Checkpoint, Saved};
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::{Error, Matrix, Real, Result};

/// Where the particles begin.
pub(super) enum Start<T> {
    Normal {
        count: usize,
        mean: Vec<f64>,
        sd: f64,
    },
    At(Matrix<T>),
    /// Where another run was.
    Checkpoint(Box<Checkpoint<T>>),
}

/// What is left once the particles have been taken from it.
impl<T> Default for Start<T> {
    fn default() -> Self {
        Self::Normal { count: 0, mean: Vec::new(), sd: 0.0 }
    }
}

impl<T: Real> Start<T> {
    /// Checks the start against the target's dimension; returns the number of particles.
    pub(super) fn check(&self, dim: usize) -> Result<usize> {
        /// A handful of matrices of this size fill 20 GiB; nobody means to ask for more.
        const MOST_NUMBERS: usize = 1 << 28;
        let (count, found) = match self {
            Self::At(theta) => (theta.rows(), theta.cols()),
            Self::Normal { count, mean, .. } => (*count, mean.len()),
            Self::Checkpoint(checkpoint) => {
                let saved = &checkpoint.particles;
                (saved.state.rows(), saved.score.cols())
            }
        };
        if found != dim {
            return Err(Error::Shape {
                what: "the start",
                found: format!("{found} coordinates"),
                expected: format!("{dim}, the target's dimension"),
            });
        }
        if count == 0 {
            return Err(Error::setting("number of particles", 0, "take 2 or more"));
        }
        if count.checked_mul(dim.max(1)).is_none_or(|numbers| numbers > MOST_NUMBERS) {
            let remedy = format!("{dim} coordinates allow at most {}", MOST_NUMBERS / dim.max(1));
            return Err(Error::setting("number of particles", count, remedy));
        }
        if let Self::At(theta) = self
            && let Some(place) = theta.as_slice().iter().position(|x| !x.is_finite())
        {
            let value = theta.as_slice()[place];
            let remedy = format!("particle {} must start at finite numbers", place / dim.max(1));
            return Err(Error::setting("start", value, remedy));
        }
        if let Self::Normal { mean, sd, .. } = self {
            if !(*sd >= 0.0) || !sd.is_finite() {
                let remedy = "it must be finite, zero or more";
                return Err(Error::setting("spread of the start", sd, remedy));
            }
            if let Some(mean) = mean.iter().find(|mean| !mean.is_finite()) {
                return Err(Error::setting("mean of the start", mean, "it must be finite"));
            }
        }
        Ok(count)
    }

    /// θ of every particle, and the checkpoint that the rest comes from, if there is one.
    pub(super) fn particles(self, seed: u64) -> (Matrix<T>, Option<Box<Checkpoint<T>>>) {
        let (count, mean, sd) = match self {
            Self::At(theta) => return (theta, None),
            Self::Checkpoint(checkpoint) => {
                let Saved { state, score, .. } = &checkpoint.particles;
                let theta = Matrix::from_fn(state.rows(), score.cols(), |i, j| state.row(i)[j]);
                return (theta, Some(checkpoint));
            }
            Self::Normal { count, mean, sd } => (count, mean, sd),
        };
        let mut theta = Matrix::zeros(count, mean.len());
        for i in 0..count {
            fill_standard_normal(&mut stream(seed, Purpose::Start, 0, i as u64), theta.row_mut(i));
            for (x, &mean) in theta.row_mut(i).iter_mut().zip(&mean) {
                *x = T::of(mean) + T::of(sd) * *x;
            }
        }
        (theta, None)
    }
}
