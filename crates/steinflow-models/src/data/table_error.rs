//! What can be wrong with a data file: every error says where, what was found and what to do.

use std::path::PathBuf;

/// A CSV file that cannot be used as regression data. Lines are counted from 1, the header's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}; check the path and its permissions", .file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// A directory instead of a file.
    #[error("{} is a directory: give a CSV or Parquet file", .file.display())]
    Directory {
        /// The directory.
        file: PathBuf,
    },

    /// The bytes cannot be read, or are no text.
    #[error("cannot read {}: {source}; save the table as CSV in UTF-8", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the reader said.
        source: std::io::Error,
    },

    /// More than is read from one file, which protects from compressed files without an end.
    #[error(
        "{} holds more than {limit} {unit}, the most that is read: take fewer rows or columns",
        .file.display()
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The most that is read.
        limit: u64,
        /// Of what: `MiB of text`, `cells` or `columns`.
        unit: &'static str,
    },

    /// An empty file, or a first line of numbers.
    #[error(
        "{} has no header row (found {found}): give every column a name on line 1", .file.display()
    )]
    NoHeader {
        /// The file.
        file: PathBuf,
        /// What stands in its place.
        found: String,
    },

    /// A column without a name.
    #[error("{}, line 1: column {position} has no name: give it one", .file.display())]
    UnnamedColumn {
        /// The file.
        file: PathBuf,
        /// The column's position, counted from 1.
        position: usize,
    },

    /// Two columns of one name, or one with the name of the intercept.
    #[error("{}, line 1: the name `{column}` is already taken: rename the column", .file.display())]
    DuplicateColumn {
        /// The file.
        file: PathBuf,
        /// The name.
        column: String,
    },

    /// A header and nothing below it.
    #[error("{} has a header but no rows of data: add at least 1 row", .file.display())]
    NoRows {
        /// The file.
        file: PathBuf,
    },

    /// A row with more or fewer cells than the header.
    #[error(
        "{}, line {line}: {found} cells where the header has {expected}: check for missing or extra \
         separators", .file.display()
    )]
    RaggedRow {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// Cells on the line.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },

    /// An empty cell.
    #[error(
        "{}, line {line}, column `{column}`: the cell is empty: fill it in, leave such rows out (`--missing \
         drop`) or put the mean there (`--missing mean`)",
        .file.display()
    )]
    MissingCell {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
    },

    /// A cell that is not a number.
    #[error(
        "{}, line {line}, column `{column}`: `{text}` is not a number, as most of the column: correct it, \
         leave the cell empty, or say what the column is with `--categorical {column}` or `--drop {column}`",
        .file.display()
    )]
    NotANumber {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// What the cell holds.
        text: String,
    },

    /// A cell that is not what the other cells of its column are.
    #[error(
        "{}, line {line}, column `{column}`: `{text}` is not {expected}, as the rest of the column: correct it or \
         remove the row",
        .file.display()
    )]
    NotAsTheRest {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// What the cell holds.
        text: String,
        /// What it should be.
        expected: &'static str,
    },

    /// A level of a category that the training data did not have.
    #[error(
        "{}, line {line}, column `{column}`: `{text}` is a level that the model has not seen: correct it or \
         remove the row (known: {})", .file.display(), .levels.join(", ")
    )]
    UnknownLevel {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// The level.
        text: String,
        /// Those of the training data.
        levels: Vec<String>,
    },

    /// No row without an empty cell.
    #[error(
        "{}: every row has an empty cell: leave columns out (`--drop COLUMN`), or put the mean there \
         (`--missing mean`)", .file.display()
    )]
    NoWholeRows {
        /// The file.
        file: PathBuf,
    },

    /// The past of a target that is no number.
    #[error(
        "{}: lags are of numbers, and the target `{column}` is none: leave --lags out, or name another target",
        .file.display()
    )]
    LagsOfWords {
        /// The file.
        file: PathBuf,
        /// The target.
        column: String,
    },

    /// No row has as many before it.
    #[error(
        "{}: no row has {lags} whole rows before it: give fewer --lags; a file to predict for needs the rows before, \
         with their targets", .file.display()
    )]
    TooManyLags {
        /// The file.
        file: PathBuf,
        /// How many.
        lags: usize,
    },

    /// A cell that is infinite, NaN, or too large for a number.
    #[error(
        "{}, line {line}, column `{column}`: `{text}` is not finite: replace it or remove the row",
        .file.display()
    )]
    NotFinite {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// What the cell holds.
        text: String,
    },

    /// A column name that the header does not have.
    #[error("{}: {source}", .file.display())]
    UnknownColumn {
        /// The file.
        file: PathBuf,
        /// The name, the nearest known one, and all known ones.
        source: steinflow::Error,
    },

    /// A table with the target and nothing to predict it from.
    #[error(
        "{} has the target column `{target}` and no other: a regression needs at least 1 feature; \
         columns are separated by commas, semicolons, tabs or bars", .file.display()
    )]
    NoFeatures {
        /// The file.
        file: PathBuf,
        /// The target column.
        target: String,
    },

    /// A column with one value, which cannot be scaled to standard deviation 1.
    #[error(
        "{}, column `{column}`: every row holds {value}, so it says nothing: remove the column (an \
         intercept is added anyway) or choose another target", .file.display()
    )]
    ConstantColumn {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// Its only value.
        value: f64,
    },

    /// A column that varies, but not in the rows to train on.
    #[error(
        "{}, column `{column}`: all {rows} training rows hold {value}, so it cannot be brought to \
         standard deviation 1: remove the column, or take another split", .file.display()
    )]
    ConstantInTraining {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// Its value in the training rows.
        value: f64,
        /// How many there are.
        rows: usize,
    },

    /// A file to predict for that lacks a feature of the training data.
    #[error(
        "{} has no column `{column}`, which the model was trained on: add it, under this name",
        .file.display()
    )]
    MissingFeature {
        /// The file.
        file: PathBuf,
        /// The feature's name.
        column: String,
    },

    /// A column whose mean or standard deviation overflows or vanishes.
    #[error(
        "{}, column `{column}`: its standard deviation comes out as {sd}: change its unit so that the \
         numbers are of ordinary size", .file.display()
    )]
    Unscalable {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// The standard deviation found.
        sd: f64,
    },

    /// A target of logistic regression other than 0 and 1.
    #[error(
        "{}, line {line}, column `{column}`: logistic regression predicts 0 or 1, found {value}: \
         recode the column, choose another target, or take multinomial-regression or ordinal-regression",
         .file.display()
    )]
    NotBinary {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// The value found.
        value: String,
    },

    /// A target of words where numbers are predicted.
    #[error(
        "{}, column `{column}`: the target holds words (`{level}`), and this model predicts numbers: choose \
         another target, or logistic-, multinomial- or ordinal-regression", .file.display()
    )]
    TargetOfWords {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// One of the words.
        level: String,
    },

    /// A target of counts that is not one.
    #[error(
        "{}, line {line}, column `{column}`: the model predicts counts, found {value}: choose a target of \
         whole numbers from 0", .file.display()
    )]
    NotACount {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column's name.
        column: String,
        /// The value found.
        value: f64,
    },

    /// Groups of which there is one.
    #[error(
        "{}, column `{column}`: all rows are of the group `{level}`, and to learn how groups differ takes \
         several: leave `--groups {column}` out", .file.display()
    )]
    OneGroup {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// The group.
        level: String,
    },

    /// A noise that is not above 0.
    #[error(
        "{}, line {line}, column `{column}`: a noise is a standard deviation above 0, found {value}: correct it \
         or remove the row", .file.display()
    )]
    NoNoise {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// What it holds.
        value: f64,
    },

    /// A target of classes that are too many.
    #[error(
        "{}, column `{column}`: {found} different values are too many classes: choose another target, or a \
         model of numbers", .file.display()
    )]
    TooManyClasses {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// How many there are.
        found: usize,
    },

    /// An order of classes that does not name each of them once.
    #[error(
        "{}, column `{column}`: the order must name each class once, and `{level}` is not: put {} into \
         their order", .file.display(), .levels.join(",")
    )]
    WrongOrder {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// The class.
        level: String,
        /// All classes.
        levels: Vec<String>,
    },

    /// What is no time, or does not say whether an event was seen.
    #[error(
        "{}, line {line}, column `{column}`: found {value}, and {expected}: correct it or remove the row",
        .file.display()
    )]
    NotATime {
        /// The file.
        file: PathBuf,
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// What it holds.
        value: f64,
        /// What it should.
        expected: &'static str,
    },

    /// A workbook of a spreadsheet.
    #[error("{} is a workbook of a spreadsheet: save the sheet as CSV", .file.display())]
    Workbook {
        /// The file.
        file: PathBuf,
    },

    /// A target of classes with one alone.
    #[error(
        "{}, column `{column}`: every row holds {value}, so there is nothing to learn: add rows of another \
         class or choose another target", .file.display()
    )]
    OneClass {
        /// The file.
        file: PathBuf,
        /// The column's name.
        column: String,
        /// Its only value.
        value: String,
    },
}
