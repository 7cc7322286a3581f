//! What can go wrong when a run is written or read: every error names the path and the remedy.

use std::path::{Path, PathBuf};

/// Result of anything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run folder is already there.
    #[error(
        "folder `{}` exists: pass --force to replace it or choose another --out",
        .path.display()
    )]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },

    /// What stands at the path is not a run folder, so it is never deleted.
    #[error(
        "`{}` is {found}, not a run folder: --force will not replace it, choose another --out",
        .path.display()
    )]
    NotARunFolder {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },

    /// A path that cannot name a run folder or a file inside one.
    #[error("`{}` cannot be used: {remedy}", .path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
        /// What to give instead.
        remedy: &'static str,
    },

    /// All results are written, but the folder could not be moved to its place.
    #[error(
        "results could not be moved to `{}` ({reason}): they are complete in `{}`, move them by hand",
        .path.display(), .kept.display()
    )]
    NotMoved {
        /// Where the folder should be.
        path: PathBuf,
        /// Where it is.
        kept: PathBuf,
        /// What prevented the move.
        reason: String,
    },

    /// The file system refused.
    #[error("cannot {action} `{}`: {source}; check that the path exists and is writable", .path.display())]
    Io {
        /// What was tried: `create folder`, `write`, …
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },

    /// A file of a run could not be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },

    /// A writer refused; [`Error::File`] around it names the file.
    #[error("{0}; check that the disk is not full")]
    Write(#[from] std::io::Error),

    /// Columns that do not make a table.
    #[error("these columns do not make a table: {reason}")]
    Table {
        /// Which column, and what is wrong with it.
        reason: String,
    },

    /// A Parquet file that cannot be read.
    #[error(
        "cannot read `{}` as a Parquet table of numbers: {reason}; write it again, or give another file",
        .path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was found in it.
        reason: String,
    },

    /// The Parquet encoder failed, most often because the file system is full.
    #[error("the Parquet encoder failed: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),

    /// A value that JSON cannot hold, or a file that cannot be written.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),

    /// An argument of a plot that does not fit the others.
    #[error("cannot draw the plot: {what} is {found}, expected {expected}")]
    Plot {
        /// Which argument.
        what: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },

    /// The PNG encoder failed.
    #[error("cannot encode the PNG: {0}; the SVG of the same figure does not need this step")]
    Png(String),
}

impl Error {
    /// Whether another request would succeed (another path, `--force`), rather than another disk.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::FolderExists { .. }
            | Self::NotARunFolder { .. }
            | Self::BadPath { .. }
            | Self::Table { .. }
            | Self::Plot { .. } => true,
            Self::File { source, .. } => source.is_usage(),
            _ => false,
        }
    }

    /// Names the action and the path of a system error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
