//! Bandwidth rules: h in exp(−d²/h) from the distances d between particles.
//!
//! | rule | h | where it is used |
//! |---|---|---|
//! | `median-log` | med(d over i<j)²/log N | BlackJAX; the default |
//! | `liu-wang` | med(d² over all N×N, diagonal included)/log(N + 1) | Liu and Wang's code |
//! | `numpyro` | med(d over all N×N, diagonal included)²/log N | `NumPyro` |
//! | `median` | med(d over i<j)² | |
//! | `white`, `white:F` | F h₀, h₀ = 2d(1 − 2/(9d))³/log N: `median-log` of N(0, I), whatever the particles | F = 1 unless given |
//!
//! **Cost.** Up to [`EXACT_PAIRS`] pairs the median is exact, by selection. Above, it is that of about
//! [`SAMPLED_PAIRS`] pairs, always the same ones: every particle with the one that stands a fixed
//! pseudo-random shift after it, for as many shifts as are needed. The rank of the sampled median is off
//! by about 0.5/√32768 = 0.28 % (one standard error), and h by 0.9 % in 2 dimensions and 0.1 % in 54.
//!
//! **Fallbacks.** One particle has no distances, and h = 1 (any h gives the same velocity). When
//! the rule gives 0, because at least half of the pairs coincide, the mean of d² takes the place
//! of the squared median; when that is 0 too, h = 1.

use rayon::prelude::*;

use super::select::at_ranks;
use crate::engine::{Factor, rows_per_task, squared_distances_of_pairs, squared_distances_to_rows};
use crate::{Error, MatRef, Real, Result};

/// The largest number of pairs whose median is exact: N ≤ 256.
pub const EXACT_PAIRS: usize = 256 * 255 / 2;
/// How many pairs a larger set of particles is judged by.
pub const SAMPLED_PAIRS: usize = 1 << 15;

/// How the bandwidth is chosen. See the module's documentation.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Bandwidth {
    /// med(d over i<j)²/log N.
    #[default]
    MedianLog,
    /// med(d² over N×N)/log(N + 1).
    LiuWang,
    /// med(d over N×N)²/log N.
    NumPyro,
    /// med(d over i<j)².
    Median,
    /// factor · h₀, with h₀ what `MedianLog` gives for many particles of N(0, I) in as many coordinates: held,
    /// as it depends on the numbers of particles and coordinates alone.
    White {
        /// What h₀ is multiplied by.
        factor: f64,
    },
    /// A given h: one for all, or one for every block of a product kernel.
    Fixed(Vec<f64>),
}

impl Bandwidth {
    /// The same h everywhere.
    pub fn fixed(h: f64) -> Self {
        Self::Fixed(vec![h])
    }

    /// The names of the rules.
    pub const RULES: [&str; 5] = ["median-log", "liu-wang", "numpyro", "median", "white"];

    /// Reads a rule's name, `white:` and its factor, a number, or numbers separated by commas.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "median-log" => Ok(Self::MedianLog),
            "liu-wang" => Ok(Self::LiuWang),
            "numpyro" => Ok(Self::NumPyro),
            "median" => Ok(Self::Median),
            "white" => Ok(Self::White { factor: 1.0 }),
            _ if text.starts_with("white:") => match text["white:".len()..].parse() {
                Ok(factor) => Ok(Self::White { factor }),
                Err(_) => Err(Error::setting("bandwidth", text, "give a number after `white:`")),
            },
            _ => match text.split(',').map(|part| part.trim().parse()).collect() {
                Ok(values) => Ok(Self::Fixed(values)),
                Err(_) => Err(Error::unknown("bandwidth rule", text, Self::RULES)),
            },
        }
    }

    /// h for these points, one a row, all coordinates together.
    pub fn of<T: Real>(&self, points: MatRef<'_, T>) -> f64 {
        self.choose(&Factor::new(points, T::one()), None, 0, &mut 0.0)
    }

    /// h for the centred particles as the kernel's factor number `group` sees them; `known` holds
    /// their squared distances where they are kept. `middle` is about where the middle of the squared
    /// distances might be, or 0, and is told where it was: that saves time and changes nothing.
    pub(crate) fn choose<T: Real>(
        &self,
        points: &Factor<'_, T>,
        known: Option<MatRef<'_, T>>,
        group: usize,
        middle: &mut f64,
    ) -> f64 {
        if let Self::Fixed(values) = self {
            return *values.get(group).unwrap_or(&values[0]);
        }
        let n = points.count();
        if n < 2 {
            return 1.0;
        }
        if let Self::White { factor } = self {
            let d = points.coordinates() as f64;
            return factor * 2.0 * d * (1.0 - 2.0 / (9.0 * d)).powi(3) / (n as f64).ln();
        }
        let mut squares = match known {
            Some(known) => lower_triangle(known),
            None => squared_distances(points),
        };
        let log_n = (n as f64).ln();
        let (square, divisor) = match self {
            Self::MedianLog => (median_distance(&mut squares, 0, middle).powi(2), log_n),
            Self::Median => (median_distance(&mut squares, 0, middle).powi(2), 1.0),
            Self::NumPyro => (median_distance(&mut squares, n, middle).powi(2), log_n),
            Self::LiuWang => {
                let median = median_with_diagonal(&mut squares, n, middle, |x| x);
                (median, (n as f64 + 1.0).ln())
            }
            Self::Fixed(_) | Self::White { .. } => unreachable!("answered above"),
        };
        let square = if square > 0.0 { square } else { mean(&squares) };
        if square > 0.0 { square / divisor } else { 1.0 }
    }
}

/// The entries below the diagonal.
fn lower_triangle<T: Real>(matrix: MatRef<'_, T>) -> Vec<T> {
    let n = matrix.rows();
    let mut entries = Vec::with_capacity(n * (n - 1) / 2);
    for i in 1..n {
        entries.extend_from_slice(&matrix.row(i)[..i]);
    }
    entries
}

/// The median distance; with `diagonal` = N > 0, over the N×N matrix with its zero diagonal.
fn median_distance<T: Real>(squares: &mut [T], diagonal: usize, middle: &mut f64) -> f64 {
    median_with_diagonal(squares, diagonal, middle, f64::sqrt)
}

/// The median of `of(d²)` over `diagonal` zeros and every squared distance twice (once, when there
/// is no diagonal: the median is the same): the mean of the two middle values.
fn median_with_diagonal<T: Real>(
    squares: &mut [T],
    diagonal: usize,
    middle: &mut f64,
    of: impl Fn(f64) -> f64,
) -> f64 {
    let pairs = squares.len();
    let (total, zeros) = if diagonal == 0 {
        (pairs, 0)
    } else {
        // Sampled pairs stand for all of them: scale the diagonal's share to the sample.
        let all_pairs = diagonal * (diagonal - 1) / 2;
        let zeros = (diagonal as f64 * pairs as f64 / all_pairs as f64).round() as usize;
        (2 * pairs + zeros, zeros)
    };
    let copies = if diagonal == 0 { 1 } else { 2 };
    // Which pair stands at a rank; none for the diagonal.
    let pair_at = |rank: usize| rank.checked_sub(zeros).map(|rank| rank / copies);
    let (low, high) = (pair_at((total - 1) / 2), pair_at(total / 2));
    let Some(high) = high else { return of(0.0) };
    let (lower, upper) = at_ranks(squares, low.unwrap_or(high), high, *middle);
    *middle = upper.as_f64();
    let lower = low.map_or(T::zero(), |_| lower);
    0.5 * (of(lower.as_f64()) + of(upper.as_f64()))
}

fn mean<T: Real>(squares: &[T]) -> f64 {
    squares.iter().map(|x| x.as_f64()).sum::<f64>() / squares.len() as f64
}

/// Squared distances of all pairs i<j, or of the sampled pairs.
fn squared_distances<T: Real>(points: &Factor<'_, T>) -> Vec<T> {
    let (n, d) = (points.count(), points.coordinates());
    let pairs = n * (n - 1) / 2;
    if pairs <= EXACT_PAIRS {
        let mut squares = vec![T::zero(); pairs];
        let (others, stride) = points.rows();
        let mut rest = squares.as_mut_slice();
        for i in 1..n {
            // Row i of the lower triangle: the distances to particles 0 … i − 1.
            let (row, next) = rest.split_at_mut(i);
            squared_distances_to_rows(points.row(i), others, stride, row);
            rest = next;
        }
        return squares;
    }
    // Particle after particle with the one that stands a shift further on; when there are more
    // particles than pairs are wanted, every so many of them.
    let (stride, shifts) = (n.div_ceil(SAMPLED_PAIRS), SAMPLED_PAIRS.div_ceil(n));
    let firsts = n.div_ceil(stride);
    let mut squares = vec![T::zero(); firsts * shifts];
    if shifts > 1 && d <= BY_COORDINATE {
        let columns = points.by_coordinate();
        let rounds = squares.par_chunks_mut(n).enumerate().with_min_len(rows_per_task(n * d));
        rounds.for_each(|(number, squares)| {
            let shift = nth_shift(number, n);
            let (ahead, around) = squares.split_at_mut(n - shift);
            squared_distances_of_pairs(&columns, n, 0, shift, ahead);
            squared_distances_of_pairs(&columns, n, n - shift, 0, around);
        });
        return squares;
    }
    squares.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, squares)| {
        for (at, square) in squares.iter_mut().enumerate() {
            let pair = chunk * CHUNK + at;
            let i = pair % firsts * stride;
            // With one shift for all, every pair would miss the same neighbours.
            let shift = nth_shift(if shifts == 1 { pair } else { pair / firsts }, n);
            squared_distances_to_rows(
                points.row(i),
                points.row((i + shift) % n),
                d,
                std::slice::from_mut(square),
            );
        }
    });
    squares
}

/// Pairs that one task looks at.
const CHUNK: usize = 1 << 12;

/// Up to this many coordinates, many sampled pairs are looked at side by side; with more, a pair alone is
/// work enough.
const BY_COORDINATE: usize = 64;

/// A fixed pseudo-random shift from 1 to n − 1 for every number (by the finaliser of SplitMix64).
fn nth_shift(number: usize, n: usize) -> usize {
    let mut x = (number as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    1 + (x % (n as u64 - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random_states;

    /// All distances of the N×N matrix, sorted.
    fn sorted(points: MatRef<'_, f64>) -> Vec<f64> {
        let n = points.rows();
        let mut all = Vec::with_capacity(n * n);
        for i in 0..n {
            for j in 0..n {
                let pairs = points.row(i).iter().zip(points.row(j));
                all.push(pairs.map(|(a, b)| (a - b).powi(2)).sum());
            }
        }
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn rules_agree_with_a_full_sort() {
        // Below, at, and above the number of particles whose pairs are all looked at.
        for n in [7, 100, 256, 257, 3000] {
            // One standard error of h where pairs are sampled: 0.28 % of the rank, over the density of
            // χ² at its median.
            for (d, standard_error) in [(2, 0.009), (20, 0.0023)] {
                let tolerance = if n <= 256 { 1e-12 } else { 2.0 * standard_error };
                let points = random_states(n, d, 3);
                let all = sorted(points.as_ref());
                let median = |values: &[f64]| {
                    let half = values.len() / 2;
                    let (low, high) = (values[(values.len() - 1) / 2], values[half]);
                    (0.5 * (low.sqrt() + high.sqrt()), 0.5 * (low + high))
                };
                let (distance, _) = median(&all[n..]);
                let (with_diagonal, square) = median(&all);
                let log_n = (n as f64).ln();
                for (rule, expected) in [
                    (Bandwidth::MedianLog, distance.powi(2) / log_n),
                    (Bandwidth::Median, distance.powi(2)),
                    (Bandwidth::NumPyro, with_diagonal.powi(2) / log_n),
                    (Bandwidth::LiuWang, square / (n as f64 + 1.0).ln()),
                ] {
                    let found = rule.of(points.as_ref());
                    let error = (found / expected - 1.0).abs();
                    assert!(error < tolerance, "{rule:?}, N = {n}, d = {d}: {error}");
                }
                // The points are normal, so that h₀ is near their own median: 4 % for 3000.
                if n == 3000 {
                    let white = Bandwidth::parse("white:2").unwrap().of(points.as_ref());
                    let error = (white / (2.0 * distance.powi(2) / log_n) - 1.0).abs();
                    assert!(error < 0.04, "{error}");
                }
            }
        }
    }
}
