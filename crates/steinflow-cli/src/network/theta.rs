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
        let samples = folder.join("samples.parquet");
        if samples.exists() {
            let samples = Self::open(samples)?;
            // A run that was over before the first collection has an empty table.
            if samples.columns.values().any(|values| !values.is_empty()) {
                return Ok(samples);
            }
        }
        Self::open(folder.join("particles.parquet"))
    }

    fn open(file: PathBuf) -> Result<Self> {
        if !file.exists() {
            let message = "it is not there".to_owned();
            return Err(Error::RunDamaged { path: file, message });
        }
        let columns = read_parquet(&file)?.into_iter();
        let columns = columns.map(|Column { name, values }| (name, values)).collect();
        Ok(Self { file, columns })
    }

    /// Whether the parameters are in single precision.
    pub fn is_f32(&self) -> bool {
        self.columns.values().any(|values| matches!(values, Values::F32(_)))
    }

    /// What these are, for people.
    pub fn kind(&self) -> &'static str {
        if self.has_samples() { "collected samples" } else { "last particles" }
    }

    fn has_samples(&self) -> bool {
        self.columns.contains_key("draw")
    }

    /// The parameters `names`, a particle or sample a row.
    pub fn matrix<T: Real>(&self, names: &[String]) -> Result<Matrix<T>> {
        let damaged = |message| Error::RunDamaged { path: self.file.clone(), message };
        // Beside θ there are chain, draw and step, or the auxiliary variables and log π.
        let others = if self.has_samples() { 3 } else { 1 };
        if !self.columns.len().saturating_sub(others).is_multiple_of(names.len()) {
            let (found, expected) = (self.columns.len(), names.len());
            let message =
                format!("its {found} columns are not those of a network of {expected} parameters");
            return Err(damaged(message));
        }
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
