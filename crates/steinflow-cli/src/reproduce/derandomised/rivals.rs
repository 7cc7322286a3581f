//! The laws with their exact answers, and what points are compared with.

use rand::Rng as _;
use steinflow::Matrix;
use steinflow::random::{Purpose, stream};

/// Coordinates of the laws.
pub const DIM: usize = 5;

/// Independent coordinates of one law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// N(0, 1).
    Normal,
    /// The logarithm of Γ(4): log π(x) = 4x − eˣ.
    LogGamma,
}

impl Law {
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LogGamma => "log-gamma",
        }
    }

    pub fn log_density(self, x: f64) -> f64 {
        match self {
            Self::Normal => -0.5 * x * x,
            Self::LogGamma => 4.0 * x - x.exp(),
        }
    }

    pub fn score(self, x: f64) -> f64 {
        match self {
            Self::Normal => -x,
            Self::LogGamma => 4.0 - x.exp(),
        }
    }

    /// t: about one standard deviation above the mean.
    fn threshold(self) -> f64 {
        match self {
            Self::Normal => 1.0,
            Self::LogGamma => 1.75,
        }
    }

    /// E x, E x², E eˣ, P(x > t).
    pub fn truth(self) -> [f64; 4] {
        match self {
            Self::Normal => [0.0, 1.0, 0.5_f64.exp(), 0.158_655_253_931_457],
            Self::LogGamma => {
                // Of log Γ(4): digamma and trigamma of 4.
                let (mean, variance) = (1.256_117_668_431_800_5, 0.283_822_955_737_115_4);
                [mean, variance + mean * mean, 4.0, above(self.threshold())]
            }
        }
    }

    fn of(self, x: f64) -> [f64; 4] {
        [x, x * x, x.exp(), f64::from(u8::from(x > self.threshold()))]
    }

    /// What is averaged at every point: x, x², eˣ and x > t of every coordinate.
    pub fn values(self, points: &Matrix<f64>) -> Matrix<f64> {
        Matrix::from_fn(points.rows(), 4 * DIM, |i, k| self.of(points.row(i)[k / 4])[k % 4])
    }

    pub fn scores(self, points: &Matrix<f64>) -> Matrix<f64> {
        Matrix::from_fn(points.rows(), DIM, |i, j| self.score(points.row(i)[j]))
    }

    /// Independent draws.
    pub fn draws(self, count: usize, seed: u64) -> Matrix<f64> {
        let mut generator = stream(seed, Purpose::Exact, count as u64, 0);
        Matrix::from_fn(count, DIM, |_, _| {
            let mut uniform = || (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 + 1e-17;
            self.at(uniform(), uniform())
        })
    }

    /// Halton's sequence, shifted at random.
    pub fn lattice(self, count: usize, seed: u64) -> Matrix<f64> {
        const PRIMES: [u64; 10] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];
        let mut generator = stream(seed, Purpose::Exact, 0, 1);
        let shifts = PRIMES.map(|_| (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64);
        let uniform = |i: usize, k: usize| (radical(i as u64 + 1, PRIMES[k]) + shifts[k]).fract();
        match self {
            // Two coordinates of two numbers.
            Self::Normal => Matrix::from_fn(count, DIM, |i, j| {
                let (u, v) = (uniform(i, j / 2 * 2), uniform(i, j / 2 * 2 + 1));
                let (radius, angle) = ((-2.0 * (1.0 - u).ln()).sqrt(), std::f64::consts::TAU * v);
                if j % 2 == 0 { radius * angle.cos() } else { radius * angle.sin() }
            }),
            Self::LogGamma => Matrix::from_fn(count, DIM, |i, j| quantile(uniform(i, j))),
        }
    }

    /// A draw from two uniform numbers.
    fn at(self, u: f64, v: f64) -> f64 {
        match self {
            Self::Normal => (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos(),
            Self::LogGamma => quantile(u),
        }
    }
}

/// P(x > t) of log Γ(4): a Poisson law's first four terms.
fn above(t: f64) -> f64 {
    let y = t.exp();
    (-y).exp() * (1.0 + y + y * y / 2.0 + y.powi(3) / 6.0)
}

fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-20.0, 5.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if 1.0 - above(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The digits of i mirrored at the point.
fn radical(mut i: u64, base: u64) -> f64 {
    let (mut value, mut place) = (0.0, 1.0 / base as f64);
    while i > 0 {
        value += (i % base) as f64 * place;
        (i, place) = (i / base, place / base as f64);
    }
    value
}

/// Which of the draws greedily lower the kernel Stein discrepancy (Riabiz et al. 2022), with the inverse
/// multiquadric of width √d. Coordinates should have variances of about 1.
pub fn thinned(draws: &Matrix<f64>, scores: &Matrix<f64>, count: usize) -> Vec<usize> {
    let (dim, width) = (draws.cols(), draws.cols() as f64);
    let stein = |a: usize, b: usize| {
        let (x, y, s, t) = (draws.row(a), draws.row(b), scores.row(a), scores.row(b));
        let (mut square, mut product, mut along) = (0.0, 0.0, 0.0);
        for j in 0..dim {
            let difference = x[j] - y[j];
            square += difference * difference;
            product += s[j] * t[j];
            along += (s[j] - t[j]) * difference;
        }
        let q = 1.0 + square / width;
        product * q.powf(-0.5) + q.powf(-1.5) * (along + width) / width
            - 3.0 * q.powf(-2.5) * square / (width * width)
    };
    let mut costs: Vec<f64> = (0..draws.rows()).map(|i| 0.5 * stein(i, i)).collect();
    let mut chosen = Vec::with_capacity(count);
    for _ in 0..count {
        let best = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
        chosen.push(best);
        for (i, cost) in costs.iter_mut().enumerate() {
            *cost += stein(i, best);
        }
    }
    chosen
}

/// Averages of the columns of `values` with control variates: what is left of each once its regression on
/// Δp + s·∇p is taken out, for all polynomials p of degree 2 (Mira, Solgi and Imparato 2013).
pub fn controlled(draws: &Matrix<f64>, scores: &Matrix<f64>, values: &Matrix<f64>) -> Vec<f64> {
    let dim = draws.cols();
    let features = |i: usize| {
        let (x, s) = (draws.row(i), scores.row(i));
        let mut row = vec![1.0];
        row.extend(s);
        for j in 0..dim {
            for k in j..dim {
                let both = s[j] * x[k] + s[k] * x[j];
                row.push(if j == k { both + 2.0 } else { both });
            }
        }
        row
    };
    let rows: Vec<Vec<f64>> = (0..draws.rows()).map(features).collect();
    let width = rows[0].len();
    // Normal equations with the right-hand sides of all functions beside them.
    let mut system = vec![vec![0.0; width + values.cols()]; width];
    for (i, row) in rows.iter().enumerate() {
        for (out, &own) in system.iter_mut().zip(row) {
            let all = row.iter().chain(values.row(i));
            out.iter_mut().zip(all).for_each(|(out, other)| *out += own * other);
        }
    }
    for (k, row) in system.iter_mut().enumerate() {
        row[k] += 1e-9 * draws.rows() as f64;
    }
    eliminate(&mut system, width);
    system[0][width..].iter().map(|value| value / system[0][0]).collect()
}

/// Averages of the columns.
pub fn averages(values: &Matrix<f64>) -> Vec<f64> {
    let mean = |j: usize| (0..values.rows()).map(|i| values.row(i)[j]).sum::<f64>();
    (0..values.cols()).map(|j| mean(j) / values.rows() as f64).collect()
}

/// Makes the first `width` columns diagonal; they are symmetric and positive.
fn eliminate(system: &mut [Vec<f64>], width: usize) {
    for k in 0..width {
        let pivot = system[k].clone();
        for (_, row) in system.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
    }
}
