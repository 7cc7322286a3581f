//! A network and the data it is fitted to, from the options that a command line or a config can give.

use std::path::PathBuf;

use steinflow::Real;

use super::{Architecture, Bnn, Precisions};
use crate::data::{RegressionData, Split, find};
use crate::{ModelSpec, Result};

/// The data set that a network is fitted to when none is named.
pub const DEFAULT_DATA: &str = "penguins";

/// Which rows are held back for testing.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TestRows {
    /// None: every row trains.
    #[default]
    None,
    /// A random part, from a seed.
    Fraction {
        /// Between 0 and 1.
        fraction: f64,
        /// The same seed holds back the same rows.
        seed: u64,
    },
    /// A standard split of a named data set, counted from 0.
    Standard(usize),
    /// A line of a split file, counted from 0.
    File {
        /// One split a line: the numbers of its test rows, counted from 0.
        path: PathBuf,
        /// The line.
        index: usize,
    },
}

/// What a network's spec says beside the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkSpec {
    /// Hidden layers and activation.
    pub architecture: Architecture,
    /// Of noise and weights.
    pub precisions: Precisions,
    /// What is held back.
    pub test_rows: TestRows,
}

/// A network with its data.
#[derive(Clone, Debug)]
pub struct NetworkFit<T> {
    /// Train and test rows in standard units.
    pub data: RegressionData,
    /// The posterior given the training rows.
    pub network: Bnn<T>,
}

impl<T: Real> NetworkFit<T> {
    /// Reads the data of `spec` and builds its network.
    pub fn new(spec: &ModelSpec) -> Result<Self> {
        Self::on(spec, regression_data(spec, None)?)
    }

    /// As [`NetworkFit::new`], for choosing settings: of the rows that train, a random `fraction` takes
    /// the place of the test rows, which are in neither.
    pub fn for_validation(spec: &ModelSpec, fraction: f64, seed: u64) -> Result<Self> {
        Self::on(spec, regression_data(spec, Some((fraction, seed)))?)
    }

    fn on(spec: &ModelSpec, data: RegressionData) -> Result<Self> {
        let NetworkSpec { architecture, precisions, .. } = &spec.network;
        let (inputs, targets) = (data.train_inputs(), data.train_targets());
        let network = Bnn::new(architecture, inputs, targets, *precisions)?;
        Ok(Self { data, network })
    }
}

/// The data of `spec`; with `validation`, without its test rows and with this part of the others, drawn
/// by a seed, in their place.
fn regression_data(spec: &ModelSpec, validation: Option<(f64, u64)>) -> Result<RegressionData> {
    let (table, named) = spec.table(Some(DEFAULT_DATA))?;
    let rows = table.values().rows();
    let target = spec.target.as_deref();
    let split = match &spec.network.test_rows {
        TestRows::None => {
            return match validation {
                None => RegressionData::train_only(&table, target),
                Some((fraction, seed)) => {
                    RegressionData::new(&table, target, &Split::random(rows, fraction, seed)?)
                }
            };
        }
        TestRows::Fraction { fraction, seed } => Split::random(rows, *fraction, *seed)?,
        TestRows::File { path, index } => Split::from_file(path, rows, *index)?,
        TestRows::Standard(index) => {
            let Some(name) = named else {
                let remedy = "a file has no standard splits: give --split-file, --test-fraction, or \
                              a data set by name";
                return Err(steinflow::Error::setting("split", index, remedy).into());
            };
            find(name, spec.data_dir.as_deref())?.split(*index)?
        }
    };
    let split = match validation {
        None => split,
        Some((fraction, seed)) => split.hold_out(fraction, seed)?,
    };
    RegressionData::new(&table, target, &split)
}
