//! A regression without its data: all but the parameters that predicting new rows takes.

use std::borrow::Cow;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use steinflow::random::{Purpose, stream};
use steinflow::{Error, Matrix};

use super::groups::{FittedTerm, PlacedTerm};
use super::{
    Bernoulli, Design, Family, Mixture, Multinomial, NegativeBinomial, Normal, Ordinal, Poisson,
    Process, StudentT, Weibull,
};
use crate::Result;
use crate::data::{Recipe, Table, TableError};
use crate::prediction::{Check, LeaveOneOut, left_out_weights};

/// What predicts, together with parameters in the units of the table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Fitted {
    recipe: Recipe,
    target: String,
    /// The names of the parameters as they are shown.
    parameters: Vec<String>,
    features: Vec<String>,
    has_intercept: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<String>,
    /// The column with the noise of every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    noise: Option<String>,
    /// The column that says whether the target is the time of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<FittedTerm>,
    /// The standard deviation of the targets of the fit.
    target_sd: f64,
    family: Kind,
}

/// The families by name.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Normal(Normal),
    StudentT(StudentT),
    Mixture(Mixture),
    Bernoulli(Bernoulli),
    Multinomial(Multinomial),
    Ordinal(Ordinal),
    Poisson(Poisson),
    NegativeBinomial(NegativeBinomial),
    Weibull(Weibull),
    Process(Process),
}

macro_rules! families {
    ($($family:ident),*) => {
        $(impl From<(Design, $family)> for Fitted {
            fn from((design, family): (Design, $family)) -> Self {
                Self::new(&design, Kind::$family(family.in_own_units()))
            }
        })*

        /// Does the same with whichever family it is.
        macro_rules! with_family {
            ($kind:expr, $name:ident => $what:expr) => {
                match $kind { $(Kind::$family($name) => $what),* }
            };
        }
    };
}
families!(
    Normal,
    StudentT,
    Mixture,
    Bernoulli,
    Multinomial,
    Ordinal,
    Poisson,
    NegativeBinomial,
    Weibull,
    Process
);

/// What is predicted for a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowPrediction {
    /// E y, and the standard deviation of y; of a class, of its number.
    pub mean: f64,
    /// See the mean.
    pub sd: f64,
    /// Draws of y, in ascending order, as many as there are draws of the parameters.
    pub draws: Vec<f64>,
    /// The probability of every class; empty for a target that is a number.
    pub probabilities: Vec<f64>,
    /// log p(y) of the target, where it is known.
    pub log_density: Option<f64>,
}

impl Fitted {
    fn new(design: &Design, family: Kind) -> Self {
        Self {
            recipe: design.recipe().clone(),
            target: design.target_name().to_owned(),
            parameters: Vec::new(),
            features: design.features().to_vec(),
            has_intercept: design.names().len() > design.features().len(),
            // That of a time is the time itself.
            offset: design
                .offset()
                .map(|(name, _)| name.clone())
                .filter(|name| name != design.target_name()),
            event: design.event().map(|(name, _)| name.clone()),
            noise: design.noise().map(|(name, _)| name.clone()),
            groups: design.terms().iter().map(Into::into).collect(),
            target_sd: design.target_sd(),
            family,
        }
    }

    /// The standard deviation of the targets of the fit.
    pub fn target_sd(&self) -> f64 {
        self.target_sd
    }

    pub(super) fn with_parameters(self, parameters: Vec<String>) -> Self {
        Self { parameters, ..self }
    }

    /// The names of the parameters as they are shown.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// How new rows become numbers.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// What is predicted.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The names of the target's classes; none for a target that is a number.
    pub fn classes(&self) -> &[String] {
        match &self.family {
            Kind::Bernoulli(family) => &family.classes,
            Kind::Multinomial(family) => &family.classes,
            Kind::Ordinal(family) => &family.classes,
            _ => &[],
        }
    }

    /// Whether the targets are times until an event, of which some were not seen: those are told with a minus sign.
    pub fn is_survival(&self) -> bool {
        matches!(self.family, Kind::Weibull(_))
    }

    /// The targets of a table that has them: numbers, or numbers of classes.
    pub fn targets(&self, table: &Table) -> Result<Option<Vec<f64>>> {
        let Ok(column) = table.position(Some(&self.target)) else { return Ok(None) };
        let (values, classes) = (table.values(), self.classes());
        let event = self.event.as_ref().map(|name| table.position(Some(name))).transpose()?;
        let sign = |row: usize| match event.map(|event| values.row(row)[event]) {
            Some(0.0) => -1.0,
            _ => 1.0,
        };
        let by_value = !classes.is_empty() && self.recipe.levels(&self.target).is_none();
        let target = |row: usize| -> Result<f64> {
            let value = values.row(row)[column];
            if !by_value {
                return Ok(sign(row) * value);
            }
            let class = classes.iter().position(|class| class.parse() == Ok(value));
            class.map(|class| class as f64).ok_or_else(|| {
                let (file, line) = (table.file().to_owned(), table.line(row));
                let (column, levels) = (self.target.clone(), classes.to_vec());
                TableError::UnknownLevel { file, line, column, text: value.to_string(), levels }
                    .into()
            })
        };
        (0..values.rows()).map(target).collect::<Result<Vec<f64>>>().map(Some)
    }

    /// What parameters in the units of the table, a draw a row, predict for the rows of a table. The
    /// draws of a row depend on where it stands in its file alone.
    pub fn predict(&self, parameters: &Matrix<f64>, table: &Table) -> Result<Vec<RowPrediction>> {
        let targets = self.targets(table)?;
        with_family!(&self.family, family => {
            self.predict_by(family, parameters, table, targets.as_deref(), false)
        })
    }

    /// What all other rows of the table that it was fitted to say of each: draws count by the weights of
    /// [`LeaveOneOut`].
    pub fn predict_left_out(
        &self,
        parameters: &Matrix<f64>,
        table: &Table,
    ) -> Result<Vec<RowPrediction>> {
        let targets = self.targets(table)?;
        with_family!(&self.family, family => {
            self.predict_by(family, parameters, table, targets.as_deref(), true)
        })
    }

    /// How data that the fit draws for the rows of a table compares with their targets; nothing without them.
    /// Draws of the parameters are evenly spaced, no more than needed and than fit into memory.
    pub fn checks(&self, parameters: &Matrix<f64>, table: &Table) -> Result<Vec<Check>> {
        const MOST_SETS: usize = 400;
        const MOST_NUMBERS: usize = 20_000_000;
        let Some(targets) = self.targets(table)? else { return Ok(Vec::new()) };
        let count = MOST_SETS.min(MOST_NUMBERS / targets.len()).clamp(1, parameters.rows().max(1));
        let some = Matrix::from_fn(count, parameters.cols(), |i, j| {
            parameters.row((i + 1) * parameters.rows() / count - 1)[j]
        });
        // When an event would have come that was not seen is drawn for every set anew.
        let most_completed = if self.is_survival() { count } else { 1 };
        let rows: Vec<[Vec<f64>; 2]> = with_family!(&self.family, family => {
            let lines = self.lines(family, &some, table, false)?;
            let of_row = |row: usize| {
                let (mut drawn, mut completed) = (Vec::with_capacity(count), Vec::new());
                lines.each_draw(row, |eta, extras, random| {
                    drawn.push(family.draw(eta, extras, random));
                    if completed.len() < most_completed {
                        completed.push(family.complete(eta, extras, targets[row], random));
                    }
                });
                [drawn, completed]
            };
            (0..targets.len()).into_par_iter().map(of_row).collect()
        });
        // Fewer than asked for, where each draw takes long.
        let sets = |which: usize| -> Vec<Vec<f64>> {
            let count = rows.first().map_or(0, |row| row[which].len());
            (0..count).map(|set| rows.iter().map(|row| row[which][set]).collect()).collect()
        };
        let (drawn, seen) = (sets(0), sets(1));
        if !self.classes().is_empty() {
            return Ok(Check::of_classes(self.classes(), &seen, &drawn));
        }
        let mut found = Check::of_numbers(&seen, &drawn);
        if let Kind::Poisson(_) | Kind::NegativeBinomial(_) = self.family {
            found.push(Check::share("share of 0".to_owned(), 0.0, &seen, &drawn));
        }
        Ok(found)
    }

    /// How well each row of the table that it was fitted to would be predicted without it.
    pub fn leave_one_out(&self, parameters: &Matrix<f64>, table: &Table) -> Result<LeaveOneOut> {
        let Some(targets) = self.targets(table)? else {
            let (file, column) = (table.file().to_owned(), self.target.clone());
            return Err(TableError::MissingFeature { file, column }.into());
        };
        with_family!(&self.family, family => {
            let lines = self.lines(family, parameters, table, true)?;
            Ok(LeaveOneOut::new(targets.len(), |row| {
                let mut found = Vec::with_capacity(parameters.rows());
                lines.each_draw(row, |eta, extras, _| {
                    found.push(family.log_density(eta, extras, targets[row]));
                });
                found
            }))
        })
    }

    /// log p(y) of every row's target, a draw of the parameters a row. None without targets, and where so many
    /// draws would take too long.
    pub fn log_densities(
        &self,
        parameters: &Matrix<f64>,
        table: &Table,
    ) -> Result<Option<Matrix<f64>>> {
        let Some(targets) = self.targets(table)? else { return Ok(None) };
        with_family!(&self.family, family => {
            self.by_draw(family, parameters, table, |eta, extras, row, _| {
                family.log_density(eta, extras, targets[row])
            })
        })
    }

    /// A draw of y for every row of the table and draw of the parameters, shaped as [`Fitted::log_densities`].
    pub fn draws(&self, parameters: &Matrix<f64>, table: &Table) -> Result<Option<Matrix<f64>>> {
        with_family!(&self.family, family => {
            self.by_draw(family, parameters, table, |eta, extras, _, random| {
                family.draw(eta, extras, random)
            })
        })
    }

    /// A number for every draw of the parameters and every row, from η, ψ and the row.
    fn by_draw(
        &self,
        family: &impl Family,
        parameters: &Matrix<f64>,
        table: &Table,
        number: impl Fn(&[f64], &[f64], usize, &mut ChaCha8Rng) -> f64 + Sync,
    ) -> Result<Option<Matrix<f64>>> {
        if family.most_draws().is_some_and(|most| most < parameters.rows()) {
            return Ok(None);
        }
        let lines = self.lines(family, parameters, table, false)?;
        let of_row = |row: usize| {
            let mut found = Vec::with_capacity(parameters.rows());
            lines
                .each_draw(row, |eta, extras, random| found.push(number(eta, extras, row, random)));
            found
        };
        let count = table.values().rows();
        let columns: Vec<Vec<f64>> = (0..count).into_par_iter().map(of_row).collect();
        Ok(Some(Matrix::from_fn(parameters.rows(), count, |draw, row| columns[row][draw])))
    }

    fn lines<'a>(
        &self,
        family: &impl Family,
        parameters: &'a Matrix<f64>,
        table: &'a Table,
        without_the_row: bool,
    ) -> Result<Lines<'a>> {
        let parameters = match family.most_draws().filter(|&most| most < parameters.rows()) {
            None => Cow::Borrowed(parameters),
            Some(most) => Cow::Owned(Matrix::from_fn(most, parameters.cols(), |i, j| {
                parameters.row((i + 1) * parameters.rows() / most - 1)[j]
            })),
        };
        let position = |name: &String| table.position(Some(name));
        let columns = self.features.iter().map(position).collect::<Result<Vec<_>, _>>()?;
        let features = |row: usize| {
            let values = table.values().row(row);
            columns.iter().map(|&j| values[j]).collect()
        };
        let rows: Vec<Vec<f64>> = (0..table.values().rows()).map(features).collect();
        let conditionals = family.conditionals(&parameters, &rows, without_the_row).transpose()?;
        // A process has no coefficients.
        let line = match conditionals {
            Some(_) => 0,
            None => self.features.len() + usize::from(self.has_intercept),
        };
        let (predictors, extra) = (family.predictors(), family.extra_names().len());
        let dim = parameters.cols();
        if parameters.rows() == 0 || dim < line * predictors + extra {
            return Err(Error::Shape {
                what: "parameters",
                found: format!("{} × {dim} entries", parameters.rows()),
                expected: format!("at least 1 × {}", line * predictors + extra),
            }
            .into());
        }
        let place = |term: &FittedTerm| term.place(&self.parameters, table);
        // ψ as the family has it; it stands last.
        let extras = |draw: usize| {
            let mut extras = parameters.row(draw)[dim - extra..].to_vec();
            family.hide(&mut extras, 0.0);
            extras
        };
        let extras = (0..parameters.rows()).map(extras).collect();
        Ok(Lines {
            table,
            line,
            predictors,
            columns,
            conditionals,
            offset: self.offset.as_ref().map(position).transpose()?,
            noise: self.noise.as_ref().map(position).transpose()?,
            groups: self.groups.iter().map(place).collect::<Result<Vec<_>>>()?,
            extras,
            parameters,
        })
    }

    fn predict_by(
        &self,
        family: &impl Family,
        parameters: &Matrix<f64>,
        table: &Table,
        targets: Option<&[f64]>,
        without_the_row: bool,
    ) -> Result<Vec<RowPrediction>> {
        let lines = self.lines(family, parameters, table, without_the_row)?;
        let row = |row: usize| {
            let mut all = AllDraws::default();
            lines.each_draw(row, |eta, extras, random| {
                all.moments.push(family.moments(eta, extras));
                all.draws.push(family.draw(eta, extras, random));
                all.probabilities.extend(family.probabilities(eta, extras));
                all.log_densities
                    .extend(targets.map(|targets| family.log_density(eta, extras, targets[row])));
            });
            all.combine(without_the_row)
        };
        Ok((0..table.values().rows()).into_par_iter().map(row).collect())
    }
}

/// What every draw of the parameters says of a row.
#[derive(Default)]
struct AllDraws {
    moments: Vec<(f64, f64)>,
    draws: Vec<f64>,
    probabilities: Vec<Vec<f64>>,
    /// Of the target, where it is known.
    log_densities: Vec<f64>,
}

impl AllDraws {
    /// All draws together: each counts the same, or as much as it would without the row.
    fn combine(mut self, without_the_row: bool) -> RowPrediction {
        let count = self.draws.len();
        let weights = if without_the_row {
            left_out_weights(&self.log_densities)
        } else {
            vec![1.0 / count as f64; count]
        };
        let weighted = |of: &dyn Fn(usize) -> f64| -> f64 {
            weights.iter().enumerate().map(|(s, weight)| weight * of(s)).sum()
        };
        let mean = weighted(&|s| self.moments[s].0);
        let variance = weighted(&|s| self.moments[s].1 + (self.moments[s].0 - mean).powi(2));
        let classes = self.probabilities.first().map_or(0, Vec::len);
        let probabilities = (0..classes).map(|k| weighted(&|s| self.probabilities[s][k])).collect();
        let top = self.log_densities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_density = (!self.log_densities.is_empty()).then(|| match top {
            f64::NEG_INFINITY => top,
            _ => top + weighted(&|s| (self.log_densities[s] - top).exp()).ln(),
        });
        if without_the_row {
            self.draws = resampled(&self.draws, &weights);
        } else {
            self.draws.sort_by(f64::total_cmp);
        }
        RowPrediction { mean, sd: variance.sqrt(), draws: self.draws, probabilities, log_density }
    }
}

/// As many draws of equal weight, evenly spaced in the distribution of those given, in ascending order.
fn resampled(draws: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_by(|&a, &b| draws[a].total_cmp(&draws[b]));
    let (mut next, mut below) = (0, 0.0);
    let place = |k: usize| (k as f64 + 0.5) / draws.len() as f64;
    (0..draws.len())
        .map(|k| {
            while next + 1 < order.len() && below + weights[order[next]] < place(k) {
                below += weights[order[next]];
                next += 1;
            }
            draws[order[next]]
        })
        .collect()
}

/// The predictors of a table's rows, by draws of the parameters.
struct Lines<'a> {
    parameters: Cow<'a, Matrix<f64>>,
    table: &'a Table,
    /// Coefficients of a predictor.
    line: usize,
    predictors: usize,
    columns: Vec<usize>,
    /// Predictors that are no lines, by draw and row.
    conditionals: Option<Vec<Vec<[f64; 2]>>>,
    offset: Option<usize>,
    noise: Option<usize>,
    groups: Vec<PlacedTerm>,
    /// ψ of every draw.
    extras: Vec<Vec<f64>>,
}

impl Lines<'_> {
    /// Visits η and ψ of a row, draw by draw, with random numbers that depend on where the row stands in its
    /// file alone.
    fn each_draw(&self, row: usize, mut visit: impl FnMut(&[f64], &[f64], &mut ChaCha8Rng)) {
        let values = self.table.values().row(row);
        let mut random = stream(0, Purpose::Prediction, self.table.number(row) as u64, 0);
        let mut eta = vec![0.0; self.predictors];
        let own_noise = self.noise.map(|noise| vec![values[noise].ln()]);
        for (draw, extras) in self.extras.iter().enumerate() {
            let lines = self.parameters.row(draw).chunks_exact(self.line.max(1));
            let lines = lines.take(if self.line > 0 { self.predictors } else { 0 });
            for (eta, line) in eta.iter_mut().zip(lines) {
                let (intercept, slopes) = line.split_at(line.len() - self.columns.len());
                let start = intercept.first().copied().unwrap_or(0.0)
                    + self.offset.map_or(0.0, |offset| values[offset]);
                let terms = slopes.iter().zip(&self.columns);
                *eta = terms.fold(start, |sum, (b, &j)| sum + b * values[j]);
            }
            if let Some(conditionals) = &self.conditionals {
                eta.copy_from_slice(&conditionals[draw][row]);
            }
            for term in &self.groups {
                eta[0] += term.add(&self.parameters, draw, values, &mut random);
            }
            visit(&eta, own_noise.as_ref().unwrap_or(extras), &mut random);
        }
    }
}

impl RowPrediction {
    /// The value that a part `level` of the draws is below.
    pub fn quantile(&self, level: f64) -> f64 {
        let last = self.draws.len() - 1;
        let place = level * last as f64;
        let below = place.floor() as usize;
        let (low, high) = (self.draws[below], self.draws[(below + 1).min(last)]);
        low + (place - below as f64) * (high - low)
    }
}
