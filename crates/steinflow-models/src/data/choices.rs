//! What a user may say about the columns of a table.

use serde::{Deserialize, Serialize};

use super::formula::Formula;
use crate::{ModelSpec, Result};

/// Which columns are used, and as what; the rest is found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// The column to predict; the last one unless it is named.
    pub target: Option<String>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// The columns to predict from; all others are left out.
    pub features: Option<Vec<String>>,
    /// Columns whose values are names, even if they are numbers.
    pub categorical: Vec<String>,
    /// The column that says whether the target is the time of an event.
    pub event: Option<String>,
    /// The target's classes in their order.
    pub order: Option<Vec<String>>,
    /// Columns that say which group a row belongs to.
    pub groups: Vec<String>,
    /// Columns that are multiplied, for features of their own.
    pub interactions: Vec<Vec<String>>,
    /// Columns that are needed for that alone.
    pub helpers: Vec<String>,
    /// What to do about cells that are empty.
    pub missing: Missing,
    /// How many rows back the target's own past is among the features.
    pub lags: usize,
}

/// What is done about rows with cells that are empty.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// They are left out.
    #[default]
    Drop,
    /// The column's mean, or its most frequent level, stands in.
    Mean,
    /// They are refused.
    Error,
}

impl Choices {
    /// What the options of a model say.
    pub fn of(spec: &ModelSpec) -> Result<Self> {
        let missing = match spec.missing.as_deref() {
            None | Some("drop") => Missing::Drop,
            Some("mean") => Missing::Mean,
            Some("error") => Missing::Error,
            Some(other) => {
                let known = ["drop", "mean", "error"];
                return Err(steinflow::Error::unknown("missing", other, known).into());
            }
        };
        // A column that a model asks for is no feature, and is needed all the same.
        let by_options = Formula {
            target: spec.target.clone().unwrap_or_default(),
            features: spec.features.clone(),
            categorical: spec.categorical.clone().unwrap_or_default(),
            ..Formula::default()
        };
        let formula = match &spec.formula {
            Some(_) if by_options != Formula::default() => {
                let remedy = "it says the target, features and categories; leave those out";
                let formula = spec.formula.as_deref().unwrap_or_default();
                return Err(steinflow::Error::setting("formula", formula, remedy).into());
            }
            Some(text) => Formula::parse(text)?,
            None => by_options,
        };
        let features = formula.features.as_ref();
        let groups = spec.groups.clone().unwrap_or_default();
        let further =
            || spec.offset.iter().chain(&spec.noise_column).chain(&spec.event).chain(&groups);
        let features = features.map(|own| own.iter().chain(further()).cloned().collect());
        Ok(Self {
            target: Some(formula.target).filter(|target| !target.is_empty()),
            drop: spec.drop.iter().flatten().chain(&formula.drop).cloned().collect(),
            features,
            categorical: formula.categorical,
            interactions: formula.interactions,
            helpers: formula.helpers,
            event: spec.event.clone(),
            order: spec.order.clone(),
            groups,
            missing,
            lags: spec.lags.unwrap_or(0),
        })
    }
}
