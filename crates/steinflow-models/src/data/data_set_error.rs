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

    /// A file that is something else.
    #[error(
        "{} is not the data set `{name}`: {difference}; fetch it again with `steinflow data fetch {name} \
         --force`, or give this file with `--data FILE`, under no benchmark's name", .file.display()
    )]
    Other {
        /// The data set.
        name: &'static str,
        /// The file.
        file: PathBuf,
        /// By what it is told.
        difference: Difference,
    },
}

/// By what a table is told from a data set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// Other columns.
    #[error("its columns are {}, expected {}", .found.join(","), .expected.join(","))]
    Columns {
        /// Those of the table.
        found: Vec<String>,
        /// Those of the data set.
        expected: Vec<String>,
    },

    /// Another number of rows.
    #[error("it has {found} rows, expected {expected}")]
    Rows {
        /// That of the table.
        found: usize,
        /// That of the data set.
        expected: usize,
    },

    /// Other numbers, or the same in another order.
    #[error(
        "the SHA-256 of {what} is {found}, expected {expected}: a number differs, or the order of rows"
    )]
    Content {
        /// What the fingerprint is of: `its numbers` or `the file`.
        what: &'static str,
        /// The fingerprint of the table.
        found: String,
        /// That of the data set.
        expected: &'static str,
    },
}

fn list(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "no folder: none is given and there is no home".to_owned();
    }
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    names.join(", ")
}
