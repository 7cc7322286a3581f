//! Metropolis's sampler: no gradient, nothing of the library's, for whichever density a test writes down.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use steinflow::random::{Purpose, stream};

pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(random)
}

/// Whether a move with this log ratio of densities is made.
pub fn accepts(log_ratio: f64, random: &mut ChaCha8Rng) -> bool {
    let level: f64 = StandardUniform.sample(random);
    level.ln() < log_ratio
}

/// Mean and standard deviation of every column.
pub fn moments(draws: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let count = draws.len() as f64;
    (0..draws[0].len())
        .map(|j| {
            let mean = draws.iter().map(|draw| draw[j]).sum::<f64>() / count;
            let square = draws.iter().map(|draw| (draw[j] - mean).powi(2)).sum::<f64>() / count;
            (mean, square.sqrt())
        })
        .collect()
}

/// Every tenth of `steps` states, after as many again to find where the mass is and how it lies: proposals are N(0, I)
/// through the Cholesky factor of the covariance that was seen, scaled to a quarter of moves accepted.
pub fn metropolis(
    log_density: impl Fn(&[f64]) -> f64,
    start: &[f64],
    steps: usize,
    seed: u64,
) -> Vec<Vec<f64>> {
    const ROUNDS: usize = 8;
    let dim = start.len();
    let mut random = stream(seed, Purpose::Start, 0, 0);
    let (mut theta, mut value) = (start.to_vec(), log_density(start));
    let mut factor: Vec<Vec<f64>> =
        (0..dim).map(|i| (0..dim).map(|j| if i == j { 0.1 } else { 0.0 }).collect()).collect();
    let mut width = 1.0;
    let mut draws = Vec::new();
    for round in 0..=ROUNDS {
        draws.clear();
        let count = if round < ROUNDS { steps / ROUNDS } else { steps };
        for step in 0..count {
            let z: Vec<f64> = (0..dim).map(|_| normal(&mut random)).collect();
            let near: Vec<f64> = (0..dim)
                .map(|i| theta[i] + width * (0..=i).map(|j| factor[i][j] * z[j]).sum::<f64>())
                .collect();
            let there = log_density(&near);
            let is_made = accepts(there - value, &mut random);
            if is_made {
                (theta, value) = (near, there);
            }
            if round < ROUNDS {
                // The width is that of a quarter of moves accepted (Robbins and Monro 1951).
                let excess = if is_made { 0.75 } else { -0.25 };
                width *= (excess * 5.0 / (step as f64 + 50.0).sqrt()).exp();
            }
            if step % 10 == 0 {
                draws.push(theta.clone());
            }
        }
        if round + 1 < ROUNDS {
            factor = spread(&draws[draws.len() / 2..]);
            width = 2.4 / (dim as f64).sqrt();
        }
    }
    draws
}

/// The Cholesky factor of the covariance of draws.
fn spread(draws: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (own, count) = (moments(draws), draws.len() as f64);
    let covariance = |i: usize, j: usize| {
        let product = |draw: &Vec<f64>| (draw[i] - own[i].0) * (draw[j] - own[j].0);
        let ridge = if i == j { 1e-6 } else { 0.0 };
        draws.iter().map(product).sum::<f64>() / count + ridge
    };
    let mut factor = vec![vec![0.0_f64; own.len()]; own.len()];
    for i in 0..own.len() {
        for j in 0..=i {
            let rest: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let left = covariance(i, j) - rest;
            factor[i][j] = if i == j { left.sqrt() } else { left / factor[j][j] };
        }
    }
    factor
}
