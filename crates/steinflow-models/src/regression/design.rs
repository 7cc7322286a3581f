//! The design matrix X: an intercept and the features, each (x − mean)/sd.

use std::path::PathBuf;

use steinflow::Matrix;

use super::groups::Term;
use crate::data::{Choices, Recipe, Scaling, Table, TableError};
use crate::{ModelSpec, Result};

/// The parameter that no column stands for.
const INTERCEPT: &str = "intercept";

/// A table, split into a target column and standardised features.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    target_name: String,
    /// n × p, the intercept first where there is one.
    rows: Matrix<f64>,
    target: Vec<f64>,
    names: Vec<String>,
    scalings: Vec<Scaling>,
    /// A column that is added to the predictor as it is.
    offset: Option<(String, Vec<f64>)>,
    /// The noise of every row, in the target's units.
    noise: Option<(String, Vec<f64>)>,
    /// Whether the target of every row is the time of an event.
    event: Option<(String, Vec<f64>)>,
    terms: Vec<Term>,
    file: PathBuf,
    lines: Vec<u64>,
    recipe: Recipe,
    notes: Vec<String>,
}

/// Columns that are no features, and what they are for.
#[derive(Clone, Copy, Debug, Default)]
struct Roles<'a> {
    offset: Option<&'a str>,
    noise: Option<&'a str>,
    event: Option<&'a str>,
    groups: &'a [String],
    slopes: &'a [String],
    may_lack_features: bool,
}

impl Design {
    /// Predicts column `target` (the last one when `None`) from all others.
    ///
    /// ```
    /// use steinflow_models::data::Table;
    /// use steinflow_models::regression::Design;
    /// let table = Table::from_reader("size,price\n1,7\n3,8\n".as_bytes(), "houses.csv")?;
    /// let design = Design::new(&table, None)?;
    /// assert_eq!(design.names(), ["intercept", "size"]);
    /// assert_eq!(design.rows().row(0), [1.0, -1.0]);
    /// assert_eq!(design.scalings()[0].restore(-1.0), 1.0);
    /// # Ok::<(), steinflow_models::TableError>(())
    /// ```
    pub fn new(table: &Table, target: Option<&str>) -> Result<Self, TableError> {
        Self::with_roles(table, target, Roles::default())
    }

    /// By the options of a model.
    pub(crate) fn of(spec: &ModelSpec, needs_features: bool) -> Result<Self> {
        let (table, _) = spec.read_table(None)?;
        let roles = Roles {
            offset: spec.offset.as_deref(),
            noise: spec.noise_column.as_deref(),
            event: spec.event.as_deref(),
            groups: spec.groups.as_deref().unwrap_or_default(),
            slopes: spec.slopes.as_deref().unwrap_or_default(),
            may_lack_features: !needs_features,
        };
        if roles.groups.is_empty() && !roles.slopes.is_empty() {
            let remedy =
                "slopes differ from group to group; name the column of groups (`--groups`)";
            let slopes = roles.slopes.join(",");
            return Err(steinflow::Error::setting("slopes", slopes, remedy).into());
        }
        let target = Choices::of(spec)?.target;
        Ok(Self::with_roles(&table, target.as_deref(), roles)?)
    }

    fn with_roles(
        table: &Table,
        target: Option<&str>,
        roles: Roles<'_>,
    ) -> Result<Self, TableError> {
        let target_column = table.position(target)?;
        let target_name = table.columns()[target_column].clone();
        let position = |name: &str| table.position(Some(name));
        let offset = roles.offset.map(position).transpose()?;
        let noise = roles.noise.map(position).transpose()?;
        let event = roles.event.map(position).transpose()?;
        let groups =
            roles.groups.iter().map(|name| position(name)).collect::<Result<Vec<_>, _>>()?;
        let is_feature = |column: &usize| {
            *column != target_column
                && ![offset, noise, event].contains(&Some(*column))
                && !groups.contains(column)
        };
        let features: Vec<usize> = (0..table.columns().len()).filter(is_feature).collect();
        if features.is_empty() && groups.is_empty() && !roles.may_lack_features {
            let file = table.file().to_owned();
            return Err(TableError::NoFeatures { file, target: target_name });
        }
        let mut names = vec![INTERCEPT.to_owned()];
        for &column in &features {
            let column = table.columns()[column].clone();
            if column == INTERCEPT {
                return Err(TableError::DuplicateColumn { file: table.file().to_owned(), column });
            }
            names.push(column);
        }
        let scalings =
            features.iter().map(|&column| table.scaling(column)).collect::<Result<Vec<_>, _>>()?;
        let values = table.values();
        let rows = Matrix::from_fn(values.rows(), names.len(), |i, j| match j {
            0 => 1.0,
            _ => scalings[j - 1].standardise(values.row(i)[features[j - 1]]),
        });
        let column = |j: usize| (0..values.rows()).map(|i| values.row(i)[j]).collect();
        let named = |j: usize| (table.columns()[j].clone(), column(j));
        let design = Self {
            target_name,
            rows,
            target: column(target_column),
            names,
            scalings,
            offset: offset.map(named),
            noise: noise.map(named),
            event: event.map(named),
            terms: Vec::new(),
            file: table.file().to_owned(),
            lines: (0..values.rows()).map(|row| table.line(row)).collect(),
            recipe: table.recipe().clone(),
            notes: table.notes().to_vec(),
        };
        let terms = groups.into_iter().map(|j| design.terms_of(named(j), roles.slopes));
        let terms = terms.collect::<Result<Vec<_>, _>>()?.concat();
        let mut notes = design.notes.clone();
        notes.extend(design.alike());
        Ok(Self { terms, notes, ..design })
    }

    /// Features that say the same as one before them: what each of both does, no data can tell.
    fn alike(&self) -> Vec<String> {
        /// More products than these take longer than a note is worth.
        const MOST_PRODUCTS: usize = 200_000_000;
        const CORRELATION: f64 = 0.9999;
        let (rows, features) = (self.rows.rows(), self.features());
        let count = rows.min(MOST_PRODUCTS / (features.len() * features.len()).max(1));
        let column = |j: usize| (0..count).map(|i| self.rows.row(i)[j + 1]).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = (0..features.len()).map(column).collect();
        let product = |a: usize, b: usize| {
            columns[a].iter().zip(&columns[b]).map(|(x, y)| x * y).sum::<f64>()
        };
        let squares: Vec<f64> = (0..features.len()).map(|j| product(j, j)).collect();
        let first_alike = |b: &usize| {
            (0..*b).find(|&a| {
                product(a, *b).abs() > CORRELATION * (squares[a] * squares[*b]).sqrt() && count > 2
            })
        };
        let note = |b: usize| {
            let (a, b) = (&features[first_alike(&b)?], &features[b]);
            Some(format!(
                "{b}: says the same as {a}, so that neither coefficient is known: drop one"
            ))
        };
        (0..features.len()).filter_map(note).collect()
    }

    /// With a word about what was made of the table.
    pub(super) fn noting(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// An intercept for every group of a column, and the slopes that differ.
    fn terms_of(
        &self,
        (column, groups): (String, Vec<f64>),
        slopes: &[String],
    ) -> Result<Vec<Term>, TableError> {
        let levels = self.recipe.levels(&column).unwrap_or_default().to_vec();
        if levels.len() < 2 {
            let (file, level) = (self.file.clone(), levels.concat());
            return Err(TableError::OneGroup { file, column, level });
        }
        let groups: Vec<usize> = groups.into_iter().map(|group| group as usize).collect();
        let values = vec![1.0; groups.len()];
        let intercept = Term { column, levels, feature: None, groups, values };
        let mut terms = vec![intercept.clone()];
        for name in slopes {
            // A category has a column for each of its levels.
            let is_of = |feature: &str| {
                feature
                    .strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            };
            let found = self.features().iter().enumerate().filter(|(_, feature)| is_of(feature));
            let before = terms.len();
            for (j, feature) in found {
                let scaling = self.scalings[j];
                // The intercept stands first.
                let values = (0..self.rows.rows()).map(|i| self.rows.row(i)[j + 1]).collect();
                let feature = Some((feature.clone(), scaling));
                terms.push(Term { feature, values, ..intercept.clone() });
            }
            if terms.len() == before {
                let known = self.features().iter().map(String::as_str);
                let source = steinflow::Error::unknown("feature", name, known);
                return Err(TableError::UnknownColumn { file: self.file.clone(), source });
            }
        }
        Ok(terms)
    }

    /// For a model that has intercepts of its own.
    pub(super) fn without_intercept(mut self) -> Result<Self, TableError> {
        if self.scalings.is_empty() {
            return Err(TableError::NoFeatures { file: self.file, target: self.target_name });
        }
        self.names.remove(0);
        let rows = &self.rows;
        self.rows = Matrix::from_fn(rows.rows(), self.names.len(), |i, j| rows.row(i)[j + 1]);
        Ok(self)
    }

    /// Divides every row by its noise, where that is known row by row, and returns what the standardised
    /// target is multiplied by: what is left has noise 1.
    pub(super) fn divide_by_noise(
        &mut self,
        target_sd: f64,
    ) -> Result<Option<Vec<f64>>, TableError> {
        let Some((column, noise)) = &self.noise else { return Ok(None) };
        if let Some(row) = noise.iter().position(|&noise| noise <= 0.0) {
            let (file, line) = (self.file.clone(), self.lines[row]);
            return Err(TableError::NoNoise {
                file,
                line,
                column: column.clone(),
                value: noise[row],
            });
        }
        let weights: Vec<f64> = noise.iter().map(|noise| target_sd / noise).collect();
        for (i, weight) in weights.iter().enumerate() {
            self.rows.row_mut(i).iter_mut().for_each(|x| *x *= weight);
            self.terms.iter_mut().for_each(|term| term.values[i] *= weight);
        }
        Ok(Some(weights))
    }

    /// A target of times: the logarithm of each is taken from its predictor, and what is left of the target is whether
    /// the event was seen; and the mean of the logarithms.
    pub(super) fn times(mut self) -> Result<(Self, Vec<f64>, f64), TableError> {
        self.require_numbers()?;
        let wrong = |row: usize, column: &str, value: f64, expected| TableError::NotATime {
            file: self.file.clone(),
            line: self.lines[row],
            column: column.to_owned(),
            value,
            expected,
        };
        if let Some(row) = self.target.iter().position(|&y| y <= 0.0) {
            let expected = "times are above 0";
            return Err(wrong(row, &self.target_name, self.target[row], expected));
        }
        let seen = match &self.event {
            None => vec![1.0; self.target.len()],
            Some((column, seen)) => {
                if let Some(row) = seen.iter().position(|&seen| seen != 0.0 && seen != 1.0) {
                    let expected = "1 says that the event was seen and 0 that it was not";
                    return Err(wrong(row, column, seen[row], expected));
                }
                seen.clone()
            }
        };
        let logs: Vec<f64> = self.target.iter().map(|y| y.ln()).collect();
        let base = logs.iter().sum::<f64>() / logs.len() as f64;
        self.offset = Some((self.target_name.clone(), logs.iter().map(|log| -log).collect()));
        Ok((self, seen, base))
    }

    /// X, a row of data a row; divided by its noise, where that is known row by row.
    pub fn rows(&self) -> &Matrix<f64> {
        &self.rows
    }

    /// The target in its own units; of classes by name, their numbers.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// The target's name.
    pub fn target_name(&self) -> &str {
        &self.target_name
    }

    /// The names of the columns of X: `intercept`, and the features'.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The features' names.
    pub fn features(&self) -> &[String] {
        &self.names[self.names.len() - self.scalings.len()..]
    }

    /// How each feature was standardised, in the order of the features (the intercept has none).
    pub fn scalings(&self) -> &[Scaling] {
        &self.scalings
    }

    /// What was made of the table, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    pub(super) fn offset(&self) -> Option<&(String, Vec<f64>)> {
        self.offset.as_ref()
    }

    pub(super) fn noise(&self) -> Option<&(String, Vec<f64>)> {
        self.noise.as_ref()
    }

    pub(super) fn event(&self) -> Option<&(String, Vec<f64>)> {
        self.event.as_ref()
    }

    pub(super) fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// How a target of numbers is standardised.
    pub fn target_scaling(&self) -> Result<Scaling, TableError> {
        self.require_numbers()?;
        let (file, column) = (self.file.clone(), self.target_name.clone());
        let count = self.target.len() as f64;
        let first = self.target[0];
        if self.target.iter().all(|&y| y == first) {
            return Err(TableError::ConstantColumn { file, column, value: first });
        }
        // Divided before they are summed, so that large numbers do not overflow.
        let mean = self.target.iter().map(|y| y / count).sum::<f64>();
        let sd = self.target_sd();
        if sd > 0.0 && sd.is_finite() {
            return Ok(Scaling { mean, sd });
        }
        Err(TableError::Unscalable { file, column, sd })
    }

    /// The standard deviation of the target, in its own units.
    pub(super) fn target_sd(&self) -> f64 {
        let count = self.target.len() as f64;
        let mean = self.target.iter().map(|y| y / count).sum::<f64>();
        self.target.iter().map(|y| (y - mean) * (y - mean) / count).sum::<f64>().sqrt()
    }

    /// A target of counts, and the logarithm of the rate at which they come, less the offset.
    pub(super) fn counts(&self) -> Result<(Vec<f64>, f64), TableError> {
        self.require_numbers()?;
        let is_count = |y: f64| y >= 0.0 && y.fract() == 0.0;
        if let Some(row) = self.target.iter().position(|&y| !is_count(y)) {
            return Err(TableError::NotACount {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: self.target[row],
            });
        }
        let total: f64 = self.target.iter().sum();
        let exposure: f64 = match &self.offset {
            Some((_, offset)) => offset.iter().map(|x| x.exp()).sum(),
            None => self.target.len() as f64,
        };
        // Half a count, if there is none, for a rate above 0.
        Ok((self.target.clone(), (total.max(0.5) / exposure).ln()))
    }

    /// The names of a target's classes, at least two, and their numbers row by row.
    pub(super) fn classes(&self) -> Result<(Vec<String>, Vec<f64>), TableError> {
        /// More classes are a mistake.
        const MOST: usize = 1000;
        let (classes, y) = if let Some(levels) = self.recipe.levels(&self.target_name) {
            (levels.to_vec(), self.target.clone())
        } else {
            let mut values = self.target.clone();
            values.sort_by(f64::total_cmp);
            values.dedup();
            let place = |y: &f64| values.partition_point(|value| value < y) as f64;
            let y = self.target.iter().map(place).collect();
            (values.iter().map(ToString::to_string).collect(), y)
        };
        let (file, column) = (self.file.clone(), self.target_name.clone());
        if classes.len() < 2 {
            return Err(TableError::OneClass { file, column, value: classes.concat() });
        }
        if classes.len() > MOST {
            return Err(TableError::TooManyClasses { file, column, found: classes.len() });
        }
        Ok((classes, y))
    }

    /// The names of the two classes of a target, and 0 or 1 row by row.
    pub(super) fn two_classes(&self) -> Result<([String; 2], Vec<f64>), TableError> {
        if self.recipe.levels(&self.target_name).is_none()
            && let Some(row) = self.target.iter().position(|&y| y != 0.0 && y != 1.0)
        {
            return Err(TableError::NotBinary {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: self.target[row].to_string(),
            });
        }
        let (classes, y) = self.classes()?;
        <[String; 2]>::try_from(classes).map(|classes| (classes, y)).map_err(|classes| {
            let row = self.target.iter().position(|&y| y > 1.0).unwrap_or(0);
            TableError::NotBinary {
                file: self.file.clone(),
                line: self.lines[row],
                column: self.target_name.clone(),
                value: format!("`{}`, one of {} levels", classes[2], classes.len()),
            }
        })
    }

    fn require_numbers(&self) -> Result<(), TableError> {
        match self.recipe.levels(&self.target_name) {
            None => Ok(()),
            Some(levels) => Err(TableError::TargetOfWords {
                file: self.file.clone(),
                column: self.target_name.clone(),
                level: levels.first().cloned().unwrap_or_default(),
            }),
        }
    }
}
