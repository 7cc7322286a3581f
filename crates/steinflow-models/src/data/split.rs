//! Which rows of a table train and which test.

use std::path::Path;

use rand_chacha::rand_core::Rng as _;
use steinflow::random::{Purpose, stream};

use super::permutation::{numpy_permutations, permutation};
use super::{SplitError, split_file};

/// Training rows and test rows of a table, both in ascending order, neither empty.
///
/// ```
/// use steinflow_models::data::Split;
/// let split = Split::new(5, vec![4, 1])?;
/// assert_eq!((split.train(), split.test()), (&[0, 2, 3][..], &[1, 4][..]));
/// # Ok::<(), steinflow_models::data::SplitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    rows: usize,
    train: Vec<usize>,
    test: Vec<usize>,
}

impl Split {
    /// Tests on the rows `test` of a table with `rows` rows and trains on all others.
    pub fn new(rows: usize, test: Vec<usize>) -> Result<Self, SplitError> {
        Self::out_of(rows, &(0..rows).collect::<Vec<_>>(), test)
    }

    /// Split `index` of a file, plain or compressed with gzip: one line per split, with the
    /// zero-based numbers of the test rows separated by spaces.
    pub fn from_file(
        file: impl AsRef<Path>,
        rows: usize,
        index: usize,
    ) -> Result<Self, SplitError> {
        let file = file.as_ref();
        let mut splits = split_file::read(file)?;
        if index >= splits.len() {
            let what = file.display().to_string();
            return Err(SplitError::NoSuchSplit { what, index, count: splits.len() });
        }
        Self::new(rows, splits.swap_remove(index))
    }

    /// Tests on a random `fraction` of the rows, at least one and not all.
    pub fn random(rows: usize, fraction: f64, seed: u64) -> crate::Result<Self> {
        let all: Vec<usize> = (0..rows).collect();
        Self::random_part(rows, &all, fraction, seed)
    }

    /// Split `index` of the benchmark by Hernández-Lobato and Adams (2015), which 0.9 of the rows
    /// train: NumPy's legacy generator, seeded with 1, draws one permutation of the rows per split,
    /// and the first round(0.9 n) entries are the training rows.
    pub fn standard(rows: usize, index: usize) -> Result<Self, SplitError> {
        // Python rounds halves to even.
        let train = (rows as f64 * 0.9).round_ties_even() as usize;
        let order = numpy_permutations(rows).nth(index).unwrap_or_default();
        Self::new(rows, order[train..].to_vec())
    }

    /// Trains on the first `train` rows and tests on the rest.
    pub fn at(rows: usize, train: usize) -> Result<Self, SplitError> {
        Self::new(rows, (train..rows).collect())
    }

    /// For choosing settings: a random `fraction` of the training rows becomes the test rows of the
    /// new split, the others its training rows. This split's test rows are in neither.
    pub fn hold_out(&self, fraction: f64, seed: u64) -> crate::Result<Self> {
        Self::random_part(self.rows, &self.train, fraction, seed)
    }

    /// For cross-validation: the training rows in `folds` random parts of equal size (to within one
    /// row), each in turn the test rows of a new split. This split's test rows are in none.
    pub fn folds(&self, folds: usize, seed: u64) -> crate::Result<Vec<Self>> {
        let count = self.train.len();
        if !(2..=count).contains(&folds) {
            let remedy = format!("give from 2 to {count}, the number of training rows");
            return Err(steinflow::Error::setting("folds", folds, remedy).into());
        }
        let order = random_order(count, seed);
        (0..folds)
            .map(|fold| {
                let part = &order[fold * count / folds..(fold + 1) * count / folds];
                let test = part.iter().map(|&i| self.train[i]).collect();
                Ok(Self::out_of(self.rows, &self.train, test)?)
            })
            .collect()
    }

    /// Rows of the table that the split was made for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows to train on, in ascending order.
    pub fn train(&self) -> &[usize] {
        &self.train
    }

    /// The rows to test on, in ascending order.
    pub fn test(&self) -> &[usize] {
        &self.test
    }

    fn random_part(rows: usize, out_of: &[usize], fraction: f64, seed: u64) -> crate::Result<Self> {
        if !(fraction > 0.0 && fraction < 1.0) {
            let remedy = "give a share of the rows between 0 and 1, such as 0.1";
            return Err(steinflow::Error::setting("test-fraction", fraction, remedy).into());
        }
        let count = out_of.len();
        let test = ((count as f64 * fraction).round() as usize).clamp(1, count.max(2) - 1);
        let order = random_order(count, seed);
        let test = order.iter().take(test).map(|&i| out_of[i]).collect();
        Ok(Self::out_of(rows, out_of, test)?)
    }

    /// Tests on the rows `test`, trains on those of `available` that are left.
    fn out_of(rows: usize, available: &[usize], mut test: Vec<usize>) -> Result<Self, SplitError> {
        let mut is_test = vec![false; rows];
        for &row in &test {
            let seen = is_test.get_mut(row).ok_or(SplitError::OutOfRange { row, rows })?;
            if std::mem::replace(seen, true) {
                return Err(SplitError::Duplicate { row });
            }
        }
        test.sort_unstable();
        let train: Vec<usize> = available.iter().copied().filter(|&row| !is_test[row]).collect();
        if train.is_empty() || test.is_empty() {
            return Err(SplitError::EmptyPart { train: train.len(), test: test.len() });
        }
        Ok(Self { rows, train, test })
    }
}

fn random_order(count: usize, seed: u64) -> Vec<usize> {
    let mut generator = stream(seed, Purpose::Split, 0, 0);
    permutation(count, || generator.next_u32())
}
