//! What can be wrong with a request for a model: every error names the value and the remedy.

use std::path::PathBuf;

use crate::data::{DataSetError, SplitError, TableError};

/// Result of anything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting, name or shape that the library rejects.
    #[error(transparent)]
    Steinflow(#[from] steinflow::Error),

    /// A data file that cannot be used.
    #[error(transparent)]
    Table(#[from] TableError),

    /// A train/test split that cannot be used.
    #[error(transparent)]
    Split(#[from] SplitError),

    /// A named data set that is not here, or is not what its name says.
    #[error(transparent)]
    DataSet(#[from] DataSetError),

    /// A model that needs data was asked for without.
    #[error("the model `{model}` needs data: give a CSV file with a header row (`--data FILE`)")]
    DataRequired {
        /// The model.
        model: String,
    },

    /// A formula that cannot be read.
    #[error("the {what} cannot be read: {message}\n  {text}\n  {}^", " ".repeat(*.place))]
    Formula {
        /// `density` or `formula`.
        what: &'static str,
        /// It.
        text: String,
        /// Where in it, in characters.
        place: usize,
        /// What is wrong there.
        message: String,
    },

    /// A Stan program or library that cannot be used.
    #[error("{}: {message}", .path.display())]
    Stan {
        /// The program, or its library.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },

    /// An option that the model has no use for.
    #[error("{option} is {value}, but the model `{model}` takes no {option}: {remedy}")]
    OptionNotTaken {
        /// The option's name.
        option: String,
        /// What it was set to.
        value: String,
        /// The model.
        model: String,
        /// What to do.
        remedy: String,
    },

    /// A covariance or precision that is not symmetric.
    #[error(
        "the {what} is not symmetric: entry ({row}, {column}) is {value} and entry ({column}, \
         {row}) is {mirror}; give both the same value"
    )]
    NotSymmetric {
        /// `covariance` or `precision`.
        what: &'static str,
        /// Row of the first entry that differs from its mirror image.
        row: usize,
        /// Its column.
        column: usize,
        /// The entry.
        value: f64,
        /// Its mirror image.
        mirror: f64,
    },

    /// A covariance or precision with a direction of no or negative variance.
    #[error(
        "the {what} is not positive definite: the variance of coordinate {coordinate}, given the \
         ones before it, is {value}; make its correlations smaller or its diagonal larger"
    )]
    NotPositiveDefinite {
        /// `covariance` or `precision`.
        what: &'static str,
        /// The first coordinate at which the factorisation fails.
        coordinate: usize,
        /// The pivot found there.
        value: f64,
    },
}

impl Error {
    /// A wrong request, as opposed to a run that failed while it was under way.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Steinflow(error) => error.is_usage(),
            _ => true,
        }
    }
}
