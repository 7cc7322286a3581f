//! Standard units of a column: (x − mean)/sd over the rows that a model is trained on.

use super::{Table, TableError};

/// How a column is standardised: `(x − mean) / sd`, with sd² the mean squared deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Subtracted.
    pub mean: f64,
    /// Divided by.
    pub sd: f64,
}

impl Scaling {
    /// The mean and standard deviation of a column over `rows` of the table.
    ///
    /// `rows` holds at least one row and none that the table lacks.
    pub(crate) fn of(table: &Table, column: usize, rows: &[usize]) -> Result<Self, TableError> {
        let values = table.values();
        let entries = || rows.iter().map(|&row| values.row(row)[column]);
        let count = rows.len() as f64;
        let name = || (table.file().to_owned(), table.columns()[column].clone());
        let first = values.row(rows[0])[column];
        if entries().all(|x| x == first) {
            let (file, column_name) = name();
            let elsewhere = (0..values.rows()).any(|row| values.row(row)[column] != first);
            return Err(if elsewhere {
                TableError::ConstantInTraining {
                    file,
                    column: column_name,
                    value: first,
                    rows: rows.len(),
                }
            } else {
                TableError::ConstantColumn { file, column: column_name, value: first }
            });
        }
        // Divided before they are summed, so that large numbers do not overflow.
        let mean = entries().map(|x| x / count).sum::<f64>();
        let sd = entries().map(|x| (x - mean) * (x - mean) / count).sum::<f64>().sqrt();
        if !(sd > 0.0 && sd.is_finite()) {
            let (file, column) = name();
            return Err(TableError::Unscalable { file, column, sd });
        }
        Ok(Self { mean, sd })
    }

    /// From the column's own units to standard ones.
    pub fn standardise(&self, value: f64) -> f64 {
        (value - self.mean) / self.sd
    }

    /// From standard units back to the column's own.
    pub fn restore(&self, value: f64) -> f64 {
        self.mean + self.sd * value
    }
}
