//! The models by name, and how to build one from options that a command line or a config can give.

use std::path::{Path, PathBuf};

use steinflow::Real;

use crate::data::{Table, read_table};
use crate::network::{NetworkFit, NetworkSpec};
use crate::regression::{DEFAULT_NOISE_SD, DEFAULT_PRIOR_SD, LinearRegression, LogisticRegression};
use crate::toy::{
    Banana, Crescent, Funnel, Gaussian, GaussianMixture, Isotropic, Ring, TriCrescent,
};
use crate::{Error, Model, Result};

/// The most coordinates that [`build`] gives a model with dense matrices: three of 2000 × 2000 take
/// 96 MB.
const MAX_DIM: usize = 2000;

/// The correlation of neighbours in the `gaussian` of a chosen dimension.
const NEIGHBOUR_CORRELATION: f64 = 0.8;

/// The name of the Bayesian neural network.
pub const NETWORK: &str = "bnn";

/// One entry of the [`catalogue()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// What [`ModelSpec::name`] says to get it.
    pub name: &'static str,
    /// A few words.
    pub title: &'static str,
    /// The density.
    pub formula: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// Whether it reads [`ModelSpec::data`].
    pub needs_data: bool,
    /// Whether [`ModelSpec::dim`] may be given.
    pub takes_dim: bool,
}

const MODELS: [ModelInfo; 11] = [
    ModelInfo {
        name: "gaussian",
        title: "correlated Gaussian",
        formula: "N(0, Σ): by default in the plane with standard deviations 1 and 2 and correlation \
                  0.8; with dim, Σᵢⱼ = 0.8^|i − j|; with dim and condition κ, variances from 1 to 1/κ along cosine waves",
        reference: "textbook",
        needs_data: false,
        takes_dim: true,
    },
    ModelInfo {
        name: "standard-normal",
        title: "standard normal",
        formula: "N(0, I), in the plane unless dim says otherwise",
        reference: "textbook",
        needs_data: false,
        takes_dim: true,
    },
    ModelInfo {
        name: "mixture",
        title: "three Gaussians of unequal weight",
        formula: "0.5 N((−3, −1), ·) + 0.3 N((3, −2), ·) + 0.2 N((0.5, 4), ·)",
        reference: "textbook",
        needs_data: false,
        takes_dim: false,
    },
    ModelInfo {
        name: "tri-crescent",
        title: "three crescents stacked in y",
        formula: "⅓ Σᵢ exp(−x⁴/10 − ½(4(y − zᵢ) − x²)²), z ∈ {−2, 0, 2}",
        reference: "after Ma, Chen and Fox (2015), arXiv:1506.04696",
        needs_data: false,
        takes_dim: false,
    },
    ModelInfo {
        name: "crescent",
        title: "one crescent",
        formula: "exp(−x⁴/10 − ½(4(y + 1.2) − x²)²)",
        reference: "Ma, Chen and Fox (2015), arXiv:1506.04696",
        needs_data: false,
        takes_dim: false,
    },
    ModelInfo {
        name: "banana",
        title: "bent Gaussian",
        formula: "x ~ N(0, 2²), y + ½(x² − 2²) ~ N(0, 1)",
        reference: "after Haario, Saksman and Tamminen (1999), Computational Statistics 14",
        needs_data: false,
        takes_dim: false,
    },
    ModelInfo {
        name: "funnel",
        title: "Neal's funnel",
        formula: "v ~ N(0, 3²), xᵢ | v ~ N(0, eᵛ), i = 1 … dim − 1; dim is 2 by default",
        reference: "Neal (2003), Annals of Statistics 31",
        needs_data: false,
        takes_dim: true,
    },
    ModelInfo {
        name: "ring",
        title: "ring of radius 2",
        formula: "exp(−(|θ|² − R²)²/(8R²w²)), R = 2, w = 0.2",
        reference: "textbook",
        needs_data: false,
        takes_dim: false,
    },
    ModelInfo {
        name: "linear-regression",
        title: "Bayesian linear regression with known noise, posterior known exactly",
        formula: "y ~ N(Xθ, σ²), θ ~ N(0, s² I), σ = noise-sd, s = prior-sd; X has an intercept; features \
                  and y are standardised, so coefficients are on the standardised scale",
        reference: "textbook",
        needs_data: true,
        takes_dim: false,
    },
    ModelInfo {
        name: "logistic-regression",
        title: "Bayesian logistic regression",
        formula: "P(y = 1) = 1/(1 + exp(−Xθ)), θ ~ N(0, s² I), s = prior-sd; X has an intercept; features \
                  are standardised, so coefficients are on the standardised scale",
        reference: "textbook",
        needs_data: true,
        takes_dim: false,
    },
    ModelInfo {
        name: NETWORK,
        title: "Bayesian neural network for regression",
        formula: "y ~ N(net(x), 1/γ), weights and biases ~ N(0, 1/λ), γ, λ ~ Gamma(1, 0.1) carried as \
                  logarithms; one hidden layer of 50 ReLU units unless hidden says otherwise; features \
                  and y are standardised by the training rows",
        reference: "Hernández-Lobato and Adams (2015), arXiv:1502.05336",
        needs_data: true,
        takes_dim: false,
    },
];

/// All models that [`build`] knows.
pub fn catalogue() -> &'static [ModelInfo] {
    &MODELS
}

/// A model by name, with its options; an option that does not fit the model is an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSpec {
    /// A name of the [`catalogue()`].
    pub name: String,
    /// Number of coordinates, for models that come in any.
    pub dim: Option<usize>,
    /// Largest over smallest variance of the `gaussian` with a chosen dim.
    pub condition: Option<f64>,
    /// The CSV file of a regression, or the name of a [data set](crate::data::data_sets).
    pub data: Option<PathBuf>,
    /// Where named data sets are looked for first.
    pub data_dir: Option<PathBuf>,
    /// The column that a regression predicts; the last one by default.
    pub target: Option<String>,
    /// Prior standard deviation of a regression's coefficients; [`DEFAULT_PRIOR_SD`] by default.
    pub prior_sd: Option<f64>,
    /// Noise standard deviation of the linear regression, in units of the target's standard
    /// deviation; [`DEFAULT_NOISE_SD`] by default.
    pub noise_sd: Option<f64>,
    /// What a network takes; other models ignore it.
    pub network: NetworkSpec,
}

impl ModelSpec {
    /// The table that `data` means, and the data set's name if it is one.
    pub(crate) fn table(&self, default: Option<&str>) -> Result<(Table, Option<&'static str>)> {
        let Some(given) = self.data.as_deref().or(default.map(Path::new)) else {
            return Err(Error::DataRequired { model: self.name.clone() });
        };
        read_table(given, self.data_dir.as_deref())
    }
}

/// Builds the model that `spec` describes.
///
/// ```
/// use steinflow_models::{ModelSpec, build};
///
/// let spec = ModelSpec { name: "gaussian".into(), dim: Some(5), ..Default::default() };
/// assert_eq!(build::<f32>(&spec)?.dim(), 5);
///
/// let misspelt = ModelSpec { name: "gausian".into(), ..Default::default() };
/// let Err(error) = build::<f64>(&misspelt) else { panic!("no such model") };
/// assert!(error.to_string().contains("did you mean `gaussian`?"));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
pub fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    let info = catalogue().iter().find(|info| info.name == spec.name).ok_or_else(|| {
        steinflow::Error::unknown("model", &spec.name, catalogue().iter().map(|info| info.name))
    })?;
    reject_options_not_taken(spec, info)?;
    Ok(match info.name {
        "gaussian" => Box::new(match (spec.dim, spec.condition) {
            (Some(dim), Some(condition)) => Gaussian::ill_conditioned(dim, condition)?,
            (Some(dim), None) => Gaussian::autoregressive(dim, NEIGHBOUR_CORRELATION)?,
            (None, _) => Gaussian::correlated(),
        }),
        "standard-normal" => Box::new(Isotropic::new(spec.dim.unwrap_or(2))?),
        "mixture" => Box::new(GaussianMixture::default()),
        "tri-crescent" => Box::new(TriCrescent),
        "crescent" => Box::new(Crescent),
        "banana" => Box::new(Banana::default()),
        "funnel" => Box::new(spec.dim.map_or_else(|| Ok(Funnel::default()), Funnel::new)?),
        "ring" => Box::new(Ring::default()),
        NETWORK => Box::new(NetworkFit::<T>::new(spec)?.network),
        regression => {
            let (table, _) = spec.table(None)?;
            let target = spec.target.as_deref();
            let prior_sd = spec.prior_sd.unwrap_or(DEFAULT_PRIOR_SD);
            if regression == "linear-regression" {
                let noise_sd = spec.noise_sd.unwrap_or(DEFAULT_NOISE_SD);
                Box::new(LinearRegression::new(&table, target, prior_sd, noise_sd)?)
            } else {
                Box::new(LogisticRegression::new(&table, target, prior_sd)?)
            }
        }
    })
}

fn reject_options_not_taken(spec: &ModelSpec, info: &ModelInfo) -> Result<()> {
    let not_taken = |option, value: String, remedy: &str| {
        let remedy = remedy.to_owned();
        Err(Error::OptionNotTaken { option, value, model: spec.name.clone(), remedy })
    };
    if let Some(dim) = spec.dim {
        if !info.takes_dim {
            let remedy = if info.needs_data {
                "its dimension is the number of features and an intercept; leave dim out"
            } else {
                "it always has 2 coordinates; leave dim out"
            };
            return not_taken("dim", dim.to_string(), remedy);
        }
        if dim == 0 || dim > MAX_DIM {
            let remedy = format!("give a number of coordinates from 1 to {MAX_DIM}");
            return Err(steinflow::Error::setting("dim", dim, remedy).into());
        }
    }
    if let Some(condition) = spec.condition
        && (info.name != "gaussian" || spec.dim.is_none())
    {
        let remedy = "only `gaussian` with a dim takes it; leave it out";
        return not_taken("condition", condition.to_string(), remedy);
    }
    if !info.needs_data {
        let remedy = "only regressions read data; leave it out";
        if let Some(data) = &spec.data {
            return not_taken("data", data.display().to_string(), remedy);
        }
        if let Some(target) = &spec.target {
            return not_taken("target", format!("`{target}`"), remedy);
        }
    }
    if let Some(prior_sd) = spec.prior_sd {
        let remedy = match info.name {
            NETWORK => "the spread of its weights is learned, or set with weight-precision",
            _ => "it has no prior; leave it out",
        };
        if !info.needs_data || info.name == NETWORK {
            return not_taken("prior-sd", prior_sd.to_string(), remedy);
        }
    }
    match spec.noise_sd {
        Some(noise_sd) if info.name != "linear-regression" => {
            let remedy = "only the linear regression has noise; leave it out";
            not_taken("noise-sd", noise_sd.to_string(), remedy)
        }
        _ => Ok(()),
    }
}
