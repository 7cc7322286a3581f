//! Groups that share a law which is learned with them.

use super::densities::{
    Number, half_cauchy, half_normal, linear, normal, normals, prior, priors, sigmoid, softplus,
    square,
};
use super::simulation::{Draws, rows};
use super::{ByHand, Experiment, Generic, names, numbered};

/// Rubin (1981): effect of coaching and its standard error.
const SCHOOLS: [(f64, f64); 8] = [
    (28.0, 15.0),
    (8.0, 10.0),
    (-3.0, 16.0),
    (7.0, 11.0),
    (-1.0, 9.0),
    (1.0, 11.0),
    (18.0, 10.0),
    (12.0, 18.0),
];

fn school_parameters(effect: &str) -> Vec<String> {
    names("mu, log tau").into_iter().chain(numbered(effect, SCHOOLS.len())).collect()
}

fn school_priors<D: Number>(mu: D, log_tau: D) -> D {
    prior(mu, 0.0, 5.0) + half_cauchy(log_tau, 5.0)
}

/// θⱼ ~ N(μ, τ²).
pub(super) struct SchoolsCentred;

impl Experiment for SchoolsCentred {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        school_parameters("theta")
    }
}

impl Generic for SchoolsCentred {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (mu, log_tau) = (theta[0], theta[1]);
        let mut sum = school_priors(mu, log_tau);
        for (&effect, &(seen, error)) in theta[2..].iter().zip(&SCHOOLS) {
            sum += normal(effect - mu, log_tau) + prior(effect, seen, error);
        }
        sum
    }
}

/// θⱼ = μ + τ zⱼ.
pub(super) struct SchoolsNonCentred;

impl Experiment for SchoolsNonCentred {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        school_parameters("z")
    }
}

impl Generic for SchoolsNonCentred {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (mu, tau) = (theta[0], theta[1].exp());
        let mut sum = school_priors(mu, theta[1]) + priors(&theta[2..], 1.0);
        for (&z, &(seen, error)) in theta[2..].iter().zip(&SCHOOLS) {
            sum += prior(mu + tau * z, seen, error);
        }
        sum
    }
}

/// A house: its county, whether it was measured on the ground floor (1) or in the cellar (0), and
/// log radon.
struct House {
    county: usize,
    floor: f64,
    radon: f64,
}

/// Houses in counties whose soil holds so much uranium, in Bq/kg.
pub(super) struct RadonCentred {
    houses: Vec<House>,
    uranium: Vec<f64>,
}

impl Experiment for RadonCentred {
    fn observe(draws: &mut Draws) -> Self {
        let uranium = rows(20, |_| draws.uniform(12.0, 60.0).round());
        let intercepts = rows(20, |county| draws.normal(0.5 + 0.02 * uranium[county], 0.25));
        let houses = rows(200, |_| {
            let county = draws.whole(0.0, 19.0) as usize;
            let floor = f64::from(u8::from(draws.chance(0.2)));
            House { county, floor, radon: draws.normal(intercepts[county] - 0.65 * floor, 0.7) }
        });
        Self { houses, uranium }
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("intercept, uranium, floor, log tau, log sd");
        shared.into_iter().chain(numbered("county", self.uranium.len())).collect()
    }
}

impl Generic for RadonCentred {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (floor, log_tau, log_sd, counties) = (theta[2], theta[3], theta[4], &theta[5..]);
        let between = counties
            .iter()
            .zip(&self.uranium)
            .map(|(&county, &uranium)| square(county - linear(&theta[..2], &[uranium])))
            .sum();
        let within = self
            .houses
            .iter()
            .map(|house| square(counties[house.county] + floor * house.floor - house.radon))
            .sum();
        prior(theta[0], 0.0, 5.0)
            + prior(theta[1], 0.0, 1.0)
            + prior(floor, 0.0, 2.0)
            + half_normal(log_tau, 1.0)
            + half_normal(log_sd, 2.0)
            + normals(between, counties.len(), log_tau)
            + normals(within, self.houses.len(), log_sd)
    }
}

/// Houses in counties that differ in level and in what a floor does.
pub(super) struct RadonSlopes(Vec<House>);

const COUNTIES: usize = 12;

impl Experiment for RadonSlopes {
    fn observe(draws: &mut Draws) -> Self {
        let effects = rows(COUNTIES, |_| {
            let level = draws.normal(0.0, 1.0);
            (1.3 + 0.4 * level, draws.normal(-0.7 - 0.15 * level, 0.25))
        });
        Self(rows(180, |_| {
            let county = draws.whole(0.0, COUNTIES as f64 - 1.0) as usize;
            let floor = f64::from(u8::from(draws.chance(0.4)));
            let mean = effects[county].0 + effects[county].1 * floor;
            House { county, floor, radon: draws.normal(mean, 0.7) }
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("level, floor, log tau level, log tau floor, atanh rho, log sd");
        let levels = shared.into_iter().chain(numbered("z level", COUNTIES));
        levels.chain(numbered("z floor", COUNTIES)).collect()
    }
}

impl Generic for RadonSlopes {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (taus, rho, log_sd) = ([theta[2].exp(), theta[3].exp()], theta[4].tanh(), theta[5]);
        let (z_level, z_floor) = theta[6..].split_at(COUNTIES);
        // ½ ln(1 − ρ²). The prior LKJ(2) and the Jacobian of tanh are 1 − ρ² each.
        let log_rest = -theta[4].cosh().ln();
        let rest = log_rest.exp();
        let effects: Vec<(D, D)> = z_level
            .iter()
            .zip(z_floor)
            .map(|(&a, &b)| (theta[0] + taus[0] * a, theta[1] + taus[1] * (rho * a + rest * b)))
            .collect();
        let squares = self
            .0
            .iter()
            .map(|house| {
                let (level, slope) = effects[house.county];
                square(level + slope * house.floor - house.radon)
            })
            .sum();
        priors(&theta[..2], 5.0)
            + priors(&theta[6..], 1.0)
            + half_normal(theta[2], 1.0)
            + half_normal(theta[3], 1.0)
            + log_rest * 4.0
            + half_normal(log_sd, 2.0)
            + normals(squares, self.0.len(), log_sd)
    }
}

/// Whether a pupil (row) answered a question (column) right.
pub(super) struct ItemResponse(Vec<[bool; QUESTIONS]>);

const PUPILS: usize = 30;
const QUESTIONS: usize = 10;
/// Prior standard deviations of log discriminations and difficulties.
const LOG_DISCRIMINATION_SD: f64 = 0.5;
const DIFFICULTY_SD: f64 = 2.0;

impl Experiment for ItemResponse {
    fn observe(draws: &mut Draws) -> Self {
        let questions: [(f64, f64); QUESTIONS] =
            std::array::from_fn(|_| (draws.normal(0.2, 0.4).exp(), draws.normal(0.0, 1.0)));
        Self(rows(PUPILS, |_| {
            let ability = draws.normal(0.0, 1.0);
            questions
                .map(|(slope, difficulty)| draws.chance(sigmoid(slope * (ability - difficulty))))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let items =
            numbered("log discrimination", QUESTIONS).chain(numbered("difficulty", QUESTIONS));
        items.chain(numbered("ability", PUPILS)).collect()
    }
}

impl ByHand for ItemResponse {
    fn log_density_and_score(&self, theta: &[f64], score: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for (j, (score, &x)) in score.iter_mut().zip(theta).enumerate() {
            let sd = match j {
                ..QUESTIONS => LOG_DISCRIMINATION_SD,
                j if j < 2 * QUESTIONS => DIFFICULTY_SD,
                _ => 1.0,
            };
            *score = -x / (sd * sd);
            sum += prior(x, 0.0, sd);
        }
        for (pupil, answers) in self.0.iter().enumerate() {
            let i = 2 * QUESTIONS + pupil;
            for (j, &right) in answers.iter().enumerate() {
                let (slope, distance) = (theta[j].exp(), theta[i] - theta[QUESTIONS + j]);
                let log_odds = slope * distance;
                sum -= softplus(if right { -log_odds } else { log_odds });
                let pull = f64::from(u8::from(right)) - sigmoid(log_odds);
                score[j] += pull * log_odds;
                score[QUESTIONS + j] -= pull * slope;
                score[i] += pull * slope;
            }
        }
        sum
    }
}
