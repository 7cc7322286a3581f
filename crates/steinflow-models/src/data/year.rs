//! `YearPredictionMSD.txt` as its publisher ships it: no header, the year first, read line by line
//! because it has 428 MiB.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use steinflow::Matrix;

use super::{DataSet, DataSetError, MAX_TEXT_BYTES, Table, TableError};
use crate::Result;

/// The years that occur.
const YEARS: std::ops::RangeInclusive<f64> = 1922.0..=2011.0;

pub(super) fn read(file: &Path, set: &DataSet) -> Result<Table> {
    let opened =
        File::open(file).map_err(|source| TableError::Open { file: file.to_owned(), source })?;
    from_lines(BufReader::new(opened.take(MAX_TEXT_BYTES)), file, set.columns())
}

/// Moves the first cell of every line to the end, where the other data sets have their target.
fn from_lines(mut reader: impl BufRead, file: &Path, columns: Vec<String>) -> Result<Table> {
    let (mut values, mut line) = (Vec::new(), String::new());
    let mut rows = 0;
    loop {
        line.clear();
        let length = reader
            .read_line(&mut line)
            .map_err(|source| TableError::Read { file: file.to_owned(), source })?;
        if length == 0 || line.trim().is_empty() {
            break;
        }
        rows += 1;
        let cells: Vec<&str> = line.trim().split(',').collect();
        if cells.len() != columns.len() {
            let (found, expected) = (cells.len(), columns.len());
            let file = file.to_owned();
            return Err(TableError::RaggedRow { file, line: rows, found, expected }.into());
        }
        for (text, column) in cells[1..].iter().chain(&cells[..1]).zip(&columns) {
            let place = (file.to_owned(), rows, column.clone(), (*text).to_owned());
            match text.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                Ok(_) => {
                    let (file, line, column, text) = place;
                    return Err(TableError::NotFinite { file, line, column, text }.into());
                }
                Err(_) => {
                    let (file, line, column, text) = place;
                    return Err(TableError::NotANumber { file, line, column, text }.into());
                }
            }
        }
        let value = values[values.len() - 1];
        if !YEARS.contains(&value) || value.fract() != 0.0 {
            let file = file.to_owned();
            return Err(DataSetError::NotAYear { file, line: rows, value }.into());
        }
    }
    let values = Matrix::from_vec(values, rows as usize, columns.len())
        .filter(|values| values.rows() > 0)
        .ok_or_else(|| TableError::NoRows { file: file.to_owned() })?;
    Ok(Table::from_values(file.to_owned(), columns, values, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Table> {
        let columns = ["a", "b", "year"].map(str::to_owned).to_vec();
        from_lines(text.as_bytes(), Path::new("YearPredictionMSD.txt"), columns)
    }

    #[test]
    fn the_year_goes_to_the_end() {
        let table = read("2001,1.5,-2\r\n1922,3,4\n").unwrap();
        assert_eq!(table.values().row(0), [1.5, -2.0, 2001.0]);
        assert_eq!((table.values().rows(), table.line(1)), (2, 2));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, words) in [
            ("2001,1\n", "line 1: 2 cells where the header has 3"),
            ("2001,1,2\n2001,x,2\n", "line 2, column `a`: `x` is not a number"),
            ("2001,1,nan\n", "line 1, column `b`: `nan` is not finite"),
            ("49.9,1,2\n", "line 1: the year 49.9 is not a whole number from 1922 to 2011"),
            ("", "no rows of data"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
    }
}
