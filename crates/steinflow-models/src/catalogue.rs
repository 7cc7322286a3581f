//! The models by name, and how to build one from options that a command line or a config can give.

use std::any::Any;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use steinflow::Real;

use crate::data::{Choices, Table, read_table};
use crate::density;
use crate::network::fit;
use crate::posteriors;
use crate::regression::{
    Bernoulli, Mixture, Multinomial, NegativeBinomial, Normal, Ordinal, Poisson, StudentT, Weibull,
    entry, process,
};
use crate::stan;
use crate::toy::{
    banana, crescent, funnel, gaussian, gaussian_mixture, isotropic, ring, tri_crescent,
};
use crate::{Error, Model, Result};

/// The most coordinates that [`build`] gives a model with dense matrices: three of 2000 × 2000 take
/// 96 MB.
const MAX_DIM: usize = 2000;

/// The name of the Bayesian neural network.
pub const NETWORK: &str = "bnn";

/// One entry of the [`catalogue()`]. It stands in the model's own file.
#[derive(Clone, Copy, Debug)]
pub struct ModelInfo {
    /// What [`ModelSpec::model`] says to get it.
    pub name: &'static str,
    /// A few words.
    pub title: &'static str,
    /// The density.
    pub formula: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// The names of the options of a [`ModelSpec`] that it takes.
    pub options: &'static [&'static str],
    pub(crate) single: Build<f32>,
    pub(crate) double: Build<f64>,
}

type Build<T> = fn(&ModelSpec) -> Result<Box<dyn Model<T>>>;

impl ModelInfo {
    /// Whether it takes an option.
    pub fn takes(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// Whether it says something about new rows of a table.
    pub fn predicts(&self) -> bool {
        self.takes("target")
    }

    /// What to give instead of an option that it does not take.
    fn instead_of(&self, option: &str) -> String {
        let own = match self.options {
            [] => "it takes none".to_owned(),
            // As flags and configs write them.
            names => format!("it takes {}", names.join(", ").replace('_', "-")),
        };
        if option != "dim" {
            return own;
        }
        if self.takes("data") {
            return "its dimension follows from the number of features of its data; leave it out"
                .to_owned();
        }
        match (self.double)(&ModelSpec::named(self.name)) {
            Ok(model) => format!("it always has {} coordinates; leave it out", model.dim()),
            Err(_) => own,
        }
    }
}

/// The options of every model on a table, and further ones.
macro_rules! table_options {
    ($($further:literal),*) => {
        &[
            "data", "data_dir", "target", "formula", "features", "drop", "categorical", "order", "missing", "lags",
            $($further),*
        ]
    };
}
pub(crate) use table_options;

/// A line a model.
static MODELS: &[ModelInfo] = &[
    gaussian::ENTRY,
    isotropic::ENTRY,
    gaussian_mixture::ENTRY,
    tri_crescent::ENTRY,
    crescent::ENTRY,
    banana::ENTRY,
    funnel::ENTRY,
    ring::ENTRY,
    entry::<Normal>(),
    entry::<StudentT>(),
    entry::<Mixture>(),
    entry::<Bernoulli>(),
    entry::<Multinomial>(),
    entry::<Ordinal>(),
    entry::<Poisson>(),
    entry::<NegativeBinomial>(),
    entry::<Weibull>(),
    process::ENTRY,
    fit::ENTRY,
    density::ENTRY,
    stan::ENTRY,
];

/// The models that ship. [`build`] also knows the [posteriors](crate::posteriors) by their names.
pub fn catalogue() -> &'static [ModelInfo] {
    MODELS
}

static POSTERIORS: LazyLock<Vec<ModelInfo>> = LazyLock::new(|| {
    fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
        let found = posteriors::find(spec.name()).expect("it is in the list");
        Ok(Box::new(found.build()))
    }
    let entry = |info: &posteriors::PosteriorInfo| ModelInfo {
        name: info.name,
        title: info.description,
        formula: "posterior on raw scales; see experiments/posteriors",
        reference: "",
        options: &[],
        single: build,
        double: build,
    };
    posteriors::all().iter().map(entry).collect()
});

steinflow::settings! {
    /// A model by name, with its options; an option that the model does not take is an error.
    pub struct ModelSpec {
        "Model" {
            /// What to sample from: a name of `steinflow models`, a Stan program FILE.stan, or one that BridgeStan
            /// has compiled [default: tri-crescent].
            model: String as "MODEL",
            /// Dimension of a model that comes in any.
            dim: usize as "D",
            /// Largest over smallest variance of the model gaussian with a chosen dim.
            condition: f64 as "KAPPA",
            /// Your own log density up to a constant, a formula with names as coordinates: `-(x^2)/2 - abs(y)`, with
            /// + - * / ^, brackets, and exp, log, sqrt, abs, sin, cos, tanh, erf, lgamma, logistic, logaddexp(a,
            /// b) and the like.
            density: String as "FORMULA",
            /// What coordinates of the formula lie between, separated by commas: `x>0, 0<p<1`.
            support: Vec<String> as "LIMITS",
            /// A Stan program, or a library that BridgeStan has made of one; naming it in place of a model is
            /// the same.
            program: PathBuf as "FILE",
            /// Data of a regression or network: a CSV file with a header row (may be gzipped), a Parquet
            /// file, or a name of `steinflow data list` [default for bnn: penguins]; of a Stan program, JSON.
            data: PathBuf as "FILE",
            /// Where to look for data sets by name, before $STEINFLOW_DATA and the cache.
            data_dir: PathBuf as "DIR",
            /// Column of the data to predict [default: the last].
            target: String as "COLUMN",
            /// Target, features, categories and products in one: `price ~ area + C(district) + area:age`, `a*b` for
            /// a + b + a:b, `.` for all columns, `- x` for all but x.
            formula: String as "FORMULA",
            /// Columns to predict from, separated by commas [default: all others that say something].
            features: Vec<String> as "COLUMNS",
            /// Columns to leave out, separated by commas.
            drop: Vec<String> as "COLUMNS",
            /// Columns of numbers that are names of categories, separated by commas [default: text alone].
            categorical: Vec<String> as "COLUMNS",
            /// Classes of the target in their order, separated by commas, as `low,medium,high` [default: that of
            /// numbers or the alphabet].
            order: Vec<String> as "CLASSES",
            /// What to do about rows with empty cells: `drop` them, put the column's `mean` (or most
            /// frequent level) there, or `error` [default: drop].
            missing: String as "RULE",
            /// How many rows back the target's own past is among the features, in a table whose rows stand in the order of
            /// time: an autoregression of that order [default: 0].
            lags: usize as "P",
            /// Components of a mixture [default: 2].
            components: usize as "K",
            /// Prior standard deviation of regression coefficients, for standardised columns
            /// [default: 2.5].
            prior_sd: f64 as "SD",
            /// Prior of regression coefficients: `normal`, or `horseshoe`, by which most are near 0 and few
            /// are large [default: normal].
            prior: String as "NAME",
            /// Known noise of linear regression, in units of the target [default: learned].
            noise_sd: f64 as "SD",
            /// Column with the known noise of every row of linear regression, in units of the target, as
            /// the standard error of what a study found.
            noise_column: String as "COLUMN",
            /// Columns that say which group a row belongs to, separated by commas: every group has an
            /// intercept of its own, from a normal distribution whose standard deviation is learned.
            groups: Vec<String> as "COLUMNS",
            /// Features whose slopes differ from group to group too, separated by commas.
            slopes: Vec<String> as "COLUMNS",
            /// Column that is added to the linear predictor of counts: the logarithm of an exposure.
            offset: String as "COLUMN",
            /// Column that is 1 where the event was seen at the time that is the target, and 0 where it was not seen
            /// until then [default: seen in every row].
            event: String as "COLUMN",
            /// Units of a network's hidden layers, separated by commas [default: 50].
            hidden: Vec<usize> as "UNITS",
            /// Activation of a network's hidden layers: relu or tanh [default: relu].
            activation: String as "NAME",
            /// Whether a network's hidden layers add what they are given, wherever two in a row are equally wide
            /// [default: false].
            residual: bool as "true|false",
            /// Noise of a network: the `same` for all rows, or by a second output one that depends on the `input`
            /// [default: same].
            noise: String as "KIND",
            /// Fixes the noise precision γ of a network, in standard units [default: learned].
            noise_precision: f64 as "GAMMA",
            /// Rate of the Gamma(1, rate) prior of a network's noise precision γ, in standard units; a
            /// smaller one lets a network believe in targets with little noise [default: 0.1].
            noise_rate: f64 as "RATE",
            /// Fixes the precision λ of a network's weights [default: learned].
            weight_precision: f64 as "LAMBDA",
            /// Part of the rows that a network does not train on but is judged by [default: 0.1].
            test_fraction: f64 as "PART",
            /// Seed by which those rows are drawn [default: the run's].
            split_seed: u64 as "SEED",
            /// Number of a standard split of a named data set, or of a line of the split file, from 0.
            split: usize as "K",
            /// File of splits: a line each, the numbers of the test rows from 0, separated by spaces.
            split_file: PathBuf as "FILE",
        }
    }
}

impl ModelSpec {
    /// The model of this name, with no option set.
    pub fn named(name: &str) -> Self {
        let mut spec = Self { model: Some(name.to_owned()), ..Self::default() };
        spec.name_by_what_is_given();
        spec
    }

    /// A formula or a Stan program needs no other name.
    pub fn name_by_what_is_given(&mut self) {
        if let Some(program) = self.model.take_if(|name| stan::is_program(name)) {
            self.program.get_or_insert_with(|| program.into());
        }
        if self.model.is_none() && self.program.is_some() {
            self.model = Some(stan::STAN.to_owned());
        }
        if self.model.is_none() && self.density.is_some() {
            self.model = Some(density::DENSITY.to_owned());
        }
    }

    /// What the model is called among others: a Stan program by its file.
    pub fn title(&self) -> &str {
        let program = self.program.as_deref().and_then(Path::file_stem);
        program.and_then(OsStr::to_str).unwrap_or_else(|| self.name())
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Its entry in the catalogue; options that it does not take are refused by name.
    pub fn info(&self) -> Result<&'static ModelInfo> {
        let name = self.name();
        let all = || catalogue().iter().chain(&*POSTERIORS);
        let known = || all().map(|info| info.name);
        let info = all().find(|info| info.name == name);
        let info = info.ok_or_else(|| steinflow::Error::unknown("model", name, known()))?;
        for (option, value) in self.given() {
            if option.name != "model" && !info.takes(option.name) {
                return Err(self.not_taken(option.name, value, info.instead_of(option.name)));
            }
        }
        if let Some(dim) = self.dim
            && (dim == 0 || dim > MAX_DIM)
        {
            let remedy = format!("give a number of coordinates from 1 to {MAX_DIM}");
            return Err(steinflow::Error::setting("dim", dim, remedy).into());
        }
        Ok(info)
    }

    pub(crate) fn not_taken(
        &self,
        option: &str,
        value: impl Display,
        remedy: impl Into<String>,
    ) -> Error {
        Error::OptionNotTaken {
            option: option.replace('_', "-"),
            value: value.to_string(),
            model: self.name().to_owned(),
            remedy: remedy.into(),
        }
    }

    /// The table that `data` means, and the data set's name if it is one.
    pub(crate) fn read_table(
        &self,
        default: Option<&str>,
    ) -> Result<(Table, Option<&'static str>)> {
        let Some(given) = self.data.as_deref().or(default.map(Path::new)) else {
            return Err(Error::DataRequired { model: self.name().to_owned() });
        };
        read_table(given, self.data_dir.as_deref(), &Choices::of(self)?)
    }
}

/// Builds the model that `spec` describes.
///
/// ```
/// use steinflow_models::{ModelSpec, build};
///
/// let spec = ModelSpec { dim: Some(5), ..ModelSpec::named("gaussian") };
/// assert_eq!(build::<f32>(&spec)?.dim(), 5);
///
/// let Err(error) = build::<f64>(&ModelSpec::named("gausian")) else { panic!("no such model") };
/// assert!(error.to_string().contains("did you mean `gaussian`?"));
/// # Ok::<(), steinflow_models::Error>(())
/// ```
pub fn build<T: Real>(spec: &ModelSpec) -> Result<Box<dyn Model<T>>> {
    let info = spec.info()?;
    // T is one of the two.
    let builders: [&dyn Any; 2] = [&info.single, &info.double];
    let build = builders.iter().find_map(|build| build.downcast_ref::<Build<T>>());
    build.expect("a model has a builder for each precision")(spec)
}
