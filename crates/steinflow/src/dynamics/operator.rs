//! M = A + C as a linear map that is itself linear in a particle's coefficient row.
//!
//! A coefficient row is c = (1, c₁, …): the leading 1 carries the constant blocks. Because M(c) is
//! linear in c, Σⱼ wᵢⱼ M(cⱼ) = M(Σⱼ wᵢⱼ cⱼ), so a sum over particles of M applied to pairwise
//! differences needs only sums of coefficient rows. That is what makes the Stein field one pass of
//! kernel sums (`field::Stein`).

use std::ops::Range;

use super::structure::{Block, Structure};
use crate::engine::vectorised;
use crate::linalg::{spectral, symmetric_eigen};
use crate::{Error, Real, Result};

/// Which part of M acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// A + C.
    All,
    /// A alone.
    Diffusion,
    /// C alone.
    Curl,
}

/// How a block is read where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Orientation {
    Straight,
    /// −Bᵀ: the mirror image of a curl block.
    NegatedTranspose,
    /// The part above the diagonal, mirrored with the opposite sign.
    Skew,
}

#[derive(Clone, Debug)]
enum Values<T> {
    Scalar(T),
    Diagonal(Vec<T>),
    Full(Vec<T>),
    ScalarCoefficient(usize),
    DiagonalCoefficients(usize),
    FullCoefficients(usize),
}

/// A block of M.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    column: usize,
    diffusion: bool,
    orientation: Orientation,
    values: Values<T>,
}

/// M = A + C in one precision. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Operator<T> {
    dim: usize,
    width: usize,
    block_names: Vec<&'static str>,
    /// The blocks of each row of M.
    rows: Vec<Vec<Entry<T>>>,
    /// For every block, a factor L with LLᵀ = A where A is constant and full.
    constant_factors: Vec<Option<Vec<T>>>,
}

impl<T: Real> Operator<T> {
    /// Prepares a structure, which must be valid.
    pub fn new(structure: &Structure) -> Self {
        let cast = |values: &[f64]| values.iter().map(|&x| T::of(x)).collect::<Vec<_>>();
        let prepare = |block: &Block| match block {
            Block::Scalar(a) => Values::Scalar(T::of(*a)),
            Block::Diagonal(a) => Values::Diagonal(cast(a)),
            Block::Full(a) => Values::Full(cast(a.as_slice())),
            // Column 0 of the coefficient row is the constant 1.
            Block::ScalarCoefficient(k) => Values::ScalarCoefficient(k + 1),
            Block::DiagonalCoefficients(k) => Values::DiagonalCoefficients(k + 1),
            Block::FullCoefficients(k) => Values::FullCoefficients(k + 1),
        };
        let mut rows: Vec<Vec<Entry<T>>> = vec![Vec::new(); structure.blocks()];
        let mut constant_factors = vec![None; structure.blocks()];
        for (block, value) in &structure.diffusion {
            rows[*block].push(Entry {
                column: *block,
                diffusion: true,
                orientation: Orientation::Straight,
                values: prepare(value),
            });
            if let Block::Full(matrix) = value {
                let (values, vectors) = symmetric_eigen(matrix.as_slice(), structure.dim);
                constant_factors[*block] =
                    Some(cast(&spectral(&values, &vectors, |x| x.max(0.0).sqrt())));
            }
        }
        for (row, column, value) in &structure.curl {
            let mut push = |row: usize, column, orientation| {
                let values = prepare(value);
                rows[row].push(Entry { column, diffusion: false, orientation, values });
            };
            if row == column {
                push(*row, *column, Orientation::Skew);
            } else {
                push(*row, *column, Orientation::Straight);
                push(*column, *row, Orientation::NegatedTranspose);
            }
        }
        Self {
            dim: structure.dim,
            width: 1 + structure.coefficients(),
            block_names: structure.block_names(),
            rows,
            constant_factors,
        }
    }

    /// The same for some coordinates alone, where blocks are diagonal.
    pub(crate) fn strip(&self, columns: Range<usize>) -> Self {
        let (dim, width) = (columns.len(), 1 + (self.width - 1) / self.dim * columns.len());
        let cut = |entry: &Entry<T>| {
            let values = match &entry.values {
                Values::Diagonal(a) => Values::Diagonal(a[columns.clone()].to_vec()),
                // Numbered from 1; every such block has as many coefficients as there are coordinates.
                Values::DiagonalCoefficients(k) => {
                    Values::DiagonalCoefficients(1 + (k - 1) / self.dim * dim)
                }
                other => other.clone(),
            };
            Entry { values, ..*entry }
        };
        let rows = self.rows.iter().map(|entries| entries.iter().map(cut).collect()).collect();
        let (block_names, constant_factors) = (self.block_names.clone(), vec![None; self.blocks()]);
        Self { dim, width, block_names, rows, constant_factors }
    }

    /// The number of coordinates of θ, and of every block.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The number of blocks of the state.
    pub fn blocks(&self) -> usize {
        self.rows.len()
    }

    /// The length of a coefficient row, its leading 1 included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether A depends on the state.
    pub fn diffusion_varies(&self) -> bool {
        self.entries().any(|entry| entry.diffusion && entry.varies())
    }

    /// Whether C depends on the state.
    pub fn curl_varies(&self) -> bool {
        self.entries().any(|entry| !entry.diffusion && entry.varies())
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        self.rows.iter().flatten()
    }

    /// The entries of M(c) that may differ from zero, in an order that does not depend on c.
    pub(crate) fn nonzeros(&self, coefficients: &[T]) -> Vec<T> {
        let (dim, mut out) = (self.dim, Vec::new());
        let mut unit = vec![T::zero(); dim];
        let mut image = vec![T::zero(); dim];
        for entries in &self.rows {
            for column in 0..self.blocks() {
                let here: Vec<&Entry<T>> =
                    entries.iter().filter(|entry| entry.column == column).collect();
                if here.is_empty() {
                    continue;
                }
                if here.iter().any(|entry| entry.is_full()) {
                    for k in 0..dim {
                        unit[k] = T::one();
                        image.fill(T::zero());
                        for entry in &here {
                            entry.write(
                                (coefficients, T::one()),
                                unit.iter().copied(),
                                Base::Own,
                                None,
                                &mut image,
                            );
                        }
                        unit[k] = T::zero();
                        out.extend_from_slice(&image);
                    }
                } else {
                    // Diagonal blocks all of them: their image of (1, …, 1) is their diagonal.
                    unit.fill(T::one());
                    image.fill(T::zero());
                    for entry in &here {
                        entry.write(
                            (coefficients, T::one()),
                            unit.iter().copied(),
                            Base::Own,
                            None,
                            &mut image,
                        );
                    }
                    unit.fill(T::zero());
                    out.extend_from_slice(&image);
                }
            }
        }
        out
    }

    /// Adds `scale` · (M(c) u) to `out`, the blocks in `moving` one after the other.
    ///
    /// `input` is u, all blocks; `coefficients` is c with its leading 1, or a weighted sum of such
    /// rows.
    pub fn apply(
        &self,
        coefficients: &[T],
        input: &[T],
        moving: &[usize],
        terms: Terms,
        scale: T,
        out: &mut [T],
    ) {
        let dim = self.dim;
        for (&row, out) in moving.iter().zip(out.chunks_exact_mut(dim)) {
            for entry in self.entries_of(row).iter().filter(|entry| entry.is_in(terms)) {
                let u = &input[entry.column * dim..(entry.column + 1) * dim];
                entry.write((coefficients, scale), u.iter().copied(), Base::Own, None, out);
            }
        }
    }

    /// The blocks of a row of M.
    pub(crate) fn entries_of(&self, row: usize) -> &[Entry<T>] {
        &self.rows[row]
    }

    /// Writes share · (from + M(c) u) with u = rate · x in every block, the blocks in `moving` one after
    /// the other; `from` is `out` itself where there is none, and C counts `curl` times.
    pub(crate) fn write_sum(
        &self,
        (coefficients, from): (&[T], Option<&[T]>),
        (x, rates): (&[T], &[T]),
        (moving, terms, curl): (&[usize], Terms, T),
        share: Option<T>,
        out: &mut [T],
    ) {
        let dim = self.dim;
        for (slot, (&row, out)) in moving.iter().zip(out.chunks_exact_mut(dim)).enumerate() {
            let from = from.map(|from| &from[slot * dim..(slot + 1) * dim]);
            let mut base = from.map_or(Base::Own, Base::These);
            let acts = |entry: &Entry<T>| entry.is_in(terms) && rates[entry.column] != T::zero();
            let Some(last) = self.rows[row].iter().rposition(acts) else {
                write(base, std::iter::repeat(T::zero()), share, out);
                continue;
            };
            for (place, entry) in self.rows[row][..=last].iter().enumerate() {
                if acts(entry) {
                    let (x, rate) = (&x[entry.column * dim..][..dim], rates[entry.column]);
                    let (u, share) = (x.iter().map(|&x| rate * x), share.filter(|_| place == last));
                    entry.write((coefficients, entry.weight(curl)), u, base, share, out);
                    base = Base::Own;
                }
            }
        }
    }

    /// The blocks of u that M u reads for the blocks in `moving`, in order.
    pub(crate) fn blocks_read(&self, moving: &[usize], terms: Terms) -> Vec<usize> {
        let read = |block: usize| {
            let mut entries = moving.iter().flat_map(|&row| &self.rows[row]);
            entries.any(|entry| entry.column == block && entry.is_in(terms))
        };
        (0..self.blocks()).filter(|&block| read(block)).collect()
    }

    /// a where A of a block is a·I, at a particle with these coefficients; 0 where it has none.
    pub(crate) fn scalar_diffusion(&self, block: usize, coefficients: &[T]) -> Option<T> {
        let mut sum = T::zero();
        for entry in self.rows[block].iter().filter(|entry| entry.diffusion) {
            sum += match entry.values {
                Values::Scalar(a) => a,
                Values::ScalarCoefficient(k) => coefficients[k],
                _ => return None,
            };
        }
        Some(sum)
    }

    /// Checks that A is positive semidefinite at one particle, where it varies.
    pub(crate) fn check_diffusion(&self, coefficients: &[T], particle: usize) -> Result<()> {
        for (block, entries) in self.rows.iter().enumerate() {
            for entry in entries.iter().filter(|entry| entry.diffusion) {
                let lowest = match entry.values {
                    Values::ScalarCoefficient(k) => coefficients[k].as_f64(),
                    Values::DiagonalCoefficients(k) => coefficients[k..k + self.dim]
                        .iter()
                        .map(|x| x.as_f64())
                        .fold(f64::INFINITY, |a, b| if a < b { a } else { b }),
                    Values::FullCoefficients(k) => {
                        let (values, _) = self.eigen(&coefficients[k..k + self.dim * self.dim]);
                        let largest = values[self.dim - 1].abs();
                        let rounding = -1e3 * T::epsilon().as_f64() * largest;
                        if values[0] >= rounding { 0.0 } else { values[0] }
                    }
                    _ => 0.0,
                };
                if !(lowest >= 0.0) {
                    return Err(Error::NotPositiveSemidefinite {
                        block: self.block_names[block].to_owned(),
                        particle,
                        value: lowest,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds `scale` · √A n to `out`, the blocks in `moving` one after the other; `noise` holds n
    /// for those blocks, and A is block-diagonal.
    pub fn apply_diffusion_root(
        &self,
        coefficients: &[T],
        noise: &[T],
        moving: &[usize],
        scale: T,
        out: &mut [T],
    ) {
        let dim = self.dim;
        for (slot, &block) in moving.iter().enumerate() {
            let n = &noise[slot * dim..(slot + 1) * dim];
            let out = &mut out[slot * dim..(slot + 1) * dim];
            for entry in self.rows[block].iter().filter(|entry| entry.diffusion) {
                match &entry.values {
                    Values::Scalar(a) => add_scaled(out, n, |_| scale * a.sqrt()),
                    Values::Diagonal(a) => add_scaled(out, n, |i| scale * a[i].sqrt()),
                    Values::Full(_) => {
                        if let Some(factor) = &self.constant_factors[block] {
                            add_product(out, factor, n, scale);
                        }
                    }
                    Values::ScalarCoefficient(k) => {
                        add_scaled(out, n, |_| scale * coefficients[*k].sqrt());
                    }
                    Values::DiagonalCoefficients(k) => {
                        add_scaled(out, n, |i| scale * coefficients[k + i].sqrt());
                    }
                    Values::FullCoefficients(k) => {
                        let (values, vectors) = self.eigen(&coefficients[*k..k + dim * dim]);
                        let root = spectral(&values, &vectors, |x| x.max(0.0).sqrt());
                        let root: Vec<T> = root.into_iter().map(T::of).collect();
                        add_product(out, &root, n, scale);
                    }
                }
            }
        }
    }

    fn eigen(&self, matrix: &[T]) -> (Vec<f64>, Vec<f64>) {
        let matrix: Vec<f64> = matrix.iter().map(|x| x.as_f64()).collect();
        symmetric_eigen(&matrix, self.dim)
    }
}

fn add_scaled<T: Real>(out: &mut [T], u: &[T], entry: impl Fn(usize) -> T) {
    for (i, (out, &u)) in out.iter_mut().zip(u).enumerate() {
        *out += entry(i) * u;
    }
}

fn add_product<T: Real>(out: &mut [T], matrix: &[T], u: &[T], scale: T) {
    for (out, row) in out.iter_mut().zip(matrix.chunks_exact(u.len())) {
        let sum: T = row.iter().zip(u).map(|(&a, &u)| a * u).sum();
        *out += scale * sum;
    }
}

fn add_transposed_product<T: Real>(out: &mut [T], matrix: &[T], u: &[T], scale: T) {
    for (&u, row) in u.iter().zip(matrix.chunks_exact(u.len())) {
        for (out, &a) in out.iter_mut().zip(row) {
            *out += scale * (a * u);
        }
    }
}

fn add_skew_product<T: Real>(out: &mut [T], matrix: &[T], u: &[T], scale: T) {
    let dim = u.len();
    for i in 0..dim {
        for j in i + 1..dim {
            let a = scale * matrix[i * dim + j];
            out[i] += a * u[j];
            out[j] -= a * u[i];
        }
    }
}

/// What is added to.
#[derive(Clone, Copy)]
pub(crate) enum Base<'a, T> {
    Nothing,
    /// What is there already.
    Own,
    These(&'a [T]),
}

/// out = base + terms, times `share` where there is one.
fn write<T: Real>(
    base: Base<'_, T>,
    terms: impl Iterator<Item = T>,
    share: Option<T>,
    out: &mut [T],
) {
    vectorised(
        #[inline(always)]
        || {
            let numbers = out.iter_mut().zip(terms);
            match (base, share) {
                (Base::Nothing, None) => numbers.for_each(|(out, term)| *out = term),
                (Base::Nothing, Some(share)) => numbers.for_each(|(out, term)| *out = share * term),
                (Base::Own, None) => numbers.for_each(|(out, term)| *out += term),
                (Base::Own, Some(share)) => {
                    numbers.for_each(|(out, term)| *out = share * (*out + term));
                }
                (Base::These(from), None) => {
                    numbers.zip(from).for_each(|((out, term), &from)| *out = from + term);
                }
                (Base::These(from), Some(share)) => {
                    numbers.zip(from).for_each(|((out, term), &from)| *out = share * (from + term));
                }
            }
        },
    );
}

impl<T: Real> Entry<T> {
    /// Which block of u it reads.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    pub(crate) fn is_in(&self, terms: Terms) -> bool {
        match terms {
            Terms::All => true,
            Terms::Diffusion => self.diffusion,
            Terms::Curl => !self.diffusion,
        }
    }

    /// What it is multiplied by where C counts `curl` times.
    pub(crate) fn weight(&self, curl: T) -> T {
        if self.diffusion { T::one() } else { curl }
    }

    fn is_full(&self) -> bool {
        matches!(self.values, Values::Full(_) | Values::FullCoefficients(_))
    }

    fn varies(&self) -> bool {
        !matches!(self.values, Values::Scalar(_) | Values::Diagonal(_) | Values::Full(_))
    }

    /// Writes share · (base + scale · B(c) u), without a share for 1.
    pub(crate) fn write(
        &self,
        (coefficients, scale): (&[T], T),
        u: impl Iterator<Item = T>,
        base: Base<'_, T>,
        share: Option<T>,
        out: &mut [T],
    ) {
        let dim = out.len();
        let scale = match self.orientation {
            Orientation::NegatedTranspose => -scale,
            Orientation::Straight | Orientation::Skew => scale,
        };
        // Constant blocks are carried by the leading 1 of the coefficient row.
        let constant = scale * coefficients[0];
        match &self.values {
            Values::Scalar(a) => {
                let a = constant * *a;
                write(base, u.map(|u| a * u), share, out);
            }
            Values::Diagonal(a) => {
                write(base, a.iter().zip(u).map(|(&a, u)| constant * a * u), share, out);
            }
            Values::ScalarCoefficient(k) => {
                let a = scale * coefficients[*k];
                write(base, u.map(|u| a * u), share, out);
            }
            Values::DiagonalCoefficients(k) => {
                let a = &coefficients[*k..k + dim];
                write(base, a.iter().zip(u).map(|(&a, u)| scale * a * u), share, out);
            }
            Values::Full(a) => write(base, self.product(a, constant, u), share, out),
            Values::FullCoefficients(k) => {
                let a = &coefficients[*k..k + dim * dim];
                write(base, self.product(a, scale, u), share, out);
            }
        }
    }

    /// scale · B u for a full matrix; `scale` carries the sign.
    fn product(&self, matrix: &[T], scale: T, u: impl Iterator<Item = T>) -> std::vec::IntoIter<T> {
        let u: Vec<T> = u.collect();
        let mut out = vec![T::zero(); u.len()];
        match self.orientation {
            Orientation::Straight => add_product(&mut out, matrix, &u, scale),
            Orientation::NegatedTranspose => add_transposed_product(&mut out, matrix, &u, scale),
            Orientation::Skew => add_skew_product(&mut out, matrix, &u, scale),
        }
        out.into_iter()
    }
}
