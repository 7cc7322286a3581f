//! Outcomes in categories: yes or no, one of a few, ordered or not.

use super::densities::{
    Number, binomial, half_normal, linear, log_gamma, log_normal_cdf, prior, priors, sigmoid,
    softplus,
};
use super::simulation::{Draws, rows};
use super::{Experiment, Generic, names};

/// Temperature in °F and whether an O-ring failed, 23 flights before the Challenger's last (Dalal,
/// Fowlkes and Hoadley 1989).
pub(super) struct Challenger;

const SOUND: [f64; 16] = [
    66.0, 69.0, 68.0, 67.0, 72.0, 73.0, 70.0, 78.0, 67.0, 67.0, 75.0, 70.0, 81.0, 76.0, 79.0, 76.0,
];
const FAILED: [f64; 7] = [70.0, 57.0, 63.0, 70.0, 53.0, 75.0, 58.0];

impl Experiment for Challenger {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, temperature")
    }
}

impl Generic for Challenger {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let sound: D = SOUND.iter().map(|&t| softplus(linear(theta, &[t]))).sum();
        let failed: D = FAILED.iter().map(|&t| softplus(-linear(theta, &[t]))).sum();
        prior(theta[0], 0.0, 50.0) + prior(theta[1], 0.0, 1.0) - sound - failed
    }
}

/// Bliss (1935): log₁₀ dose of carbon disulphide, beetles, and how many died.
pub(super) struct Beetles;

const BEETLES: [(f64, f64, f64); 8] = [
    (1.6907, 59.0, 6.0),
    (1.7242, 60.0, 13.0),
    (1.7552, 62.0, 18.0),
    (1.7842, 56.0, 28.0),
    (1.8113, 63.0, 52.0),
    (1.8369, 59.0, 53.0),
    (1.8610, 62.0, 61.0),
    (1.8839, 60.0, 60.0),
];

impl Experiment for Beetles {
    fn observe(_: &mut Draws) -> Self {
        Self
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, dose")
    }
}

impl Generic for Beetles {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let mut sum = priors(theta, 100.0);
        for &(dose, beetles, died) in &BEETLES {
            let at = linear(theta, &[dose]);
            sum += log_normal_cdf(at) * died + log_normal_cdf(-at) * (beetles - died);
        }
        sum
    }
}

/// Income and debt in dollars, and whether the loan was lost; income and debt decide almost alone.
pub(super) struct Credit(Vec<([f64; 2], bool)>);

impl Experiment for Credit {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(60, |_| {
            let income = draws.uniform(18_000.0, 120_000.0).round();
            let debt = draws.uniform(0.0, 60_000.0).round();
            let log_odds = 1.0 - 4e-4 * income + 8e-4 * debt;
            ([income, debt], draws.chance(1.0 / (1.0 + (-log_odds).exp())))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, income, debt")
    }
}

impl Generic for Credit {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let likelihood: D = self
            .0
            .iter()
            .map(|(x, lost)| binomial(f64::from(u8::from(*lost)), 1.0, linear(theta, x)))
            .sum();
        prior(theta[0], 0.0, 20.0) + priors(&theta[1..], 1e-3) + likelihood
    }
}

/// Price in dollars, age of the house in years, and stars from 0 to 4.
pub(super) struct Ratings(Vec<([f64; 2], usize)>);

impl Experiment for Ratings {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(150, |_| {
            let (price, age) = (draws.uniform(35.0, 320.0).round(), draws.whole(1.0, 90.0));
            let unit = draws.uniform(0.0, 1.0);
            let taste = 0.016 * price - 0.02 * age + (unit / (1.0 - unit)).ln();
            ([price, age], [-1.5, 0.0, 1.3, 3.0].iter().filter(|&&cut| taste > cut).count())
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("price, age, cut, log gap[1], log gap[2], log gap[3]")
    }
}

impl Generic for Ratings {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let gaps: [D; 3] = std::array::from_fn(|k| theta[3 + k].exp());
        let mut cuts = [theta[2]; 4];
        for k in 0..3 {
            cuts[k + 1] = cuts[k] + gaps[k];
        }
        // ln(1 − e^−gap): σ(u) − σ(l) = σ(u) σ(−l) (1 − e^(l − u)).
        let widths = gaps.map(|gap| (-(-gap).exp_m1()).ln());
        let mut sum = priors(&theta[..2], 1.0) + prior(theta[2], 0.0, 10.0);
        sum += theta[3..].iter().map(|&log_gap| half_normal(log_gap, 5.0)).sum::<D>();
        for &([price, age], stars) in &self.0 {
            let taste = theta[0] * price + theta[1] * age;
            if stars > 0 {
                sum -= softplus(cuts[stars - 1] - taste);
            }
            if stars < 4 {
                sum -= softplus(taste - cuts[stars]);
            }
            if (1..4).contains(&stars) {
                sum += widths[stars - 1];
            }
        }
        sum
    }
}

/// Distance in km, income in thousands of dollars, and the choice: car, bus or bicycle.
pub(super) struct Commute(Vec<([f64; 2], usize)>);

impl Experiment for Commute {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(200, |_| {
            let features = [draws.uniform(0.5, 30.0), draws.whole(15.0, 140.0)];
            let bus = f64::exp(linear(&[1.2, 0.03, -0.025], &features));
            let bicycle = f64::exp(linear(&[2.5, -0.32, -0.004], &features));
            let unit = draws.uniform(0.0, 1.0 + bus + bicycle);
            (features, usize::from(unit > 1.0) + usize::from(unit > 1.0 + bus))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        let bus = "bus intercept, bus distance, bus income";
        names(&format!("{bus}, {}", bus.replace("bus", "bicycle")))
    }
}

impl Generic for Commute {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let mut sum = priors(&[theta[0], theta[3]], 10.0);
        sum += priors(&[theta[1], theta[2], theta[4], theta[5]], 1.0);
        for (features, choice) in &self.0 {
            let utilities =
                [D::zero(), linear(&theta[..3], features), linear(&theta[3..], features)];
            let best = utilities.iter().fold(D::zero(), |a, &b| if b > a { b } else { a });
            let total: D = utilities.iter().map(|&utility| (utility - best).exp()).sum();
            sum += utilities[*choice] - best - total.ln();
        }
        sum
    }
}

/// Dose in mg, animals in a litter, and how many grew a tumour.
pub(super) struct Tumours(Vec<(f64, f64, f64)>);

impl Experiment for Tumours {
    fn observe(draws: &mut Draws) -> Self {
        Self(rows(40, |i| {
            let (dose, animals) = ([0.0, 50.0, 100.0, 200.0][i % 4], draws.whole(8.0, 24.0));
            let mean = sigmoid(-1.9 + 0.009 * dose);
            let (a, b) = (draws.gamma(9.0 * mean), draws.gamma(9.0 * (1.0 - mean)));
            (dose, animals, draws.binomial(animals, a / (a + b)))
        }))
    }

    fn parameters(&self) -> Vec<String> {
        names("intercept, dose, log concentration")
    }
}

impl Generic for Tumours {
    fn log_density<D: Number>(&self, theta: &[D]) -> D {
        let concentration = theta[2].exp();
        let mut sum = prior(theta[0], 0.0, 5.0) + prior(theta[1], 0.0, 0.5);
        sum += prior(theta[2], 2.0, 1.5);
        for &(dose, animals, ill) in &self.0 {
            let log_odds = linear(theta, &[dose]);
            let (a, b) = (sigmoid(log_odds) * concentration, sigmoid(-log_odds) * concentration);
            sum +=
                log_gamma(a + ill) - log_gamma(a) + log_gamma(b + (animals - ill)) - log_gamma(b);
            sum += log_gamma(concentration) - log_gamma(concentration + animals);
        }
        sum
    }
}
