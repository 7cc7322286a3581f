//! Kernel sums within batches that have nothing to do with one another.

use std::mem;

use rayon::prelude::*;

use super::kernel_sums::{KernelSums, kernel_sums};
use super::points::Factor;
use crate::{MatRef, Matrix, Real};

/// Writes K·R and then every Sᵍ·Rᵍ, with K = 0 between batches: the particles stand batch after batch, of these
/// sizes.
pub fn batch_sums<T: Real>(sums: &KernelSums<'_, T>, sizes: &[usize], out: &mut [&mut Matrix<T>]) {
    let widths: Vec<usize> = out.iter().map(|out| out.cols()).collect();
    let mut rest: Vec<&mut [T]> = out.iter_mut().map(|out| out.as_mut_slice()).collect();
    let mut batches = Vec::with_capacity(sizes.len());
    let mut first = 0;
    for &size in sizes {
        let own = rest.iter_mut().zip(&widths).map(|(rest, width)| {
            let (own, more) = mem::take(rest).split_at_mut(size * width);
            *rest = more;
            own
        });
        batches.push((first, size, own.collect::<Vec<_>>()));
        first += size;
    }
    batches.par_iter_mut().for_each(|(first, size, out)| {
        let factors: Vec<Factor<'_, T>> = sums
            .factors
            .iter()
            .map(|factor| {
                let points = some_rows(factor.points(), *first, *size);
                Factor::new(points, factor.rate()).of(factor.columns())
            })
            .collect();
        let slopes: Vec<MatRef<'_, T>> =
            sums.slopes.iter().map(|rhs| some_rows(*rhs, *first, *size)).collect();
        let values = some_rows(sums.values, *first, *size);
        let some = KernelSums { radial: sums.radial, factors: &factors, values, slopes: &slopes };
        let (values, slopes) = kernel_sums(&some);
        for (out, found) in out.iter_mut().zip(std::iter::once(&values).chain(&slopes)) {
            out.copy_from_slice(found.as_slice());
        }
    });
}

/// Rows `first..first + size`.
fn some_rows<T: Copy>(matrix: MatRef<'_, T>, first: usize, size: usize) -> MatRef<'_, T> {
    let cols = matrix.cols();
    let numbers = &matrix.as_slice()[first * cols..(first + size) * cols];
    MatRef::new(numbers, size, cols).expect("as many rows as were cut out")
}
