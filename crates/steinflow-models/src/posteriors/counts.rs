//! Counts: of claims, insects, breaks, disasters and failures.

use super::densities::{
    Number, gamma, half_normal, linear, log_add, log_gamma, negative_binomial, normal, poisson,
    prior, priors,
};
use super::simulation::{Draws, rows};
use super::{Experiment, Generic, names, numbered};

/// Age, horsepower, year; then years insured, and claims.
pub(super) struct Claims(Vec<([f64; 3], f64, f64)>);

impl Experiment for Claims {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(100, |_| {
            let (age, power) = (draws.whole(18.0, 80.0), draws.whole(45.0, 250.0));
            let (year, insured) = (draws.whole(2005.0, 2019.0), draws.uniform(20.0, 900.0).round());
            let log_rate = 57.0 - 0.011 * age + 0.0035 * power - 0.0297 * year;
            ([age, power, year], insured, draws.poisson(insured * log_rate.exp()))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, age, power, year")
    }
}

impl Generic for Claims {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let likelihood: D = self
            .0
            .iter()
            .map(|(x, insured, claims)| poisson(*claims, linear(theta, x) + insured.ln()))
            .sum();
        prior(theta[0], 0.0, 1e3) + priors(&theta[1..], 1.0) + likelihood
    }
}

/// Tippett (1950): breaks of yarn for wool A and B, nine looms at low, medium and high tension.
pub(super) struct WarpBreaks;

const WARP_BREAKS: [[f64; 9]; 6] = [
    [26.0, 30.0, 54.0, 25.0, 70.0, 52.0, 51.0, 26.0, 67.0],
    [18.0, 21.0, 29.0, 17.0, 12.0, 18.0, 35.0, 30.0, 36.0],
    [36.0, 21.0, 24.0, 18.0, 10.0, 43.0, 28.0, 15.0, 26.0],
    [27.0, 14.0, 29.0, 19.0, 29.0, 31.0, 41.0, 20.0, 44.0],
    [42.0, 26.0, 19.0, 16.0, 39.0, 28.0, 21.0, 39.0, 29.0],
    [20.0, 21.0, 24.0, 17.0, 13.0, 15.0, 15.0, 16.0, 28.0],
];

impl Experiment for WarpBreaks {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, wool B, medium, high, log phi")
    }
}

impl Generic for WarpBreaks {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let mut sum = prior(theta[0], 0.0, 10.0) + priors(&theta[1..4], 2.0);
        sum += gamma(theta[4], 2.0, 0.1);
        for (group, breaks) in WARP_BREAKS.iter().enumerate() {
            let is = |condition: bool| f64::from(u8::from(condition));
            let features = [is(group >= 3), is(group % 3 == 1), is(group % 3 == 2)];
            let log_mean = linear(theta, &features);
            for &count in breaks {
                sum += negative_binomial(count, log_mean, theta[4]);
            }
        }
        sum
    }
}

/// Beall (1942): insects on twelve plots under each of six sprays.
pub(super) struct Sprays;

const SPRAYS: [[f64; 12]; 6] = [
    [10.0, 7.0, 20.0, 14.0, 14.0, 12.0, 10.0, 23.0, 17.0, 20.0, 14.0, 13.0],
    [11.0, 17.0, 21.0, 11.0, 16.0, 14.0, 17.0, 17.0, 19.0, 21.0, 7.0, 13.0],
    [0.0, 1.0, 7.0, 2.0, 3.0, 1.0, 2.0, 1.0, 3.0, 0.0, 1.0, 4.0],
    [3.0, 5.0, 12.0, 6.0, 4.0, 3.0, 5.0, 5.0, 5.0, 5.0, 2.0, 4.0],
    [3.0, 5.0, 3.0, 5.0, 3.0, 6.0, 1.0, 1.0, 3.0, 2.0, 6.0, 4.0],
    [11.0, 9.0, 15.0, 22.0, 15.0, 16.0, 13.0, 10.0, 26.0, 26.0, 24.0, 13.0],
];

impl Experiment for Sprays {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("mu, log tau").into_iter().chain(numbered("log rate", SPRAYS.len())).collect()
    }
}

impl Generic for Sprays {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (mu, log_tau) = (theta[0], theta[1]);
        let mut sum = prior(mu, 0.0, 5.0) + half_normal(log_tau, 2.0);
        for (&log_rate, insects) in theta[2..].iter().zip(&SPRAYS) {
            sum += normal(log_rate - mu, log_tau);
            sum += log_rate * insects.iter().sum::<f64>() - log_rate.exp() * insects.len() as f64;
        }
        sum
    }
}

/// Disasters in British coal mines by year, from 1851 (Jarrett 1979).
pub(super) struct Coal;

const COAL: [f64; 111] = [
    4.0, 5.0, 4.0, 0.0, 1.0, 4.0, 3.0, 4.0, 0.0, 6.0, 3.0, 3.0, 4.0, 0.0, 2.0, 6.0, 3.0, 3.0, 5.0,
    4.0, 5.0, 3.0, 1.0, 4.0, 4.0, 1.0, 5.0, 5.0, 3.0, 4.0, 2.0, 5.0, 2.0, 2.0, 3.0, 4.0, 2.0, 1.0,
    3.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 3.0, 1.0, 0.0,
    3.0, 2.0, 2.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0,
    1.0, 1.0, 0.0, 2.0, 3.0, 3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 2.0, 0.0, 0.0, 1.0,
    4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0,
];

impl Experiment for Coal {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("log early rate, log late rate")
    }
}

impl Generic for Coal {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (early, late) = (theta[0], theta[1]);
        // The change moves by a year, and with it one count from the late rate to the early one.
        let mut at_change: D = COAL.iter().map(|&count| poisson(count, late)).sum();
        let mut total = at_change;
        for &count in &COAL[..COAL.len() - 1] {
            at_change += poisson(count, early) - poisson(count, late);
            total = log_add(total, at_change);
        }
        gamma(early, 1.0, 0.3) + gamma(late, 1.0, 0.3) + total
    }
}

/// Gaver and O'Muircheartaigh (1987): thousands of hours that a pump ran, and its failures.
pub(super) struct Pumps;

const PUMPS: [(f64, f64); 10] = [
    (94.3, 5.0),
    (15.7, 1.0),
    (62.9, 5.0),
    (126.0, 14.0),
    (5.24, 3.0),
    (31.4, 19.0),
    (1.05, 1.0),
    (1.05, 1.0),
    (2.1, 4.0),
    (10.5, 22.0),
];

impl Experiment for Pumps {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("log alpha, log beta").into_iter().chain(numbered("log rate", PUMPS.len())).collect()
    }
}

impl Generic for Pumps {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (alpha, beta) = (theta[0].exp(), theta[1].exp());
        let mut sum = gamma(theta[0], 1.0, 1.0) + gamma(theta[1], 0.1, 1.0);
        sum += (alpha * theta[1] - log_gamma(alpha)) * PUMPS.len() as f64;
        for (&log_rate, &(hours, failures)) in theta[2..].iter().zip(&PUMPS) {
            sum += alpha * log_rate - beta * log_rate.exp();
            sum += poisson(failures, log_rate + hours.ln());
        }
        sum
    }
}
