//! The tables of a run, read by the names of their columns.

use std::path::{Path, PathBuf};

use steinflow::{Matrix, Real};

use crate::{Column, Error, Result, Values, read_parquet};

/// The names of columns; θ has the model's own.
pub mod column {
    /// The step of a row.
    pub const STEP: &str = "step";
    /// Evaluations of the target until then.
    pub const GRADIENTS: &str = "gradients";
    /// Wall-clock time until then.
    pub const SECONDS: &str = "seconds";
    /// Mean of log π over the particles.
    pub const MEAN_LOG_DENSITY: &str = "mean_log_density";
    /// Root mean square of the velocity.
    pub const VELOCITY_NORM: &str = "velocity_norm";
    /// h; NaN where there is no kernel.
    pub const BANDWIDTH: &str = "bandwidth";
    /// Kernel Stein discrepancy; NaN where it was not computed.
    pub const KSD: &str = "ksd";
    /// ε.
    pub const STEP_SIZE: &str = "step_size";
    /// log π of a particle.
    pub const LOG_DENSITY: &str = "log_density";
    /// The particle that a sample is of.
    pub const CHAIN: &str = "chain";
    /// The collection that a sample is of.
    pub const DRAW: &str = "draw";
    /// The number of a frame.
    pub const FRAME: &str = "frame";
    /// The particle in a frame.
    pub const PARTICLE: &str = "particle";
    /// The number of a row of the data.
    pub const ROW: &str = "row";
    /// What was observed there.
    pub const TARGET: &str = "target";
    /// Mean of the prediction.
    pub const MEAN: &str = "mean";
    /// Standard deviation of the prediction.
    pub const SD: &str = "sd";

    /// A quantile of the prediction.
    pub fn quantile(level: f64) -> String {
        format!("q{level}")
    }
}

/// The columns of particles z = (θ, r, …): θ under the names of the parameters, auxiliary variables as `r_NAME` of
/// the coordinate that they belong to.
pub fn state_columns(
    blocks: &[&str],
    (parameters, coordinates): (&[String], &[String]),
) -> Vec<String> {
    let auxiliary =
        |block: &&str| coordinates.iter().map(|name| format!("{block}_{name}")).collect::<Vec<_>>();
    let others = blocks.iter().skip(1).flat_map(auxiliary);
    parameters.iter().cloned().chain(others).collect()
}

/// A table that was read.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    columns: Vec<Column>,
}

impl Table {
    /// Reads a Parquet file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        Ok(Self { columns: read_parquet(&path)?, path })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// All columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns that have none of these names: θ, beside what indexes it.
    pub fn columns_beside(&self, names: &[&str]) -> Vec<&Column> {
        self.columns.iter().filter(|column| !names.contains(&&*column.name)).collect()
    }

    /// A column, if it is there.
    pub fn find(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.values)
    }

    /// A column that must be there.
    pub fn column(&self, name: &str) -> Result<&Values> {
        self.find(name).ok_or_else(|| Error::RunDamaged {
            path: self.path.clone(),
            reason: format!("it has no column `{name}`"),
        })
    }

    /// The columns `names`, a row a row.
    pub fn matrix<T: Real>(&self, names: &[String]) -> Result<Matrix<T>> {
        let columns: Vec<&Values> =
            names.iter().map(|name| self.column(name)).collect::<Result<_>>()?;
        Ok(Matrix::from_fn(self.rows(), names.len(), |i, j| T::of(columns[j].number(i))))
    }
}
