//! Curves with parameters that mean something: growth, doses, enzymes, survival, and equations of
//! motion.

use super::densities::{
    Number, gamma, half_normal, linear, negative_binomial, normals, prior, sigmoid, square,
};
use super::simulation::{Draws, rows};
use super::{Experiment, Generic, names, numbered};

/// Treloar (1974): concentration of the substrate in parts per million, and counts per minute².
pub(super) struct Puromycin;

const PUROMYCIN: [(f64, f64); 12] = [
    (0.02, 76.0),
    (0.02, 47.0),
    (0.06, 97.0),
    (0.06, 107.0),
    (0.11, 123.0),
    (0.11, 139.0),
    (0.22, 159.0),
    (0.22, 152.0),
    (0.56, 191.0),
    (0.56, 201.0),
    (1.10, 207.0),
    (1.10, 200.0),
];

impl Experiment for Puromycin {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("fastest, log half, log sd")
    }
}

impl Generic for Puromycin {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (fastest, half) = (theta[0], theta[1].exp());
        let squares = PUROMYCIN
            .iter()
            .map(|&(dose, speed)| square(fastest * dose / (half + dose) - speed))
            .sum();
        prior(fastest, 0.0, 1_000.0)
            + prior(theta[1], -2.0, 2.0)
            + half_normal(theta[2], 50.0)
            + normals(squares, PUROMYCIN.len(), theta[2])
    }
}

/// Log concentration in nM and fluorescence.
pub(super) struct DoseResponse(Vec<(f64, f64)>);

impl Experiment for DoseResponse {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(33, |i| {
            let log_dose = (0.1 * 3.0_f64.powf((i / 3) as f64)).ln();
            let mean = 900.0 + 20_500.0 * sigmoid(1.2 * (log_dose - 3.4));
            (log_dose, draws.normal(mean, 800.0).round())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("bottom, top, log half, log slope, log sd")
    }
}

impl Generic for DoseResponse {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (bottom, top, slope) = (theta[0], theta[1], theta[3].exp());
        let squares = self
            .0
            .iter()
            .map(|&(log_dose, seen)| {
                let share = sigmoid(slope * (-theta[2] + log_dose));
                square(bottom + (top - bottom) * share - seen)
            })
            .sum();
        prior(bottom, 0.0, 1e4)
            + prior(top, 2e4, 2e4)
            + prior(theta[2], 3.0, 3.0)
            + prior(theta[3], 0.0, 1.0)
            + half_normal(theta[4], 5e3)
            + normals(squares, self.0.len(), theta[4])
    }
}

/// Draper and Smith (1998): circumference in mm of five trees, at the same days since planting.
pub(super) struct OrangeTrees;

const DAYS: [f64; 7] = [118.0, 484.0, 664.0, 1004.0, 1231.0, 1372.0, 1582.0];
const TREES: [[f64; 7]; 5] = [
    [30.0, 58.0, 87.0, 115.0, 120.0, 142.0, 145.0],
    [33.0, 69.0, 111.0, 156.0, 172.0, 203.0, 203.0],
    [30.0, 51.0, 75.0, 108.0, 115.0, 139.0, 140.0],
    [32.0, 62.0, 112.0, 167.0, 179.0, 209.0, 214.0],
    [30.0, 49.0, 81.0, 125.0, 142.0, 174.0, 177.0],
];

impl Experiment for OrangeTrees {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        let shared = names("mean asymptote, log tau, middle, log scale, log sd");
        shared.into_iter().chain(numbered("asymptote", TREES.len())).collect()
    }
}

impl Generic for OrangeTrees {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let (mean, log_tau, middle, log_sd) = (theta[0], theta[1], theta[2], theta[4]);
        let rate = (-theta[3]).exp();
        let shape: Vec<D> = DAYS.iter().map(|&day| sigmoid((-middle + day) * rate)).collect();
        let (mut within, mut between) = (D::zero(), D::zero());
        for (&asymptote, tree) in theta[5..].iter().zip(&TREES) {
            between += square(asymptote - mean);
            for (&shape, &size) in shape.iter().zip(tree) {
                within += square(asymptote * shape - size);
            }
        }
        prior(mean, 200.0, 100.0)
            + half_normal(log_tau, 100.0)
            + prior(middle, 700.0, 300.0)
            + prior(theta[3], 6.0, 1.0)
            + half_normal(log_sd, 30.0)
            + normals(between, TREES.len(), log_tau)
            + normals(within, TREES.len() * DAYS.len(), log_sd)
    }
}

/// Gehan (1965): weeks in remission with 6-MP (1) and without (0), and whether the end was seen.
pub(super) struct Leukaemia;

const REMISSIONS: [(f64, &[f64], &[f64]); 2] = [
    (
        1.0,
        &[6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0],
        &[6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0],
    ),
    (
        0.0,
        &[
            1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 8.0, 8.0, 8.0, 8.0, 11.0, 11.0, 12.0,
            12.0, 15.0, 17.0, 22.0, 23.0,
        ],
        &[],
    ),
];

impl Experiment for Leukaemia {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("log weeks, treatment, log shape")
    }
}

impl Generic for Leukaemia {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let shape = theta[2].exp();
        let mut sum = prior(theta[0], 2.0, 3.0) + prior(theta[1], 0.0, 3.0);
        sum += prior(theta[2], 0.0, 1.0);
        for (treated, ended, censored) in REMISSIONS {
            // S(t) = exp(−(t/scale)^shape); the density has the hazard as a factor besides.
            let log_hazard = |weeks: f64| shape * (-linear(theta, &[treated]) + weeks.ln());
            for &weeks in ended {
                sum += theta[2] + log_hazard(weeks) - log_hazard(weeks).exp();
            }
            for &weeks in censored {
                sum -= log_hazard(weeks).exp();
            }
        }
        sum
    }
}

/// One step of Runge and Kutta's fourth-order method for ẋ = rate(x).
fn runge_kutta<D: Number>(x: [D; 2], dt: f64, rate: impl Fn([D; 2]) -> [D; 2]) -> [D; 2] {
    let moved = |by: [D; 2], dt: f64| [x[0] + by[0] * dt, x[1] + by[1] * dt];
    let first = rate(x);
    let second = rate(moved(first, dt / 2.0));
    let third = rate(moved(second, dt / 2.0));
    let fourth = rate(moved(third, dt));
    let mean = |i: usize| first[i] + (second[i] + third[i]) * 2.0 + fourth[i];
    moved([mean(0), mean(1)], dt / 6.0)
}

/// Hewitt (1921): thousands of hare and lynx pelts, 1900–1920.
pub(super) struct HareLynx;

const HARES: [f64; 21] = [
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1, 40.3, 57.0, 76.6, 52.3, 19.5,
    11.2, 7.6, 14.6, 16.2, 24.7,
];
const LYNXES: [f64; 21] = [
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4, 8.0, 12.3, 19.5, 45.7, 51.1, 29.7,
    15.8, 9.7, 10.1, 8.6,
];

impl Experiment for HareLynx {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names(
            "log birth of hares, log hunt, log death of lynxes, log gain, log hares, log lynxes, \
             log sd of hares, log sd of lynxes",
        )
    }
}

impl Generic for HareLynx {
    /// In logarithms of both numbers, which keeps them positive: d ln h = α − βl, d ln l = δh − γ.
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        const STEPS_A_YEAR: usize = 10;
        let [birth, hunt, death, gain] = std::array::from_fn(|i| theta[i].exp());
        let rate = |x: [D; 2]| [birth - hunt * x[1].exp(), gain * x[0].exp() - death];
        let mut state = [theta[4], theta[5]];
        let mut squares = [D::zero(); 2];
        for year in 0..HARES.len() {
            squares[0] += square(state[0] - HARES[year].ln());
            squares[1] += square(state[1] - LYNXES[year].ln());
            for _ in 0..STEPS_A_YEAR {
                state = runge_kutta(state, 1.0 / STEPS_A_YEAR as f64, rate);
            }
        }
        let mut sum = prior(theta[0], -0.7, 0.5) + prior(theta[2], -0.2, 0.5);
        sum += prior(theta[1], -3.5, 0.7) + prior(theta[3], -3.5, 0.7);
        for i in 0..2 {
            sum += prior(theta[4 + i], 2.3, 1.0) + prior(theta[6 + i], -1.0, 1.0);
            sum += normals(squares[i], HARES.len(), theta[6 + i]);
        }
        sum
    }
}

/// Boys in bed on each day of an outbreak among 763 (British Medical Journal, 4 March 1978).
pub(super) struct Influenza;

const BOYS: f64 = 763.0;
const IN_BED: [f64; 14] =
    [3.0, 8.0, 26.0, 76.0, 225.0, 298.0, 258.0, 233.0, 189.0, 128.0, 68.0, 29.0, 14.0, 4.0];

impl Experiment for Influenza {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("log infection, log recovery, log first ill, log phi")
    }
}

impl Generic for Influenza {
    /// ṡ = −βsi, d ln i = βs − γ, with shares s and i of all boys.
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        const STEPS_A_DAY: usize = 8;
        let (infection, recovery) = (theta[0].exp(), theta[1].exp());
        let rate = |x: [D; 2]| {
            let pressure = infection * x[0];
            [-pressure * x[1].exp(), pressure - recovery]
        };
        let first = theta[2] - BOYS.ln();
        let mut state = [-first.exp() + 1.0, first];
        let mut sum = prior(theta[0], 0.5, 1.0) + prior(theta[1], -0.7, 1.0);
        sum += prior(theta[2], 0.0, 1.0) + gamma(theta[3], 1.0, 0.1);
        for &ill in &IN_BED {
            for _ in 0..STEPS_A_DAY {
                state = runge_kutta(state, 1.0 / STEPS_A_DAY as f64, rate);
            }
            sum += negative_binomial(ill, state[1] + BOYS.ln(), theta[3]);
        }
        sum
    }
}
