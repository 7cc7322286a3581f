//! The other ranks: they wait for requests and answer them.

use steinflow::engine::write_kernel_sums;
use steinflow::team::{ROWS_OF_A_CUT, share};
use steinflow::{LogDensity, Matrix, Minibatch, Real};

use crate::leader::{PARTICLES_OF_A_CUT, Shape, rows_of_batches, sums_within, with_sums};
use crate::wire::{broadcast, rank, size};
use crate::words::{
    Kind, broadcast_numbers, hear, hear_patiently, hear_text, receive_numbers, send_answer,
    send_numbers,
};

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
pub fn serve<T: Real>(target: &dyn LogDensity<T>) {
    loop {
        match hear() {
            (Kind::Evaluate, sizes) => evaluate(target, sizes),
            (Kind::Sums, sizes) => sums::<T>(sizes),
            (Kind::Batches, sizes) => batches::<T>(sizes),
            (Kind::Begin | Kind::End | Kind::Quit | Kind::Jobs, _) => return,
        }
    }
}

fn evaluate<T: Real>(target: &dyn LogDensity<T>, [count, dim, batch]: [u64; 3]) {
    let batch = (batch > 0).then(|| {
        let (mut scale, mut indices) = ([0.0], vec![0_u64; batch as usize - 1]);
        broadcast(&mut scale);
        broadcast(&mut indices);
        Minibatch { indices: indices.into_iter().map(|i| i as usize).collect(), scale: scale[0] }
    });
    let (own, dim) =
        (share(count as usize, PARTICLES_OF_A_CUT, size(), rank()).len(), dim as usize);
    let theta = Matrix::from_vec(receive_numbers(0, own * dim), own, dim);
    let theta: Matrix<T> = theta.expect("as many as were asked for");
    let (mut values, mut score) = (vec![T::zero(); own], Matrix::zeros(own, dim));
    let done = target.evaluate(theta.as_ref(), batch.as_ref(), &mut values, score.as_mut());
    send_answer(0, &done.map_err(|error| error.to_string()));
    // Rank 0 does not wait for numbers where any rank has none.
    let mut wanted = [0_u64];
    broadcast(&mut wanted);
    if wanted[0] == 1 {
        values.extend_from_slice(score.as_slice());
        send_numbers(0, values);
    }
}

fn hear_shape(words: u64) -> Shape {
    let mut words = vec![0_u64; words as usize];
    broadcast(&mut words);
    Shape::read(&words)
}

fn sums<T: Real>([words, ..]: [u64; 3]) {
    let shape = hear_shape(words);
    let numbers = broadcast_numbers(vec![T::zero(); shape.numbers(shape.count)]);
    let own = share(shape.count, ROWS_OF_A_CUT, size(), rank());
    let found: Vec<T> = with_sums(&shape, shape.count, &numbers, |sums| {
        let mut out: Vec<Matrix<T>> =
            shape.widths.iter().map(|&width| Matrix::zeros(shape.count, width)).collect();
        write_kernel_sums(sums, own.clone(), &mut out.iter_mut().collect::<Vec<_>>());
        let rows =
            |out: &Matrix<T>| out.as_slice()[own.start * out.cols()..own.end * out.cols()].to_vec();
        out.iter().flat_map(rows).collect()
    });
    send_numbers(0, found);
}

fn batches<T: Real>([words, batches, _]: [u64; 3]) {
    let shape = hear_shape(words);
    let mut sizes = vec![0_u64; batches as usize];
    broadcast(&mut sizes);
    let sizes: Vec<usize> = sizes.into_iter().map(|size| size as usize).collect();
    let own = share(sizes.len(), 1, size(), rank());
    let count = rows_of_batches(&sizes, &own).len();
    let numbers: Vec<T> = receive_numbers(0, shape.numbers(count));
    send_numbers(0, sums_within(&shape, &numbers, &sizes[own]));
}
