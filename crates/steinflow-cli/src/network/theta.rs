//! The parameters that predict: read back from a run, and no more of them than help.

use steinflow::{Matrix, Real};
use steinflow_io::Values;
use steinflow_io::record::{FinishedRun, PARTICLES, SAMPLES, Table, column};

use crate::error::Result;

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

/// The samples of a run where it collected any, otherwise its last particles.
pub struct Theta<'a> {
    run: &'a FinishedRun,
    file: &'static str,
    table: Table,
}

impl<'a> Theta<'a> {
    pub fn read(run: &'a FinishedRun) -> Result<Self> {
        // A run that was over before the first collection has an empty table of samples.
        Ok(match run.filled_table(SAMPLES)? {
            Some(table) => Self { run, file: SAMPLES, table },
            None => Self { run, file: PARTICLES, table: run.table(PARTICLES)? },
        })
    }

    /// Whether the parameters are in single precision.
    pub fn is_f32(&self) -> bool {
        self.table.columns().iter().any(|column| matches!(column.values, Values::F32(_)))
    }

    /// What these are, for people.
    pub fn kind(&self) -> &'static str {
        if self.file == SAMPLES { "collected samples" } else { "last particles" }
    }

    /// The parameters `names`, a particle or sample a row.
    pub fn matrix<T: Real>(&self, names: &[String]) -> Result<Matrix<T>> {
        let beside = [column::CHAIN, column::DRAW, column::STEP, column::LOG_DENSITY];
        let found = self.table.columns_beside(&beside).len();
        // θ, and perhaps auxiliary variables.
        if !found.is_multiple_of(names.len()) {
            let expected = names.len();
            let reason = format!("its {found} columns are not those of {expected} parameters");
            return Err(self.run.damaged(self.file, reason).into());
        }
        let chains = match self.table.find(column::CHAIN) {
            Some(chains) => chains.counts().into_iter().max().map_or(1, |last| last as usize + 1),
            None => self.table.rows(),
        };
        Ok(thinned(self.table.matrix(names)?, chains))
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
