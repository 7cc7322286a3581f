//! A CSV file of numbers with a header row, plain or compressed, checked cell by cell.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use steinflow::Matrix;

use super::text::{MAX_TEXT_BYTES, read_limited};
use super::{Scaling, TableError};

/// The most numbers in a table, which take 800 MB; the largest benchmark set has 47 million.
const MAX_CELLS: usize = 100_000_000;

/// The most columns: far above any regression, far below what their names could fill memory with.
const MAX_COLUMNS: usize = 100_000;

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
}

impl Table {
    /// Reads a CSV file, plain or compressed with gzip.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TableError> {
        let file = path.as_ref();
        // Asked first, because some systems open a directory and fail only when it is read.
        if file.is_dir() {
            return Err(TableError::Directory { file: file.to_owned() });
        }
        let opened = File::open(file)
            .map_err(|source| TableError::Open { file: file.to_owned(), source })?;
        Self::from_reader(opened, file)
    }

    /// Reads CSV text, plain or compressed with gzip, from anywhere; `file` is the name that errors
    /// give. At most [`MAX_TEXT_BYTES`] of text.
    pub fn from_reader(reader: impl Read, file: impl Into<PathBuf>) -> Result<Self, TableError> {
        let file = file.into();
        let cannot_read = |source| TableError::Read { file: file.clone(), source };
        let text = read_limited(reader, MAX_TEXT_BYTES).map_err(cannot_read)?;
        let text = text.ok_or_else(|| too_large(&file, MAX_TEXT_BYTES >> 20, "MiB of text"))?;
        let text = text.trim_start_matches('\u{feff}');

        // Flexible, because our own check of the length gives the better error.
        let mut records = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut line_counter = LineCounter::new(text);
        let mut record = StringRecord::new();
        let mut columns: Option<Vec<String>> = None;
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        while records.read_record(&mut record).map_err(|e| cannot_read(e.into()))? {
            let Some(columns) = &columns else {
                columns = Some(header(&record, &file)?);
                continue;
            };
            let start = record.position().map_or(0, csv::Position::byte) as usize;
            let line = line_counter.line_of_record(start);
            append_row(&record, columns, &file, line, &mut values)?;
            if values.len() > MAX_CELLS {
                return Err(too_large(&file, MAX_CELLS as u64, "numbers"));
            }
            lines.push(line);
        }
        let Some(columns) = columns else {
            return Err(TableError::NoHeader { file, found: "an empty file".to_owned() });
        };
        let values = Matrix::from_vec(values, lines.len(), columns.len())
            .filter(|values| values.rows() > 0)
            .ok_or_else(|| TableError::NoRows { file: file.clone() })?;
        Ok(Self { file, columns, values, lines })
    }

    /// A table of numbers that are at hand, row i on line i + `first_line`.
    pub(super) fn from_values(
        file: PathBuf,
        columns: Vec<String>,
        values: Matrix<f64>,
        first_line: u64,
    ) -> Self {
        let lines = (first_line..).take(values.rows()).collect();
        Self { file, columns, values, lines }
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

/// Counts lines itself: the reader's own count is late by one after `\r\n` and by every blank line.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line of the record that begins at byte `start` or after the line ends that follow it.
    fn line_of_record(&mut self, start: usize) -> u64 {
        while let Some(&byte) = self.text.get(self.at) {
            let ends_line = byte == b'\n' || byte == b'\r';
            if self.at >= start && !ends_line {
                break;
            }
            // `\r\n` ends one line, at its second byte.
            let first_of_two = byte == b'\r' && self.text.get(self.at + 1) == Some(&b'\n');
            self.line += u64::from(ends_line && !first_of_two);
            self.at += 1;
        }
        self.line
    }
}

fn too_large(file: &Path, limit: u64, unit: &'static str) -> TableError {
    TableError::TooLarge { file: file.to_owned(), limit, unit }
}

fn header(record: &StringRecord, file: &Path) -> Result<Vec<String>, TableError> {
    if record.len() > MAX_COLUMNS {
        return Err(too_large(file, MAX_COLUMNS as u64, "columns"));
    }
    // A file without a header would otherwise lose its first row in silence.
    if record.iter().all(|cell| cell.parse::<f64>().is_ok()) {
        let cells: Vec<&str> = record.iter().collect();
        let found = format!("the numbers `{}`", cells.join(","));
        return Err(TableError::NoHeader { file: file.to_owned(), found });
    }
    // Without a comma in sight, another separator is likelier than one column of such a name.
    if record.len() == 1 {
        for (separator, name) in [(';', "semicolons"), ('\t', "tabs")] {
            if record[0].contains(separator) {
                let file = file.to_owned();
                return Err(TableError::OtherSeparator { file, separator: name });
            }
        }
    }
    let mut taken = HashSet::new();
    for (i, name) in record.iter().enumerate() {
        if name.is_empty() {
            return Err(TableError::UnnamedColumn { file: file.to_owned(), position: i + 1 });
        }
        if !taken.insert(name) {
            let column = name.to_owned();
            return Err(TableError::DuplicateColumn { file: file.to_owned(), column });
        }
    }
    Ok(record.iter().map(str::to_owned).collect())
}

fn append_row(
    record: &StringRecord,
    columns: &[String],
    file: &Path,
    line: u64,
    values: &mut Vec<f64>,
) -> Result<(), TableError> {
    let (found, expected) = (record.len(), columns.len());
    if found != expected {
        return Err(TableError::RaggedRow { file: file.to_owned(), line, found, expected });
    }
    for (text, column) in record.iter().zip(columns) {
        let (file, column, text) = (file.to_owned(), column.clone(), text.to_owned());
        if text.is_empty() {
            return Err(TableError::MissingCell { file, line, column });
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => values.push(value),
            Ok(_) => return Err(TableError::NotFinite { file, line, column, text }),
            Err(_) => return Err(TableError::NotANumber { file, line, column, text }),
        }
    }
    Ok(())
}
