//! What a column of a table holds: numbers, switches, dates, categories, or nothing of use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TableError;
use super::date::DateForm;
use super::dialect::is_missing;
use super::frame::Frame;

/// Text with more levels than this, and fewer than three rows to each, is no category.
const MOST_LEVELS_OF_FEW_ROWS: usize = 20;

/// What a column holds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Kind {
    Number,
    /// Yes or no, as 1 or 0.
    Switch,
    /// As days since 1970-01-01.
    Date {
        form: DateForm,
    },
    /// An indicator for every level but the first, with which they are compared.
    Category {
        levels: Vec<String>,
    },
    /// The number of the level, for what a model predicts.
    Level {
        levels: Vec<String>,
    },
    /// The number of the level, and for one that is new the next.
    Group {
        levels: Vec<String>,
    },
}

/// Why a column is left out.
pub(super) struct LeftOut(pub(super) &'static str);

impl Kind {
    /// The number of a cell; for a category, that of its level.
    pub(super) fn read(&self, frame: &Frame, row: usize, place: usize) -> Result<f64, TableError> {
        let cell = frame.cell(row, place);
        let (file, line, column, text) =
            (frame.file.clone(), frame.lines[row], frame.columns[place].clone(), cell.to_owned());
        let found = match self {
            Self::Number => frame.dialect.number(cell),
            Self::Switch => switch(cell),
            Self::Date { form } => form.days(cell),
            Self::Group { levels } => {
                let level = levels.iter().position(|level| level == cell);
                return Ok(level.unwrap_or(levels.len()) as f64);
            }
            Self::Category { levels } | Self::Level { levels } => {
                let level = levels.iter().position(|level| level == cell);
                return level.map(|level| level as f64).ok_or_else(|| TableError::UnknownLevel {
                    file,
                    line,
                    column,
                    text,
                    levels: levels.clone(),
                });
            }
        };
        match found {
            Some(number) if number.is_finite() => Ok(number),
            Some(_) => Err(TableError::NotFinite { file, line, column, text }),
            None => Err(match self {
                Self::Switch => {
                    TableError::NotAsTheRest { file, line, column, text, expected: "yes or no" }
                }
                Self::Date { .. } => {
                    TableError::NotAsTheRest { file, line, column, text, expected: "a date" }
                }
                _ => TableError::NotANumber { file, line, column, text },
            }),
        }
    }

    pub(super) fn note(&self, name: &str) -> Option<String> {
        match self {
            Self::Number => None,
            Self::Switch => Some(format!("{name}: yes is 1, no is 0")),
            Self::Date { .. } => Some(format!("{name}: dates, as days since 1970-01-01")),
            Self::Category { levels } => {
                let (first, count) = (levels.first()?, levels.len());
                Some(format!("{name}: a category of {count} levels, each against `{first}`"))
            }
            Self::Level { levels } => Some(format!("{name}: {}", counted(levels))),
            Self::Group { levels } => Some(format!("{name}: {} groups", levels.len())),
        }
    }
}

fn counted(levels: &[String]) -> String {
    /// Of more, only the number is said.
    const MOST: usize = 6;
    if levels.len() > MOST {
        return format!("{} levels", levels.len());
    }
    let named = levels.iter().enumerate().map(|(i, level)| format!("{i} is `{level}`"));
    named.collect::<Vec<_>>().join(", ")
}

fn switch(cell: &str) -> Option<f64> {
    match cell.to_ascii_lowercase().as_str() {
        "true" | "yes" | "t" | "y" => Some(1.0),
        "false" | "no" | "f" | "n" => Some(0.0),
        _ => None,
    }
}

/// What a column holds, or why it is left out; what is `wanted` is not.
pub(super) fn kind_of(
    frame: &Frame,
    column: usize,
    is_category: bool,
    wanted: bool,
) -> Result<Result<Kind, LeftOut>, TableError> {
    let cells = || frame.cells(column).filter(|cell| !is_missing(cell));
    let count = cells().count();
    let left_out = |reason| Ok(Err(LeftOut(reason)));
    if count == 0 {
        return left_out("no cell is filled in");
    }
    if !wanted && 2 * count < frame.rows.len() {
        return left_out("more than half of its cells are missing");
    }
    if is_category {
        return Ok(Ok(Kind::Category { levels: Vec::new() }));
    }
    let numbers = cells().filter(|cell| frame.dialect.number(cell).is_some()).count();
    let distinct = || cells().collect::<std::collections::HashSet<_>>().len();
    // As of zip codes, whose sizes mean nothing.
    let is_code = |cell: &str| {
        cell.len() >= 4 && cell.starts_with('0') && cell.bytes().all(|byte| byte.is_ascii_digit())
    };
    if numbers == count && (wanted || !cells().any(is_code)) {
        let is_identifier = || is_named_as_identifier(&frame.columns[column], column);
        if !wanted && is_identifier() && distinct() == count && count > 1 {
            return left_out("every row has its own: an identifier");
        }
        return Ok(Ok(Kind::Number));
    }
    // A word among numbers is a slip more often than a category.
    if 2 * numbers > count && numbers < count {
        let wrong = |row: &usize| {
            let cell = frame.cell(*row, column);
            !is_missing(cell) && frame.dialect.number(cell).is_none()
        };
        let row = (0..frame.rows.len()).find(wrong).expect("not all are numbers");
        return Err(TableError::NotANumber {
            file: frame.file.clone(),
            line: frame.lines[row],
            column: frame.columns[column].clone(),
            text: frame.cell(row, column).to_owned(),
        });
    }
    if cells().all(|cell| switch(cell).is_some()) {
        return Ok(Ok(Kind::Switch));
    }
    if let Some(form) = DateForm::of(&cells()) {
        return Ok(Ok(Kind::Date { form }));
    }
    if !wanted {
        let levels = distinct();
        if levels == count && count > 2 {
            return left_out("every row has its own: an identifier");
        }
        if levels > MOST_LEVELS_OF_FEW_ROWS && count < 3 * levels {
            return left_out("text with few rows of each kind (keep it with --categorical)");
        }
    }
    Ok(Ok(Kind::Category { levels: Vec::new() }))
}

/// Numbers that count the rows are told from others by the column's name alone.
fn is_named_as_identifier(name: &str, position: usize) -> bool {
    let lower = name.to_lowercase();
    matches!(lower.as_str(), "id" | "index" | "row" | "unnamed: 0" | "rowid" | "uuid" | "rownames")
        || lower.ends_with("_id")
        || name.ends_with("Id")
        || (name.ends_with("ID") && position == 0)
}

/// In alphabetical order, or of their numbers.
pub(super) fn levels_of(frame: &Frame, column: usize, rows: &[usize]) -> Vec<String> {
    let cells = rows.iter().map(|&row| frame.cell(row, column)).filter(|cell| !is_missing(cell));
    let mut levels: Vec<&str> =
        cells.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    if levels.iter().all(|level| frame.dialect.number(level).is_some()) {
        let number = |level: &str| frame.dialect.number(level).unwrap_or(f64::NAN);
        levels.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    levels.into_iter().map(str::to_owned).collect()
}

pub(super) fn is_constant(frame: &Frame, column: usize, kind: &Kind, rows: &[usize]) -> bool {
    match kind {
        Kind::Category { .. } => return levels_of(frame, column, rows).len() < 2,
        // A model that groups by it will say so.
        Kind::Group { .. } => return false,
        _ => {}
    }
    let mut cells =
        rows.iter().map(|&row| frame.cell(row, column)).filter(|cell| !is_missing(cell));
    let Some(first) = cells.next() else { return true };
    let number = |cell| match kind {
        Kind::Switch => switch(cell),
        Kind::Date { form } => form.days(cell),
        _ => frame.dialect.number(cell),
    };
    let first = number(first);
    cells.all(|cell| number(cell) == first)
}

/// The mean of a column, or its most frequent level.
pub(super) fn fill(frame: &Frame, column: usize, kind: &Kind, rows: &[usize]) -> Option<f64> {
    let known = || rows.iter().copied().filter(|&row| !is_missing(frame.cell(row, column)));
    let numbers: Vec<f64> = known().filter_map(|row| kind.read(frame, row, column).ok()).collect();
    if let Kind::Category { .. } | Kind::Level { .. } | Kind::Group { .. } | Kind::Switch = kind {
        let mut counts = BTreeMap::new();
        for number in numbers {
            *counts.entry(number as u64).or_insert(0_usize) += 1;
        }
        // Of several, the first level.
        return counts.into_iter().rev().max_by_key(|&(_, n)| n).map(|(level, _)| level as f64);
    }
    let count = numbers.len() as f64;
    (!numbers.is_empty()).then(|| numbers.iter().map(|x| x / count).sum())
}
