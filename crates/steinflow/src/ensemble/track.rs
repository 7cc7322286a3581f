//! Where particles have been during a block of moves.

use super::cloud::Cloud;
use super::weed::log_mass;
use crate::arrays::{Arrays, FOREIGN};
use crate::coordinates::Coordinates;
use crate::quantiles::median;
use crate::{Matrix, Result};

/// Rows are moves × particles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Track {
    moves: usize,
    theta: Vec<f64>,
    score: Vec<f64>,
    /// Of u, in the coordinates of the time.
    log_density: Vec<f64>,
    /// The share of hard failures in every move.
    pub(super) hard: Vec<f64>,
}

impl Track {
    pub(super) fn moves(&self) -> usize {
        self.moves
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn push(&mut self, cloud: &Cloud, hard: f64) {
        self.moves += 1;
        self.theta.extend(cloud.theta.as_slice());
        self.score.extend(cloud.score.as_slice());
        self.log_density.extend(&cloud.white_log_density);
        self.hard.push(hard);
    }

    /// Forgets the first moves.
    pub(super) fn drop_first(&mut self, moves: usize) {
        if self.moves > 0 {
            let (particles, width) = (self.log_density.len(), self.theta.len());
            let part = |length: usize| length / self.moves * moves;
            self.theta.drain(..part(width));
            self.score.drain(..part(width));
            self.log_density.drain(..part(particles));
            self.hard.drain(..moves);
            self.moves -= moves;
        }
    }

    pub(super) fn theta(&self, dim: usize) -> Matrix<f64> {
        rows(&self.theta, dim)
    }

    pub(super) fn score(&self, dim: usize) -> Matrix<f64> {
        rows(&self.score, dim)
    }

    /// Log densities since a move.
    pub(super) fn log_density_since(&self, first: usize) -> &[f64] {
        &self.log_density[self.log_density.len() / self.moves * first..]
    }

    /// How much the median log density rose from the first to the last third of the moves.
    pub(super) fn rise(&self) -> f64 {
        let part = self.log_density.len() / self.moves.max(1) * (self.moves / 3);
        if part == 0 {
            return 0.0;
        }
        let last = self.log_density.len() - part;
        median(self.log_density[last..].to_vec()) - median(self.log_density[..part].to_vec())
    }

    /// How much mass each particle's region holds.
    pub(super) fn masses(&self, coordinates: &Coordinates, particles: usize) -> Vec<f64> {
        let dim = coordinates.dim();
        let white = coordinates.from_theta(self.theta(dim).as_ref());
        let moves = self.moves as f64;
        let size = particles * dim;
        let (mut means, mut variances) = (vec![0.0; size], vec![0.0; size]);
        for draw in white.as_slice().chunks_exact(size) {
            means.iter_mut().zip(draw).for_each(|(mean, x)| *mean += x / moves);
        }
        for draw in white.as_slice().chunks_exact(size) {
            for ((variance, mean), x) in variances.iter_mut().zip(&means).zip(draw) {
                *variance += (x - mean).powi(2) / moves;
            }
        }
        let mass = |i: usize| {
            let values = self.log_density.iter().skip(i).step_by(particles);
            log_mass(values.sum::<f64>() / moves, &variances[i * dim..][..dim])
        };
        (0..particles).map(mass).collect()
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put("track.theta", &*self.theta);
        into.put("track.score", &*self.score);
        into.put("track.log_density", &*self.log_density);
        into.put("track.hard", &*self.hard);
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        let hard = from.get("track.hard")?.to_vec();
        let moves = hard.len();
        if moves > from.get("track.theta")?.len() {
            return Err(FOREIGN);
        }
        Ok(Self {
            moves,
            theta: from.get_exactly("track.theta", moves * count * dim)?,
            score: from.get_exactly("track.score", moves * count * dim)?,
            log_density: from.get_exactly("track.log_density", moves * count)?,
            hard,
        })
    }
}

fn rows(values: &[f64], dim: usize) -> Matrix<f64> {
    Matrix::from_vec(values.to_vec(), values.len() / dim, dim).expect("whole rows were pushed")
}
