//! `standardisation.json`: all but the particles that predicting takes, so that a run still predicts
//! when its training data has moved or changed.

use serde::{Deserialize, Serialize};
use steinflow::Real;
use steinflow_io::record::{FinishedRun, STANDARDISATION};
use steinflow_models::data::{Recipe, Scaling, Standardisation};
use steinflow_models::network::{
    Activation, Architecture, Bnn, NetworkSpec, Precision, Precisions,
};

use crate::error::Result;

#[derive(Debug, Deserialize, Serialize)]
pub struct Record {
    /// How a file becomes columns of numbers; those of earlier versions were numbers.
    #[serde(default)]
    recipe: Option<Recipe>,
    /// In the order of the network's inputs.
    features: Vec<ColumnRecord>,
    target: ColumnRecord,
    hidden: Vec<usize>,
    activation: ActivationRecord,
    /// Whether hidden layers add what they are given.
    #[serde(default)]
    residual: bool,
    /// Whether the noise depends on the input.
    #[serde(default)]
    noise_by_input: bool,
    noise_precision: PrecisionRecord,
    weight_precision: PrecisionRecord,
}

/// (x − mean)/sd is what the network sees.
#[derive(Debug, Deserialize, Serialize)]
struct ColumnRecord {
    name: String,
    mean: f64,
    sd: f64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ActivationRecord {
    Relu,
    Tanh,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PrecisionRecord {
    /// Under a Gamma prior.
    Learned {
        shape: f64,
        rate: f64,
    },
    Fixed(f64),
}

impl Record {
    pub fn new(data: &Standardisation, network: &NetworkSpec) -> Self {
        let column = |(name, scaling): (&String, &Scaling)| ColumnRecord {
            name: name.clone(),
            mean: scaling.mean,
            sd: scaling.sd,
        };
        let precision = |precision| match precision {
            Precision::Learned { shape, rate } => PrecisionRecord::Learned { shape, rate },
            Precision::Fixed(value) => PrecisionRecord::Fixed(value),
        };
        Self {
            recipe: Some(data.recipe.clone()),
            features: data.feature_names.iter().zip(&data.input_scalings).map(column).collect(),
            target: column((&data.target_name, &data.target_scaling)),
            hidden: network.architecture.hidden.clone(),
            activation: match network.architecture.activation {
                Activation::Relu => ActivationRecord::Relu,
                Activation::Tanh => ActivationRecord::Tanh,
            },
            residual: network.architecture.residual,
            noise_by_input: network.architecture.noise_by_input,
            noise_precision: precision(network.precisions.noise),
            weight_precision: precision(network.precisions.weights),
        }
    }

    /// Reads the record of a run folder.
    pub fn read(run: &FinishedRun) -> Result<Self> {
        let record: Self = run.json(STANDARDISATION)?;
        let sound = |column: &&ColumnRecord| {
            column.mean.is_finite() && column.sd > 0.0 && column.sd.is_finite()
        };
        if let Some(column) = record.features.iter().chain([&record.target]).find(|c| !sound(c)) {
            let (name, mean, sd) = (&column.name, column.mean, column.sd);
            let reason = format!("`{name}` has mean {mean} and standard deviation {sd}");
            return Err(run.damaged(STANDARDISATION, reason).into());
        }
        Ok(record)
    }

    pub fn standardisation(&self) -> Standardisation {
        let scaling = |column: &ColumnRecord| Scaling { mean: column.mean, sd: column.sd };
        let columns: Vec<String> =
            self.features.iter().chain([&self.target]).map(|column| column.name.clone()).collect();
        Standardisation {
            recipe: self.recipe.clone().unwrap_or_else(|| Recipe::of_numbers(&columns)),
            feature_names: self.features.iter().map(|column| column.name.clone()).collect(),
            target_name: self.target.name.clone(),
            input_scalings: self.features.iter().map(scaling).collect(),
            target_scaling: scaling(&self.target),
        }
    }

    /// The network without its data.
    pub fn network<T: Real>(&self) -> Result<Bnn<T>> {
        let precision = |record| match record {
            PrecisionRecord::Learned { shape, rate } => Precision::Learned { shape, rate },
            PrecisionRecord::Fixed(value) => Precision::Fixed(value),
        };
        let activation = match self.activation {
            ActivationRecord::Relu => Activation::Relu,
            ActivationRecord::Tanh => Activation::Tanh,
        };
        let architecture = Architecture {
            hidden: self.hidden.clone(),
            activation,
            residual: self.residual,
            noise_by_input: self.noise_by_input,
            classes: self.standardisation().classes().len(),
        };
        let precisions = Precisions {
            noise: precision(self.noise_precision),
            weights: precision(self.weight_precision),
        };
        Ok(Bnn::prior(&architecture, self.features.len(), precisions)?)
    }
}
