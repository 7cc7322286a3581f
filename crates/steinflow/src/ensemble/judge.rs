//! The stop rule: effective draws, R̂ over particles, and drift, from running sums.
//!
//! With y = (θ − middle)/spread, frozen before the first draw, it watches y, |y| and y² of every coordinate.
//! The spread of the particles' own means tells how much the draws of one are worth:
//! ESS = N·var(all)/var(means). Drift is z, the change of the mean between the two halves in its standard
//! errors. Where tails are heavy, a few far draws decide a standard deviation, and ESS of y² says little: its
//! relative standard error e counts too. It is 1/√(2 ESS) on a Gaussian, and draws are worth no more than
//! 1/e².

use crate::arrays::{Arrays, FOREIGN};
use crate::{Matrix, Result};

/// Draws of the first batches; they are joined by twos when there are [`MOST_BATCHES`].
const FIRST_BATCH: usize = 5;
const MOST_BATCHES: usize = 16;
/// What is watched of every coordinate.
const WATCHED: usize = 3;

/// What draws so far are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Effective draws of the coordinate that has fewest.
    pub effective: f64,
    /// R̂ of the coordinate that mixes worst.
    pub rhat: f64,
    /// |z| of the coordinate that drifts most.
    pub drift: f64,
    /// The largest relative standard error of a standard deviation.
    pub sd_error: f64,
}

/// Running sums.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judge {
    middle: Vec<f64>,
    spread: Vec<f64>,
    pub(super) draws: usize,
    batch: usize,
    /// Sums over the draws of a batch, particles × watched; the last is still being filled.
    sums: Vec<Matrix<f64>>,
    filled: usize,
    /// Sums of squares over all draws and particles.
    squares: Vec<f64>,
}

impl Judge {
    pub(super) fn new(middle: Vec<f64>, spread: Vec<f64>, particles: usize) -> Self {
        let watched = WATCHED * middle.len();
        Self {
            middle,
            spread,
            draws: 0,
            batch: FIRST_BATCH,
            sums: vec![Matrix::zeros(particles, watched)],
            filled: 0,
            squares: vec![0.0; watched],
        }
    }

    pub(super) fn add(&mut self, theta: &Matrix<f64>) {
        let dim = self.middle.len();
        if self.filled == self.batch {
            self.next_batch();
        }
        let sums = self.sums.last_mut().expect("one is always being filled");
        let (squares_of_y, others) = self.squares.split_at_mut(dim);
        let (squares_of_size, squares_of_square) = others.split_at_mut(dim);
        for i in 0..theta.rows() {
            let (of_y, others) = sums.row_mut(i).split_at_mut(dim);
            let (of_size, of_square) = others.split_at_mut(dim);
            for (j, &x) in theta.row(i).iter().enumerate() {
                let y = (x - self.middle[j]) / self.spread[j];
                let square = y * y;
                of_y[j] += y;
                of_size[j] += y.abs();
                of_square[j] += square;
                squares_of_y[j] += square;
                squares_of_size[j] += square;
                squares_of_square[j] += square * square;
            }
        }
        self.filled += 1;
        self.draws += 1;
    }

    fn next_batch(&mut self) {
        if self.sums.len() == MOST_BATCHES {
            let halves = std::mem::take(&mut self.sums);
            self.sums = halves.chunks_exact(2).map(|pair| sum(pair.iter())).collect();
            self.batch *= 2;
        }
        let last = &self.sums[0];
        self.sums.push(Matrix::zeros(last.rows(), last.cols()));
        self.filled = 0;
    }

    pub(super) fn verdict(&self) -> Verdict {
        let all = sum(self.sums.iter());
        let whole = self.sums.len() - usize::from(self.filled < self.batch);
        let half = whole / 2;
        let drifts = (half > 0).then(|| {
            let (first, second) =
                (sum(self.sums[..half].iter()), sum(self.sums[half..2 * half].iter()));
            Matrix::from_fn(all.rows(), all.cols(), |i, k| second.row(i)[k] - first.row(i)[k])
        });
        let (draws, particles) = (self.draws as f64, all.rows() as f64);
        let mut worst = Verdict { effective: f64::INFINITY, rhat: 0.0, drift: 0.0, sd_error: 0.0 };
        let (dim, mut means) = (self.middle.len(), Vec::<f64>::with_capacity(all.cols()));
        for k in 0..all.cols() {
            let of =
                |sums: &Matrix<f64>| mean_and_variance((0..all.rows()).map(|i| sums.row(i)[k]));
            let (mean, between) = of(&all);
            let (mean, between) = (mean / draws, (between / (draws * draws)).max(1e-300));
            let square = self.squares[k] / (draws * particles);
            let total = square - mean * mean;
            // Σᵢ meanᵢ² = (N − 1)·between + N·mean².
            let of_means = (particles - 1.0) / particles * between + mean * mean;
            let within = ((square - of_means) * draws / (draws - 1.0)).max(1e-300);
            let mut effective = particles * total / between;
            if k >= 2 * dim {
                let variance = mean - means[k - 2 * dim].powi(2);
                let error = 0.5 * (between / particles).sqrt() / variance;
                worst.sd_error = worst.sd_error.max(error);
                effective = effective.min(error.powi(-2));
            }
            worst.effective = worst.effective.min(effective);
            means.push(mean);
            worst.rhat = worst.rhat.max(((draws - 1.0) / draws + between / within).sqrt());
            worst.drift = worst.drift.max(drifts.as_ref().map_or(f64::INFINITY, |drifts| {
                let (mean, variance) = of(drifts);
                mean.abs() / ((variance / particles).sqrt() + 1e-300)
            }));
        }
        worst
    }

    pub(super) fn save(&self, into: &mut Arrays) {
        into.put("judge.middle", &*self.middle);
        into.put("judge.spread", &*self.spread);
        let counts = [self.draws, self.batch, self.filled].map(|count| count as f64);
        into.put("judge.counts", counts);
        into.put("judge.squares", &*self.squares);
        let sums = self.sums.iter().flat_map(Matrix::as_slice);
        into.put("judge.sums", sums.copied().collect::<Vec<_>>());
    }

    pub(super) fn restore(count: usize, dim: usize, from: &Arrays) -> Result<Self> {
        let watched = WATCHED * dim;
        let counts = from.get_exactly("judge.counts", 3)?;
        let sums = from.get("judge.sums")?.chunks(count * watched);
        let batch = |sums: &[f64]| Matrix::from_vec(sums.to_vec(), count, watched).ok_or(FOREIGN);
        let sums = sums.map(batch).collect::<Result<Vec<_>>>()?;
        if sums.is_empty() {
            return Err(FOREIGN);
        }
        Ok(Self {
            middle: from.get_exactly("judge.middle", dim)?,
            spread: from.get_exactly("judge.spread", dim)?,
            draws: counts[0] as usize,
            batch: counts[1] as usize,
            filled: counts[2] as usize,
            sums,
            squares: from.get_exactly("judge.squares", watched)?,
        })
    }
}

fn sum<'a>(mut all: impl Iterator<Item = &'a Matrix<f64>>) -> Matrix<f64> {
    let mut out = all.next().expect("there is at least one batch").clone();
    for matrix in all {
        out.as_mut_slice().iter_mut().zip(matrix.as_slice()).for_each(|(o, x)| *o += x);
    }
    out
}

/// With n − 1.
fn mean_and_variance(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (mean, values.map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::Judge;
    use crate::Matrix;
    use crate::testing::random_states;

    fn judged(draws: usize, draw: impl Fn(usize) -> Matrix<f64>) -> Judge {
        let mut judge = Judge::new(vec![0.0; 2], vec![1.0; 2], 50);
        (0..draws).for_each(|k| judge.add(&draw(k)));
        judge
    }

    #[test]
    fn independent_draws_are_all_effective() {
        let verdict = judged(163, |k| random_states(50, 2, k as u64)).verdict();
        // 50·163 = 8150 draws; the least of six estimates, each with a spread of 20 %.
        assert!((4000.0..10_000.0).contains(&verdict.effective), "{verdict:?}");
        assert!(verdict.rhat < 1.02 && verdict.drift < 4.0, "{verdict:?}");
    }

    #[test]
    fn stuck_particles_do_not_mix_and_a_trend_is_a_drift() {
        let apart = random_states(50, 2, 1);
        let stuck = judged(100, |k| {
            let noise = random_states(50, 2, k as u64);
            Matrix::from_fn(50, 2, |i, j| apart.row(i)[j] + 0.5 * noise.row(i)[j])
        });
        let verdict = stuck.verdict();
        assert!(verdict.rhat > 1.5 && verdict.effective < 100.0, "{verdict:?}");
        let trend = judged(100, |k| {
            let noise = random_states(50, 2, k as u64);
            Matrix::from_fn(50, 2, |i, j| noise.row(i)[j] + 0.01 * k as f64)
        });
        assert!(trend.verdict().drift > 5.0, "{:?}", trend.verdict());
    }

    #[test]
    fn batches_change_nothing_but_the_halves() {
        // 320 draws are joined to 16 batches of 20: the halves are draws 0..160 and 160..320.
        let draws: Vec<Matrix<f64>> = (0..320).map(|k| random_states(50, 2, k)).collect();
        let verdict = judged(320, |k| draws[k].clone()).verdict();
        let mut drift: f64 = 0.0;
        for j in 0..2 {
            for of in [|x: f64| x, |x: f64| x.abs(), |x: f64| x * x] {
                let change = |i: usize| {
                    let half = |from: usize| -> f64 {
                        draws[from..from + 160].iter().map(|draw| of(draw.row(i)[j])).sum()
                    };
                    half(160) - half(0)
                };
                let (mean, variance) = super::mean_and_variance((0..50).map(change));
                drift = drift.max(mean.abs() / (variance / 50.0).sqrt());
            }
        }
        assert!((verdict.drift - drift).abs() < 1e-9, "{} against {drift}", verdict.drift);
    }
}
