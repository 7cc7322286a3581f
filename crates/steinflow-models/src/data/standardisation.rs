//! The standard units of a table's training rows: all that is needed to read another file as a model
//! was trained, without the training data.

use steinflow::Matrix;

use super::{Recipe, Scaling, Table, TableError};

/// The columns of the training data, by name, and how each was standardised.
///
/// ```
/// use steinflow_models::data::{RegressionData, Table};
/// let table = Table::from_reader("x,y\n1,10\n3,20\n".as_bytes(), "lines.csv")?;
/// let standardisation = RegressionData::train_only(&table, Some("y"))?.standardisation().clone();
///
/// let new = Table::from_reader("x\n2\n5\n".as_bytes(), "new.csv")?;
/// assert_eq!(standardisation.standardise_new(&new)?.inputs.as_slice(), [0.0, 3.0]);
/// # Ok::<(), steinflow_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardisation {
    /// How the file became the columns.
    pub recipe: Recipe,
    /// The features' names, in the order of the inputs' columns.
    pub feature_names: Vec<String>,
    /// The target's name.
    pub target_name: String,
    /// How each input column was standardised.
    pub input_scalings: Vec<Scaling>,
    /// How the target was standardised.
    pub target_scaling: Scaling,
}

/// Rows to predict for, in the training data's standard units.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRows {
    /// A row of the file a row, the features in the order of the training data.
    pub inputs: Matrix<f64>,
    /// The targets in their own units, where the file has them.
    pub targets_in_units: Option<Vec<f64>>,
}

impl Standardisation {
    /// By the rows `train` of a table: column `target` (the last one when `None`) against all others.
    pub(super) fn of(
        table: &Table,
        target: Option<&str>,
        train: &[usize],
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
        Ok(Self {
            recipe: table.recipe().clone(),
            feature_names: features.iter().map(|&j| table.columns()[j].clone()).collect(),
            target_name,
            input_scalings,
            target_scaling: match table.recipe().levels(&table.columns()[target]) {
                // The numbers of classes stay as they are.
                Some(_) => Scaling { mean: 0.0, sd: 1.0 },
                None => Scaling::of(table, target, train)?,
            },
        })
    }

    /// The names of the target's classes; none for a target that is a number.
    pub fn classes(&self) -> &[String] {
        self.recipe.levels(&self.target_name).unwrap_or_default()
    }

    /// Rows of another file, in the standard units of the training rows. Columns are matched by name,
    /// in any order; the target may be there, and columns that are not asked for.
    pub fn standardise_new(&self, table: &Table) -> Result<NewRows, TableError> {
        self.read(table, &(0..table.values().rows()).collect::<Vec<_>>())
    }

    /// Some rows of a table that has the features, and may have the target.
    pub(super) fn read(&self, table: &Table, rows: &[usize]) -> Result<NewRows, TableError> {
        let position = |name: &str| table.columns().iter().position(|column| column == name);
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
        let inputs = Matrix::from_fn(rows.len(), features.len(), |i, j| {
            self.input_scalings[j].standardise(table.values().row(rows[i])[features[j]])
        });
        let targets_in_units = position(&self.target_name)
            .map(|target| rows.iter().map(|&row| table.values().row(row)[target]).collect());
        Ok(NewRows { inputs, targets_in_units })
    }
}
