//! The design matrix X: an intercept and the features, each (x − mean)/sd.

use steinflow::Matrix;

use crate::data::{Scaling, Table, TableError};

/// The parameter that no column stands for.
const INTERCEPT: &str = "intercept";

/// A table, split into a target column and standardised features.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    target_name: String,
    /// n × p, the intercept first.
    rows: Matrix<f64>,
    target: Vec<f64>,
    names: Vec<String>,
    scalings: Vec<Scaling>,
    notes: Vec<String>,
}

impl Design {
    /// Predicts column `target` (the last one when `None`) from all others.
    ///
    /// ```
    /// use steinflow_models::data::Table;
    /// use steinflow_models::regression::Design;
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
            features.iter().map(|&column| table.scaling(column)).collect::<Result<Vec<_>, _>>()?;
        let values = table.values();
        let rows = Matrix::from_fn(values.rows(), names.len(), |i, j| match j {
            0 => 1.0,
            _ => scalings[j - 1].standardise(values.row(i)[features[j - 1]]),
        });
        let target = (0..values.rows()).map(|i| values.row(i)[target_column]).collect();
        let notes = table.notes().to_vec();
        Ok(Self { target_name, rows, target, names, scalings, notes })
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

    /// What was made of the table, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How each feature was standardised, in the order of the features (the intercept has none).
    pub fn scalings(&self) -> &[Scaling] {
        &self.scalings
    }
}
