//! Particles moved on by a sampler with an accept step: what is right stays as it is, and what rests only
//! because its own dynamics are slow goes on.
//!
//! Hamiltonian moves in coordinates fitted to the particles once, with a step size that is held after a fourth
//! of the gradients: nothing is learnt that could itself go wrong.

use rand::Rng as _;

use super::counted::Counted;
use crate::coordinates::Linear;
use crate::random::{Purpose, fill_standard_normal, stream};
use crate::run::WarmMoments;
use crate::{Matrix, Result};

/// Leapfrogs of a move.
const LEAPFROGS: u64 = 5;
/// The step size at first, in standard deviations, and the acceptance that it is fitted to.
const FIRST_STEP: f64 = 0.3;
const ACCEPTANCE: f64 = 0.8;
/// Fewer draws of each particle say nothing.
const FEWEST: u64 = 5;

/// Moments of the particles after so many gradients of each: of the latter half of the moves with a step size
/// that is held. None where there are too few of those.
pub(super) fn moments_after_moves(
    target: &Counted<'_>,
    start: &Matrix<f64>,
    gradients: u64,
) -> Result<Option<WarmMoments>> {
    let moves = gradients.saturating_sub(1) / LEAPFROGS;
    let (fitting, forgotten) = (moves / 4, (moves - moves / 4) / 2);
    let kept = moves - fitting - forgotten;
    if kept < FEWEST {
        return Ok(None);
    }
    let mut movers = Movers::new(target, start)?;
    let mut draws = Vec::new();
    for number in 0..moves {
        let acceptance = movers.step_on(number)?;
        if number < fitting {
            movers.step *= (acceptance - ACCEPTANCE).exp();
        } else if number >= fitting + forgotten {
            draws.push(movers.theta.clone());
        }
    }
    Ok(Some(moments_of(&draws)))
}

/// Moments, and as how many draws they count: twice what the means of single particles over time tell, since
/// draws of one chain are held to be worth half as many.
fn moments_of(draws: &[Matrix<f64>]) -> WarmMoments {
    let (count, dim) = (draws[0].rows(), draws[0].cols());
    let all = Matrix::from_fn(draws.len() * count, dim, |i, j| draws[i / count].row(i % count)[j]);
    let (mean, sd) = super::moments(all.as_ref());
    let over_time = Matrix::from_fn(count, dim, |i, j| {
        draws.iter().map(|draw| draw.row(i)[j]).sum::<f64>() / draws.len() as f64
    });
    let (_, sd_of_means) = super::moments(over_time.as_ref());
    let ratios = sd.iter().zip(&sd_of_means).map(|(all, means)| (all / means).powi(2));
    let effective = count as f64 * ratios.fold(f64::INFINITY, f64::min).max(1.0);
    WarmMoments {
        draws: (2.0 * effective.min(all.rows() as f64)) as usize,
        mean,
        sd,
        is_settled: false,
    }
}

struct Movers<'a> {
    target: &'a Counted<'a>,
    linear: Linear,
    theta: Matrix<f64>,
    log_density: Vec<f64>,
    /// Positions and scores in fitted coordinates.
    white: Matrix<f64>,
    score: Matrix<f64>,
    step: f64,
}

impl<'a> Movers<'a> {
    fn new(target: &'a Counted<'a>, start: &Matrix<f64>) -> Result<Self> {
        let (log_density, raw) = target.at(start)?;
        let linear = Linear::fit(start.as_ref(), raw.as_ref());
        let (theta, mut white) = (start.clone(), start.clone());
        linear.from_position(theta.as_slice(), white.as_mut_slice());
        let mut score = raw.clone();
        linear.down(raw.as_slice(), score.as_mut_slice());
        Ok(Self { target, linear, theta, log_density, white, score, step: FIRST_STEP })
    }

    /// A move of every particle; the mean acceptance.
    fn step_on(&mut self, number: u64) -> Result<f64> {
        let (count, dim) = (self.theta.rows(), self.theta.cols());
        let draw = |i: usize| stream(0, Purpose::Probe, (1 << 32) + number, i as u64);
        let uniform = |i: usize| (draw(i).next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let step = self.step * (0.8 + 0.4 * uniform(count));
        let mut momenta = Matrix::zeros(count, dim);
        for i in 0..count {
            let mut generator = draw(i);
            let _ = generator.next_u64();
            fill_standard_normal(&mut generator, momenta.row_mut(i));
        }
        let energy = |log_density: &[f64], momenta: &Matrix<f64>| -> Vec<f64> {
            let kinetic = |i: usize| 0.5 * momenta.row(i).iter().map(|p| p * p).sum::<f64>();
            (0..count).map(|i| kinetic(i) - log_density[i]).collect()
        };
        let before = energy(&self.log_density, &momenta);
        let (mut theta, mut white, mut score) =
            (self.theta.clone(), self.white.clone(), self.score.clone());
        let mut log_density = Vec::new();
        let kick = |momenta: &mut Matrix<f64>, score: &Matrix<f64>| {
            let both = momenta.as_mut_slice().iter_mut().zip(score.as_slice());
            both.for_each(|(p, s)| *p += 0.5 * step * s);
        };
        for _ in 0..LEAPFROGS {
            kick(&mut momenta, &score);
            let both = white.as_mut_slice().iter_mut().zip(momenta.as_slice());
            both.for_each(|(u, p)| *u += step * p);
            self.linear.to_position(white.as_slice(), theta.as_mut_slice());
            let raw;
            (log_density, raw) = self.target.at(&theta)?;
            self.linear.down(raw.as_slice(), score.as_mut_slice());
            kick(&mut momenta, &score);
        }
        let after = energy(&log_density, &momenta);
        let mut accepted = 0.0;
        for i in 0..count {
            let chance = (before[i] - after[i]).exp().min(1.0);
            // Not a number is a refusal.
            if uniform(i) < chance {
                self.theta.row_mut(i).copy_from_slice(theta.row(i));
                self.white.row_mut(i).copy_from_slice(white.row(i));
                self.score.row_mut(i).copy_from_slice(score.row(i));
                self.log_density[i] = log_density[i];
            }
            accepted += if chance.is_nan() { 0.0 } else { chance };
        }
        Ok(accepted / count as f64)
    }
}
