//! Inputs and targets to train and test on, standardised by the training rows alone.

use std::path::PathBuf;

use steinflow::Matrix;

use super::{Scaling, Split, SplitError, Table, TableError};
use crate::Result;

/// A table with a target column, split and in standard units.
///
/// Test rows never enter a mean or a standard deviation.
///
/// ```
/// use steinflow_models::data::{RegressionData, Split, Table};
/// let table = Table::from_reader("x,y\n1,10\n3,20\n9,90\n".as_bytes(), "lines.csv")?;
/// let data = RegressionData::new(&table, Some("y"), &Split::new(3, vec![2])?)?;
/// assert_eq!(data.train_inputs().as_slice(), [-1.0, 1.0]);
/// assert_eq!(data.test_inputs().as_slice(), [7.0]);
/// assert_eq!(data.test_targets_in_units(), [90.0]);
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionData {
    file: PathBuf,
    feature_names: Vec<String>,
    target_name: String,
    input_scalings: Vec<Scaling>,
    target_scaling: Scaling,
    train_inputs: Matrix<f64>,
    train_targets: Vec<f64>,
    test_inputs: Matrix<f64>,
    test_targets: Vec<f64>,
    test_targets_in_units: Vec<f64>,
}

/// Rows to predict for, in the training data's standard units.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRows {
    /// A row of the file a row, the features in the order of the training data.
    pub inputs: Matrix<f64>,
    /// The targets in their own units, where the file has them.
    pub targets_in_units: Option<Vec<f64>>,
}

impl RegressionData {
    /// Predicts column `target` (the last one when `None`) from all others.
    pub fn new(table: &Table, target: Option<&str>, split: &Split) -> Result<Self> {
        let found = table.values().rows();
        if split.rows() != found {
            return Err(SplitError::OtherTable { expected: split.rows(), found }.into());
        }
        Ok(Self::of_rows(table, target, split.train(), split.test())?)
    }

    /// Trains on every row; there are no test rows.
    pub fn train_only(table: &Table, target: Option<&str>) -> Result<Self> {
        let all: Vec<usize> = (0..table.values().rows()).collect();
        Ok(Self::of_rows(table, target, &all, &[])?)
    }

    fn of_rows(
        table: &Table,
        target: Option<&str>,
        train: &[usize],
        test: &[usize],
    ) -> Result<Self, TableError> {
        let target = table.position(target)?;
        let target_name = table.columns()[target].clone();
        let features: Vec<usize> =
            (0..table.columns().len()).filter(|&column| column != target).collect();
        if features.is_empty() {
            let file = table.file().to_owned();
            return Err(TableError::NoFeatures { file, target: target_name });
        }
        let input_scalings = features
            .iter()
            .map(|&column| Scaling::of(table, column, train))
            .collect::<Result<Vec<_>, _>>()?;
        let target_scaling = Scaling::of(table, target, train)?;
        let inputs = |rows: &[usize]| standardised(table, rows, &features, &input_scalings);
        let targets = |rows: &[usize]| -> Vec<f64> {
            rows.iter().map(|&row| table.values().row(row)[target]).collect()
        };
        let standard = |targets: Vec<f64>| -> Vec<f64> {
            targets.into_iter().map(|y| target_scaling.standardise(y)).collect()
        };
        Ok(Self {
            train_inputs: inputs(train),
            train_targets: standard(targets(train)),
            test_inputs: inputs(test),
            test_targets: standard(targets(test)),
            test_targets_in_units: targets(test),
            file: table.file().to_owned(),
            feature_names: features.iter().map(|&j| table.columns()[j].clone()).collect(),
            target_name,
            input_scalings,
            target_scaling,
        })
    }

    /// Rows of another file, in the standard units of this data's training rows. Columns are matched
    /// by name, in any order; the target may be there.
    pub fn standardise_new(&self, table: &Table) -> Result<NewRows, TableError> {
        let columns = table.columns();
        let known =
            |column: &&String| **column == self.target_name || self.feature_names.contains(column);
        if let Some(extra) = columns.iter().find(|column| !known(column)) {
            return Err(TableError::ExtraColumn {
                file: table.file().to_owned(),
                column: extra.clone(),
                features: self.feature_names.clone(),
                target: self.target_name.clone(),
            });
        }
        let position = |name: &String| columns.iter().position(|column| column == name);
        let features = self
            .feature_names
            .iter()
            .map(|name| {
                position(name).ok_or_else(|| TableError::MissingFeature {
                    file: table.file().to_owned(),
                    column: name.clone(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rows: Vec<usize> = (0..table.values().rows()).collect();
        let inputs = standardised(table, &rows, &features, &self.input_scalings);
        let targets_in_units = position(&self.target_name)
            .map(|target| rows.iter().map(|&row| table.values().row(row)[target]).collect());
        Ok(NewRows { inputs, targets_in_units })
    }

    /// Where the table came from.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }

    /// The features' names, in the order of the inputs' columns.
    pub fn feature_names(&self) -> &[String] {
        &self.feature_names
    }

    /// The target's name.
    pub fn target_name(&self) -> &str {
        &self.target_name
    }

    /// How each input column was standardised.
    pub fn input_scalings(&self) -> &[Scaling] {
        &self.input_scalings
    }

    /// How the target was standardised.
    pub fn target_scaling(&self) -> Scaling {
        self.target_scaling
    }

    /// Inputs to train on, a row of data a row, in standard units.
    pub fn train_inputs(&self) -> &Matrix<f64> {
        &self.train_inputs
    }

    /// Targets to train on, in standard units.
    pub fn train_targets(&self) -> &[f64] {
        &self.train_targets
    }

    /// Inputs to test on, in the standard units of the training rows.
    pub fn test_inputs(&self) -> &Matrix<f64> {
        &self.test_inputs
    }

    /// Targets to test on, in the standard units of the training rows.
    pub fn test_targets(&self) -> &[f64] {
        &self.test_targets
    }

    /// Targets to test on, in their own units.
    pub fn test_targets_in_units(&self) -> &[f64] {
        &self.test_targets_in_units
    }
}

fn standardised(
    table: &Table,
    rows: &[usize],
    features: &[usize],
    scalings: &[Scaling],
) -> Matrix<f64> {
    Matrix::from_fn(rows.len(), features.len(), |i, j| {
        scalings[j].standardise(table.values().row(rows[i])[features[j]])
    })
}
