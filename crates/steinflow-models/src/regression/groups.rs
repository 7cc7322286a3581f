//! Rows of groups, as pupils of schools: a term adds u[g(i)]·v(i) to the predictor of row i, with
//! u[g] ~ N(0, τ²) for every group g and τ ~ Exponential(1) in standard units. It is an intercept of the
//! group's own where v = 1, and a slope where v is a standardised feature.
//!
//! A group with rows enough to know its u is carried as u itself (centred), one with few as z = u/τ
//! (non-centred): then neither the data nor τ makes the posterior a funnel (Papaspiliopoulos, Roberts and
//! Sköld 2007, Statistical Science 22).

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use steinflow::{Error, Matrix, Real};

use super::family::log_exponential;
use crate::Result;
use crate::data::{Scaling, Table};

/// What the rows of a group have in common.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// The column that says the group.
    pub(super) column: String,
    pub(super) levels: Vec<String>,
    /// Whose slope it is; none for an intercept.
    pub(super) feature: Option<(String, Scaling)>,
    /// g, row by row.
    pub(super) groups: Vec<usize>,
    /// v, row by row.
    pub(super) values: Vec<f64>,
}

impl Term {
    /// The standard deviation τ, then u of every group.
    fn names(&self) -> Vec<String> {
        let of = self.feature.as_ref().map_or(String::new(), |(name, _)| format!(": {name}"));
        let effect = |level: &String| format!("{}[{level}]{of}", self.column);
        let sd = format!("sd[{}{of}]", self.column);
        std::iter::once(sd).chain(self.levels.iter().map(effect)).collect()
    }

    /// Whether each group is centred: whether its rows tell more about u than N(0, τ²) does. From the
    /// slopes ∂ℓ/∂η of all rows without any effect, whose sum over a group with information S, less what
    /// all groups have in common, has the variance S + S²τ².
    fn centring(&self, slopes: &[f64]) -> Vec<bool> {
        let of_row = slopes.iter().map(|slope| slope * slope).sum::<f64>() / slopes.len() as f64;
        let (mut sums, mut information) =
            (vec![0.0; self.levels.len()], vec![0.0; self.levels.len()]);
        for ((&group, value), slope) in self.groups.iter().zip(&self.values).zip(slopes) {
            sums[group] += value * slope;
            information[group] += value * value * of_row;
        }
        let common = sums.iter().sum::<f64>() / information.iter().sum::<f64>();
        let own = |(sum, s): (&f64, &f64)| (sum - common * s).powi(2) - s;
        let excess: f64 = sums.iter().zip(&information).map(own).sum();
        let variance = excess / information.iter().map(|s| s * s).sum::<f64>();
        information.iter().map(|s| s * variance > 1.0).collect()
    }
}

/// The terms of a regression, by their parameters: for each log τ, then u or z of its groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Groups(Vec<Effects>);

#[derive(Clone, Debug, PartialEq)]
struct Effects {
    names: Vec<String>,
    is_centred: Vec<bool>,
    /// What u = 1 is in the units of the table.
    unit: f64,
}

impl Groups {
    /// By the slopes of all rows where no group has an effect, and the standard deviation of the target.
    pub(super) fn new(terms: &[Term], slopes: &[f64], target_sd: f64) -> Self {
        let effects = |term: &Term| Effects {
            names: term.names(),
            is_centred: term.centring(slopes),
            unit: target_sd / term.feature.as_ref().map_or(1.0, |(_, scaling)| scaling.sd),
        };
        Self(terms.iter().map(effects).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(|term| term.names.clone()).collect()
    }

    /// How many parameters there are.
    pub(super) fn dim(&self) -> usize {
        self.effects() + self.0.len()
    }

    /// How many u there are.
    pub(super) fn effects(&self) -> usize {
        self.0.iter().map(|term| term.is_centred.len()).sum()
    }

    /// Every term with its part of the parameters.
    fn parts<'a, T>(&'a self, theta: &'a [T]) -> impl Iterator<Item = (&'a Effects, &'a [T])> {
        let mut first = 0;
        self.0.iter().map(move |term| {
            let part = &theta[first..][..term.names.len()];
            first += part.len();
            (term, part)
        })
    }

    /// Appends u.
    pub(super) fn append_effects<T: Real>(&self, theta: &[T], out: &mut Vec<T>) {
        for (term, part) in self.parts(theta) {
            let tau = part[0].exp();
            let effects = part[1..].iter().zip(&term.is_centred);
            out.extend(effects.map(|(&x, &is_centred)| if is_centred { x } else { tau * x }));
        }
    }

    /// score ← scale · ∂Σℓ/∂θ + ∂log p/∂θ, from ∂Σℓ/∂u; returns log p(θ).
    pub(super) fn add<T: Real>(
        &self,
        scale: f64,
        theta: &[T],
        slopes: &[T],
        score: &mut [T],
    ) -> f64 {
        let (mut value, mut first, mut slopes) = (0.0, 0, slopes.iter());
        for (term, part) in self.parts(theta) {
            let log_tau = part[0].as_f64();
            let tau = log_tau.exp();
            let (log_prior, mut of_tau) = log_exponential(log_tau);
            value += log_prior;
            let score = &mut score[first..][..part.len()];
            let effects = part[1..].iter().zip(&term.is_centred).zip(&mut slopes);
            for (((x, &is_centred), slope), score) in effects.zip(&mut score[1..]) {
                let (x, slope) = (x.as_f64(), scale * slope.as_f64());
                if is_centred {
                    let z = x / tau;
                    value -= 0.5 * z * z + log_tau;
                    of_tau += z * z - 1.0;
                    *score = T::of(slope - z / tau);
                } else {
                    value -= 0.5 * x * x;
                    of_tau += slope * tau * x;
                    *score = T::of(slope * tau - x);
                }
            }
            score[0] = T::of(of_tau);
            first += part.len();
        }
        value
    }

    /// Replaces the parameters by τ and u in the units of the table.
    pub(super) fn show(&self, theta: &mut [f64]) {
        let mut first = 0;
        for term in &self.0 {
            let part = &mut theta[first..][..term.names.len()];
            first += part.len();
            part[0] = part[0].exp() * term.unit;
            let tau = part[0];
            for (x, &is_centred) in part[1..].iter_mut().zip(&term.is_centred) {
                *x *= if is_centred { term.unit } else { tau };
            }
        }
    }

    /// The way back.
    pub(super) fn hide(&self, theta: &mut [f64]) {
        let mut first = 0;
        for term in &self.0 {
            let part = &mut theta[first..][..term.names.len()];
            first += part.len();
            let tau = part[0];
            for (x, &is_centred) in part[1..].iter_mut().zip(&term.is_centred) {
                *x /= if is_centred { term.unit } else { tau };
            }
            part[0] = (tau / term.unit).ln();
        }
    }
}

/// g and v of every row, the terms of a row side by side; u of all terms are counted through.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GroupRows<T> {
    terms: usize,
    places: Vec<u32>,
    values: Vec<T>,
}

impl<T> Default for GroupRows<T> {
    fn default() -> Self {
        Self { terms: 0, places: Vec::new(), values: Vec::new() }
    }
}

impl<T: Real> GroupRows<T> {
    pub(super) fn new(terms: &[Term], rows: usize) -> Self {
        let mut all = Self { terms: terms.len(), ..Self::default() };
        for row in 0..rows {
            let mut first = 0;
            for term in terms {
                all.places.push((first + term.groups[row]) as u32);
                all.values.push(T::of(term.values[row]));
                first += term.levels.len();
            }
        }
        all
    }

    /// Becomes some rows of another.
    pub(super) fn gather(&mut self, from: &Self, rows: &[usize]) {
        self.terms = from.terms;
        self.places.clear();
        self.values.clear();
        for &row in rows {
            let own = row * from.terms..(row + 1) * from.terms;
            self.places.extend_from_slice(&from.places[own.clone()]);
            self.values.extend_from_slice(&from.values[own]);
        }
    }

    /// The terms of rows from `first` on.
    fn rows(&self, first: usize, count: usize) -> impl Iterator<Item = (&[u32], &[T])> {
        let own = first * self.terms..(first + count) * self.terms;
        let places = self.places[own.clone()].chunks_exact(self.terms.max(1));
        places.zip(self.values[own].chunks_exact(self.terms.max(1)))
    }

    /// η ← η + u v, for rows from `first` on.
    pub(super) fn add_to(&self, first: usize, effects: &[T], eta: &mut [T]) {
        let rows = self.rows(first, eta.len());
        for (eta, (places, values)) in eta.iter_mut().zip(rows) {
            for (&place, &value) in places.iter().zip(values) {
                *eta += effects[place as usize] * value;
            }
        }
    }

    /// Adds ∂Σℓ/∂u to `slopes`, from ∂ℓ/∂η of rows from `first` on.
    pub(super) fn add_slopes(&self, first: usize, of_eta: &[T], slopes: &mut [T]) {
        for (&of_eta, (places, values)) in of_eta.iter().zip(self.rows(first, of_eta.len())) {
            for (&place, &value) in places.iter().zip(values) {
                slopes[place as usize] += of_eta * value;
            }
        }
    }
}

/// A term without its rows, for predictions.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct FittedTerm {
    column: String,
    levels: usize,
    /// Whose slope it is, and the mean about which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feature: Option<(String, f64)>,
    /// The name of τ; those of u follow.
    sd: String,
}

impl From<&Term> for FittedTerm {
    fn from(term: &Term) -> Self {
        Self {
            column: term.column.clone(),
            levels: term.levels.len(),
            feature: term.feature.as_ref().map(|(name, scaling)| (name.clone(), scaling.mean)),
            sd: term.names().swap_remove(0),
        }
    }
}

/// A term where a table has it.
pub(super) struct PlacedTerm {
    column: usize,
    feature: Option<(usize, f64)>,
    levels: usize,
    /// Where τ stands among the parameters.
    first: usize,
}

impl FittedTerm {
    pub(super) fn place(&self, names: &[String], table: &Table) -> Result<PlacedTerm> {
        let position = |name: &str| table.position(Some(name));
        let feature = |(name, mean): &(String, f64)| -> Result<_> { Ok((position(name)?, *mean)) };
        let first = names.iter().position(|name| *name == self.sd);
        let first = first.filter(|first| first + self.levels < names.len());
        Ok(PlacedTerm {
            column: position(&self.column)?,
            feature: self.feature.as_ref().map(feature).transpose()?,
            levels: self.levels,
            first: first.ok_or_else(|| {
                Error::unknown("parameter", &self.sd, names.iter().map(String::as_str))
            })?,
        })
    }
}

impl PlacedTerm {
    /// What the term adds to the predictor of a row; a group that is new is any group.
    pub(super) fn add(
        &self,
        parameters: &Matrix<f64>,
        draw: usize,
        row: &[f64],
        random: &mut ChaCha8Rng,
    ) -> f64 {
        let (own, group) = (&parameters.row(draw)[self.first..], row[self.column] as usize);
        let effect = if group < self.levels {
            own[1 + group]
        } else {
            let normal: f64 = StandardNormal.sample(random);
            own[0] * normal
        };
        effect * self.feature.map_or(1.0, |(column, mean)| row[column] - mean)
    }
}
