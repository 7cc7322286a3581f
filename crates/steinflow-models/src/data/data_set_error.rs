//! What can be wrong with a named data set: not here, or not what its name says.

use std::path::PathBuf;

/// A named data set that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataSetError {
    /// No file of that name in any folder.
    #[error(
        "the data set `{name}` is not here (looked for {} in {}): run `steinflow data fetch {name}`, \
         or set STEINFLOW_DATA to a folder that holds it",
        .files.join(" or "), list(.folders)
    )]
    NotFound {
        /// The data set.
        name: &'static str,
        /// The names looked for.
        files: Vec<String>,
        /// Where.
        folders: Vec<PathBuf>,
    },

    /// A file of other columns.
    #[error(
        "{} is not the data set `{name}`: its columns are {}, expected {}; {REMEDY}",
        .file.display(), .found.join(","), .expected.join(",")
    )]
    OtherColumns {
        /// The data set.
        name: &'static str,
        /// The file.
        file: PathBuf,
        /// Its columns.
        found: Vec<String>,
        /// Those of the data set.
        expected: Vec<String>,
    },

    /// A file of another length.
    #[error("{} is not the data set `{name}`: it has {found} rows, expected {expected}; {REMEDY}", .file.display())]
    OtherRows {
        /// The data set.
        name: &'static str,
        /// The file.
        file: PathBuf,
        /// Its rows.
        found: usize,
        /// Those of the data set.
        expected: usize,
    },

    /// A file of other numbers, or of the same in another order.
    #[error(
        "{} is not the data set `{name}`, or its rows are in another order: the SHA-256 of {what} is \
         {found}, expected {expected}; {REMEDY}", .file.display()
    )]
    OtherContent {
        /// The data set.
        name: &'static str,
        /// The file.
        file: PathBuf,
        /// What the fingerprint is of: `its numbers` or `the file`.
        what: &'static str,
        /// Its fingerprint.
        found: String,
        /// That of the data set.
        expected: &'static str,
    },
}

const REMEDY: &str = "fetch it again with `steinflow data fetch NAME --force`, or give this file with \
                      `--data FILE`, under no benchmark's name";

fn list(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "no folder: none is given and there is no home".to_owned();
    }
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    names.join(", ")
}
