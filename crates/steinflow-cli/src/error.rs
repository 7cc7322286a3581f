//! What the command reports, and the exit code that goes with it.

use std::path::PathBuf;

use crate::data::FetchError;
use crate::memory::show;

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
    #[error(transparent)]
    Config(#[from] steinflow_config::Error),
    /// A folder that cannot predict.
    #[error("{} {found}: give the folder of a finished `steinflow sample bnn`", path.display())]
    NotANetworkRun { path: PathBuf, found: String },
    /// A port that cannot be listened on.
    #[error(
        "cannot show the run on port {port}: {source}; choose another with --live PORT, or take any \
         that is free with --live alone"
    )]
    Live { port: u16, source: std::io::Error },
    /// A run that the machine has no room for.
    #[error(
        "the run needs about {} of memory, and {} are free: take fewer particles, --precision f32, \
         or collect fewer samples", show(*needed), show(*free)
    )]
    TooLarge { needed: u64, free: u64 },
    /// A new run where an unfinished one is.
    #[error(
        "`{}` was not finished: go on with `steinflow resume {}`, pass --force to begin anew, or \
         choose another --out", run.display(), run.display()
    )]
    Unfinished { run: PathBuf },
    #[error("there is no run at {} to go on with: {found}", run.display())]
    NothingToResume { run: PathBuf, found: String },
    /// A run that cannot be continued under settings that are not its own.
    #[error(
        "{} was begun with other settings:\n  {}\ntake those again, or pass --branch NEWFOLDER to go on \
         from step {step} with these", run.display(), changes.join("\n  ")
    )]
    Changed { run: PathBuf, step: u64, changes: Vec<String> },
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
            Self::Config(error) => error.is_usage(),
            Self::NotANetworkRun { .. }
            | Self::Live { .. }
            | Self::TooLarge { .. }
            | Self::Unfinished { .. }
            | Self::NothingToResume { .. }
            | Self::Changed { .. }
            | Self::Threads { .. } => true,
            Self::Terminal(_) => false,
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
