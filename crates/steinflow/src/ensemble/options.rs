//! What a user may say; everything else is learnt.

use super::Moves;
use crate::{Error, Matrix, Result};

/// The knobs of the ensemble. None needs to be turned.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// N; 64 up to 10 dimensions, else 100.
    pub particles: Option<usize>,
    /// Names the random numbers.
    pub seed: u64,
    /// Effective draws wanted of every coordinate, its distance from the middle, and its square.
    pub effective: f64,
    /// Evaluations of the target for each particle, warm-up and all, exceeded by at most a tenth.
    pub gradients: u64,
    /// How particles move while draws are made.
    pub moves: Moves,
    /// Looks for funnels and bananas, and straightens them.
    pub bends: bool,
    /// Looks for separate modes, and jumps between them.
    pub jumps: bool,
    /// Where particles start, one a row; otherwise uniform in (−2, 2), some of them wider.
    pub start: Option<Matrix<f64>>,
    /// Whether that is where the mass is already: then particles neither climb nor walk before they learn.
    pub is_warm: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            particles: None,
            seed: 0,
            effective: 2000.0,
            gradients: 3000,
            moves: Moves::default(),
            bends: true,
            jumps: true,
            start: None,
            is_warm: false,
        }
    }
}

/// Fewer cannot tell a spread.
const LEAST_PARTICLES: usize = 8;

impl Options {
    /// N unless somebody says otherwise.
    pub fn default_particles(dim: usize) -> usize {
        if dim <= 10 { 64 } else { 100 }
    }

    /// N for a target of `dim` coordinates, once all is found to fit.
    pub(super) fn check(&self, dim: usize) -> Result<usize> {
        if dim == 0 {
            return Err(Error::setting(
                "the target's dimension",
                dim,
                "there is nothing to sample",
            ));
        }
        if !(self.effective > 0.0 && self.effective.is_finite()) {
            let remedy = "ask for a positive number of effective draws, such as 2000";
            return Err(Error::setting("effective draws", self.effective, remedy));
        }
        if self.gradients == 0 {
            let remedy = "give at least 1 gradient for each particle; 3000 is the default";
            return Err(Error::setting("gradients", self.gradients, remedy));
        }
        let given = self.start.as_ref().map(Matrix::rows);
        let count = self.particles.or(given).unwrap_or_else(|| Self::default_particles(dim));
        if count < LEAST_PARTICLES {
            let remedy = format!("take at least {LEAST_PARTICLES}: they learn from each other");
            return Err(Error::setting("particles", count, remedy));
        }
        if let Some(start) = &self.start
            && (start.cols() != dim || start.rows() != count)
        {
            return Err(Error::Shape {
                what: "the start",
                found: format!("{} × {}", start.rows(), start.cols()),
                expected: format!("{count} particles × {dim} coordinates, the target's dimension"),
            });
        }
        Ok(count)
    }
}
