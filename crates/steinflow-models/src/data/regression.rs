//! Inputs and targets to train and test on, standardised by the training rows alone.

use std::path::PathBuf;

use steinflow::Matrix;

use super::{Scaling, Split, SplitError, Standardisation, Table, TableError};
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
    notes: Vec<String>,
    standardisation: Standardisation,
    train: Part,
    test: Part,
}

/// Rows of the table, in standard units.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    rows: Vec<usize>,
    inputs: Matrix<f64>,
    targets: Vec<f64>,
    targets_in_units: Vec<f64>,
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
        let standardisation = Standardisation::of(table, target, train)?;
        let part = |rows: &[usize]| -> Result<Part, TableError> {
            let read = standardisation.read(table, rows)?;
            let targets_in_units = read.targets_in_units.unwrap_or_default();
            let scaling = standardisation.target_scaling;
            Ok(Part {
                rows: rows.iter().map(|&row| table.number(row)).collect(),
                inputs: read.inputs,
                targets: targets_in_units.iter().map(|&y| scaling.standardise(y)).collect(),
                targets_in_units,
            })
        };
        let (train, test) = (part(train)?, part(test)?);
        let (file, notes) = (table.file().to_owned(), table.notes().to_vec());
        Ok(Self { file, notes, standardisation, train, test })
    }

    /// Where the table came from.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }

    /// What was made of the table, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The columns, and how each was standardised.
    pub fn standardisation(&self) -> &Standardisation {
        &self.standardisation
    }

    /// How the target was standardised.
    pub fn target_scaling(&self) -> Scaling {
        self.standardisation.target_scaling
    }

    /// The rows of the file to train on, counted from 0.
    pub fn train_rows(&self) -> &[usize] {
        &self.train.rows
    }

    /// Inputs to train on, a row of data a row, in standard units.
    pub fn train_inputs(&self) -> &Matrix<f64> {
        &self.train.inputs
    }

    /// Targets to train on, in standard units.
    pub fn train_targets(&self) -> &[f64] {
        &self.train.targets
    }

    /// Targets to train on, in their own units.
    pub fn train_targets_in_units(&self) -> &[f64] {
        &self.train.targets_in_units
    }

    /// The rows of the file to test on, counted from 0.
    pub fn test_rows(&self) -> &[usize] {
        &self.test.rows
    }

    /// Inputs to test on, in the standard units of the training rows.
    pub fn test_inputs(&self) -> &Matrix<f64> {
        &self.test.inputs
    }

    /// Targets to test on, in the standard units of the training rows.
    pub fn test_targets(&self) -> &[f64] {
        &self.test.targets
    }

    /// Targets to test on, in their own units.
    pub fn test_targets_in_units(&self) -> &[f64] {
        &self.test.targets_in_units
    }
}
