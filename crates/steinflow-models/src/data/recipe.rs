//! From a table as people keep it to columns of numbers: what each column is, and what becomes of it.
//!
//! A [`Recipe`] is chosen once, from the data that a model is fitted to, and kept with the run; new rows
//! go the same way.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use steinflow::Matrix;

use super::date::DateForm;
use super::dialect::is_missing;
use super::frame::Frame;
use super::table::Table;
use super::{Choices, Missing, TableError};

/// Text with more levels than this, and fewer than three rows to each, is no category.
const MOST_LEVELS_OF_FEW_ROWS: usize = 20;

/// How a table becomes numbers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recipe {
    /// What is done about cells that are empty.
    missing: Missing,
    /// The column to predict.
    target: String,
    /// The columns that are used, in the order of the file.
    columns: Vec<Column>,
    /// Columns that are multiplied, for features of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interactions: Vec<Vec<String>>,
    /// Columns that are needed for that alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    helpers: Vec<String>,
}

/// A column that is used.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Column {
    name: String,
    #[serde(flatten)]
    kind: Kind,
    /// What stands for a cell that is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fill: Option<f64>,
}

/// What a column holds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Kind {
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
struct LeftOut(&'static str);

impl Recipe {
    /// Decides what to do with every column; the notes say it, a line each.
    pub(super) fn choose(
        frame: &Frame,
        choices: &Choices,
    ) -> Result<(Self, Vec<String>), TableError> {
        let target = match &choices.target {
            Some(name) => frame.position(name)?,
            None => frame.columns.len() - 1,
        };
        let named = |names: &[String]| -> Result<Vec<usize>, TableError> {
            names.iter().map(|name| frame.position(name)).collect()
        };
        let (dropped, categorical) = (named(&choices.drop)?, named(&choices.categorical)?);
        let groups = named(&choices.groups)?;
        let features = choices.features.as_deref().map(named).transpose()?;
        let mut notes = Vec::new();
        let mut kept = Vec::new();
        for (j, name) in frame.columns.iter().enumerate() {
            let is_asked_for = features.as_ref().is_some_and(|features| features.contains(&j));
            if j != target && (dropped.contains(&j) || (features.is_some() && !is_asked_for)) {
                continue;
            }
            if groups.contains(&j) {
                kept.push((j, Kind::Group { levels: Vec::new() }));
                continue;
            }
            match kind_of(frame, j, categorical.contains(&j), j == target || is_asked_for)? {
                Ok(kind) => kept.push((j, kind)),
                Err(LeftOut(reason)) => notes.push(format!("{name}: left out, {reason}")),
            }
        }
        // What varies in the file may not in the rows that are used; without it there may be more.
        let rows = loop {
            let rows = complete_rows(frame, choices.missing, target, &kept)?;
            let constant = kept
                .iter()
                .position(|(j, kind)| *j != target && is_constant(frame, *j, kind, &rows));
            let Some(constant) = constant else { break rows };
            let (j, _) = kept.remove(constant);
            notes.push(format!("{}: left out, it is the same in every row", frame.columns[j]));
        };
        let mut columns = Vec::new();
        for (j, kind) in kept {
            let name = frame.columns[j].clone();
            let kind = match kind {
                Kind::Category { .. } => {
                    let levels = levels_of(frame, j, &rows);
                    if j == target { Kind::Level { levels } } else { Kind::Category { levels } }
                }
                Kind::Group { .. } => Kind::Group { levels: levels_of(frame, j, &rows) },
                kind => kind,
            };
            notes.extend(kind.note(&name));
            let fill = (choices.missing == Missing::Mean && j != target)
                .then(|| fill(frame, j, &kind, &rows));
            columns.push(Column { name, kind, fill: fill.flatten() });
        }
        notes.insert(0, first_note(frame, columns.len(), rows.len()));
        let target = frame.columns[target].clone();
        let (mut interactions, helpers) = (choices.interactions.clone(), choices.helpers.clone());
        named(&interactions.concat())?;
        interactions.retain(|factors| {
            let is_kept = |name: &String| columns.iter().any(|own| own.name == *name);
            let lost = factors.iter().find(|name| !is_kept(name));
            notes.extend(lost.map(|lost| format!("{}: left out with {lost}", factors.join(":"))));
            lost.is_none()
        });
        Ok((Self { missing: choices.missing, target, columns, interactions, helpers }, notes))
    }

    /// The table that the recipe makes of the data that it was chosen for.
    pub(super) fn apply(&self, frame: &Frame) -> Result<Table, TableError> {
        self.make(frame, true)
    }

    /// The table that the recipe makes of new rows; targets count if they are all there.
    pub(super) fn apply_to_new(&self, frame: &Frame) -> Result<Table, TableError> {
        let target = frame.columns.iter().position(|name| *name == self.target);
        let has_targets =
            target.is_some_and(|target| frame.cells(target).all(|cell| !is_missing(cell)));
        self.make(frame, has_targets)
    }

    /// The levels of a column that is kept as their numbers.
    pub fn levels(&self, column: &str) -> Option<&[String]> {
        self.columns.iter().find(|own| own.name == column).and_then(|own| match &own.kind {
            Kind::Level { levels } | Kind::Group { levels } => Some(levels.as_slice()),
            _ => None,
        })
    }

    /// Of columns that are numbers as they are; the last one is the target.
    pub fn of_numbers(columns: &[String]) -> Self {
        let column = |name: &String| Column { name: name.clone(), kind: Kind::Number, fill: None };
        Self {
            missing: Missing::Error,
            target: columns.last().cloned().unwrap_or_default(),
            columns: columns.iter().map(column).collect(),
            interactions: Vec::new(),
            helpers: Vec::new(),
        }
    }

    /// Whether what is left of a product without one of its factors is there by itself: then the first level
    /// of that factor is what the others are compared with, and otherwise a level as any other.
    fn has_without(&self, factors: &[String], name: &str) -> bool {
        let rest: Vec<&String> = factors.iter().filter(|factor| *factor != name).collect();
        match rest[..] {
            [one] => !self.helpers.contains(one),
            _ => self.interactions.iter().any(|other| {
                other.len() == rest.len() && rest.iter().all(|name| other.contains(name))
            }),
        }
    }

    fn make(&self, frame: &Frame, with_target: bool) -> Result<Table, TableError> {
        let used = || self.columns.iter().filter(|own| with_target || own.name != self.target);
        let mut places = Vec::new();
        let known: HashMap<&str, usize> =
            frame.columns.iter().map(String::as_str).zip(0..).collect();
        for own in used() {
            let place = known.get(own.name.as_str()).copied();
            places.push(place.ok_or_else(|| TableError::MissingFeature {
                file: frame.file.clone(),
                column: own.name.clone(),
            })?);
        }
        // Numbers of a row, of which what is used are products: of one, or of several.
        let (mut names, mut spans) = (Vec::new(), HashMap::new());
        for own in used() {
            let first = names.len();
            names.extend(own.names());
            spans.insert(own.name.as_str(), first..names.len());
        }
        let mut products = Vec::new();
        for own in used().filter(|own| !self.helpers.contains(&own.name)) {
            let skipped = usize::from(own.is_category());
            products
                .extend(spans[own.name.as_str()].clone().skip(skipped).map(|place| vec![place]));
        }
        for factors in &self.interactions {
            let mut all = vec![Vec::new()];
            for name in factors {
                let missing = || TableError::MissingFeature {
                    file: frame.file.clone(),
                    column: name.clone(),
                };
                let own = used().find(|own| own.name == *name).ok_or_else(missing)?;
                let skipped = usize::from(own.is_category() && self.has_without(factors, name));
                let span = || spans[own.name.as_str()].clone().skip(skipped);
                let longer = |begun: &Vec<usize>| {
                    span().map(|place| [&begun[..], &[place]].concat()).collect()
                };
                all = all.iter().flat_map::<Vec<_>, _>(longer).collect();
            }
            products.extend(all);
        }
        let name = |product: &Vec<usize>| {
            let factors: Vec<&str> = product.iter().map(|&place| names[place].as_str()).collect();
            factors.join(":")
        };
        let names: Vec<String> = products.iter().map(name).collect();
        let mut base = Vec::new();
        let (mut values, mut lines, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..frame.rows.len() {
            let lacking = |(own, place): &(&Column, usize)| {
                own.fill.is_none() && is_missing(frame.cell(row, *place))
            };
            match used().zip(places.iter().copied()).find(lacking) {
                None => {}
                Some((_, place)) if self.missing == Missing::Error => {
                    return Err(missing_cell(frame, row, place));
                }
                Some(_) => continue,
            }
            base.clear();
            for (own, &place) in used().zip(&places) {
                own.append(frame, row, place, &mut base)?;
            }
            let product =
                |product: &Vec<usize>| product.iter().map(|&place| base[place]).product::<f64>();
            values.extend(products.iter().map(product));
            lines.push(frame.lines[row]);
            numbers.push(row);
        }
        let values = Matrix::from_vec(values, lines.len(), products.len())
            .filter(|values| values.rows() > 0)
            .ok_or_else(|| TableError::NoWholeRows { file: frame.file.clone() })?;
        Ok(Table::new(frame.file.clone(), names, values, lines, numbers))
    }
}

impl Column {
    fn is_category(&self) -> bool {
        matches!(self.kind, Kind::Category { .. })
    }

    /// The names of the numbers of a cell.
    fn names(&self) -> Vec<String> {
        match &self.kind {
            Kind::Category { levels } => {
                levels.iter().map(|level| format!("{}[{level}]", self.name)).collect()
            }
            _ => vec![self.name.clone()],
        }
    }

    /// Appends the numbers of a cell.
    fn append(
        &self,
        frame: &Frame,
        row: usize,
        place: usize,
        values: &mut Vec<f64>,
    ) -> Result<(), TableError> {
        let number = match self.fill {
            Some(fill) if is_missing(frame.cell(row, place)) => fill,
            _ => self.kind.read(frame, row, place)?,
        };
        match &self.kind {
            Kind::Category { levels } => {
                let indicator = |level: usize| f64::from(u8::from(number == level as f64));
                values.extend((0..levels.len()).map(indicator));
            }
            _ => values.push(number),
        }
        Ok(())
    }
}

impl Kind {
    /// The number of a cell; for a category, that of its level.
    fn read(&self, frame: &Frame, row: usize, place: usize) -> Result<f64, TableError> {
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

    fn note(&self, name: &str) -> Option<String> {
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

fn first_note(frame: &Frame, columns: usize, rows: usize) -> String {
    let peculiarity =
        frame.dialect.peculiarity().map_or(String::new(), |words| format!(", {words}"));
    let lost = match frame.rows.len() - rows {
        0 => String::new(),
        lost => format!("; {lost} rows with missing cells left out"),
    };
    format!("read {rows} rows, {columns} columns{peculiarity}{lost}")
}

fn switch(cell: &str) -> Option<f64> {
    match cell.to_ascii_lowercase().as_str() {
        "true" | "yes" | "t" | "y" => Some(1.0),
        "false" | "no" | "f" | "n" => Some(0.0),
        _ => None,
    }
}

fn missing_cell(frame: &Frame, row: usize, place: usize) -> TableError {
    let (file, line) = (frame.file.clone(), frame.lines[row]);
    TableError::MissingCell { file, line, column: frame.columns[place].clone() }
}

/// What a column holds, or why it is left out; what is `wanted` is not.
fn kind_of(
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
    if numbers == count {
        let is_identifier = || is_named_as_identifier(&frame.columns[column], column);
        if !wanted && is_identifier() && distinct() == count && count > 1 {
            return left_out("every row has its own: an identifier");
        }
        return Ok(Ok(Kind::Number));
    }
    // A word among numbers is a slip more often than a category.
    if 2 * numbers > count {
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

/// The rows that have all that the recipe will ask for.
fn complete_rows(
    frame: &Frame,
    missing: Missing,
    target: usize,
    kept: &[(usize, Kind)],
) -> Result<Vec<usize>, TableError> {
    let mut rows = Vec::new();
    for row in 0..frame.rows.len() {
        let lacking = kept.iter().find(|&&(j, _)| is_missing(frame.cell(row, j)));
        match (lacking, missing) {
            (None, _) => rows.push(row),
            (Some(&(place, _)), Missing::Error) => return Err(missing_cell(frame, row, place)),
            (Some(_), Missing::Drop) => {}
            (Some(_), Missing::Mean) => {
                if !is_missing(frame.cell(row, target)) {
                    rows.push(row);
                }
            }
        }
    }
    if rows.is_empty() {
        return Err(TableError::NoWholeRows { file: frame.file.clone() });
    }
    Ok(rows)
}

/// In alphabetical order, or of their numbers.
fn levels_of(frame: &Frame, column: usize, rows: &[usize]) -> Vec<String> {
    let cells = rows.iter().map(|&row| frame.cell(row, column)).filter(|cell| !is_missing(cell));
    let mut levels: Vec<&str> =
        cells.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
    if levels.iter().all(|level| frame.dialect.number(level).is_some()) {
        let number = |level: &str| frame.dialect.number(level).unwrap_or(f64::NAN);
        levels.sort_by(|a, b| number(a).total_cmp(&number(b)));
    }
    levels.into_iter().map(str::to_owned).collect()
}

fn is_constant(frame: &Frame, column: usize, kind: &Kind, rows: &[usize]) -> bool {
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
fn fill(frame: &Frame, column: usize, kind: &Kind, rows: &[usize]) -> Option<f64> {
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
