//! The design matrix X: an intercept and the features, each (x − mean)/sd.

use std::path::PathBuf;

use steinflow::Matrix;

use crate::data::{Recipe, Scaling, Table, TableError};
use crate::{ModelSpec, Result};

/// The parameter that no column stands for.
const INTERCEPT: &str = "intercept";

/// A table, split into a target column and standardised features.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    target_name: String,
    /// n × p, the intercept first where there is one.
    rows: Matrix<f64>,
    target: Vec<f64>,
    names: Vec<String>,
    scalings: Vec<Scaling>,
    /// A column that is added to the predictor as it is.
    offset: Option<(String, Vec<f64>)>,
    file: PathBuf,
    lines: Vec<u64>,
    recipe: Recipe,
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
    /// assert_eq!(design.names(), ["intercept", "size"]);
    /// assert_eq!(design.rows().row(0), [1.0, -1.0]);
    /// assert_eq!(design.scalings()[0].restore(-1.0), 1.0);
    /// # Ok::<(), steinflow_models::TableError>(())
    /// ```
    pub fn new(table: &Table, target: Option<&str>) -> Result<Self, TableError> {
        Self::with_offset(table, target, None)
    }

    /// By the options of a model.
    pub(crate) fn of(spec: &ModelSpec) -> Result<Self> {
        let (table, _) = spec.read_table(None)?;
        Ok(Self::with_offset(&table, spec.target.as_deref(), spec.offset.as_deref())?)
    }

    fn with_offset(
        table: &Table,
        target: Option<&str>,
        offset: Option<&str>,
    ) -> Result<Self, TableError> {
        let target_column = table.position(target)?;
        let target_name = table.columns()[target_column].clone();
        let offset = offset.map(|name| table.position(Some(name))).transpose()?;
        let is_feature = |&column: &usize| column != target_column && Some(column) != offset;
        let features: Vec<usize> = (0..table.columns().len()).filter(is_feature).collect();
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
        let column = |j: usize| (0..values.rows()).map(|i| values.row(i)[j]).collect();
        Ok(Self {
            target_name,
            rows,
            target: column(target_column),
            names,
            scalings,
            offset: offset.map(|j| (table.columns()[j].clone(), column(j))),
            file: table.file().to_owned(),
            lines: (0..values.rows()).map(|row| table.line(row)).collect(),
            recipe: table.recipe().clone(),
            notes: table.notes().to_vec(),
        })
    }

    /// For a model that has intercepts of its own.
    pub(super) fn without_intercept(mut self) -> Self {
        self.names.remove(0);
        let rows = &self.rows;
        self.rows = Matrix::from_fn(rows.rows(), self.names.len(), |i, j| rows.row(i)[j + 1]);
        self
    }

    /// X, a row of data a row.
    pub fn rows(&self) -> &Matrix<f64> {
        &self.rows
    }

    /// The target in its own units; of classes by name, their numbers.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// The target's name.
    pub fn target_name(&self) -> &str {
        &self.target_name
    }

    /// The names of the columns of X: `intercept`, and the features'.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The features' names.
    pub fn features(&self) -> &[String] {
        &self.names[self.names.len() - self.scalings.len()..]
    }

    /// How each feature was standardised, in the order of the features (the intercept has none).
    pub fn scalings(&self) -> &[Scaling] {
        &self.scalings
    }

    /// What was made of the table, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    pub(super) fn offset(&self) -> Option<&(String, Vec<f64>)> {
        self.offset.as_ref()
    }

    /// How a target of numbers is standardised.
    pub fn target_scaling(&self) -> Result<Scaling, TableError> {
        self.require_numbers()?;
        let (file, column) = (self.file.clone(), self.target_name.clone());
        let count = self.target.len() as f64;
        let first = self.target[0];
        if self.target.iter().all(|&y| y == first) {
            return Err(TableError::ConstantColumn { file, column, value: first });
        }
        // Divided before they are summed, so that large numbers do not overflow.
        let mean = self.target.iter().map(|y| y / count).sum::<f64>();
        let sd = self.target_sd();
        if sd > 0.0 && sd.is_finite() {
            return Ok(Scaling { mean, sd });
        }
        Err(TableError::Unscalable { file, column, sd })
    }

    /// The standard deviation of the target, in its own units.
    pub(super) fn target_sd(&self) -> f64 {
        let count = self.target.len() as f64;
        let mean = self.target.iter().map(|y| y / count).sum::<f64>();
        self.target.iter().map(|y| (y - mean) * (y - mean) / count).sum::<f64>().sqrt()
    }

    /// A target of counts, and the logarithm of the rate at which they come, less the offset.
    pub(super) fn counts(&self) -> Result<(Vec<f64>, f64), TableError> {
        self.require_numbers()?;
        let is_count = |y: f64| y >= 0.0 && y.fract() == 0.0;
        if let Some(row) = self.target.iter().position(|&y| !is_count(y)) {
            return Err(TableError::NotACount {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: self.target[row],
            });
        }
        let total: f64 = self.target.iter().sum();
        let exposure: f64 = match &self.offset {
            Some((_, offset)) => offset.iter().map(|x| x.exp()).sum(),
            None => self.target.len() as f64,
        };
        // Half a count, if there is none, for a rate above 0.
        Ok((self.target.clone(), (total.max(0.5) / exposure).ln()))
    }

    /// The names of a target's classes, at least two, and their numbers row by row.
    pub(super) fn classes(&self) -> Result<(Vec<String>, Vec<f64>), TableError> {
        /// More classes are a mistake.
        const MOST: usize = 1000;
        let (classes, y) = if let Some(levels) = self.recipe.levels(&self.target_name) {
            (levels.to_vec(), self.target.clone())
        } else {
            let mut values = self.target.clone();
            values.sort_by(f64::total_cmp);
            values.dedup();
            let place = |y: &f64| values.partition_point(|value| value < y) as f64;
            let y = self.target.iter().map(place).collect();
            (values.iter().map(ToString::to_string).collect(), y)
        };
        let (file, column) = (self.file.clone(), self.target_name.clone());
        if classes.len() < 2 {
            return Err(TableError::OneClass { file, column, value: classes.concat() });
        }
        if classes.len() > MOST {
            return Err(TableError::TooManyClasses { file, column, found: classes.len() });
        }
        Ok((classes, y))
    }

    /// The names of the two classes of a target, and 0 or 1 row by row.
    pub(super) fn two_classes(&self) -> Result<([String; 2], Vec<f64>), TableError> {
        if self.recipe.levels(&self.target_name).is_none()
            && let Some(row) = self.target.iter().position(|&y| y != 0.0 && y != 1.0)
        {
            return Err(TableError::NotBinary {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: self.target[row].to_string(),
            });
        }
        let (classes, y) = self.classes()?;
        <[String; 2]>::try_from(classes).map(|classes| (classes, y)).map_err(|classes| {
            let row = self.target.iter().position(|&y| y > 1.0).unwrap_or(0);
            TableError::NotBinary {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: format!("`{}`, one of {} levels", classes[2], classes.len()),
            }
        })
    }

    fn require_numbers(&self) -> Result<(), TableError> {
        match self.recipe.levels(&self.target_name) {
            None => Ok(()),
            Some(levels) => Err(TableError::TargetOfWords {
                file: self.file.clone(),
                column: self.target_name.clone(),
                level: levels.first().cloned().unwrap_or_default(),
            }),
        }
    }
}
