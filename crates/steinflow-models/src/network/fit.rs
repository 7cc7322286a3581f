//! A network and the data it is fitted to, from the options that a command line or a config can give.

use std::path::PathBuf;

use steinflow::{Error as LibraryError, Real};

use super::{Activation, Architecture, Bnn, Precision, Precisions};
use crate::catalogue::table_options;
use crate::data::{Choices, RegressionData, Split, find};
use crate::{Model, ModelInfo, ModelSpec, NETWORK, Result};

/// How it is listed.
pub(crate) const ENTRY: ModelInfo = ModelInfo {
    name: NETWORK,
    title: "Bayesian neural network, for a number or for classes",
    formula: "y ~ N(net(x), 1/γ), weights and biases ~ N(0, 1/λ), γ, λ ~ Gamma(1, 0.1) carried as \
              logarithms, and γeˢ⁽ˣ⁾ in place of γ with noise input; P(y = k) ∝ exp(netₖ(x)) for a target of words or of categorical; one hidden layer of 50 ReLU units unless hidden says otherwise; features \
              and y are standardised by the training rows",
    reference: "Hernández-Lobato and Adams (2015), arXiv:1502.05336",
    options: table_options!(
        "hidden",
        "activation",
        "residual",
        "noise",
        "noise_precision",
        "noise_rate",
        "weight_precision",
        "test_fraction",
        "split_seed",
        "split",
        "split_file"
    ),
    single: build,
    double: build,
};

fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    Ok(Box::new(NetworkFit::<T>::new(spec)?.network))
}

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

impl NetworkSpec {
    /// What the options mean.
    pub fn new(spec: &ModelSpec) -> Result<Self> {
        let clash = |option, rival: &str, remedy: &str| {
            Err(LibraryError::setting(option, format!("given with {rival}"), remedy).into())
        };
        let precision =
            |fixed: Option<f64>| fixed.map_or_else(Precision::default, Precision::Fixed);
        let noise = match (spec.noise_precision, spec.noise_rate) {
            (Some(_), Some(_)) => {
                let remedy = "a precision that is fixed has no prior; drop one";
                return clash("noise-rate", "noise-precision", remedy);
            }
            (None, Some(rate)) => Precision::Learned { shape: 1.0, rate },
            (fixed, None) => precision(fixed),
        };
        let test_rows = match (spec.test_fraction, &spec.split_file, spec.split) {
            // Nothing to hold back is no error here.
            (None | Some(0.0), None, None) => TestRows::None,
            (None, None, Some(index)) => TestRows::Standard(index),
            (None, Some(path), index) => {
                TestRows::File { path: path.clone(), index: index.unwrap_or(0) }
            }
            (Some(fraction), None, None) => {
                TestRows::Fraction { fraction, seed: spec.split_seed.unwrap_or(0) }
            }
            (Some(_), ..) => {
                let remedy = "both say which rows are held back; drop one";
                return clash("test-fraction", "split or split-file", remedy);
            }
        };
        let default = Architecture::default();
        let activation = match spec.activation.as_deref() {
            None => default.activation,
            Some(name) => Activation::parse(name)?,
        };
        let noise_by_input = match spec.noise.as_deref() {
            None | Some("same") => false,
            Some("input") => true,
            Some(other) => {
                return Err(LibraryError::unknown("noise", other, ["same", "input"]).into());
            }
        };
        let hidden = spec.hidden.clone().unwrap_or(default.hidden);
        let residual = spec.residual.unwrap_or(default.residual);
        if residual && !hidden.windows(2).any(|pair| pair[0] == pair[1]) {
            let remedy = format!(
                "no two hidden layers in a row are equally wide: hidden is {hidden:?}; give such, as 50,50"
            );
            return Err(LibraryError::setting("residual", residual, remedy).into());
        }
        Ok(Self {
            architecture: Architecture { hidden, activation, residual, noise_by_input, classes: 0 },
            precisions: Precisions { noise, weights: precision(spec.weight_precision) },
            test_rows,
        })
    }
}

/// A network with its data.
#[derive(Clone, Debug)]
pub struct NetworkFit<T> {
    /// Train and test rows in standard units.
    pub data: RegressionData,
    /// The posterior given the training rows.
    pub network: Bnn<T>,
    /// What both are made by.
    pub spec: NetworkSpec,
}

impl<T: Real> NetworkFit<T> {
    /// Reads the data of `spec` and builds its network.
    pub fn new(spec: &ModelSpec) -> Result<Self> {
        let mut own = NetworkSpec::new(spec)?;
        let data = regression_data(spec, &own.test_rows)?;
        own.architecture.classes = data.standardisation().classes().len();
        let of_noise = [("noise-precision", spec.noise_precision), ("noise-rate", spec.noise_rate)];
        for (option, value) in of_noise {
            if let Some(value) = value.filter(|_| own.architecture.classes > 0) {
                let remedy =
                    "a target of classes has no noise beside its probabilities; leave it out";
                return Err(LibraryError::setting(option, value, remedy).into());
            }
        }
        let (inputs, targets) = (data.train_inputs(), data.train_targets());
        let network = Bnn::new(&own.architecture, inputs, targets, own.precisions)?;
        Ok(Self { data, network, spec: own })
    }
}

fn regression_data(spec: &ModelSpec, held_back: &TestRows) -> Result<RegressionData> {
    let (table, named) = spec.read_table(Some(DEFAULT_DATA))?;
    let rows = table.values().rows();
    let target = Choices::of(spec)?.target;
    let target = target.as_deref();
    let split = match held_back {
        TestRows::None => return RegressionData::train_only(&table, target),
        TestRows::Fraction { fraction, seed } => Split::random(rows, *fraction, *seed)?,
        TestRows::File { path, index } => Split::from_file(path, rows, *index)?,
        TestRows::Standard(index) => {
            let Some(name) = named else {
                let remedy = "a file has no standard splits: give --split-file, --test-fraction, or \
                              a data set by name";
                return Err(LibraryError::setting("split", index, remedy).into());
            };
            find(name, spec.data_dir.as_deref())?.split(*index)?
        }
    };
    RegressionData::new(&table, target, &split)
}
