//! From a file as it is published to the table that the benchmark uses: features, then the target.

use std::fmt::Write as _;
use std::path::Path;

use steinflow_models::data::{Archive, DataSet, Layout, Table};

use super::archive::XLS_MAGIC;
use super::{Trouble, sheet};

const ZIP_MAGIC: &[u8] = b"PK";

/// The CSV text of `set`, checked by its fingerprint, from the bytes of an unpacked file. A table that
/// is in the set's own form already, as other users keep it, is taken too.
pub fn to_csv(
    bytes: &[u8],
    set: &DataSet,
    archive: &Archive,
    limit: u64,
) -> Result<String, Trouble> {
    let mut objections = Vec::new();
    for numbers in candidates(bytes, set, archive, limit)? {
        let text = csv_text(set, &numbers);
        match checked(set, &text) {
            Ok(()) => return Ok(text),
            Err(objection) => objections.push(objection),
        }
    }
    objections.dedup();
    Err(Trouble::OtherContent(objections))
}

fn checked(set: &DataSet, text: &str) -> Result<(), String> {
    let table = Table::from_reader(text.as_bytes(), Path::new("what was fetched"))
        .map_err(|error| error.to_string())?;
    set.check(&table).map_err(|error| error.to_string())
}

/// The numbers that may be the table, in the order of its columns: one set of them, or one per sheet.
fn candidates(
    bytes: &[u8],
    set: &DataSet,
    archive: &Archive,
    limit: u64,
) -> Result<Vec<Vec<f64>>, Trouble> {
    if bytes.starts_with(XLS_MAGIC) {
        return Err(Trouble::OldExcel);
    }
    if bytes.starts_with(ZIP_MAGIC) {
        let sheets = sheet::read(bytes, archive.columns, limit)?;
        return Ok(sheets.iter().map(|numbers| in_order(set, archive, numbers)).collect());
    }
    // Prose around the numbers may be in any encoding.
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    if let Some((header, rows)) = text.split_once('\n')
        && header.trim().split(',').eq(set.columns())
    {
        return Ok(vec![comma_separated(rows, 2, set.features.len() + 1)?]);
    }
    let numbers = match archive.layout {
        Layout::Csv | Layout::Sheet => {
            let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
            comma_separated(rows, 2, archive.columns)?
        }
        Layout::Headerless => comma_separated(text, 1, archive.columns)?,
        Layout::Arff => {
            let is_mark = |line: &str| line.trim().eq_ignore_ascii_case("@data");
            let mark = text.lines().position(is_mark).ok_or(Trouble::NoData)?;
            let rows: Vec<&str> = text.lines().skip(mark + 1).collect();
            comma_separated(&rows.join("\n"), mark + 2, archive.columns)?
        }
        Layout::Spaced { prose } => spaced(text, prose, archive.columns)?,
    };
    Ok(vec![in_order(set, archive, &numbers)])
}

/// Rows of `columns` numbers; blank lines and `%` comments, which ARFF has, are passed over.
fn comma_separated(text: &str, first_line: usize, columns: usize) -> Result<Vec<f64>, Trouble> {
    let mut numbers = Vec::new();
    for (index, row) in text.lines().enumerate() {
        if row.trim().is_empty() || row.starts_with('%') {
            continue;
        }
        let line = first_line + index;
        let before = numbers.len();
        for cell in row.split(',') {
            numbers.push(number(cell, line)?);
        }
        let found = numbers.len() - before;
        if found != columns {
            let place = format!("line {line}");
            return Err(Trouble::Ragged { place, found, expected: columns });
        }
    }
    Ok(numbers)
}

/// All numbers after the prose, wherever their lines end.
fn spaced(text: &str, prose: usize, columns: usize) -> Result<Vec<f64>, Trouble> {
    let mut numbers = Vec::new();
    for (index, line) in text.lines().enumerate().skip(prose) {
        for word in line.split_whitespace() {
            numbers.push(number(word, index + 1)?);
        }
    }
    if !numbers.len().is_multiple_of(columns) {
        let (place, found) = ("the last row".to_owned(), numbers.len() % columns);
        return Err(Trouble::Ragged { place, found, expected: columns });
    }
    Ok(numbers)
}

fn number(text: &str, line: usize) -> Result<f64, Trouble> {
    let text = text.trim();
    text.parse().map_err(|_| Trouble::NotANumber { line, text: text.chars().take(40).collect() })
}

/// The features, then the target, of rows in the archive's order.
fn in_order(set: &DataSet, archive: &Archive, numbers: &[f64]) -> Vec<f64> {
    let features = (0..archive.columns).filter(|&column| column != archive.target);
    let order: Vec<usize> = features.take(set.features.len()).chain([archive.target]).collect();
    let rows = numbers.chunks_exact(archive.columns);
    rows.flat_map(|row| order.iter().map(|&column| row[column])).collect()
}

fn csv_text(set: &DataSet, numbers: &[f64]) -> String {
    let columns = set.columns();
    let mut text = columns.join(",");
    for row in numbers.chunks_exact(columns.len()) {
        for (position, value) in row.iter().enumerate() {
            let before = if position == 0 { '\n' } else { ',' };
            // The shortest digits that give the same number back. Writing to a string does not fail.
            let _ = write!(text, "{before}{value}");
        }
    }
    text.push('\n');
    text
}
