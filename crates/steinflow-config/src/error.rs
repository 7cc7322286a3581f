//! What is wrong with a request: every error names the setting and the remedy.

use std::path::PathBuf;

use crate::Settings;

/// Result of anything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a run's description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting, name or shape that the library rejects.
    #[error(transparent)]
    Library(#[from] steinflow::Error),
    /// A model that cannot be built.
    #[error(transparent)]
    Model(#[from] steinflow_models::Error),
    /// A setting that the chosen method or model does not have, or that excludes another.
    #[error("--{option} does not fit {what}: {remedy}")]
    DoesNotFit {
        /// The setting.
        option: String,
        /// What it does not go with.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A config that cannot be read.
    #[error("cannot read the config {}: {source}; check --config", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A config that says something wrong.
    #[error("the config {} is not right: {message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

impl Error {
    /// A setting that does not go with something, and what to do.
    pub fn does_not_fit(option: &str, what: impl Into<String>, remedy: &str) -> Self {
        let option = option.replace('_', "-");
        Self::DoesNotFit { option, what: what.into(), remedy: remedy.to_owned() }
    }

    /// A wrong request, as opposed to a run that failed while it was under way.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Library(error) => error.is_usage(),
            Self::Model(error) => error.is_usage(),
            Self::DoesNotFit { .. } | Self::Unreadable { .. } | Self::Wrong { .. } => true,
        }
    }
}

/// A message with the names of settings as Python writes them: `collect_from` for `--collect-from`.
pub fn in_python(message: &str) -> String {
    let mut message = message.to_owned();
    for setting in Settings::table() {
        let flag = setting.flag();
        message = message.replace(&format!("--{flag}"), setting.name);
        if flag.contains('-') {
            message = message.replace(&flag, setting.name);
        }
    }
    message
}
