//! `YearPredictionMSD.txt` as its publisher ships it: no header, the year first, read line by line
//! because it has 428 MiB.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use steinflow::Matrix;

use super::{DataSet, DataSetError, Difference, Table, TableError, file_sha256};
use crate::Result;

/// Reads the file of `set`, whose bytes have the SHA-256 `expected`.
pub(super) fn read(file: &Path, set: &DataSet, expected: &'static str) -> Result<Table> {
    let unreadable = |source| TableError::Open { file: file.to_owned(), source };
    let found = file_sha256(file).map_err(unreadable)?;
    if found != expected {
        let difference = Difference::Content { what: "the file", found, expected };
        let (name, file) = (set.name, file.to_owned());
        return Err(DataSetError::Other { name, file, difference }.into());
    }
    let opened = File::open(file).map_err(unreadable)?;
    from_lines(BufReader::new(opened), file, set.columns())
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
        if length == 0 {
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
    fn made_up_songs_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("YearPredictionMSD.txt");
        std::fs::write(&file, format!("2001{}\n", ",1".repeat(90))).unwrap();
        let found = crate::data::find("year", Some(folder.path())).unwrap();
        let message = found.table().unwrap_err().to_string();
        assert!(message.contains("the SHA-256 of the file is"), "{message}");
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, words) in [
            ("2001,1\n", "line 1: 2 cells where the header has 3"),
            ("2001,1,2\n2001,x,2\n", "line 2, column `a`: `x` is not a number"),
            ("2001,1,nan\n", "line 1, column `b`: `nan` is not finite"),
            ("", "no rows of data"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
    }
}
