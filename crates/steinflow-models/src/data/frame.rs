//! A table as its file holds it: cells of text under named columns, with all that is needed to say
//! where a cell stands.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::TableError;
use super::dialect::{Dialect, is_all_numbers};
use super::parquet::is_parquet;
use super::text::{MAX_TEXT_BYTES, read_limited};

/// The most cells of a table; the largest benchmark set has 47 million.
pub(super) const MAX_CELLS: usize = 100_000_000;

/// The most columns: far above any regression, far below what their names could fill memory with.
const MAX_COLUMNS: usize = 100_000;

/// Named columns of text.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) file: PathBuf,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<StringRecord>,
    /// The line of the file that each row stands on.
    pub(super) lines: Vec<u64>,
    pub(super) dialect: Dialect,
    /// What the text was in, where that is not UTF-8.
    pub(super) encoding: Option<&'static str>,
}

impl Frame {
    /// Reads a file of text, plain or compressed with gzip, or a Parquet file.
    pub(super) fn read(path: impl AsRef<Path>) -> Result<Self, TableError> {
        let file = path.as_ref();
        // Asked first, because some systems open a directory and fail only when it is read.
        if file.is_dir() {
            return Err(TableError::Directory { file: file.to_owned() });
        }
        let unopened = |source| TableError::Open { file: file.to_owned(), source };
        let opened = File::open(file).map_err(unopened)?;
        if is_parquet(&opened).map_err(unopened)? {
            return Self::from_parquet(opened, file);
        }
        let ending = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if ["xls", "xlsx", "xlsm", "ods"].contains(&ending.as_str()) {
            return Err(TableError::Workbook { file: file.to_owned() });
        }
        Self::from_reader(opened, file)
    }

    /// Reads text from anywhere; `file` is the name that errors give.
    pub(super) fn from_reader(
        reader: impl Read,
        file: impl Into<PathBuf>,
    ) -> Result<Self, TableError> {
        let file = file.into();
        let cannot_read = |source| TableError::Read { file: file.clone(), source };
        let text = read_limited(reader, MAX_TEXT_BYTES).map_err(cannot_read)?;
        let (text, encoding) =
            text.ok_or_else(|| too_large(&file, MAX_TEXT_BYTES >> 20, "MiB of text"))?;
        let text = text.trim_start_matches('\u{feff}');

        let dialect = Dialect::detect(text);
        let mut records = dialect.reader(text);
        let mut line_counter = LineCounter::new(text);
        let mut record = StringRecord::new();
        let mut columns: Option<Vec<String>> = None;
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        while records.read_record(&mut record).map_err(|e| cannot_read(e.into()))? {
            let Some(columns) = &columns else {
                let named = (0..record.len()).rev().find(|&at| !record[at].is_empty());
                record.truncate(named.map_or(0, |last| last + 1));
                columns = Some(header(dialect, &record, &file)?);
                continue;
            };
            // Separators at the end of a line make cells that no column has.
            if record.iter().skip(columns.len()).all(str::is_empty) {
                record.truncate(columns.len());
            }
            let start = record.position().map_or(0, csv::Position::byte) as usize;
            let line = line_counter.line_of_record(start);
            let (found, expected) = (record.len(), columns.len());
            if found != expected {
                return Err(TableError::RaggedRow { file, line, found, expected });
            }
            lines.push(line);
            if lines.len() > MAX_CELLS / expected {
                return Err(too_large(&file, MAX_CELLS as u64, "cells"));
            }
            rows.push(record.clone());
        }
        let Some(columns) = columns else {
            return Err(TableError::NoHeader { file, found: "an empty file".to_owned() });
        };
        Self { file, columns, rows, lines, dialect, encoding }.with_rows()
    }

    /// Refuses a table without any.
    pub(super) fn with_rows(self) -> Result<Self, TableError> {
        if self.rows.is_empty() { Err(TableError::NoRows { file: self.file }) } else { Ok(self) }
    }

    /// The cell of a row and column.
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        &self.rows[row][column]
    }

    /// The cells of a column, row after row.
    pub(super) fn cells(&self, column: usize) -> impl Iterator<Item = &str> + Clone {
        self.rows.iter().map(move |row| &row[column])
    }

    /// The position of a column.
    pub(super) fn position(&self, name: &str) -> Result<usize, TableError> {
        self.columns.iter().position(|column| column == name).ok_or_else(|| {
            let known = self.columns.iter().map(String::as_str);
            let source = steinflow::Error::unknown("column", name, known);
            TableError::UnknownColumn { file: self.file.clone(), source }
        })
    }
}

/// Counts lines itself: the reader's own count is late by one after `\r\n`, by every blank line and by
/// every comment.
struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line of the record that begins at byte `start`, or after the blank lines and comments that
    /// follow it.
    fn line_of_record(&mut self, start: usize) -> u64 {
        let mut in_comment = false;
        while let Some(&byte) = self.text.get(self.at) {
            let ends_line = byte == b'\n' || byte == b'\r';
            let begins_line = self.at == 0 || matches!(self.text[self.at - 1], b'\n' | b'\r');
            in_comment = !ends_line && (in_comment || (begins_line && byte == b'#'));
            if self.at >= start && !ends_line && !in_comment {
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

pub(super) fn too_large(file: &Path, limit: u64, unit: &'static str) -> TableError {
    TableError::TooLarge { file: file.to_owned(), limit, unit }
}

fn header(dialect: Dialect, record: &StringRecord, file: &Path) -> Result<Vec<String>, TableError> {
    // A file without a header would otherwise lose its first row in silence.
    if is_all_numbers(dialect, record) {
        let cells: Vec<&str> = record.iter().collect();
        let found = format!("the numbers `{}`", cells.join(","));
        return Err(TableError::NoHeader { file: file.to_owned(), found });
    }
    names(record.iter(), file)
}

/// The names of columns, all there and all different.
pub(super) fn names<'a>(
    names: impl Iterator<Item = &'a str>,
    file: &Path,
) -> Result<Vec<String>, TableError> {
    let mut taken = HashSet::new();
    let mut found = Vec::new();
    for (i, name) in names.enumerate() {
        if i == MAX_COLUMNS {
            return Err(too_large(file, MAX_COLUMNS as u64, "columns"));
        }
        // Row numbers that a program has written along have no name.
        let name = if i == 0 && name.is_empty() { "row" } else { name };
        if name.is_empty() {
            return Err(TableError::UnnamedColumn { file: file.to_owned(), position: i + 1 });
        }
        if !taken.insert(name) {
            let column = name.to_owned();
            return Err(TableError::DuplicateColumn { file: file.to_owned(), column });
        }
        found.push(name.to_owned());
    }
    Ok(found)
}
