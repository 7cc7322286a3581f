//! What can be wrong with a train/test split: every error says where, what was found and what to do.

use std::path::PathBuf;

/// A split that cannot be used. Lines are counted from 1, rows from 0 as in the files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The file cannot be opened or read, or is not text.
    #[error(
        "cannot read the splits {}: {source}; give a text file (or one compressed with gzip) with a \
         line of test rows for every split", .file.display()
    )]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system or the decoder said.
        source: std::io::Error,
    },

    /// A text that goes on for too long.
    #[error(
        "the splits {} are more than {} MiB of text: a split is a line of row numbers; check the file",
        .file.display(), .limit >> 20
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The most bytes that are read.
        limit: u64,
    },

    /// A word that is not a row number.
    #[error(
        "{}, line {line}: `{text}` is not a row number: separate whole numbers from 0 on by spaces",
        .file.display()
    )]
    NotARow {
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
        /// What stands there.
        text: String,
    },

    /// A split that the file does not have.
    #[error(
        "split {index} does not exist: {what} has {count} splits, counted from 0", what = .what
    )]
    NoSuchSplit {
        /// The file or the data set.
        what: String,
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },

    /// A row that the table does not have.
    #[error(
        "the split names row {row}, but the table has {rows} rows, counted from 0: take the splits \
         that were made for this table"
    )]
    OutOfRange {
        /// The row.
        row: usize,
        /// Rows in the table.
        rows: usize,
    },

    /// A test row named twice.
    #[error("the split names test row {row} twice: name every row once")]
    Duplicate {
        /// The row.
        row: usize,
    },

    /// No training rows or no test rows.
    #[error(
        "the split leaves {train} training rows and {test} test rows out of {}: both parts need at \
         least 1", train + test
    )]
    EmptyPart {
        /// Rows to train on.
        train: usize,
        /// Rows to test on.
        test: usize,
    },

    /// A table of another length than the split was made for.
    #[error(
        "the split is one of {expected} rows, but the table has {found}: make it for this table"
    )]
    OtherTable {
        /// Rows that the split was made for.
        expected: usize,
        /// Rows in the table.
        found: usize,
    },
}
