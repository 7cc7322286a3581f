//! What is known of a named data set, whether or not it is on this computer.

use super::{Split, SplitError};

/// A regression data set with a name: one of the benchmark, or the one that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// What [`find`](super::find) is asked for.
    pub name: &'static str,
    /// A few words.
    pub title: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// The columns to predict from, in order.
    pub features: &'static [&'static str],
    /// The column to predict, the last one.
    pub target: &'static str,
    /// What the target is, with its unit.
    pub target_meaning: &'static str,
    /// What its publisher allows.
    pub licence: &'static str,
    /// Whom to cite.
    pub citation: &'static str,
    /// A page about it.
    pub page: &'static str,
    /// How it is split in the literature.
    pub splits: Splits,
    /// By what it is told from any other table.
    pub fingerprint: Fingerprint,
    /// Where it can be fetched, in the order to try; nowhere for the set that is built in.
    pub archives: &'static [Archive],
}

/// SHA-256 in lower-case hexadecimal, of what a data set cannot be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fingerprint {
    /// Its numbers, as [`content_sha256`](super::content_sha256) takes them: archives write the same
    /// number in different ways.
    Numbers(&'static str),
    /// The bytes of its file, which is kept as it is published.
    File(&'static str),
}

/// How a data set is split into training and test rows in the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splits {
    /// This many [standard splits](Split::standard).
    Standard(usize),
    /// One split: this many rows train, those after them test.
    FirstRows(usize),
}

/// A published file and where the table stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its address.
    pub url: &'static str,
    /// SHA-256 of its bytes, where known; the fingerprint is checked in any case.
    pub sha256: Option<&'static str>,
    /// The file inside, where it is a zip archive: its name without folders.
    pub member: Option<&'static str>,
    /// How that file holds the table.
    pub layout: Layout,
    /// Columns that it has.
    pub columns: usize,
    /// Which of them is the target, counted from 0. The features are the first of the others; what
    /// is left is not used.
    pub target: usize,
}

/// How a published file holds its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Comma-separated, with a header row.
    Csv,
    /// Comma-separated, without a header row.
    Headerless,
    /// Numbers separated by white space, after some lines of prose; a row may take several lines.
    Spaced {
        /// Lines to skip.
        prose: usize,
    },
    /// Attribute-relation file format: comma-separated rows below `@data`.
    Arff,
    /// Excel (`.xlsx`), with a header row. Where several sheets hold the rows in different orders, the
    /// one with the fingerprint.
    Sheet,
}

impl DataSet {
    /// The columns of its table: the features, then the target.
    pub fn columns(&self) -> Vec<String> {
        self.features.iter().chain([&self.target]).map(|&name| name.to_owned()).collect()
    }

    /// Names that its file may have, the most usual first; none for the set that is built in.
    pub fn file_names(&self) -> Vec<String> {
        match self.fingerprint {
            _ if self.archives.is_empty() => Vec::new(),
            Fingerprint::File(_) => self
                .archives
                .iter()
                .filter_map(|archive| archive.member)
                .map(str::to_owned)
                .collect(),
            Fingerprint::Numbers(_) => {
                vec![format!("{}.csv.gz", self.name), format!("{}.csv", self.name)]
            }
        }
    }

    /// How many splits the literature uses.
    pub fn split_count(&self) -> usize {
        match self.splits {
            Splits::Standard(count) => count,
            Splits::FirstRows(_) => 1,
        }
    }

    /// Split `index` of those that the literature uses, counted from 0.
    ///
    /// ```
    /// use steinflow_models::data::data_set;
    /// let split = data_set("yacht")?.split(0)?;
    /// assert_eq!((split.train().len(), split.test().len()), (277, 31));
    /// assert!(data_set("yacht")?.split(20).is_err());
    /// # Ok::<(), steinflow_models::Error>(())
    /// ```
    pub fn split(&self, index: usize) -> Result<Split, SplitError> {
        let count = self.split_count();
        if index >= count {
            let what = format!("the data set `{}`", self.name);
            return Err(SplitError::NoSuchSplit { what, index, count });
        }
        match self.splits {
            Splits::Standard(_) => Split::standard(self.rows, index),
            Splits::FirstRows(train) => Split::at(self.rows, train),
        }
    }
}
