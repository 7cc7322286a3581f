//! Densities that are sums or functions: mixtures and Gaussian processes.

use super::densities::{
    Number, gamma, half_normal, log_add, normal, poisson, prior, priors, sigmoid_jacobian,
    softplus, square,
};
use super::simulation::{Draws, rows};
use super::{ByHand, Experiment, Generic, names, numbered};

/// Minutes until the next eruption, simulated after Old Faithful's two kinds.
pub(super) struct Faithful(Vec<f64>);

impl Experiment for Faithful {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(120, |_| {
            let short = draws.chance(0.36);
            let (mean, sd) = if short { (54.6, 5.9) } else { (80.1, 5.9) };
            draws.normal(mean, sd).round()
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("short mean, log gap, log short sd, log long sd, logit short")
    }
}

impl Generic for Faithful {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (short, long) = (theta[0], theta[0] + theta[1].exp());
        let mut sum = prior(short, 60.0, 30.0) + half_normal(theta[1], 50.0);
        sum += gamma(theta[2], 2.0, 0.2) + gamma(theta[3], 2.0, 0.2) + sigmoid_jacobian(theta[4]);
        for &wait in &self.0 {
            sum += log_add(
                normal(short - wait, theta[2]) - softplus(-theta[4]),
                normal(long - wait, theta[3]) - softplus(theta[4]),
            );
        }
        sum
    }
}

/// Hour of the day and ozone in parts per billion.
pub(super) struct Ozone {
    hours: Vec<f64>,
    ozone: Vec<f64>,
}

impl Experiment for Ozone {
    fn observe(draws: &mut Draws) -> Self {
        let hours = rows(25, |_| (draws.uniform(0.0, 24.0) * 60.0).round() / 60.0);
        let curve =
            |hour: f64| 42.0 + 22.0 * ((hour - 9.0) * 0.26).sin() + 6.0 * (hour * 0.8).cos();
        let ozone = hours.iter().map(|&hour| draws.normal(curve(hour), 3.0)).collect();
        Self { hours, ozone }
    }

    fn parameters(&self) -> Vec<String> {
        names("mean, log length, log sd of curve, log sd of noise")
    }
}

impl Generic for Ozone {
    /// N(mean, LLᵀ), where LLᵀ has a squared-exponential curve and noise: w = L⁻¹(y − mean).
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (rate, variance) = ((theta[1] * -2.0).exp() * -0.5, (theta[2] * 2.0).exp());
        let noise = (theta[3] * 2.0).exp();
        let mut sum = prior(theta[0], 0.0, 100.0) + gamma(theta[1], 4.0, 1.0);
        sum += half_normal(theta[2], 50.0) + half_normal(theta[3], 10.0);
        let (mut factor, mut white): (Vec<Vec<D>>, Vec<D>) = (Vec::new(), Vec::new());
        let dot = |a: &[D], b: &[D]| a.iter().zip(b).map(|(&x, &y)| x * y).sum::<D>();
        for (i, &hour) in self.hours.iter().enumerate() {
            let mut row: Vec<D> = Vec::with_capacity(i + 1);
            for (before, &other) in factor.iter().zip(&self.hours) {
                let covariance = variance * (rate * (hour - other).powi(2)).exp();
                row.push((covariance - dot(&row, before)) / before[row.len()]);
            }
            let diagonal = (variance + noise - dot(&row, &row)).sqrt();
            let next = (-theta[0] - dot(&row, &white) + self.ozone[i]) / diagonal;
            sum -= square(next) * 0.5 + diagonal.ln();
            white.push(next);
            row.push(diagonal);
            factor.push(row);
        }
        sum
    }
}

/// Kilometre of a road and accidents there.
pub(super) struct LatentPoisson {
    places: Vec<f64>,
    accidents: Vec<f64>,
}

impl Experiment for LatentPoisson {
    fn observe(draws: &mut Draws) -> Self {
        let places = rows(16, |i| 10.0 * i as f64);
        let rate = |km: f64| (1.2 + (km / 28.0).sin()).exp();
        let accidents = places.iter().map(|&km| draws.poisson(rate(km))).collect();
        Self { places, accidents }
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("mean, log length, log sd").into_iter();
        shared.chain(numbered("z", self.places.len())).collect()
    }
}

impl ByHand for LatentPoisson {
    /// f = mean + s L z, with LLᵀ the correlations at a length whose logarithm is N(3.5, 0.6²): a tenth
    /// to all of the road.
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64 {
        let (mean, log_length, sd, z) = (theta[0], theta[1], theta[2].exp(), &theta[3..]);
        let mut sum = prior(mean, 0.0, 3.0) + priors(z, 1.0);
        sum += prior(log_length, 3.5, 0.6) + half_normal(theta[2], 2.0);
        score[0] = -mean / 9.0;
        score[1] = -(log_length - 3.5) / (0.6 * 0.6);
        score[2] = 1.0 - (sd / 2.0).powi(2);
        score[3..].iter_mut().zip(z).for_each(|(score, z)| *score = -z);
        let (factor, slope) = self.factor(log_length);
        let rows = factor.chunks_exact(z.len()).zip(slope.chunks_exact(z.len()));
        for ((row, slopes), &accidents) in rows.zip(&self.accidents) {
            let dot = |row: &[f64]| row.iter().zip(z).map(|(l, z)| l * z).sum::<f64>();
            let deviation = sd * dot(row);
            sum += poisson(accidents, mean + deviation);
            let pull = accidents - (mean + deviation).exp();
            score[0] += pull;
            score[1] += pull * sd * dot(slopes);
            score[2] += pull * deviation;
            score[3..].iter_mut().zip(row).for_each(|(score, l)| *score += pull * sd * l);
        }
        sum
    }
}

impl LatentPoisson {
    /// The lower factor of the correlations, and its derivative with respect to the log length.
    fn factor(&self, log_length: f64) -> (Vec<f64>, Vec<f64>) {
        /// Every place has a little of its own, which keeps the matrix from being singular.
        const NUGGET: f64 = 1e-4;
        let size = self.places.len();
        let (mut factor, mut slope) = (vec![0.0; size * size], vec![0.0; size * size]);
        for i in 0..size {
            for j in 0..=i {
                let distance = (self.places[i] - self.places[j]) * (-log_length).exp();
                let correlation = (-0.5 * distance * distance).exp();
                let nugget = if i == j { NUGGET } else { 0.0 };
                let (mut rest, mut by_length) =
                    (correlation + nugget, correlation * distance * distance);
                for k in 0..j {
                    let (a, b) = (i * size + k, j * size + k);
                    rest -= factor[a] * factor[b];
                    by_length -= slope[a] * factor[b] + factor[a] * slope[b];
                }
                let (at, diagonal) = (i * size + j, j * size + j);
                if i == j {
                    factor[at] = rest.sqrt();
                    slope[at] = by_length / (2.0 * factor[at]);
                } else {
                    factor[at] = rest / factor[diagonal];
                    slope[at] = (by_length - factor[at] * slope[diagonal]) / factor[diagonal];
                }
            }
        }
        (factor, slope)
    }
}
