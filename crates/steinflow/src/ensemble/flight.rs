//! Hamiltonian moves of all particles at once, in u: momenta p ← cp + √(1 − c²)·N(0, I), L leapfrogs, and an
//! accept step that makes them exact: log uniform < Δ(log density − |p|²/2), or else p ← −p.

use rayon::prelude::*;

use super::cloud::Cloud;
use super::dice::{Event, uniform};
use crate::coordinates::Coordinates;
use crate::engine::rows_per_task;
use crate::random::fill_standard_normal;
use crate::{LogDensity, Matrix, Result};

/// A log acceptance ratio below this is a hard failure: the step is too long for where the particle went.
const HARD: f64 = -10.0;

/// Leapfrogs of all particles.
pub(super) struct Route<'a> {
    /// Every particle's step size.
    pub(super) steps: &'a [f64],
    pub(super) length: usize,
    /// c; at 0, momenta are drawn afresh.
    pub(super) persistence: f64,
}

/// Where particles fly to; only `momentum` outlives a move.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// p of every particle where it is.
    pub(super) momentum: Matrix<f64>,
    pub(super) proposal: Cloud,
    /// p of every particle where it would go.
    flying: Matrix<f64>,
    log_uniform: Vec<f64>,
    /// −∞ where the flight met a wall.
    pub(super) log_ratio: Vec<f64>,
}

impl Flight {
    pub(super) fn new(count: usize, dim: usize) -> Self {
        Self {
            momentum: Matrix::zeros(count, dim),
            proposal: Cloud::new(count, dim),
            flying: Matrix::zeros(count, dim),
            log_uniform: vec![0.0; count],
            log_ratio: vec![0.0; count],
        }
    }

    /// Flies the route, or until `landed(step, proposal, momentum)`. Returns the leapfrogs taken.
    pub(super) fn launch(
        &mut self,
        from: &Cloud,
        target: &dyn LogDensity<f64>,
        coordinates: &Coordinates,
        route: &Route<'_>,
        event: Event,
        mut landed: impl FnMut(usize, &Cloud, &Matrix<f64>) -> bool,
    ) -> Result<usize> {
        let dim = from.white.cols();
        let &Route { steps, length, persistence: kept } = route;
        let fresh = (1.0 - kept * kept).sqrt();
        self.momentum
            .as_mut_slice()
            .par_chunks_mut(dim)
            .zip(self.flying.as_mut_slice().par_chunks_mut(dim))
            .zip(&mut self.log_uniform)
            .with_min_len(rows_per_task(16 * dim))
            .enumerate()
            .for_each(|(i, ((momentum, flying), log_uniform))| {
                let mut generator = event.of(i);
                *log_uniform = uniform(&mut generator).ln();
                fill_standard_normal(&mut generator, flying);
                for (p, noise) in momentum.iter_mut().zip(flying.iter()) {
                    *p = kept * *p + fresh * noise;
                }
                flying.copy_from_slice(momentum);
            });
        for (i, ratio) in self.log_ratio.iter_mut().enumerate() {
            *ratio = from.white_log_density[i] - kinetic(self.momentum.row(i));
        }
        let proposal = &mut self.proposal;
        proposal.white.as_mut_slice().copy_from_slice(from.white.as_slice());
        proposal.white_score.as_mut_slice().copy_from_slice(from.white_score.as_slice());
        let mut taken = 0;
        while taken < length {
            kick(&mut self.flying, &proposal.white_score, steps, 0.5);
            kick(&mut proposal.white, &self.flying, steps, 1.0);
            proposal.evaluate(target, coordinates)?;
            kick(&mut self.flying, &proposal.white_score, steps, 0.5);
            taken += 1;
            if landed(taken, proposal, &self.flying) {
                break;
            }
        }
        for (i, ratio) in self.log_ratio.iter_mut().enumerate() {
            let after = proposal.white_log_density[i] - kinetic(self.flying.row(i));
            *ratio = if (after - *ratio).is_finite() { after - *ratio } else { f64::NEG_INFINITY };
        }
        Ok(taken)
    }

    /// Moves the particles whose flight is accepted, and turns the others round.
    pub(super) fn accept(&mut self, cloud: &mut Cloud) {
        for (i, &ratio) in self.log_ratio.iter().enumerate() {
            let momentum = self.momentum.row_mut(i);
            if self.log_uniform[i] < ratio {
                cloud.take(i, &self.proposal, i);
                momentum.copy_from_slice(self.flying.row(i));
            } else {
                for p in momentum {
                    *p = -*p;
                }
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

#[cfg(test)]
mod tests {
    use super::{Cloud, Flight, Route};
    use crate::Matrix;
    use crate::coordinates::Coordinates;
    use crate::ensemble::dice::Dice;
    use crate::target::PerParticle;
    use crate::testing::random_states;

    const COUNT: usize = 200;

    fn quartic() -> PerParticle<impl Fn(&[f64], &mut [f64]) -> f64 + Send + Sync> {
        PerParticle::new(2, |x: &[f64], score: &mut [f64]| {
            score.iter_mut().zip(x).for_each(|(s, x)| *s = -x.powi(3));
            -0.25 * x.iter().map(|x| x.powi(4)).sum::<f64>()
        })
    }

    fn cloud() -> Cloud {
        let mut cloud = Cloud::new(COUNT, 2);
        cloud.white = random_states(COUNT, 2, 1);
        cloud.evaluate(&quartic(), &Coordinates::identity(2)).unwrap();
        cloud
    }

    fn launched(momentum: &Matrix<f64>, cloud: &Cloud, persistence: f64) -> Flight {
        let mut flight = Flight::new(COUNT, 2);
        flight.momentum = momentum.clone();
        let route = Route { steps: &[0.9; COUNT], length: 1, persistence };
        let (event, here) = (Dice { seed: 5, event: 0 }.throw(), Coordinates::identity(2));
        flight.launch(cloud, &quartic(), &here, &route, event, |_, _, _| false).unwrap();
        flight
    }

    #[test]
    fn momenta_are_refreshed_in_part_and_turn_round_where_a_flight_is_rejected() {
        let (before, kept) = (random_states(COUNT, 2, 2), 0.8);
        let mut cloud = cloud();
        let fresh = launched(&before, &cloud, 0.0).momentum;
        let mut flight = launched(&before, &cloud, kept);
        let departing = flight.momentum.clone();
        for ((p, old), new) in
            departing.as_slice().iter().zip(before.as_slice()).zip(fresh.as_slice())
        {
            assert!((p - (kept * old + 0.6 * new)).abs() < 1e-12);
        }
        let start = cloud.white.clone();
        flight.accept(&mut cloud);
        let mut rejected = 0;
        for i in 0..COUNT {
            if cloud.white.row(i) == start.row(i) {
                rejected += 1;
                let turned: Vec<f64> = departing.row(i).iter().map(|p| -p).collect();
                assert_eq!(flight.momentum.row(i), turned);
            } else {
                assert_eq!(cloud.white.row(i), flight.proposal.white.row(i));
                assert_eq!(flight.momentum.row(i), flight.flying.row(i));
            }
        }
        assert!((10..COUNT - 10).contains(&rejected), "{rejected}");
    }

    #[test]
    fn a_flight_with_turned_momenta_leads_back() {
        let cloud = cloud();
        let there = launched(&random_states(COUNT, 2, 2), &cloud, 1.0);
        let turned = Matrix::from_fn(COUNT, 2, |i, j| -there.flying.row(i)[j]);
        let back = launched(&turned, &there.proposal, 1.0);
        for (x, y) in cloud.white.as_slice().iter().zip(back.proposal.white.as_slice()) {
            assert!((x - y).abs() < 1e-9, "{x} against {y}");
        }
        for (out, home) in there.log_ratio.iter().zip(&back.log_ratio) {
            assert!((out + home).abs() < 1e-9 * (1.0 + out.abs()), "{out} and {home}");
        }
    }
}
