//! Densities that are sums or functions: mixtures and Gaussian processes.

use super::densities::{
    Number, gamma, half_normal, log_add, normal, poisson, prior, priors, process_factor,
    sigmoid_jacobian, softplus, square,
};
use super::simulation::{Draws, rows};
use super::{Experiment, Generic, names, numbered};

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
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let noise = (theta[3] * 2.0).exp();
        let factor = process_factor(&self.hours, theta[1], theta[2], noise);
        let size = self.ozone.len();
        let mut sum = prior(theta[0], 0.0, 100.0) + gamma(theta[1], 4.0, 1.0);
        sum += half_normal(theta[2], 50.0) + half_normal(theta[3], 10.0);
        // N(mean, LLᵀ): w = L⁻¹(y − mean).
        let mut white: Vec<D> = Vec::with_capacity(size);
        for (row, &ozone) in factor.chunks_exact(size).zip(&self.ozone) {
            let known: D = row.iter().zip(&white).map(|(&l, &w)| l * w).sum();
            let diagonal = row[white.len()];
            let next = (-theta[0] - known + ozone) / diagonal;
            sum -= square(next) * 0.5 + diagonal.ln();
            white.push(next);
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

impl Generic for LatentPoisson {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let z = &theta[3..];
        let factor = process_factor(&self.places, theta[1], theta[2], D::from(1e-4));
        let mut sum = prior(theta[0], 0.0, 3.0) + priors(z, 1.0);
        // A length from a tenth to all of the road: the prior of its logarithm is N(3.5, 0.6²).
        sum += prior(theta[1], 3.5, 0.6) + half_normal(theta[2], 2.0);
        for ((i, row), &accidents) in factor.chunks_exact(z.len()).enumerate().zip(&self.accidents)
        {
            let latent: D = row[..=i].iter().zip(z).map(|(&l, &z)| l * z).sum();
            sum += poisson(accidents, theta[0] + latent);
        }
        sum
    }
}
