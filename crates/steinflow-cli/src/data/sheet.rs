//! Numbers from the sheets of an `.xlsx` file.

use std::io::Cursor;

use calamine::{Data, DataRef, DataType as _, Reader as _, Xlsx};

use super::Trouble;
use super::archive::unpacked_size;

/// Rows of every sheet, without its header: `columns` numbers a row. Cells to the right are not read,
/// nor are rows without a number, which some spreadsheets end with.
pub fn read(bytes: &[u8], columns: usize, limit: u64) -> Result<Vec<Vec<f64>>, Trouble> {
    let damaged = |error: calamine::XlsxError| Trouble::Damaged(error.to_string());
    // The library unpacks without a limit.
    unpacked_size(bytes, limit)?;
    let mut book = Xlsx::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut sheets = Vec::new();
    for name in book.sheet_names() {
        // Cell by cell: a table of all cells would be as large as the sheet's far corner says.
        let mut cells = book.worksheet_cells_reader(&name).map_err(damaged)?;
        let (mut numbers, mut row, mut in_row) = (Vec::new(), None, columns);
        while let Some(cell) = cells.next_cell().map_err(damaged)? {
            let (at_row, at_column) = cell.get_position();
            if at_row == 0 || at_column as usize >= columns || is_blank(cell.get_value()) {
                continue;
            }
            let line = at_row as usize + 1;
            let value = cell.get_value().as_f64().ok_or_else(|| Trouble::NotANumber {
                line,
                text: Data::from(cell.get_value().clone()).to_string(),
            })?;
            if row != Some(at_row) {
                full(in_row, columns, &name, row)?;
                (row, in_row) = (Some(at_row), 0);
            }
            numbers.push(value);
            in_row += 1;
        }
        full(in_row, columns, &name, row)?;
        if !numbers.is_empty() {
            sheets.push(numbers);
        }
    }
    Ok(sheets)
}

fn is_blank(cell: &DataRef<'_>) -> bool {
    cell.is_empty() || cell.get_string().is_some_and(|text| text.trim().is_empty())
}

fn full(found: usize, columns: usize, sheet: &str, row: Option<u32>) -> Result<(), Trouble> {
    if found == columns {
        return Ok(());
    }
    let place = format!("row {} of sheet `{sheet}`", row.unwrap_or_default() + 1);
    Err(Trouble::Ragged { place, found, expected: columns })
}
