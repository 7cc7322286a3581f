//! Linear coordinates: z = centre + s ⊙ (u + U(r − 1)Uᵀu), fitted from positions and scores.
//!
//! With A = L Lᵀ, L: u ↦ z − centre, the fit solves A Cov(∇log π) A = Cov(z): the A in which positions
//! and scores have the same covariance. On a Gaussian it is the covariance itself, whatever rows it is
//! fitted from. Dense up to [`DENSE`] dimensions, above it diagonal plus low rank.

use rayon::prelude::*;

use super::balance::{balanced, in_basis, joint_basis, project, second_moments, spectral};
use crate::arrays::{Arrays, FOREIGN};
use crate::engine::Gemm;
use crate::quantiles::median;
use crate::{MatRef, Result};

/// The largest dimension with a dense matrix.
pub(super) const DENSE: usize = 100;
/// Rows that one thread maps; fixed, since the bits of a product may depend on it.
const STRIP: usize = 32;
/// Multiplications that are worth other threads.
const PARALLEL: usize = 1 << 19;

/// log(1 + |u + ∇log π(u)|²) over rows, which is 0 on any Gaussian and bounded in what a far row adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Misfit {
    pub(super) median: f64,
    pub(super) mean: f64,
}

impl Misfit {
    /// Whether typical rows are nearer by so much, and the rest no further.
    pub(super) fn is_below(self, other: Self, worth: f64) -> bool {
        self.median < other.median - worth && self.mean < other.mean
    }
}

/// z = centre + L u.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    centre: Vec<f64>,
    /// s.
    scale: Vec<f64>,
    /// U, d × k, orthonormal columns.
    basis: Vec<f64>,
    /// r.
    stretch: Vec<f64>,
    /// Lᵀ as rows, (I + U(r − 1)Uᵀ) diag(s), where U is square.
    lift: Vec<f64>,
}

impl Linear {
    /// u = z.
    pub fn identity(dim: usize) -> Self {
        Self::diagonal(vec![0.0; dim], vec![1.0; dim])
    }

    /// z = centre + s ⊙ u.
    pub fn diagonal(centre: Vec<f64>, scale: Vec<f64>) -> Self {
        Self { centre, scale, basis: Vec::new(), stretch: Vec::new(), lift: Vec::new() }
    }

    /// Fits L to rows of positions and of scores at them.
    ///
    /// ```
    /// use steinflow::{Matrix, coordinates::Linear, testing::random_states};
    /// // N(10⁴, 10⁻⁶): scores are −(z − 10⁴)·10⁶.
    /// let noise = random_states(20, 1, 1);
    /// let positions = Matrix::from_fn(20, 1, |i, _| 1e4 + 1e-3 * noise.row(i)[0]);
    /// let scores = Matrix::from_fn(20, 1, |i, _| -1e3 * noise.row(i)[0]);
    /// let linear = Linear::fit(positions.as_ref(), scores.as_ref());
    /// assert!((linear.log_determinant() - 1e-3_f64.ln()).abs() < 1e-6);
    /// ```
    pub fn fit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Self {
        // Where rows abound, a second pass in the first one's coordinates undoes what little
        // shrinking does at condition numbers beyond its inverse.
        let abound = positions.rows() >= 5 * positions.cols();
        Self::fit_in_passes(positions, scores, if abound { 2 } else { 1 })
    }

    /// The same for rows that are not draws yet, whose smallest directions are not to be believed.
    pub fn fit_roughly(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Self {
        Self::fit_in_passes(positions, scores, 1)
    }

    fn fit_in_passes(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>, passes: usize) -> Self {
        let (rows, dim) = (positions.rows(), positions.cols());
        if rows == 0 {
            return Self::identity(dim);
        }
        let (centre, mut x) = centred(positions);
        let (mean_score, mut g) = centred(scores);
        let (mut spread_x, mut spread_g) = (root_mean_squares(&x, dim), root_mean_squares(&g, dim));
        for j in 0..dim {
            // Coordinates that vary by no more than rounding say nothing of their scale.
            let (x, g) = (&mut spread_x[j], &mut spread_g[j]);
            if *x <= 1e-14 * centre[j].abs() || *g <= 1e-14 * mean_score[j].abs() {
                (*x, *g) = (1.0, 1.0);
            }
        }
        let scale = spread_x.iter().zip(&spread_g).map(|(x, g)| (x / g).sqrt()).collect();
        // Both are brought to the same root mean square, their geometric mean, which is 1 for a
        // coordinate that depends on no other.
        for (row_x, row_g) in x.chunks_exact_mut(dim).zip(g.chunks_exact_mut(dim)) {
            for j in 0..dim {
                let common = (spread_x[j] * spread_g[j]).clamp(1e-8, 1e8).sqrt();
                row_x[j] *= common / spread_x[j];
                row_g[j] *= common / spread_g[j];
            }
        }
        let mut linear = Self::diagonal(centre, scale);
        let squares: Vec<f64> = root_mean_squares(&x, dim).iter().map(|x| x * x).collect();
        let directions = (dim > DENSE).then(|| joint_basis(&x, &g, dim));
        if let Some(basis) = &directions {
            (x, g) = (project(&x, basis, dim), project(&g, basis, dim));
        }
        let width = x.len() / rows;
        let alone = in_basis(&squares, directions.as_deref(), width);
        let (cx, cg) = (second_moments(&x, width), second_moments(&g, width));
        let shrink = if rows >= 5 * dim {
            1e-5
        } else if rows >= 2 * dim {
            0.02
        } else {
            0.1
        };
        let (mut values, vectors) = balanced(&cx, &cg, alone, width, shrink, passes);
        let largest = values[width - 1];
        if !largest.is_finite() || largest <= 0.0 {
            return linear;
        }
        for w in &mut values {
            *w = w.max(1e-13 * largest);
        }
        let kept: Vec<usize> = (0..width)
            .filter(|&k| directions.is_none() || !(0.5..=2.0).contains(&values[k]))
            .collect();
        let mut chosen = vec![0.0; width * kept.len()];
        for (i, row) in chosen.chunks_exact_mut(kept.len().max(1)).enumerate() {
            row.iter_mut().zip(&kept).for_each(|(out, &k)| *out = vectors[i * width + k]);
        }
        linear.stretch = kept.iter().map(|&k| values[k].sqrt()).collect();
        linear.basis = match directions {
            Some(basis) => {
                let mut out = vec![0.0; dim * kept.len()];
                f64::product(&basis, &chosen, &mut out, dim, kept.len(), width);
                out
            }
            None => chosen,
        };
        linear.prepare();
        linear
    }

    /// How far rows and their scores are from N(0, I) once linear coordinates are fitted to them.
    pub(super) fn least_misfit(positions: MatRef<'_, f64>, scores: MatRef<'_, f64>) -> Misfit {
        let linear = Self::fit(positions, scores);
        let (rows, dim) = (positions.rows(), positions.cols());
        let (mut white, mut down) = (vec![0.0; rows * dim], vec![0.0; rows * dim]);
        linear.from_position(positions.as_slice(), &mut white);
        // The mean of the scores is 0 but for chance, which the centre has its share of.
        linear.down(&centred(scores).1, &mut down);
        let log = |(u, s): (&[f64], &[f64])| {
            u.iter().zip(s).map(|(u, s)| (u + s).powi(2)).sum::<f64>().ln_1p()
        };
        let logs: Vec<f64> = white.chunks_exact(dim).zip(down.chunks_exact(dim)).map(log).collect();
        Misfit { mean: logs.iter().sum::<f64>() / rows as f64, median: median(logs) }
    }

    /// Forms what is derived: the dense matrix.
    fn prepare(&mut self) {
        let dim = self.dim();
        if self.stretch.len() == dim {
            self.lift = spectral(&self.stretch, &self.basis, |r| r);
            for row in self.lift.chunks_exact_mut(dim) {
                row.iter_mut().zip(&self.scale).for_each(|(entry, s)| *entry *= s);
            }
        }
    }

    /// The number of coordinates.
    pub fn dim(&self) -> usize {
        self.scale.len()
    }

    /// Where u = 0 lies.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    pub(crate) fn set_centre(&mut self, centre: Vec<f64>) {
        self.centre = centre;
    }

    /// log |det L|.
    pub fn log_determinant(&self) -> f64 {
        self.scale.iter().chain(&self.stretch).map(|x| x.ln()).sum()
    }

    /// L p for every row p: a velocity in z from one in u. Without the centre.
    pub fn up(&self, white: &[f64], out: &mut [f64]) {
        if self.lift.is_empty() {
            self.stretched(white, out, |r| r - 1.0);
            self.by_scale(out, |x, s| x * s);
        } else {
            by_strips(white, out, self.dim(), |white, out, rows, dim| {
                f64::product(white, &self.lift, out, rows, dim, dim);
            });
        }
    }

    /// Lᵀ g for every row g: a score with respect to u from one with respect to z.
    pub fn down(&self, scores: &[f64], out: &mut [f64]) {
        if self.lift.is_empty() {
            let mut scaled = scores.to_vec();
            self.by_scale(&mut scaled, |x, s| x * s);
            self.stretched(&scaled, out, |r| r - 1.0);
        } else {
            by_strips(scores, out, self.dim(), |scores, out, rows, dim| {
                f64::product_transposed(scores, &self.lift, out, rows, dim, dim);
            });
        }
    }

    /// L⁻¹ x for every row x: the inverse of [`Self::up`].
    pub fn white(&self, differences: &[f64], out: &mut [f64]) {
        let mut scaled = differences.to_vec();
        self.by_scale(&mut scaled, |x, s| x / s);
        self.stretched(&scaled, out, |r| 1.0 / r - 1.0);
    }

    /// z = centre + L u.
    pub fn to_position(&self, white: &[f64], out: &mut [f64]) {
        self.up(white, out);
        for row in out.chunks_exact_mut(self.dim()) {
            row.iter_mut().zip(&self.centre).for_each(|(x, c)| *x += c);
        }
    }

    /// u = L⁻¹(z − centre).
    pub fn from_position(&self, positions: &[f64], out: &mut [f64]) {
        let mut differences = positions.to_vec();
        for row in differences.chunks_exact_mut(self.dim()) {
            row.iter_mut().zip(&self.centre).for_each(|(x, c)| *x -= c);
        }
        self.white(&differences, out);
    }

    fn by_scale(&self, rows: &mut [f64], change: impl Fn(f64, f64) -> f64) {
        for row in rows.chunks_exact_mut(self.dim()) {
            row.iter_mut().zip(&self.scale).for_each(|(x, &s)| *x = change(*x, s));
        }
    }

    /// out = rows + U diag(gain(r)) Uᵀ rows.
    fn stretched(&self, rows: &[f64], out: &mut [f64], gain: impl Fn(f64) -> f64 + Sync) {
        let rank = self.stretch.len();
        by_strips(rows, out, self.dim(), |rows, out, count, dim| {
            out.copy_from_slice(rows);
            if rank > 0 {
                let mut along = vec![0.0; count * rank];
                f64::product(rows, &self.basis, &mut along, count, rank, dim);
                for row in along.chunks_exact_mut(rank) {
                    row.iter_mut().zip(&self.stretch).for_each(|(a, &r)| *a *= gain(r));
                }
                f64::accumulate_product_transposed(&along, &self.basis, out, count, dim, rank);
            }
        });
    }

    pub(crate) fn save(&self, name: &str, into: &mut Arrays) {
        into.put(format!("{name}.centre"), &*self.centre);
        into.put(format!("{name}.scale"), &*self.scale);
        into.put(format!("{name}.basis"), &*self.basis);
        into.put(format!("{name}.stretch"), &*self.stretch);
    }

    pub(crate) fn restore(name: &str, dim: usize, from: &Arrays) -> Result<Self> {
        let mut linear = Self::diagonal(
            from.get_exactly(&format!("{name}.centre"), dim)?,
            from.get_exactly(&format!("{name}.scale"), dim)?,
        );
        linear.stretch = from.get(&format!("{name}.stretch"))?.to_vec();
        if linear.stretch.len() > dim {
            return Err(FOREIGN);
        }
        linear.basis = from.get_exactly(&format!("{name}.basis"), dim * linear.stretch.len())?;
        linear.prepare();
        Ok(linear)
    }
}

/// Maps strips of rows, on several threads where that pays; the cuts do not depend on the threads.
pub(super) fn by_strips(
    rows: &[f64],
    out: &mut [f64],
    dim: usize,
    map: impl Fn(&[f64], &mut [f64], usize, usize) + Sync,
) {
    if rows.len() * dim.min(DENSE) < PARALLEL {
        map(rows, out, rows.len() / dim, dim);
        return;
    }
    let strips = out.par_chunks_mut(STRIP * dim).zip(rows.par_chunks(STRIP * dim));
    strips.for_each(|(out, rows)| map(rows, out, rows.len() / dim, dim));
}

/// The mean of the rows, and the rows without it.
fn centred(rows: MatRef<'_, f64>) -> (Vec<f64>, Vec<f64>) {
    let (count, dim) = (rows.rows(), rows.cols());
    let mut mean = vec![0.0; dim];
    for row in rows.as_slice().chunks_exact(dim) {
        mean.iter_mut().zip(row).for_each(|(m, x)| *m += x / count as f64);
    }
    let mut out = rows.as_slice().to_vec();
    for row in out.chunks_exact_mut(dim) {
        row.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m);
    }
    (mean, out)
}

/// Of every column; never quite 0, so that one may divide.
pub(super) fn root_mean_squares(rows: &[f64], dim: usize) -> Vec<f64> {
    let mut sums = vec![0.0; dim];
    for row in rows.chunks_exact(dim) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * x);
    }
    let count = (rows.len() / dim) as f64;
    sums.iter().map(|sum| (sum / count).sqrt() + 1e-150).collect()
}

#[cfg(test)]
mod tests {
    use super::Linear;
    use crate::Matrix;
    use crate::testing::random_states;

    /// A rotation in d dimensions: a product of Householder reflections.
    fn rotated(rows: &mut [f64], dim: usize, seed: u64) {
        let axes = random_states(3, dim, seed);
        for row in rows.chunks_exact_mut(dim) {
            for k in 0..3 {
                let axis = axes.row(k);
                let norm: f64 = axis.iter().map(|a| a * a).sum();
                let along: f64 = axis.iter().zip(row.iter()).map(|(a, x)| a * x).sum();
                row.iter_mut().zip(axis).for_each(|(x, a)| *x -= 2.0 * along / norm * a);
            }
        }
    }

    /// Rows of N(μ, Σ) and their scores, for Σ with the given standard deviations along rotated axes.
    fn gaussian(count: usize, sds: &[f64], offset: f64, seed: u64) -> (Matrix<f64>, Matrix<f64>) {
        let dim = sds.len();
        let noise = random_states(count, dim, seed);
        let mut x = Matrix::from_fn(count, dim, |i, j| noise.row(i)[j] * sds[j]);
        let mut g = Matrix::from_fn(count, dim, |i, j| -noise.row(i)[j] / sds[j]);
        rotated(x.as_mut_slice(), dim, seed + 1);
        rotated(g.as_mut_slice(), dim, seed + 1);
        x.as_mut_slice().iter_mut().for_each(|x| *x += offset);
        (x, g)
    }

    /// How far Lᵀ·(score of N(μ, Σ)) at L u + centre is from −u, up to a constant: what makes it N(0, I).
    fn distance_from_white(linear: &Linear, sds: &[f64], seed: u64) -> f64 {
        let dim = sds.len();
        let (x, g) = gaussian(50, sds, 0.0, seed);
        let (mut u, mut score) = (vec![0.0; 50 * dim], vec![0.0; 50 * dim]);
        linear.white(x.as_slice(), &mut u);
        linear.down(g.as_slice(), &mut score);
        let norm: f64 = u.iter().map(|u| u * u).sum();
        (u.iter().zip(&score).map(|(u, s)| (u + s).powi(2)).sum::<f64>() / norm).sqrt()
    }

    #[test]
    fn a_gaussian_of_condition_1e8_becomes_white() {
        for dim in [1, 3, 20] {
            let top = (dim.max(2) - 1) as f64;
            let sds: Vec<f64> = (0..dim).map(|j| 1e-2 * 1e4_f64.powf(j as f64 / top)).collect();
            let (x, g) = gaussian(10 * dim, &sds, 1e4, 7);
            let linear = Linear::fit(x.as_ref(), g.as_ref());
            let off = distance_from_white(&linear, &sds, 7);
            // What shrinking by 1e-5 leaves after two passes.
            assert!(off < 1e-2, "{dim} dimensions: {off}");
            let expected: f64 = sds.iter().map(|s| s.ln()).sum();
            assert!((linear.log_determinant() - expected).abs() < 1e-2 * dim as f64);
        }
    }

    #[test]
    fn above_100_dimensions_a_few_directions_are_found() {
        // N(0, I) stretched 30-fold along one diagonal of the cube and shrunk as much along another.
        let dim = 150;
        let diagonals = Matrix::from_fn(2, dim, |k, j| {
            let sign = if k == 1 && j % 2 == 1 { -1.0 } else { 1.0 };
            sign / (dim as f64).sqrt()
        });
        let noise = random_states(900, dim, 3);
        let stretched = |factors: [f64; 2]| {
            let mut out = noise.clone();
            for i in 0..900 {
                for (k, factor) in factors.iter().enumerate() {
                    let axis = diagonals.row(k);
                    let along: f64 = axis.iter().zip(noise.row(i)).map(|(a, x)| a * x).sum();
                    let row = out.row_mut(i).iter_mut().zip(axis);
                    row.for_each(|(x, a)| *x += (factor - 1.0) * along * a);
                }
            }
            out
        };
        let (x, inverse) = (stretched([30.0, 1.0 / 30.0]), stretched([1.0 / 30.0, 30.0]));
        let g = Matrix::from_fn(900, dim, |i, j| -inverse.row(i)[j]);
        let linear = Linear::fit(x.as_ref(), g.as_ref());
        assert_eq!(linear.stretch.len(), 2);
        let (mut u, mut score) = (vec![0.0; 900 * dim], vec![0.0; 900 * dim]);
        linear.white(x.as_slice(), &mut u);
        linear.down(g.as_slice(), &mut score);
        let norm: f64 = u.iter().map(|u| u * u).sum();
        let off: f64 = u.iter().zip(&score).map(|(u, s)| (u + s).powi(2)).sum();
        assert!((off / norm).sqrt() < 0.05, "{}", (off / norm).sqrt());
    }

    #[test]
    fn white_undoes_up_and_down_is_its_transpose() {
        for (dim, rows) in [(4, 40), (130, 60)] {
            let sds: Vec<f64> = (0..dim).map(|j| 0.1 + j as f64).collect();
            let (x, g) = gaussian(rows, &sds, 1.0, 5);
            let linear = Linear::fit(x.as_ref(), g.as_ref());
            let (p, q) = (random_states(6, dim, 1), random_states(6, dim, 2));
            let (mut raised, mut back) = (vec![0.0; 6 * dim], vec![0.0; 6 * dim]);
            linear.up(p.as_slice(), &mut raised);
            linear.white(&raised, &mut back);
            for (a, b) in p.as_slice().iter().zip(&back) {
                assert!((a - b).abs() < 1e-9, "{a} against {b}");
            }
            // q·(L p) = (Lᵀ q)·p.
            linear.down(q.as_slice(), &mut back);
            for i in 0..6 {
                let rows = i * dim..(i + 1) * dim;
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
                let left = dot(q.row(i), &raised[rows.clone()]);
                let right = dot(&back[rows], p.row(i));
                assert!((left - right).abs() < 1e-9 * (1.0 + left.abs()), "{left} and {right}");
            }
        }
    }
}
