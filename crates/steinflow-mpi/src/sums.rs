//! A request for kernel sums, as it travels: sizes and rates in words, and then points and right-hand sides, matrix after
//! matrix.

use std::iter::once;
use std::ops::Range;

use steinflow::engine::{Factor, KernelSums};
use steinflow::kernel::Radial;
use steinflow::{MatRef, Matrix, Real};

use crate::wire::broadcast;

/// Sizes, and what every factor of the kernel looks at, and how far.
pub(crate) struct Shape {
    radial: Radial,
    pub count: usize,
    /// Columns of the points, and of every right-hand side.
    points: usize,
    widths: Vec<usize>,
    factors: Vec<(Range<usize>, f64)>,
}

impl Shape {
    pub(crate) fn of<T: Real>(sums: &KernelSums<'_, T>) -> Self {
        let factors = sums.factors.iter();
        Self {
            radial: sums.radial,
            count: sums.values.rows(),
            points: sums.factors[0].points().cols(),
            widths: matrices_of(sums).skip(1).map(|matrix| matrix.cols()).collect(),
            factors: factors.map(|factor| (factor.columns(), factor.rate().as_f64())).collect(),
        }
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let radial = Radial::ALL.iter().position(|radial| *radial == self.radial).unwrap_or(0);
        let sizes = [radial, self.count, self.points, self.widths.len()];
        let sizes = sizes.into_iter().chain(self.widths.iter().copied());
        let factors = self
            .factors
            .iter()
            .flat_map(|(columns, rate)| [columns.start as u64, columns.end as u64, rate.to_bits()]);
        sizes.map(|size| size as u64).chain(factors).collect()
    }

    /// What rank 0 says of it, in so many words.
    pub(crate) fn hear(words: u64) -> Self {
        let mut words = vec![0_u64; words as usize];
        broadcast(&mut words);
        let (sizes, rest) = words.split_at(4);
        let (widths, factors) = rest.split_at(sizes[3] as usize);
        let factor =
            |words: &[u64]| (words[0] as usize..words[1] as usize, f64::from_bits(words[2]));
        Self {
            radial: Radial::ALL[sizes[0] as usize],
            count: sizes[1] as usize,
            points: sizes[2] as usize,
            widths: widths.iter().map(|&width| width as usize).collect(),
            factors: factors.chunks_exact(3).map(factor).collect(),
        }
    }

    /// The sums of `count` particles, whose matrices `fill` brings: `work` writes some rows of them.
    pub(crate) fn find<T: Real>(
        &self,
        count: usize,
        mut fill: impl FnMut(&mut [T]),
        work: impl FnOnce(&KernelSums<'_, T>, &mut [&mut Matrix<T>]),
    ) -> Vec<Matrix<T>> {
        let zeros = |&cols: &usize| Matrix::zeros(count, cols);
        let mut heard: Vec<Matrix<T>> = once(&self.points).chain(&self.widths).map(zeros).collect();
        for matrix in &mut heard {
            fill(matrix.as_mut_slice());
        }
        let heard: Vec<MatRef<'_, T>> = heard.iter().map(Matrix::as_ref).collect();
        let of = |(columns, rate): &(Range<usize>, f64)| {
            Factor::new(heard[0], T::of(*rate)).of(columns.clone())
        };
        let factors: Vec<Factor<'_, T>> = self.factors.iter().map(of).collect();
        let (radial, values, slopes) = (self.radial, heard[1], &heard[2..]);
        let mut found: Vec<Matrix<T>> = self.widths.iter().map(zeros).collect();
        let sums = KernelSums { radial, factors: &factors, values, slopes };
        work(&sums, &mut found.iter_mut().collect::<Vec<_>>());
        found
    }
}

/// What travels of sums whose factors all look at the same points, as those of one kernel do.
pub(crate) fn matrices_of<'a, T: Real>(
    sums: &KernelSums<'a, T>,
) -> impl Iterator<Item = MatRef<'a, T>> {
    [sums.factors[0].points(), sums.values].into_iter().chain(sums.slopes.iter().copied())
}

/// Some rows of a matrix of so many columns.
pub(crate) fn entries(rows: &Range<usize>, cols: usize) -> Range<usize> {
    rows.start * cols..rows.end * cols
}
