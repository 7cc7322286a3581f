//! Rank 0: hands out rows, does its own share, and puts the answers in their places.

use std::ops::Range;
use std::sync::Arc;

use steinflow::engine::{Factor, KernelSums, batch_sums, write_kernel_sums};
use steinflow::kernel::Radial;
use steinflow::team::{ROWS_OF_A_CUT, Team, share};
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

use crate::wire::{self, broadcast};
use crate::words::{
    Kind, announce, broadcast_numbers, receive_answer, receive_numbers, send_numbers,
};

/// Particles between which the target's evaluation may be cut: whole tiles of a regression.
pub(crate) const PARTICLES_OF_A_CUT: usize = 16;

/// Up to this many particles kernel sums take less time than messages, and are cut nowhere.
const FEW: usize = 256;

/// A run that other ranks help with, until it is dropped.
pub struct Session {
    _private: (),
}

impl Session {
    /// Tells the others what run it is, in words that they understand, and how many threads to take (0: as many as
    /// there are cores); an error is that of the first who cannot.
    /// None where there are no others.
    pub fn begin(description: &str, threads: usize) -> Result<Option<Self>> {
        if !wire::has_joined() {
            return Ok(None);
        }
        announce((Kind::Begin, [description.len() as u64, threads as u64, 0]));
        broadcast(&mut description.as_bytes().to_vec());
        let session = Self { _private: () };
        all_agree()?;
        Ok(Some(session))
    }

    /// Kernel sums by all ranks.
    pub fn team<T: Real>(&self) -> Arc<dyn Team<T>> {
        Arc::new(Ranks { size: wire::size() })
    }

    /// The target, evaluated by all ranks.
    pub fn target<D>(&self, target: D) -> OverRanks<D> {
        OverRanks { target, size: wire::size() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        announce((Kind::End, [0; 3]));
    }
}

/// Sends the others home: nothing more will be asked.
pub fn dismiss() {
    announce((Kind::Quit, [0; 3]));
}

/// Hears from all others whether they could do what was asked.
fn all_agree() -> Result<()> {
    let answers = (1..wire::size()).map(|rank| (rank, receive_answer(rank)));
    // All are heard, so that no answer is left for the next question.
    let wrong: Vec<String> = answers
        .filter_map(|(rank, answer)| answer.err().map(|message| format!("rank {rank}: {message}")))
        .collect();
    wrong.into_iter().next().map_or(Ok(()), |message| Err(Error::User(message.into())))
}

/// All ranks, as those who share kernel sums.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    size: usize,
}

/// What a request for kernel sums begins with: sizes, and then rates, points and right-hand sides.
pub(crate) struct Shape {
    pub radial: Radial,
    pub count: usize,
    /// Columns of the points, and of every right-hand side.
    pub points: usize,
    pub widths: Vec<usize>,
    /// The columns that every factor looks at.
    pub columns: Vec<Range<usize>>,
}

impl Shape {
    fn of<T: Real>(sums: &KernelSums<'_, T>) -> Self {
        let rhs = std::iter::once(&sums.values).chain(sums.slopes);
        Self {
            radial: sums.radial,
            count: sums.values.rows(),
            points: sums.factors[0].points().cols(),
            widths: rhs.map(MatRef::cols).collect(),
            columns: sums.factors.iter().map(Factor::columns).collect(),
        }
    }

    /// Numbers of so many particles.
    pub(crate) fn numbers(&self, count: usize) -> usize {
        self.columns.len() + count * (self.points + self.widths.iter().sum::<usize>())
    }

    fn words(&self) -> Vec<u64> {
        let radial = Radial::ALL.iter().position(|radial| *radial == self.radial).unwrap_or(0);
        let mut words = vec![radial, self.count, self.points, self.widths.len()];
        words.extend(&self.widths);
        words.extend(self.columns.iter().flat_map(|columns| [columns.start, columns.end]));
        words.into_iter().map(|word| word as u64).collect()
    }

    pub(crate) fn read(words: &[u64]) -> Self {
        let words: Vec<usize> = words.iter().map(|&word| word as usize).collect();
        let (widths, columns) = words[4..].split_at(words[3]);
        Self {
            radial: Radial::ALL[words[0]],
            count: words[1],
            points: words[2],
            widths: widths.to_vec(),
            columns: columns.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect(),
        }
    }
}

/// Rates, and then the points and right-hand sides of some particles.
fn numbers_of<T: Real>(sums: &KernelSums<'_, T>, rows: Range<usize>) -> Vec<T> {
    let mut numbers: Vec<T> = sums.factors.iter().map(Factor::rate).collect();
    let points = sums.factors[0].points();
    for matrix in [&points, &sums.values].into_iter().chain(sums.slopes) {
        let cols = matrix.cols();
        numbers.extend_from_slice(&matrix.as_slice()[rows.start * cols..rows.end * cols]);
    }
    numbers
}

/// Puts the rows that another rank has found, matrix after matrix, in their places.
fn put<T: Real>(mut found: &[T], rows: &Range<usize>, out: &mut [&mut Matrix<T>]) {
    for out in out {
        let cols = out.cols();
        let (own, rest) = found.split_at(rows.len() * cols);
        out.as_mut_slice()[rows.start * cols..rows.end * cols].copy_from_slice(own);
        found = rest;
    }
}

/// All factors look at the same points: those of one kernel always do.
fn is_of_one_kernel<T: Real>(sums: &KernelSums<'_, T>) -> bool {
    let first = sums.factors[0].points().as_slice().as_ptr();
    sums.factors.iter().all(|factor| factor.points().as_slice().as_ptr() == first)
}

impl<T: Real> Team<T> for Ranks {
    fn kernel_sums(&self, sums: &KernelSums<'_, T>, out: &mut [&mut Matrix<T>]) {
        let (shape, count) = (Shape::of(sums), sums.values.rows());
        if count <= FEW || !is_of_one_kernel(sums) {
            return write_kernel_sums(sums, 0..count, out);
        }
        let rows = |rank: usize| share(count, ROWS_OF_A_CUT, self.size, rank);
        let mut words = shape.words();
        announce((Kind::Sums, [words.len() as u64, 0, 0]));
        broadcast(&mut words);
        broadcast_numbers(numbers_of(sums, 0..count));
        write_kernel_sums(sums, rows(0), out);
        self.gather(&shape, rows, out);
    }

    fn batch_sums(&self, sums: &KernelSums<'_, T>, sizes: &[usize], out: &mut [&mut Matrix<T>]) {
        if !is_of_one_kernel(sums) {
            return batch_sums(sums, sizes, out);
        }
        let shape = Shape::of(sums);
        let mut words = shape.words();
        let mut lengths: Vec<u64> = sizes.iter().map(|&size| size as u64).collect();
        announce((Kind::Batches, [words.len() as u64, lengths.len() as u64, 0]));
        broadcast(&mut words);
        broadcast(&mut lengths);
        let rows = |rank: usize| rows_of_batches(sizes, &share(sizes.len(), 1, self.size, rank));
        for rank in 1..self.size {
            send_numbers(rank, numbers_of(sums, rows(rank)));
        }
        let own = share(sizes.len(), 1, self.size, 0);
        let found = sums_within(&shape, &numbers_of(sums, rows(0)), &sizes[own]);
        put(&found, &rows(0), out);
        self.gather(&shape, rows, out);
    }
}

impl Ranks {
    /// Puts what the others have found in its places.
    fn gather<T: Real>(
        self,
        shape: &Shape,
        rows: impl Fn(usize) -> Range<usize>,
        out: &mut [&mut Matrix<T>],
    ) {
        let width: usize = shape.widths.iter().sum();
        for rank in 1..self.size {
            let rows = rows(rank);
            put(&receive_numbers(rank, rows.len() * width), &rows, out);
        }
    }
}

/// The particles of some batches.
pub(crate) fn rows_of_batches(sizes: &[usize], batches: &Range<usize>) -> Range<usize> {
    let first: usize = sizes[..batches.start].iter().sum();
    first..first + sizes[batches.clone()].iter().sum::<usize>()
}

/// Kernel sums within batches of these sizes, from rates, points and right-hand sides; matrix after matrix.
pub(crate) fn sums_within<T: Real>(shape: &Shape, numbers: &[T], sizes: &[usize]) -> Vec<T> {
    let count = sizes.iter().sum();
    with_sums(shape, count, numbers, |sums| {
        let mut out: Vec<Matrix<T>> =
            shape.widths.iter().map(|&width| Matrix::zeros(count, width)).collect();
        batch_sums(sums, sizes, &mut out.iter_mut().collect::<Vec<_>>());
        out.iter().flat_map(Matrix::as_slice).copied().collect()
    })
}

/// Takes a message of so many particles apart.
pub(crate) fn with_sums<T: Real, R>(
    shape: &Shape,
    count: usize,
    numbers: &[T],
    work: impl FnOnce(&KernelSums<'_, T>) -> R,
) -> R {
    let (rates, mut rest) = numbers.split_at(shape.columns.len());
    let mut next = |cols: usize| {
        let (own, more) = rest.split_at(count * cols);
        rest = more;
        MatRef::new(own, count, cols).expect("as many numbers as were sent")
    };
    let points = next(shape.points);
    let values = next(shape.widths[0]);
    let slopes: Vec<MatRef<'_, T>> = shape.widths[1..].iter().map(|&width| next(width)).collect();
    let factors: Vec<_> = rates
        .iter()
        .zip(&shape.columns)
        .map(|(&rate, columns)| Factor::new(points, rate).of(columns.clone()))
        .collect();
    work(&KernelSums { radial: shape.radial, factors: &factors, values, slopes: &slopes })
}

/// A target whose particles are shared out.
#[derive(Debug)]
pub struct OverRanks<D> {
    target: D,
    size: usize,
}

impl<T: Real, D: LogDensity<T>> LogDensity<T> for OverRanks<D> {
    fn dim(&self) -> usize {
        self.target.dim()
    }

    fn data_rows(&self) -> usize {
        self.target.data_rows()
    }

    fn evaluate(
        &self,
        theta: MatRef<'_, T>,
        rows: Option<&Minibatch>,
        log_density: &mut [T],
        mut score: MatMut<'_, T>,
    ) -> Result<()> {
        let (count, dim) = (theta.rows(), theta.cols());
        let part = |rank: usize| share(count, PARTICLES_OF_A_CUT, self.size, rank);
        if part(0).len() == count || (log_density.len(), score.rows()) != (count, count) {
            return self.target.evaluate(theta, rows, log_density, score);
        }
        let batch = rows.map_or(0, |rows| 1 + rows.indices.len());
        announce((Kind::Evaluate, [count as u64, dim as u64, batch as u64]));
        if let Some(rows) = rows {
            broadcast(&mut [rows.scale]);
            broadcast(&mut rows.indices.iter().map(|&i| i as u64).collect::<Vec<_>>());
        }
        for rank in 1..self.size {
            let Range { start, end } = part(rank);
            send_numbers(rank, theta.as_slice()[start * dim..end * dim].to_vec());
        }
        let own = part(0).len();
        let first = MatRef::new(&theta.as_slice()[..own * dim], own, dim).expect("the first rows");
        let scores = score.as_mut_slice();
        let here = MatMut::new(&mut scores[..own * dim], own, dim).expect("the first rows");
        let here = self.target.evaluate(first, rows, &mut log_density[..own], here);
        let there = all_agree();
        broadcast(&mut [u64::from(there.is_ok())]);
        if there.is_ok() {
            for rank in 1..self.size {
                let Range { start, end } = part(rank);
                let found: Vec<T> = receive_numbers(rank, (end - start) * (1 + dim));
                let (values, slopes) = found.split_at(end - start);
                log_density[start..end].copy_from_slice(values);
                scores[start * dim..end * dim].copy_from_slice(slopes);
            }
        }
        here.and(there)
    }
}
