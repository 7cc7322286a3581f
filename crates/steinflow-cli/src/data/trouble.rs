//! Why a data set could not be fetched, and what to do instead.

use std::path::PathBuf;

/// A data set that no source gave.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "cannot fetch `{name}`:{}\ndownload it by hand from {by_hand} and run `steinflow data fetch {name} \
         --from FILE`, or put {file} in {} yourself",
        list(.tries), .folder.display()
    )]
    Unfetched {
        name: &'static str,
        tries: Vec<(String, Trouble)>,
        by_hand: String,
        file: String,
        folder: PathBuf,
    },
    #[error(
        "--from {from}: there is no such file; give a file that is here, or an address with https://"
    )]
    FileMissing { from: String },
    #[error("there is no folder to keep data in: give one with --data-dir DIR, or set HOME")]
    NoFolder,
}

impl FetchError {
    /// Whether the request itself is at fault.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Unfetched { .. })
    }
}

/// A line for every source.
fn list(tries: &[(String, Trouble)]) -> String {
    let lines: Vec<String> =
        tries.iter().map(|(from, trouble)| format!("\n  {from}: {trouble}")).collect();
    lines.concat()
}

/// What one source had.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("no connection ({0})")]
    NoConnection(String),
    #[error("the connection broke off ({0}); run the command again to go on from there")]
    BrokeOff(String),
    #[error("the server answers {0}")]
    Status(u16),
    #[error("it is larger than {} MiB, the most that this data set can be", .0 >> 20)]
    TooLarge(u64),
    #[error("its SHA-256 is {found}, expected {expected}")]
    OtherBytes { found: String, expected: &'static str },
    #[error("it cannot be unpacked ({0})")]
    Damaged(String),
    #[error("the archive holds no `{member}`, only {found}")]
    NoMember { member: String, found: String },
    #[error("it is called .xlsx and is no Excel file: {0}")]
    NotExcel(String),
    #[error("it is an old Excel file (.xls): save it as .xlsx or CSV")]
    OldExcel,
    #[error("line {line}: `{text}` is not a number")]
    NotANumber { line: usize, text: String },
    #[error("it has {found} numbers in {place}, expected {expected}")]
    Ragged { place: String, found: usize, expected: usize },
    #[error("it has no line `@data`")]
    NoData,
    #[error("{}", .0.join("; "))]
    OtherContent(Vec<String>),
    #[error("cannot write {} ({source})", .file.display())]
    Write { file: PathBuf, source: std::io::Error },
    #[error("cannot read {} ({source})", .file.display())]
    Read { file: PathBuf, source: std::io::Error },
}
