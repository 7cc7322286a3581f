//! Named columns of numbers, from a file that holds them or by a [`Recipe`] from one that holds more.

use std::io::Read;
use std::path::{Path, PathBuf};

use steinflow::Matrix;

use super::frame::Frame;
use super::{Choices, Recipe, Scaling, TableError};

/// Named columns of finite numbers.
///
/// ```
/// use steinflow_models::data::Table;
/// let table = Table::from_reader("age,income\n31,2.5\n47,3.1\n".as_bytes(), "people.csv")?;
/// assert_eq!(table.columns(), ["age", "income"]);
/// assert_eq!(table.values().row(1), [47.0, 3.1]);
/// # Ok::<(), steinflow_models::TableError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    file: PathBuf,
    columns: Vec<String>,
    values: Matrix<f64>,
    lines: Vec<u64>,
    numbers: Vec<usize>,
    recipe: Recipe,
    notes: Vec<String>,
}

impl Table {
    /// Reads a file of numbers under a header row: CSV or the like, plain or compressed with gzip, or
    /// Parquet. Every cell is a number, and every column is kept.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TableError> {
        Self::of_numbers(&Frame::read(path)?)
    }

    /// Reads text of numbers, plain or compressed with gzip, from anywhere; `file` is the name that
    /// errors give. At most [`MAX_TEXT_BYTES`](super::MAX_TEXT_BYTES) of text.
    pub fn from_reader(reader: impl Read, file: impl Into<PathBuf>) -> Result<Self, TableError> {
        Self::of_numbers(&Frame::from_reader(reader, file)?)
    }

    /// Reads a table as people keep it, which may have categories, dates, cells that are empty and
    /// columns that say nothing; [`Table::notes`] say what was made of it.
    ///
    /// ```
    /// use steinflow_models::data::{Choices, Table};
    /// let text = "id;district;sold;price\n1;north;yes;1,5\n2;south;no;NA\n3;south;no;2,5\n";
    /// let table = Table::choose_from_reader(text.as_bytes(), "homes.csv", &Choices::default())?;
    /// assert_eq!(table.columns(), ["district[south]", "sold", "price"]);
    /// assert_eq!(table.values().row(1), [1.0, 0.0, 2.5]);
    /// assert!(table.notes()[0].contains("1 rows with missing cells left out"));
    /// # Ok::<(), steinflow_models::TableError>(())
    /// ```
    pub fn choose_from_reader(
        reader: impl Read,
        file: impl Into<PathBuf>,
        choices: &Choices,
    ) -> Result<Self, TableError> {
        Self::choose(&Frame::from_reader(reader, file)?, choices)
    }

    pub(super) fn choose(frame: &Frame, choices: &Choices) -> Result<Self, TableError> {
        let (recipe, notes) = Recipe::choose(frame, choices)?;
        Ok(Self { notes, ..recipe.apply(frame)? }.made_by(recipe))
    }

    fn of_numbers(frame: &Frame) -> Result<Self, TableError> {
        let recipe = Recipe::of_numbers(&frame.columns);
        Ok(recipe.apply(frame)?.made_by(recipe))
    }

    /// A table of numbers that are at hand, row i on line i + `first_line`.
    pub(super) fn from_values(
        file: PathBuf,
        columns: Vec<String>,
        values: Matrix<f64>,
        first_line: u64,
    ) -> Self {
        let (lines, numbers) =
            ((first_line..).take(values.rows()).collect(), (0..values.rows()).collect());
        let recipe = Recipe::of_numbers(&columns);
        Self::new(file, columns, values, lines, numbers).made_by(recipe)
    }

    pub(super) fn new(
        file: PathBuf,
        columns: Vec<String>,
        values: Matrix<f64>,
        lines: Vec<u64>,
        numbers: Vec<usize>,
    ) -> Self {
        let (recipe, notes) = (Recipe::of_numbers(&columns), Vec::new());
        Self { file, columns, values, lines, numbers, recipe, notes }
    }

    fn made_by(self, recipe: Recipe) -> Self {
        Self { recipe, ..self }
    }

    /// Where the table came from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The columns' names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The numbers, a row of the file a row.
    pub fn values(&self) -> &Matrix<f64> {
        &self.values
    }

    /// The line of the file that row `row` stands on, for messages.
    pub fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// Where row `row` stands among the rows of the file, counted from 0.
    pub fn number(&self, row: usize) -> usize {
        self.numbers[row]
    }

    /// How the file became numbers.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What was made of the file, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The mean and standard deviation of a column over all rows.
    pub fn scaling(&self, column: usize) -> Result<Scaling, TableError> {
        Scaling::of(self, column, &(0..self.values.rows()).collect::<Vec<_>>())
    }

    /// The position of the column `name`, or of the last one.
    pub fn position(&self, name: Option<&str>) -> Result<usize, TableError> {
        let Some(name) = name else { return Ok(self.columns.len() - 1) };
        self.columns.iter().position(|column| column == name).ok_or_else(|| {
            let known = self.columns.iter().map(String::as_str);
            let source = steinflow::Error::unknown("column", name, known);
            TableError::UnknownColumn { file: self.file.clone(), source }
        })
    }
}
