//! The design matrix X: an intercept and the features, each (x − mean)/sd.

use steinflow::Matrix;

use super::{Table, TableError};

/// The parameter that no column stands for.
const INTERCEPT: &str = "intercept";

/// How a column was standardised: `(x − mean) / sd`, with sd² the mean squared deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Subtracted.
    pub mean: f64,
    /// Divided by.
    pub sd: f64,
}

impl Scaling {
    /// From the column's own units to standard ones.
    pub fn standardise(&self, value: f64) -> f64 {
        (value - self.mean) / self.sd
    }

    /// From standard units back to the column's own.
    pub fn restore(&self, value: f64) -> f64 {
        self.mean + self.sd * value
    }
}

/// A table, split into a target column and standardised features.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    target_name: String,
    /// n × p, the intercept first.
    rows: Matrix<f64>,
    target: Vec<f64>,
    names: Vec<String>,
    scalings: Vec<Scaling>,
}

impl Design {
    /// Predicts column `target` (the last one when `None`) from all others.
    ///
    /// ```
    /// use steinflow_models::regression::{Design, Table};
    /// let table = Table::from_reader("size,price\n1,7\n3,8\n".as_bytes(), "houses.csv")?;
    /// let design = Design::new(&table, None)?;
    /// assert_eq!(design.parameter_names(), ["intercept", "size"]);
    /// assert_eq!(design.rows().row(0), [1.0, -1.0]);
    /// assert_eq!(design.scalings()[0].restore(-1.0), 1.0);
    /// # Ok::<(), steinflow_models::TableError>(())
    /// ```
    pub fn new(table: &Table, target: Option<&str>) -> Result<Self, TableError> {
        let target_column = table.position(target)?;
        let target_name = table.columns()[target_column].clone();
        let features: Vec<usize> =
            (0..table.columns().len()).filter(|&column| column != target_column).collect();
        if features.is_empty() {
            let file = table.file().to_owned();
            return Err(TableError::NoFeatures { file, target: target_name });
        }
        let mut names = vec![INTERCEPT.to_owned()];
        for &column in &features {
            let column = table.columns()[column].clone();
            if column == INTERCEPT {
                return Err(TableError::DuplicateColumn { file: table.file().to_owned(), column });
            }
            names.push(column);
        }
        let scalings =
            features.iter().map(|&column| scaling(table, column)).collect::<Result<Vec<_>, _>>()?;
        let values = table.values();
        let rows = Matrix::from_fn(values.rows(), names.len(), |i, j| match j {
            0 => 1.0,
            _ => scalings[j - 1].standardise(values.row(i)[features[j - 1]]),
        });
        let target = (0..values.rows()).map(|i| values.row(i)[target_column]).collect();
        Ok(Self { target_name, rows, target, names, scalings })
    }

    /// X, a row of data a row.
    pub fn rows(&self) -> &Matrix<f64> {
        &self.rows
    }

    /// The target in its own units.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// The target's name.
    pub fn target_name(&self) -> &str {
        &self.target_name
    }

    /// `intercept` and the features' names.
    pub fn parameter_names(&self) -> &[String] {
        &self.names
    }

    /// How each feature was standardised, in the order of the features (the intercept has none).
    pub fn scalings(&self) -> &[Scaling] {
        &self.scalings
    }
}

/// The mean and standard deviation of a column.
pub(super) fn scaling(table: &Table, column: usize) -> Result<Scaling, TableError> {
    let values = table.values();
    let entries = || (0..values.rows()).map(|i| values.row(i)[column]);
    let count = values.rows() as f64;
    let first = values.row(0)[column];
    let name = || (table.file().to_owned(), table.columns()[column].clone());
    if entries().all(|x| x == first) {
        let (file, column) = name();
        return Err(TableError::ConstantColumn { file, column, value: first });
    }
    // Divided before they are summed, so that large numbers do not overflow.
    let mean = entries().map(|x| x / count).sum::<f64>();
    let sd = entries().map(|x| (x - mean) * (x - mean) / count).sum::<f64>().sqrt();
    if !(sd > 0.0 && sd.is_finite()) {
        let (file, column) = name();
        return Err(TableError::Unscalable { file, column, sd });
    }
    Ok(Scaling { mean, sd })
}
