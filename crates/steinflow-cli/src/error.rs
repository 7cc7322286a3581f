//! What the command reports, and the exit code that goes with it.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::data::FetchError;

use steinflow_models::memory::show;

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
    #[error("{} {found}: give the folder of a finished run on a regression or on bnn", path.display())]
    CannotPredict { path: PathBuf, found: String },
    /// Runs of which one says nothing about the other.
    #[error(
        "{} and {} cannot be compared: {difference}; fit both to the same rows of the same target (for bnn, with \
         --test-fraction 0)", a.display(), b.display()
    )]
    NotComparable { a: PathBuf, b: PathBuf, difference: String },
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
    /// A table that the machine has no room for.
    #[error(
        "`{}` needs about {} of memory, and {} are free: give fewer rows or columns", path.display(),
        show(*needed), show(*free)
    )]
    TableTooLarge { path: PathBuf, needed: u64, free: u64 },
    /// Files that have changed since they were written.
    #[error("{count} files are not as they were written: make their runs again, or take a copy")]
    NotVerified { count: usize },
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
    /// Jobs of an experiment that ended without a result, not even an error of their own.
    #[error(
        "{count} jobs failed, the first of them `{first}`: {message}. The others are kept, and the same command tries \
         these again"
    )]
    Jobs { count: usize, first: String, message: String },
    /// Of a process that helps another one, which has ended the command.
    #[error("rank 0 has ended the command")]
    Dismissed,
    #[error("cannot write to the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

impl Error {
    /// Exit code of a request that cannot be carried out as written.
    pub const USAGE: u8 = 2;
    /// Exit code of a run that failed.
    pub const FAILURE: u8 = 1;
    /// Exit code of a run whose verdict is worse than what was required.
    pub const DOUBTED: u8 = 3;
    /// Exit code of a run that was interrupted, by custom 128 + SIGINT.
    pub const INTERRUPTED: u8 = 130;

    /// Whether nobody reads what the command says.
    pub fn is_broken_pipe(&self) -> bool {
        let (Self::Terminal(error) | Self::Output(steinflow_io::Error::Write(error))) = self else {
            return false;
        };
        error.kind() == ErrorKind::BrokenPipe
    }

    /// Whether the request itself is at fault.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Library(error) => error.is_usage(),
            Self::Model(error) => error.is_usage(),
            Self::Output(error) => error.is_usage(),
            Self::Fetch(error) => error.is_usage(),
            Self::Config(error) => error.is_usage(),
            Self::CannotPredict { .. }
            | Self::NotComparable { .. }
            | Self::Live { .. }
            | Self::TooLarge { .. }
            | Self::TableTooLarge { .. }
            | Self::Unfinished { .. }
            | Self::NothingToResume { .. }
            | Self::Changed { .. }
            | Self::Threads { .. } => true,
            Self::NotVerified { .. } | Self::Jobs { .. } | Self::Dismissed | Self::Terminal(_) => {
                false
            }
        }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A message without the middle of what is long in it: a value in backticks, or a word.
pub fn shortened(message: &str) -> String {
    let quoted = message.split('`').map(|part| cut(part, MOST_QUOTED));
    let words = quoted.collect::<Vec<_>>().join("`");
    let words: Vec<String> = words.split(' ').map(|word| cut(word, MOST_QUOTED)).collect();
    words.join(" ")
}

/// Characters of a value or a word in a message; paths are rarely longer.
const MOST_QUOTED: usize = 400;

fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 4).collect();
    let tail: String = text.chars().skip(count - most / 8).collect();
    format!("{head}… ({count} characters) …{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened_in_messages() {
        let usual = "method is `svgd`, but this model has none: take `ld`";
        assert_eq!(shortened(usual), usual);
        let long = "né ".repeat(10_000);
        let message = shortened(&format!("model `{long}` is unknown: take `ld`"));
        assert!(message.len() < 600 && message.contains("(30000 characters)"), "{message}");
        assert!(message.starts_with("model `né né") && message.ends_with("is unknown: take `ld`"));
        assert!(shortened(&"x".repeat(100_000)).len() < 600);
    }
}
