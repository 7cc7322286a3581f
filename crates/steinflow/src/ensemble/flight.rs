//! Hamiltonian moves of all particles at once, in u: momenta p ~ N(0, I), L leapfrogs, and an accept step
//! that makes them exact: log uniform < Δ(log density − |p|²/2).

use rayon::prelude::*;

use super::cloud::Cloud;
use super::dice::{Event, uniform};
use crate::coordinates::Coordinates;
use crate::engine::rows_per_task;
use crate::random::fill_standard_normal;
use crate::{LogDensity, Matrix, Result};

/// A log acceptance ratio below this is a hard failure: the step is too long for where the particle went.
const HARD: f64 = -10.0;

/// Where particles fly to; nothing here outlives a move.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) proposal: Cloud,
    momentum: Matrix<f64>,
    log_uniform: Vec<f64>,
    /// −∞ where the flight met a wall.
    pub(super) log_ratio: Vec<f64>,
}

impl Flight {
    pub(super) fn new(count: usize, dim: usize) -> Self {
        Self {
            proposal: Cloud::new(count, dim),
            momentum: Matrix::zeros(count, dim),
            log_uniform: vec![0.0; count],
            log_ratio: vec![0.0; count],
        }
    }

    /// Flies for `length` leapfrogs, or until `landed(step, proposal, momentum)`; every particle has its
    /// own step size. Returns the leapfrogs taken.
    pub(super) fn launch(
        &mut self,
        from: &Cloud,
        target: &dyn LogDensity<f64>,
        coordinates: &Coordinates,
        steps: &[f64],
        length: usize,
        event: Event,
        mut landed: impl FnMut(usize, &Cloud, &Matrix<f64>) -> bool,
    ) -> Result<usize> {
        let dim = from.white.cols();
        self.momentum
            .as_mut_slice()
            .par_chunks_mut(dim)
            .zip(&mut self.log_uniform)
            .with_min_len(rows_per_task(16 * dim))
            .enumerate()
            .for_each(|(i, (momentum, log_uniform))| {
                let mut generator = event.of(i);
                *log_uniform = uniform(&mut generator).ln();
                fill_standard_normal(&mut generator, momentum);
            });
        for (i, ratio) in self.log_ratio.iter_mut().enumerate() {
            *ratio = from.white_log_density[i] - kinetic(self.momentum.row(i));
        }
        let proposal = &mut self.proposal;
        proposal.white.as_mut_slice().copy_from_slice(from.white.as_slice());
        proposal.white_score.as_mut_slice().copy_from_slice(from.white_score.as_slice());
        let mut taken = 0;
        while taken < length {
            kick(&mut self.momentum, &proposal.white_score, steps, 0.5);
            kick(&mut proposal.white, &self.momentum, steps, 1.0);
            proposal.evaluate(target, coordinates)?;
            kick(&mut self.momentum, &proposal.white_score, steps, 0.5);
            taken += 1;
            if landed(taken, proposal, &self.momentum) {
                break;
            }
        }
        for (i, ratio) in self.log_ratio.iter_mut().enumerate() {
            let after = proposal.white_log_density[i] - kinetic(self.momentum.row(i));
            *ratio = if (after - *ratio).is_finite() { after - *ratio } else { f64::NEG_INFINITY };
        }
        Ok(taken)
    }

    /// Moves the particles whose flight is accepted.
    pub(super) fn accept(&self, cloud: &mut Cloud) {
        for (i, &ratio) in self.log_ratio.iter().enumerate() {
            if self.log_uniform[i] < ratio {
                cloud.take(i, &self.proposal, i);
            }
        }
    }

    /// The acceptance probability of every particle's flight.
    pub(super) fn acceptance(&self) -> impl Iterator<Item = f64> {
        self.log_ratio.iter().map(|ratio| ratio.min(0.0).exp())
    }

    pub(super) fn mean_acceptance(&self) -> f64 {
        self.acceptance().sum::<f64>() / self.log_ratio.len() as f64
    }

    /// The share of flights that failed hard.
    pub(super) fn hard(&self) -> f64 {
        let failed = self.log_ratio.iter().filter(|&&ratio| ratio < HARD).count();
        failed as f64 / self.log_ratio.len() as f64
    }
}

/// x += factor · ε · by, with every row its own ε.
fn kick(x: &mut Matrix<f64>, by: &Matrix<f64>, steps: &[f64], factor: f64) {
    let dim = x.cols();
    let rows = x.as_mut_slice().chunks_exact_mut(dim).zip(by.as_slice().chunks_exact(dim));
    for ((x, by), step) in rows.zip(steps) {
        let length = factor * step;
        x.iter_mut().zip(by).for_each(|(x, b)| *x += length * b);
    }
}

fn kinetic(momentum: &[f64]) -> f64 {
    0.5 * momentum.iter().map(|p| p * p).sum::<f64>()
}
