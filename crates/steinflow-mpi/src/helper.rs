//! The other ranks: they wait for requests and answer them.

use std::ops::Range;

use steinflow::engine::{batch_sums, write_kernel_sums};
use steinflow::team::{ROWS_OF_A_CUT, share};
use steinflow::{LogDensity, Matrix, Minibatch};

use crate::leader::{PARTICLES_OF_A_CUT, rows_of_batches};
use crate::sums::{Shape, entries};
use crate::wire::{broadcast, rank, receive, send, size};
use crate::words::{Kind, Number, hear, hear_patiently, hear_text, send_answer};

/// What rank 0 wants of a process that has nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Help with a run: its description, and the threads to take, 0 for as many as there are cores.
    /// [`report`] whether that can be, and then [`serve`].
    Run(String, usize),
    /// Go home.
    Quit,
}

/// Waits until rank 0 calls.
pub fn await_call() -> Call {
    loop {
        match hear_patiently() {
            (Kind::Begin, [length, threads, _]) => {
                return Call::Run(hear_text(length), threads as usize);
            }
            (Kind::Quit, _) => return Call::Quit,
            // The end of a run that this process could not help with.
            _ => {}
        }
    }
}

/// Tells rank 0 whether this process is ready, or why not.
pub fn report(ready: &Result<(), String>) {
    send_answer(0, ready);
}

/// Answers requests until the run ends.
pub fn serve<T: Number>(target: &dyn LogDensity<T>) {
    loop {
        match hear() {
            (Kind::Evaluate, sizes) => evaluate(target, sizes),
            (Kind::Sums, sizes) => sums::<T>(sizes),
            (Kind::Batches, sizes) => batches::<T>(sizes),
            (Kind::Begin | Kind::End | Kind::Quit | Kind::Jobs, _) => return,
        }
    }
}

fn evaluate<T: Number>(target: &dyn LogDensity<T>, [count, dim, batch]: [u64; 3]) {
    let batch = (batch > 0).then(|| {
        let (mut scale, mut indices) = ([0.0], vec![0_u64; batch as usize - 1]);
        broadcast(&mut scale);
        broadcast(&mut indices);
        Minibatch { indices: indices.into_iter().map(|i| i as usize).collect(), scale: scale[0] }
    });
    let (own, dim) =
        (share(count as usize, PARTICLES_OF_A_CUT, size(), rank()).len(), dim as usize);
    let mut theta = Matrix::<T>::zeros(own, dim);
    receive(0, theta.as_mut_slice());
    let (mut values, mut score) = (vec![T::zero(); own], Matrix::zeros(own, dim));
    let done = target.evaluate(theta.as_ref(), batch.as_ref(), &mut values, score.as_mut());
    send_answer(0, &done.map_err(|error| error.to_string()));
    // Rank 0 does not wait for numbers where any rank has none.
    let mut wanted = [0_u64];
    broadcast(&mut wanted);
    if wanted[0] == 1 {
        send(0, &values);
        send(0, score.as_slice());
    }
}

fn sums<T: Number>([words, ..]: [u64; 3]) {
    let shape = Shape::hear(words);
    let own = share(shape.count, ROWS_OF_A_CUT, size(), rank());
    let found = shape.find::<T>(shape.count, broadcast, |sums, out| {
        write_kernel_sums(sums, own.clone(), out);
    });
    give(&found, &own);
}

fn batches<T: Number>([words, batches, _]: [u64; 3]) {
    let shape = Shape::hear(words);
    let mut sizes = vec![0_u64; batches as usize];
    broadcast(&mut sizes);
    let sizes: Vec<usize> = sizes.into_iter().map(|size| size as usize).collect();
    let own = share(sizes.len(), 1, size(), rank());
    let count = rows_of_batches(&sizes, &own).len();
    let found = shape.find::<T>(
        count,
        |numbers| receive(0, numbers),
        |sums, out| batch_sums(sums, &sizes[own], out),
    );
    give(&found, &(0..count));
}

/// Gives rank 0 some rows of what was found.
fn give<T: Number>(found: &[Matrix<T>], rows: &Range<usize>) {
    for matrix in found {
        send(0, &matrix.as_slice()[entries(rows, matrix.cols())]);
    }
}
