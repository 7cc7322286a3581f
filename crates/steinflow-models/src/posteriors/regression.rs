//! A number against others, with noise that is learned.

use super::densities::{
    Number, gamma, half_cauchy, half_normal, linear, normal, normals, prior, priors, sigmoid,
    square, student,
};
use super::simulation::{Draws, rows};
use super::{ByHand, Experiment, Generic, names, numbered};

/// Longley (1967), JASA 62: price deflator, gross national product, unemployed, armed forces,
/// population, year; then employment.
pub(super) struct Longley;

const LONGLEY: [([f64; 6], f64); 16] = [
    ([83.0, 234.289, 235.6, 159.0, 107.608, 1947.0], 60.323),
    ([88.5, 259.426, 232.5, 145.6, 108.632, 1948.0], 61.122),
    ([88.2, 258.054, 368.2, 161.6, 109.773, 1949.0], 60.171),
    ([89.5, 284.599, 335.1, 165.0, 110.929, 1950.0], 61.187),
    ([96.2, 328.975, 209.9, 309.9, 112.075, 1951.0], 63.221),
    ([98.1, 346.999, 193.2, 359.4, 113.270, 1952.0], 63.639),
    ([99.0, 365.385, 187.0, 354.7, 115.094, 1953.0], 64.989),
    ([100.0, 363.112, 357.8, 335.0, 116.219, 1954.0], 63.761),
    ([101.2, 397.469, 290.4, 304.8, 117.388, 1955.0], 66.019),
    ([104.6, 419.180, 282.2, 285.7, 118.734, 1956.0], 67.857),
    ([108.4, 442.769, 293.6, 279.8, 120.445, 1957.0], 68.169),
    ([110.8, 444.546, 468.1, 263.7, 121.950, 1958.0], 66.513),
    ([112.6, 482.704, 381.3, 255.2, 123.366, 1959.0], 68.655),
    ([114.2, 502.601, 393.1, 251.4, 125.368, 1960.0], 69.564),
    ([115.7, 518.173, 480.6, 257.2, 127.852, 1961.0], 69.331),
    ([116.9, 554.894, 400.7, 282.7, 130.081, 1962.0], 70.551),
];

impl Experiment for Longley {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, deflator, product, unemployed, forces, population, year, log sd")
    }
}

impl Generic for Longley {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (coefficients, log_sd) = (&theta[..7], theta[7]);
        let squares = LONGLEY.iter().map(|(x, y)| square(linear(coefficients, x) - *y)).sum();
        prior(theta[0], 0.0, 1e4)
            + priors(&theta[1..7], 10.0)
            + half_normal(log_sd, 5.0)
            + normals(squares, LONGLEY.len(), log_sd)
    }
}

/// Year 1990–2020, age, years of schooling; then wage in dollars.
pub(super) struct Wages(Vec<([f64; 3], f64)>);

impl Experiment for Wages {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(120, |_| {
            let (year, age) = (draws.whole(1990.0, 2020.0), draws.whole(18.0, 66.0));
            let schooling = draws.whole(8.0, 20.0);
            let mean = -1_890_000.0 + 955.0 * year + 310.0 * age + 1_650.0 * schooling;
            ([year, age, schooling], draws.normal(mean, 9_000.0).round())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, year, age, schooling, log sd")
    }
}

impl Generic for Wages {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (coefficients, log_sd) = (&theta[..4], theta[4]);
        let squares = self.0.iter().map(|(x, y)| square(linear(coefficients, x) - *y)).sum();
        prior(theta[0], 0.0, 1e7)
            + priors(&theta[1..4], 1e4)
            + half_normal(log_sd, 5e4)
            + normals(squares, self.0.len(), log_sd)
    }
}

/// Brownlee (1965), an ammonia plant: air flow, water temperature, acid; then loss.
pub(super) struct StackLoss;

const STACK_LOSS: [[f64; 4]; 21] = [
    [80.0, 27.0, 89.0, 42.0],
    [80.0, 27.0, 88.0, 37.0],
    [75.0, 25.0, 90.0, 37.0],
    [62.0, 24.0, 87.0, 28.0],
    [62.0, 22.0, 87.0, 18.0],
    [62.0, 23.0, 87.0, 18.0],
    [62.0, 24.0, 93.0, 19.0],
    [62.0, 24.0, 93.0, 20.0],
    [58.0, 23.0, 87.0, 15.0],
    [58.0, 18.0, 80.0, 14.0],
    [58.0, 18.0, 89.0, 14.0],
    [58.0, 17.0, 88.0, 13.0],
    [58.0, 18.0, 82.0, 11.0],
    [58.0, 19.0, 93.0, 12.0],
    [50.0, 18.0, 89.0, 8.0],
    [50.0, 18.0, 86.0, 7.0],
    [50.0, 19.0, 72.0, 8.0],
    [50.0, 19.0, 79.0, 8.0],
    [50.0, 20.0, 80.0, 9.0],
    [56.0, 20.0, 82.0, 15.0],
    [70.0, 20.0, 91.0, 15.0],
];

impl Experiment for StackLoss {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, air, water, acid, log scale, log shape")
    }
}

impl Generic for StackLoss {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (coefficients, log_scale, shape) = (&theta[..4], theta[4], theta[5].exp());
        let narrow = (-log_scale).exp();
        let likelihood: D = STACK_LOSS
            .iter()
            .map(|row| student((linear(coefficients, &row[..3]) - row[3]) * narrow, shape))
            .sum();
        prior(theta[0], 0.0, 100.0)
            + priors(&theta[1..4], 10.0)
            + half_normal(log_scale, 10.0)
            + gamma(theta[5], 2.0, 0.1)
            + likelihood
            - log_scale * STACK_LOSS.len() as f64
    }
}

/// Weekly income and spending on food, in dollars.
pub(super) struct Spread(Vec<(f64, f64)>);

impl Experiment for Spread {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(80, |_| {
            let income = draws.uniform(350.0, 2_500.0).round();
            let sd = (2.9 + 0.0011 * income).exp();
            (income, draws.normal(75.0 + 0.46 * income, sd).round())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, slope, log sd intercept, log sd slope")
    }
}

impl Generic for Spread {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let mut sum = prior(theta[0], 0.0, 500.0) + prior(theta[1], 0.0, 5.0);
        sum += prior(theta[2], 0.0, 5.0) + prior(theta[3], 0.0, 0.05);
        for &(income, food) in &self.0 {
            let log_sd = linear(&theta[2..], &[income]);
            sum += normal(linear(&theta[..2], &[income]) - food, log_sd);
        }
        sum
    }
}

/// Rain that a gauge shows, in mm, and the harvest, in tonnes.
pub(super) struct MeasurementError(Vec<(f64, f64)>);

/// What a gauge is wrong by, in mm.
const GAUGE_SD: f64 = 30.0;

impl Experiment for MeasurementError {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(20, |_| {
            let rain = draws.normal(850.0, 70.0);
            (draws.normal(rain, GAUGE_SD).round(), draws.normal(2.0 + 0.011 * rain, 0.5))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("intercept, slope, log sd, mean rain, log sd of rain");
        shared.into_iter().chain(numbered("rain", self.0.len())).collect()
    }
}

impl Generic for MeasurementError {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (log_sd, mean, log_spread, rain) = (theta[2], theta[3], theta[4], &theta[5..]);
        let (mut noise, mut spread, mut sum) = (D::zero(), D::zero(), D::zero());
        for (&rain, &(shown, harvest)) in rain.iter().zip(&self.0) {
            noise += square(theta[0] + theta[1] * rain - harvest);
            spread += square(rain - mean);
            sum += prior(rain, shown, GAUGE_SD);
        }
        sum + normals(noise, rain.len(), log_sd)
            + normals(spread, rain.len(), log_spread)
            + prior(theta[0], 0.0, 50.0)
            + prior(theta[1], 0.0, 0.5)
            + half_normal(log_sd, 5.0)
            + prior(mean, 800.0, 300.0)
            + half_normal(log_spread, 300.0)
    }
}

/// Fifteen features of which three matter, after Piironen and Vehtari (2017), arXiv:1707.01694.
pub(super) struct Horseshoe(Vec<([f64; FEATURES], f64)>);

const FEATURES: usize = 15;

impl Experiment for Horseshoe {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(50, |_| {
            let features = std::array::from_fn(|_| draws.normal(0.0, 1.0));
            let mean = 3.0 + 2.0 * features[0] - 1.5 * features[5] + 0.8 * features[10];
            (features, draws.normal(mean, 1.0))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("intercept, log sd, log tau").into_iter();
        shared.chain(numbered("z", FEATURES)).chain(numbered("log lambda", FEATURES)).collect()
    }
}

impl ByHand for Horseshoe {
    /// βⱼ = zⱼ sⱼ with sⱼ² = v/(1 + v/c²), v = (τλⱼ)²: no coefficient is much larger than the slab c.
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64 {
        const SLAB: f64 = 2.0;
        const GLOBAL: f64 = 0.1;
        let (log_sd, log_tau) = (theta[1], theta[2]);
        let (z, log_lambda) = theta[3..].split_at(FEATURES);
        let openness =
            |j: usize| 1.0 / (1.0 + (2.0 * (log_tau + log_lambda[j])).exp() / (SLAB * SLAB));
        let scale = |j: usize| (log_tau + log_lambda[j]).exp() * openness(j).sqrt();
        let mut coefficients = vec![theta[0]];
        coefficients.extend((0..FEATURES).map(|j| z[j] * scale(j)));

        let precision = (-2.0 * log_sd).exp();
        let (mut squares, mut pulls) = (0.0, [0.0; FEATURES]);
        for (x, y) in &self.0 {
            let residual = y - linear(&coefficients, x);
            squares += residual * residual;
            score[0] += precision * residual;
            pulls.iter_mut().zip(x).for_each(|(pull, x)| *pull += precision * residual * x);
        }
        score[0] -= theta[0] / 100.0;
        score[1] = 1.0 - (log_sd.exp() / 5.0).powi(2) + precision * squares - self.0.len() as f64;
        score[2] = 1.0 - 2.0 * sigmoid(2.0 * (log_tau - GLOBAL.ln()));
        let mut sum = prior(theta[0], 0.0, 10.0) + priors(z, 1.0) + half_normal(log_sd, 5.0);
        sum += half_cauchy(log_tau, GLOBAL) + normals(squares, self.0.len(), log_sd);
        for (j, pull) in pulls.into_iter().enumerate() {
            let by_scale = pull * coefficients[1 + j] * openness(j);
            score[2] += by_scale;
            score[3 + j] = pull * scale(j) - z[j];
            score[3 + FEATURES + j] = by_scale + 1.0 - 2.0 * sigmoid(2.0 * log_lambda[j]);
            sum += half_cauchy(log_lambda[j], 1.0);
        }
        sum
    }
}
