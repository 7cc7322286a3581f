//! What the command reports, and the exit code that goes with it.

use std::path::PathBuf;

use crate::data::FetchError;

/// Anything that ends the command early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Library(#[from] steinflow::Error),
    #[error(transparent)]
    Model(#[from] steinflow_models::Error),
    #[error(transparent)]
    Output(#[from] steinflow_io::Error),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A setting that the chosen method or model does not have.
    #[error("--{option} does not fit {what}: {remedy}")]
    DoesNotFit { option: &'static str, what: String, remedy: String },
    #[error("cannot read the config {}: {source}; check --config", path.display())]
    ConfigUnreadable { path: PathBuf, source: std::io::Error },
    #[error("the config {} is not right: {message}", path.display())]
    ConfigWrong { path: PathBuf, message: String },
    /// A folder that cannot predict.
    #[error("{} {found}: give the folder of a finished `steinflow sample bnn`", path.display())]
    NotANetworkRun { path: PathBuf, found: String },
    #[error(
        "{} cannot be used: {message}; make the run again with its config.toml", path.display()
    )]
    RunDamaged { path: PathBuf, message: String },
    #[error("cannot start {count} threads: {message}")]
    Threads { count: usize, message: String },
    #[error("cannot write to the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

impl Error {
    /// Exit code of a request that cannot be carried out as written.
    pub const USAGE: u8 = 2;
    /// Exit code of a run that failed.
    pub const FAILURE: u8 = 1;
    /// Exit code of a run that was interrupted, by custom 128 + SIGINT.
    pub const INTERRUPTED: u8 = 130;

    /// Whether the request itself is at fault.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Library(error) => error.is_usage(),
            Self::Model(error) => error.is_usage(),
            Self::Output(error) => error.is_usage(),
            Self::Fetch(error) => error.is_usage(),
            Self::DoesNotFit { .. }
            | Self::ConfigUnreadable { .. }
            | Self::ConfigWrong { .. }
            | Self::NotANetworkRun { .. }
            | Self::Threads { .. } => true,
            Self::RunDamaged { .. } | Self::Terminal(_) => false,
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
