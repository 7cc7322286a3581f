//! Rank 0: hands out rows, does its own share, and puts the answers in their places.

use std::ops::Range;
use std::sync::Arc;

use steinflow::engine::{KernelSums, batch_sums, write_kernel_sums};
use steinflow::team::{ROWS_OF_A_CUT, Team, share};
use steinflow::{Error, LogDensity, MatMut, MatRef, Matrix, Minibatch, Real, Result};

use crate::sums::{Shape, entries, matrices_of};
use crate::wire::{self, broadcast, receive, send, tell};
use crate::words::{Kind, Number, announce, receive_answer};

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
    pub fn team<T: Number>(&self) -> Arc<dyn Team<T>> {
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

/// All factors look at the same points: those of one kernel always do.
fn is_of_one_kernel<T: Real>(sums: &KernelSums<'_, T>) -> bool {
    let first = sums.factors[0].points().as_slice().as_ptr();
    sums.factors.iter().all(|factor| factor.points().as_slice().as_ptr() == first)
}

impl<T: Number> Team<T> for Ranks {
    fn kernel_sums(&self, sums: &KernelSums<'_, T>, out: &mut [&mut Matrix<T>]) {
        let count = sums.values.rows();
        if count <= FEW || !is_of_one_kernel(sums) {
            return write_kernel_sums(sums, 0..count, out);
        }
        let rows = |rank: usize| share(count, ROWS_OF_A_CUT, self.size, rank);
        let mut words = Shape::of(sums).words();
        announce((Kind::Sums, [words.len() as u64, 0, 0]));
        broadcast(&mut words);
        for matrix in matrices_of(sums) {
            tell(matrix.as_slice());
        }
        write_kernel_sums(sums, rows(0), out);
        self.gather(rows, out);
    }

    fn batch_sums(&self, sums: &KernelSums<'_, T>, sizes: &[usize], out: &mut [&mut Matrix<T>]) {
        if !is_of_one_kernel(sums) {
            return batch_sums(sums, sizes, out);
        }
        let batches = |rank: usize| share(sizes.len(), 1, self.size, rank);
        let rows = |rank: usize| rows_of_batches(sizes, &batches(rank));
        let mut words = Shape::of(sums).words();
        announce((Kind::Batches, [words.len() as u64, sizes.len() as u64, 0]));
        broadcast(&mut words);
        broadcast(&mut sizes.iter().map(|&size| size as u64).collect::<Vec<_>>());
        for rank in 1..self.size {
            for matrix in matrices_of(sums) {
                send(rank, &matrix.as_slice()[entries(&rows(rank), matrix.cols())]);
            }
        }
        // The first batches, in the first rows.
        batch_sums(sums, &sizes[batches(0)], out);
        self.gather(rows, out);
    }
}

impl Ranks {
    /// Puts what the others have found in its places.
    fn gather<T: Number>(self, rows: impl Fn(usize) -> Range<usize>, out: &mut [&mut Matrix<T>]) {
        for rank in 1..self.size {
            for out in &mut *out {
                let own = entries(&rows(rank), out.cols());
                receive(rank, &mut out.as_mut_slice()[own]);
            }
        }
    }
}

/// The particles of some batches.
pub(crate) fn rows_of_batches(sizes: &[usize], batches: &Range<usize>) -> Range<usize> {
    let first: usize = sizes[..batches.start].iter().sum();
    first..first + sizes[batches.clone()].iter().sum::<usize>()
}

/// A target whose particles are shared out.
#[derive(Debug)]
pub struct OverRanks<D> {
    target: D,
    size: usize,
}

impl<T: Number, D: LogDensity<T>> LogDensity<T> for OverRanks<D> {
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
            send(rank, &theta.as_slice()[entries(&part(rank), dim)]);
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
                receive(rank, &mut log_density[part(rank)]);
                receive(rank, &mut scores[entries(&part(rank), dim)]);
            }
        }
        here.and(there)
    }
}
