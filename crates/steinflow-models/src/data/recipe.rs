//! From a table as people keep it to columns of numbers: what each column is, and what becomes of it.
//!
//! A [`Recipe`] is chosen once, from the data that a model is fitted to, and kept with the run; new rows
//! go the same way.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use steinflow::Matrix;

use super::dialect::{is_missing, sign_of_unit};
use super::frame::Frame;
use super::kind::{Kind, LeftOut, fill, is_constant, kind_of, levels_of};
use super::table::Table;
use super::{Choices, Missing, TableError};

/// How a table becomes numbers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recipe {
    /// What is done about cells that are empty.
    missing: Missing,
    /// The column to predict.
    target: String,
    /// The column that is known with the target alone, and says what is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    /// The columns that are used, in the order of the file.
    columns: Vec<Column>,
    /// Columns that are multiplied, for features of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interactions: Vec<Vec<String>>,
    /// Columns that are needed for that alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    helpers: Vec<String>,
    /// How many rows back the target's own past is among the features.
    #[serde(default)]
    lags: usize,
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
        let event = choices.event.as_deref().map(|name| frame.position(name)).transpose()?;
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
            let may_be_constant = |j: usize| j == target || event == Some(j);
            let constant = kept
                .iter()
                .position(|(j, kind)| !may_be_constant(*j) && is_constant(frame, *j, kind, &rows));
            let Some(constant) = constant else { break rows };
            let (j, _) = kept.remove(constant);
            notes.push(format!("{}: left out, it is the same in every row", frame.columns[j]));
        };
        let mut columns = Vec::new();
        for (j, kind) in kept {
            let name = frame.columns[j].clone();
            let kind = match (kind, &choices.order) {
                (_, Some(order)) if j == target => {
                    let levels = in_order(frame, j, &levels_of(frame, j, &rows), order)?;
                    Kind::Level { levels }
                }
                (Kind::Category { .. }, _) => {
                    let levels = levels_of(frame, j, &rows);
                    if j == target { Kind::Level { levels } } else { Kind::Category { levels } }
                }
                (Kind::Group { .. }, _) => Kind::Group { levels: levels_of(frame, j, &rows) },
                (kind, _) => kind,
            };
            notes.extend(kind.note(&name));
            let signs = if kind == Kind::Number { signs_of_units(frame, j) } else { String::new() };
            if !signs.is_empty() {
                notes.push(format!("{name}: numbers, without their {signs}"));
            }
            let fill = (choices.missing == Missing::Mean && j != target)
                .then(|| fill(frame, j, &kind, &rows));
            columns.push(Column { name, kind, fill: fill.flatten() });
        }
        notes.insert(0, first_note(frame, columns.len(), rows.len()));
        let target = frame.columns[target].clone();
        let event = choices.event.clone();
        let (mut interactions, helpers) = (choices.interactions.clone(), choices.helpers.clone());
        named(&interactions.concat())?;
        interactions.retain(|factors| {
            let is_kept = |name: &String| columns.iter().any(|own| own.name == *name);
            let lost = factors.iter().find(|name| !is_kept(name));
            notes.extend(lost.map(|lost| format!("{}: left out with {lost}", factors.join(":"))));
            lost.is_none()
        });
        let lags = choices.lags;
        let is_number = |own: &Column| own.name != target || matches!(own.kind, Kind::Number);
        if lags > 0 && !columns.iter().all(is_number) {
            return Err(TableError::LagsOfWords { file: frame.file.clone(), column: target });
        }
        if lags > 0 {
            notes.push(format!("{target}: its last {lags} values are features of every row"));
        }
        Ok((
            Self { missing: choices.missing, target, event, columns, interactions, helpers, lags },
            notes,
        ))
    }

    /// The table that the recipe makes of the data that it was chosen for.
    pub(super) fn apply(&self, frame: &Frame) -> Result<Table, TableError> {
        self.make(frame, true)
    }

    /// The table that the recipe makes of new rows; targets count if they are all there.
    pub(super) fn apply_to_new(&self, frame: &Frame) -> Result<Table, TableError> {
        let is_whole = |name: &String| {
            let place = frame.columns.iter().position(|column| column == name);
            place.is_some_and(|place| frame.cells(place).all(|cell| !is_missing(cell)))
        };
        let has_targets = is_whole(&self.target) && self.event.as_ref().is_none_or(is_whole);
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
            event: None,
            columns: columns.iter().map(column).collect(),
            interactions: Vec::new(),
            helpers: Vec::new(),
            lags: 0,
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
        let is_of_target =
            |own: &Column| own.name == self.target || self.event.as_ref() == Some(&own.name);
        let used = || self.columns.iter().filter(|own| with_target || !is_of_target(own));
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
        // The past stands first: the last column is the target's, unless another is named.
        let lagged = (1..=self.lags).map(|lag| format!("{}[t-{lag}]", self.target));
        let names: Vec<String> = lagged.chain(products.iter().map(name)).collect();
        let past = self.past(frame)?;
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
            let Some(past) = past.before(row) else { continue };
            base.clear();
            for (own, &place) in used().zip(&places) {
                own.append(frame, row, place, &mut base)?;
            }
            let product =
                |product: &Vec<usize>| product.iter().map(|&place| base[place]).product::<f64>();
            values.extend(past.chain(products.iter().map(product)));
            lines.push(frame.lines[row]);
            numbers.push(row);
        }
        let values = Matrix::from_vec(values, lines.len(), names.len())
            .filter(|values| values.rows() > 0)
            .ok_or_else(|| match self.lags {
                0 => TableError::NoWholeRows { file: frame.file.clone() },
                lags => TableError::TooManyLags { file: frame.file.clone(), lags },
            })?;
        Ok(Table::new(frame.file.clone(), names, values, lines, numbers))
    }
}

impl Recipe {
    /// The target's values that are features of later rows, where they are there.
    fn past(&self, frame: &Frame) -> Result<Past, TableError> {
        if self.lags == 0 {
            return Ok(Past { lags: 0, values: Vec::new() });
        }
        let missing =
            || TableError::MissingFeature { file: frame.file.clone(), column: self.target.clone() };
        let place =
            frame.columns.iter().position(|name| *name == self.target).ok_or_else(missing)?;
        let value = |row: usize| {
            let is_there = !is_missing(frame.cell(row, place));
            is_there.then(|| Kind::Number.read(frame, row, place)).transpose()
        };
        let values = (0..frame.rows.len()).map(value).collect::<Result<_, _>>()?;
        Ok(Past { lags: self.lags, values })
    }
}

/// The target's own past.
struct Past {
    lags: usize,
    values: Vec<Option<f64>>,
}

impl Past {
    /// The values before a row, the last first, if all of them are there.
    fn before(&self, row: usize) -> Option<impl Iterator<Item = f64>> {
        let own = &self.values[row.checked_sub(self.lags)?.min(self.values.len())..];
        let own: Option<Vec<f64>> = own.iter().take(self.lags).copied().collect();
        own.map(|own| own.into_iter().rev())
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

/// What currencies and the like the numbers of a column are of.
fn signs_of_units(frame: &Frame, column: usize) -> String {
    let signs = frame.cells(column).filter(|cell| !is_missing(cell));
    let signs = signs.filter_map(|cell| Some(sign_of_unit(cell.trim_start_matches('-'))?.0));
    let distinct: std::collections::BTreeSet<char> = signs.collect();
    distinct.into_iter().map(String::from).collect::<Vec<_>>().join(" and ")
}

/// The levels that a column has, in an order that names all of them.
fn in_order(
    frame: &Frame,
    column: usize,
    found: &[String],
    order: &[String],
) -> Result<Vec<String>, TableError> {
    let twice = (1..order.len()).find(|&at| order[..at].contains(&order[at]));
    let twice = twice.map(|at| &order[at]);
    let wrong = twice.or_else(|| found.iter().find(|level| !order.contains(level)));
    match wrong {
        None => Ok(order.iter().filter(|level| found.contains(level)).cloned().collect()),
        Some(level) => Err(TableError::WrongOrder {
            file: frame.file.clone(),
            column: frame.columns[column].clone(),
            level: level.clone(),
            levels: found.to_vec(),
        }),
    }
}

fn first_note(frame: &Frame, columns: usize, rows: usize) -> String {
    let peculiarity =
        frame.dialect.peculiarity().map_or(String::new(), |words| format!(", {words}"));
    let lost = match frame.rows.len() - rows {
        0 => String::new(),
        lost => format!("; {lost} rows with missing cells left out"),
    };
    let encoding = frame.encoding.map_or(String::new(), |name| format!(", in {name}"));
    format!("read {rows} rows, {columns} columns{peculiarity}{encoding}{lost}")
}

fn missing_cell(frame: &Frame, row: usize, place: usize) -> TableError {
    let (file, line) = (frame.file.clone(), frame.lines[row]);
    TableError::MissingCell { file, line, column: frame.columns[place].clone() }
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
