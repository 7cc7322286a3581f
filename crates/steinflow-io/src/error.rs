//! What can go wrong when a run is written or read: every error names the path and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

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

    /// What stands at the path is not a folder, so it is never deleted.
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

    /// The folder at the path holds something that no run is known to have written.
    #[error(
        "folder `{}` holds `{}`, which its list of a run's files (`.steinflow-run`) does not name, so \
         --force will not replace it: move `{}` away or choose another --out",
        .path.display(), .entry.display(), .entry.display()
    )]
    ForeignEntry {
        /// The folder.
        path: PathBuf,
        /// The first such file or folder, relative to `path`.
        entry: PathBuf,
    },

    /// The file is already there.
    #[error("`{}` exists: pass --force to replace it or choose another --out", .path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
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
    #[error("cannot {action} `{}`: {source}; {}", .path.display(), remedy(.source))]
    Io {
        /// What was tried: `create folder`, `write`, …
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// A file of a run could not be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },

    /// A writer refused; for a file of a run this is [`Error::Io`], which names the file.
    #[error("{0}; check that the disk is not full")]
    Write(#[from] io::Error),

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

    /// The Parquet encoder failed; a writer that refused is [`Error::Write`].
    #[error("the Parquet encoder failed: {0}")]
    Parquet(ParquetError),

    /// A value that JSON cannot hold; a writer that refused is [`Error::Write`].
    #[error("cannot write JSON: {0}")]
    Json(serde_json::Error),

    /// A journal that another process is writing.
    #[error("`{}` is in use by another process: wait for it, or choose another --out", .path.display())]
    JournalInUse {
        /// The journal.
        path: PathBuf,
    },

    /// A journal that was begun with other settings.
    #[error(
        "`{}` holds results of other settings or of another version: remove it to begin anew, or \
         choose another --out",
        .path.display()
    )]
    OtherJournal {
        /// The journal.
        path: PathBuf,
    },

    /// A file that is in the way of a journal.
    #[error(
        "`{}` is not a journal, and stays as it is: move it away or choose another --out",
        .path.display()
    )]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },

    /// A line of a journal that is not a result.
    #[error(
        "line {line} of `{}` cannot be read ({reason}): remove that line to run its job again",
        .path.display()
    )]
    JournalDamaged {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// A checkpoint whose bytes are not those that were written.
    #[error("the checkpoint `{}` cannot be used: it {reason}", .path.display())]
    CheckpointDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong; completes "it …".
        reason: String,
    },

    /// Another process is at work on the run.
    #[error(
        "another process is writing the run `{}`: wait for it, or choose another --out",
        .path.display()
    )]
    RunInUse {
        /// The run's folder.
        path: PathBuf,
    },

    /// A folder that there is nothing to say of.
    #[error("`{}` {found}: give the folder of a finished `steinflow sample`", .path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is there; completes "it …".
        found: String,
    },

    /// A file of a finished run that is not as the run has left it.
    #[error(
        "{} cannot be used: {reason}; make the run again with its config.toml", .path.display()
    )]
    RunDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// What stands where an unfinished run would be is not one, so it is never touched.
    #[error(
        "`{}` is {found}, not what an unfinished run has left here: move it away or choose another --out",
        .path.display()
    )]
    NotUnfinished {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },

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
            | Self::ForeignEntry { .. }
            | Self::FileExists { .. }
            | Self::BadPath { .. }
            | Self::Table { .. }
            | Self::JournalInUse { .. }
            | Self::RunInUse { .. }
            | Self::OtherJournal { .. }
            | Self::NotARun { .. }
            | Self::NotUnfinished { .. }
            | Self::NotAJournal { .. }
            | Self::Plot { .. } => true,
            Self::File { source, .. } => source.is_usage(),
            _ => false,
        }
    }

    /// Names the action and the path of a system error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// Names the file in whose content an error came up.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Write(source) => Self::io("write", path)(source),
            other => Self::File { path: path.to_path_buf(), source: Box::new(other) },
        }
    }
}

/// What helps against a refusal of the file system.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose another --out"
        }
        io::ErrorKind::FileTooLarge => {
            "files may not be as large as that here (`ulimit -f`): raise the limit, or write less"
        }
        _ => "check that the path exists and is writable, or choose another --out",
    }
}

// The encoders wrap what a writer says, and their own words around it hide what happened.

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => Self::Write(*source),
                Err(source) => Self::Parquet(ParquetError::External(source)),
            },
            other => Self::Parquet(other),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { Self::Write(error.into()) } else { Self::Json(error) }
    }
}
