//! The parameters that predict: read back from a run, and no more of them than help.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use steinflow::{Matrix, Real};
use steinflow_io::{Column, Values, read_parquet};

use crate::error::{Error, Result};

/// Components of a predictive mixture beyond which collected samples are thinned: enough to make
/// their Monte Carlo error far smaller than the posterior's spread, few enough for tails to be
/// computed row by row.
const MOST_SAMPLES: usize = 2000;

/// Samples that stand draw after draw, each of all `chains`: evenly spaced draws up to about 2000
/// samples, always whole and with the last, so that every chain stays as it is.
pub fn thinned<T: Real>(theta: Matrix<T>, chains: usize) -> Matrix<T> {
    let chains = chains.max(1);
    let draws = theta.rows() / chains;
    let kept = (MOST_SAMPLES / chains).max(1);
    if draws <= kept {
        return theta;
    }
    let row = |i: usize| {
        let (draw, chain) = (i / chains, i % chains);
        theta.row(((draw + 1) * draws / kept - 1) * chains + chain)
    };
    Matrix::from_fn(kept * chains, theta.cols(), |i, j| row(i)[j])
}

/// The samples of a run where it collected any, otherwise its last particles, in a file's columns.
pub struct Theta {
    file: PathBuf,
    columns: HashMap<String, Values>,
}

impl Theta {
    pub fn read(folder: &Path) -> Result<Self> {
        for (name, may_lack) in [("samples.parquet", true), ("particles.parquet", false)] {
            let file = folder.join(name);
            if may_lack && !file.exists() {
                continue;
            }
            let columns = read_parquet(&file)?;
            // A run that was over before the first collection has an empty table.
            if may_lack && columns.iter().all(|column| column.values.is_empty()) {
                continue;
            }
            let columns = columns.into_iter().map(|Column { name, values }| (name, values));
            return Ok(Self { file, columns: columns.collect() });
        }
        unreachable!("the last file is read or an error")
    }

    /// Whether the parameters are in single precision.
    pub fn is_f32(&self) -> bool {
        self.columns.values().any(|values| matches!(values, Values::F32(_)))
    }

    /// What these are, for people.
    pub fn kind(&self) -> &'static str {
        if self.columns.contains_key("draw") { "collected samples" } else { "last particles" }
    }

    /// The parameters `names`, a particle or sample a row.
    pub fn matrix<T: Real>(&self, names: &[String]) -> Result<Matrix<T>> {
        let damaged = |message| Error::RunDamaged { path: self.file.clone(), message };
        let columns = names
            .iter()
            .map(|name| {
                self.columns.get(name).ok_or_else(|| damaged(format!("it has no column `{name}`")))
            })
            .collect::<Result<Vec<_>>>()?;
        let rows = columns.first().map_or(0, |values| values.len());
        let theta = Matrix::from_fn(rows, columns.len(), |i, j| match columns[j] {
            Values::F64(values) => T::of(values[i]),
            Values::F32(values) => T::of(f64::from(values[i])),
            Values::U64(values) => T::of(values[i] as f64),
        });
        Ok(thinned(theta, self.chains().unwrap_or(rows)))
    }

    /// How many chains the samples are of.
    fn chains(&self) -> Option<usize> {
        match self.columns.get("chain") {
            Some(Values::U64(chains)) => chains.iter().max().map(|&last| last as usize + 1),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_whole_draws_and_the_last() {
        let samples = Matrix::from_fn(50 * 300, 1, |i, _| i as f64);
        let few = thinned(samples, 300);
        assert_eq!(few.rows(), 6 * 300);
        assert_eq!(few.row(few.rows() - 1), [14_999.0]);
        assert!((0..few.rows()).all(|i| few.row(i)[0] as usize % 300 == i % 300));
        // One draw at least, however many chains there are.
        assert_eq!(thinned(Matrix::from_fn(10_000, 1, |i, _| i as f64), 5000).row(0), [5000.0]);
    }
}
