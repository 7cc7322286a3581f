//! Who does the work of a run: this process alone, or others with it.
//!
//! What takes time is done by rows: kernel sums here, and the target's evaluation in a [`LogDensity`] that hands rows
//! on. A row's numbers depend on its inputs alone, cuts stand between tiles, and nothing is added up across cuts:
//! so the number of those who share the work changes no bit.
//!
//! [`LogDensity`]: crate::LogDensity

use std::fmt;
use std::ops::Range;

use crate::engine::{KernelSums, batch_sums, write_kernel_sums};
use crate::{Matrix, Real};

/// Those who share the work. What is not overridden, this process does alone.
pub trait Team<T: Real>: fmt::Debug + Send + Sync {
    /// Writes K·R and then every Sᵍ·Rᵍ.
    fn kernel_sums(&self, sums: &KernelSums<'_, T>, out: &mut [&mut Matrix<T>]) {
        write_kernel_sums(sums, 0..sums.values.rows(), out);
    }

    /// As [`Team::kernel_sums`], within batches: the particles stand batch after batch, of these sizes.
    fn batch_sums(&self, sums: &KernelSums<'_, T>, sizes: &[usize], out: &mut [&mut Matrix<T>]) {
        batch_sums(sums, sizes, out);
    }
}

/// This process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl<T: Real> Team<T> for Alone {}

/// Rows of kernel sums between which others may be cut off: a tile.
pub const ROWS_OF_A_CUT: usize = 128;

/// The part of `count` rows that falls to number `part` of `parts`: whole tiles, as even as they can be.
///
/// ```
/// use steinflow::team::share;
/// assert_eq!([0, 1, 2].map(|part| share(300, 128, 3, part)), [0..128, 128..256, 256..300]);
/// assert_eq!(share(100, 128, 2, 0), 0..100);
/// ```
pub fn share(count: usize, tile: usize, parts: usize, part: usize) -> Range<usize> {
    let tiles = count.div_ceil(tile);
    let cut = |part: usize| count.min((tiles * part).div_ceil(parts.max(1)) * tile);
    cut(part)..cut(part + 1)
}
