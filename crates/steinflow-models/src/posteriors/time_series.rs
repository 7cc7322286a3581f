//! Series: seasons, autoregression, hidden levels, hidden states, and noise that clusters.

use std::f64::consts::TAU;

use super::densities::{
    Number, gamma, half_normal, linear, log_add, normal, normals, prior, priors, sigmoid,
    sigmoid_jacobian, softplus, square,
};
use super::simulation::{Draws, rows};
use super::{ByHand, Experiment, Generic, names, numbered};

/// Box and Jenkins (1976): thousands of airline passengers by month, from January 1949.
pub(super) struct Airline(Vec<([f64; 5], f64)>);

const PASSENGERS: [f64; 144] = [
    112.0, 118.0, 132.0, 129.0, 121.0, 135.0, 148.0, 148.0, 136.0, 119.0, 104.0, 118.0, 115.0,
    126.0, 141.0, 135.0, 125.0, 149.0, 170.0, 170.0, 158.0, 133.0, 114.0, 140.0, 145.0, 150.0,
    178.0, 163.0, 172.0, 178.0, 199.0, 199.0, 184.0, 162.0, 146.0, 166.0, 171.0, 180.0, 193.0,
    181.0, 183.0, 218.0, 230.0, 242.0, 209.0, 191.0, 172.0, 194.0, 196.0, 196.0, 236.0, 235.0,
    229.0, 243.0, 264.0, 272.0, 237.0, 211.0, 180.0, 201.0, 204.0, 188.0, 235.0, 227.0, 234.0,
    264.0, 302.0, 293.0, 259.0, 229.0, 203.0, 229.0, 242.0, 233.0, 267.0, 269.0, 270.0, 315.0,
    364.0, 347.0, 312.0, 274.0, 237.0, 278.0, 284.0, 277.0, 317.0, 313.0, 318.0, 374.0, 413.0,
    405.0, 355.0, 306.0, 271.0, 306.0, 315.0, 301.0, 356.0, 348.0, 355.0, 422.0, 465.0, 467.0,
    404.0, 347.0, 305.0, 336.0, 340.0, 318.0, 362.0, 348.0, 363.0, 435.0, 491.0, 505.0, 404.0,
    359.0, 310.0, 337.0, 360.0, 342.0, 406.0, 396.0, 420.0, 472.0, 548.0, 559.0, 463.0, 407.0,
    362.0, 405.0, 417.0, 391.0, 419.0, 461.0, 472.0, 535.0, 622.0, 606.0, 508.0, 461.0, 390.0,
    432.0,
];

impl Experiment for Airline {
    fn observe(_: &mut Draws) -> Self {
        Self(rows(PASSENGERS.len(), |month| {
            let year = 1949.0 + month as f64 / 12.0;
            let (sin, cos) = (TAU * year).sin_cos();
            let (sin_twice, cos_twice) = (2.0 * TAU * year).sin_cos();
            ([year, sin, cos, sin_twice, cos_twice], PASSENGERS[month].ln())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, year, sin, cos, sin twice, cos twice, atanh phi, log sd")
    }
}

impl Generic for Airline {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (phi, log_sd) = (theta[6].tanh(), theta[7]);
        let errors: Vec<D> = self.0.iter().map(|(x, y)| linear(&theta[..6], x) - *y).collect();
        let shocks = errors.windows(2).map(|pair| square(pair[1] - phi * pair[0])).sum();
        // The Jacobian of tanh, 1 − φ², and the first error's law N(0, sd²/(1 − φ²)).
        let log_rest = theta[6].cosh().ln() * -2.0;
        prior(theta[0], 0.0, 1e3)
            + priors(&theta[1..6], 1.0)
            + half_normal(log_sd, 1.0)
            + log_rest
            + normals(shocks, errors.len() - 1, log_sd)
            + normal(errors[0], log_sd - log_rest * 0.5)
    }
}

/// The level of a reservoir in mm, day by day.
pub(super) struct Reservoir(Vec<f64>);

impl Experiment for Reservoir {
    fn observe(draws: &mut Draws) -> Self {
        let mut levels = vec![4_200.0, 4_230.0];
        for t in 2..122 {
            let mean = 630.0 + 1.3 * levels[t - 1] - 0.45 * levels[t - 2];
            levels.push(draws.normal(mean, 35.0).round());
        }
        Self(levels)
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, phi[1], phi[2], log sd")
    }
}

impl Generic for Reservoir {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let steps = self.0.windows(3);
        let count = steps.len();
        let squares =
            steps.map(|level| square(linear(theta, &[level[1], level[0]]) - level[2])).sum();
        prior(theta[0], 0.0, 5_000.0)
            + priors(&theta[1..3], 2.0)
            + half_normal(theta[3], 200.0)
            + normals(squares, count, theta[3])
    }
}

/// Annual flow of the Nile at Aswan in 10⁸ m³, from 1871 (Cobb 1978).
pub(super) struct Nile;

const NILE: [f64; 100] = [
    1120.0, 1160.0, 963.0, 1210.0, 1160.0, 1160.0, 813.0, 1230.0, 1370.0, 1140.0, 995.0, 935.0,
    1110.0, 994.0, 1020.0, 960.0, 1180.0, 799.0, 958.0, 1140.0, 1100.0, 1210.0, 1150.0, 1250.0,
    1260.0, 1220.0, 1030.0, 1100.0, 774.0, 840.0, 874.0, 694.0, 940.0, 833.0, 701.0, 916.0, 692.0,
    1020.0, 1050.0, 969.0, 831.0, 726.0, 456.0, 824.0, 702.0, 1120.0, 1100.0, 832.0, 764.0, 821.0,
    768.0, 845.0, 864.0, 862.0, 698.0, 845.0, 744.0, 796.0, 1040.0, 759.0, 781.0, 865.0, 845.0,
    944.0, 984.0, 897.0, 822.0, 1010.0, 771.0, 676.0, 649.0, 846.0, 812.0, 742.0, 801.0, 1040.0,
    860.0, 874.0, 848.0, 890.0, 744.0, 749.0, 838.0, 1050.0, 918.0, 986.0, 797.0, 923.0, 975.0,
    815.0, 1020.0, 906.0, 901.0, 1170.0, 912.0, 746.0, 919.0, 718.0, 714.0, 740.0,
];

impl Experiment for Nile {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("first level, log sd of flow, log sd of level")
    }
}

impl Generic for Nile {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (noise, walk) = ((theta[1] * 2.0).exp(), (theta[2] * 2.0).exp());
        let (mut level, mut variance) = (theta[0], D::zero());
        let mut sum = prior(level, 1_000.0, 500.0);
        sum += half_normal(theta[1], 300.0) + half_normal(theta[2], 100.0);
        for &flow in &NILE {
            let (surprise, spread) = (-level + flow, variance + noise);
            sum += normal(surprise, spread.ln() * 0.5);
            let gain = variance / spread;
            level += gain * surprise;
            variance = gain * noise + walk;
        }
        sum
    }
}

/// Daily returns in percent.
pub(super) struct Garch(Vec<f64>);

impl Experiment for Garch {
    fn observe(draws: &mut Draws) -> Self {
        let mut variance: f64 = 1.2;
        Self(rows(300, |_| {
            let shock = draws.normal(0.0, variance.sqrt());
            variance = 0.08 + 0.12 * shock * shock + 0.82 * variance;
            0.05 + shock
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("mean, log omega, logit persistence, logit share")
    }
}

impl Generic for Garch {
    /// Persistence α + β and the share α/(α + β) are uniform on (0, 1).
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (mean, omega, persistence) = (theta[0], theta[1].exp(), sigmoid(theta[2]));
        let (alpha, beta) = (persistence * sigmoid(theta[3]), persistence * sigmoid(-theta[3]));
        let mut sum = prior(mean, 0.0, 1.0) + half_normal(theta[1], 1.0);
        sum += sigmoid_jacobian(theta[2]) + sigmoid_jacobian(theta[3]);
        let mut variance = D::from(1.0);
        for &seen in &self.0 {
            let shock = -mean + seen;
            sum += normal(shock, variance.ln() * 0.5);
            variance = omega + alpha * square(shock) + beta * variance;
        }
        sum
    }
}

/// Weekly returns in percent, after Kim, Shephard and Chib (1998).
pub(super) struct StochasticVolatility(Vec<f64>);

impl Experiment for StochasticVolatility {
    fn observe(draws: &mut Draws) -> Self {
        let mut volatility = 0.6;
        Self(rows(100, |_| {
            volatility = 0.6 + draws.normal(0.94 * (volatility - 0.6), 0.3);
            draws.normal(0.0, (0.5 * volatility).exp())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("mu, logit phi, log sd");
        shared.into_iter().chain(numbered("h", self.0.len())).collect()
    }
}

impl ByHand for StochasticVolatility {
    /// hₜ = μ + φ(hₜ₋₁ − μ) + σηₜ, h₁ from the stationary law, yₜ ~ N(0, e^hₜ); μ ~ N(0, 3²),
    /// (φ + 1)/2 ~ Beta(20, 1.5), σ² ~ inverse Gamma(2.5, 0.1).
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64 {
        let (mu, u, log_sd, h) = (theta[0], theta[1], theta[2], &theta[3..]);
        let (phi, count) = (2.0 * sigmoid(u) - 1.0, h.len() as f64);
        let phi_slope = 0.5 * (1.0 - phi * phi);
        let precision = (-2.0 * log_sd).exp();
        let mut sum = prior(mu, 0.0, 3.0) - 20.0 * softplus(-u) - 1.5 * softplus(u);
        sum += -5.0 * log_sd - 0.1 * precision;
        // The first state has variance σ²/(1 − φ²).
        let (first, stationary) = (h[0] - mu, 1.0 - phi * phi);
        let mut squares = stationary * first * first;
        sum += 0.5 * stationary.ln() - count * log_sd;
        score[0] = -mu / 9.0 + precision * stationary * first;
        score[3] -= precision * stationary * first;
        let mut by_phi = precision * phi * first * first - phi / stationary;
        for t in 0..h.len() {
            let scaled = 0.5 * self.0[t].powi(2) * (-h[t]).exp();
            sum -= scaled + 0.5 * h[t];
            score[3 + t] += scaled - 0.5;
            if t > 0 {
                let before = h[t - 1] - mu;
                let shock = h[t] - mu - phi * before;
                squares += shock * shock;
                let pull = precision * shock;
                score[0] += pull * (1.0 - phi);
                score[3 + t] -= pull;
                score[2 + t] += pull * phi;
                by_phi += pull * before;
            }
        }
        score[1] = 20.0 - 21.5 * sigmoid(u) + by_phi * phi_slope;
        score[2] = precision * squares - count - 5.0 + 0.2 * precision;
        sum - 0.5 * precision * squares
    }
}

/// Rain of a week in mm; wet and dry weeks follow each other.
pub(super) struct Regimes(Vec<f64>);

impl Experiment for Regimes {
    fn observe(draws: &mut Draws) -> Self {
        let mut wet = false;
        Self(rows(150, |_| {
            wet = draws.chance(if wet { 0.8 } else { 0.1 });
            if wet { draws.normal(62.0, 16.0) } else { draws.normal(20.0, 9.0) }
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("dry mean, log gap, log dry sd, log wet sd, logit stay dry, logit stay wet")
    }
}

impl Generic for Regimes {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (dry_mean, log_sds, stay) = (theta[0], [theta[2], theta[3]], &theta[4..]);
        let means = [dry_mean, dry_mean + theta[1].exp()];
        let mut sum = prior(dry_mean, 0.0, 50.0) + half_normal(theta[1], 100.0);
        for &log_sd in &log_sds {
            sum += gamma(log_sd, 2.0, 0.1);
        }
        for &log_odds in stay {
            // Uniform, and tilted to staying: Beta(2, 1).
            sum += sigmoid_jacobian(log_odds) - softplus(-log_odds);
        }
        let [mut dry, mut wet] = [D::zero(), D::zero()];
        for &rain in &self.0 {
            let seen = |state: usize| normal(means[state] - rain, log_sds[state]);
            (dry, wet) = (
                log_add(dry - softplus(-stay[0]), wet - softplus(stay[1])) + seen(0),
                log_add(dry - softplus(stay[0]), wet - softplus(-stay[1])) + seen(1),
            );
        }
        sum + log_add(dry, wet)
    }
}
