//! Named data sets on this computer: where the file is, what it holds, how it is split.

use std::path::{Path, PathBuf};

use super::frame::Frame;
use super::registry::built_in;
use super::{
    Choices, DataSet, DataSetError, Difference, Fingerprint, Recipe, Split, Table, TableError,
    content_sha256, data_set, data_sets, search_folders, year,
};
use crate::Result;

/// Where a data set is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the program.
    BuiltIn,
    /// In a file.
    File(PathBuf),
}

/// A data set that is on this computer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    set: &'static DataSet,
    place: Place,
}

/// Looks for a data set in `data_dir`, then in `$STEINFLOW_DATA`, then in the cache folder that
/// `steinflow data fetch` fills.
pub fn find(name: &str, data_dir: Option<&Path>) -> Result<Located> {
    let set = data_set(name)?;
    if set.archives.is_empty() {
        return Ok(Located { set, place: Place::BuiltIn });
    }
    let folders = search_folders(data_dir);
    let files = set.file_names();
    let found = folders
        .iter()
        .flat_map(|folder| files.iter().map(|file| folder.join(file)))
        .find(|file| file.is_file());
    match found {
        Some(file) => Ok(Located { set, place: Place::File(file) }),
        None => Err(DataSetError::NotFound { name: set.name, files, folders }.into()),
    }
}

/// Whether `given` can only be the name of a data set: a single word, without an ending, that is no
/// file here. A folder does not hide a set of its name.
pub fn is_name(given: &Path) -> bool {
    let is_word = given.components().count() == 1
        && given.extension().is_none()
        && given.file_name().is_some();
    let is_known = || data_sets().iter().any(|set| given == Path::new(set.name));
    is_word && (!given.exists() || given.is_dir() && is_known())
}

/// The table that `given` means, and the data set's name if it is one: a file where there is one, a
/// data set of that [name](is_name) otherwise.
pub fn read_table(
    given: &Path,
    data_dir: Option<&Path>,
    choices: &Choices,
) -> Result<(Table, Option<&'static str>)> {
    match given.to_str() {
        Some(name) if is_name(given) => {
            let located = find(name, data_dir)?;
            let table = located.table()?;
            // A benchmark is its numbers, unless somebody asks for others.
            let of_all = Choices { target: choices.target.clone(), ..Choices::default() };
            let table =
                if *choices == of_all { table } else { Table::choose(&located.frame()?, choices)? };
            Ok((table, Some(located.set.name)))
        }
        _ => Ok((Table::choose(&Frame::read(given)?, choices)?, None)),
    }
}

/// New rows, from a file or a data set, by the recipe of the data that a model was fitted to.
pub fn read_new_rows(given: &Path, data_dir: Option<&Path>, recipe: &Recipe) -> Result<Table> {
    Ok(recipe.apply_to_new(&read_frame(given, data_dir)?)?)
}

/// The rows that a model was fitted to, again: those without a target are left out.
pub fn read_fitted_rows(given: &Path, data_dir: Option<&Path>, recipe: &Recipe) -> Result<Table> {
    Ok(recipe.apply(&read_frame(given, data_dir)?)?)
}

fn read_frame(given: &Path, data_dir: Option<&Path>) -> Result<Frame> {
    Ok(match given.to_str() {
        Some(name) if is_name(given) => find(name, data_dir)?.frame()?,
        _ => Frame::read(given)?,
    })
}

impl Located {
    /// What is known of it.
    pub fn set(&self) -> &'static DataSet {
        self.set
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its file; none for the set that is built in.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::BuiltIn => None,
            Place::File(file) => Some(file),
        }
    }

    /// Its cells, as they stand.
    fn frame(&self) -> Result<Frame, TableError> {
        match &self.place {
            Place::BuiltIn => Frame::from_reader(built_in(self.set.name), self.file_name()),
            Place::File(file) => Frame::read(file),
        }
    }

    fn file_name(&self) -> String {
        format!("{}.csv", self.set.name)
    }

    /// Its table, the target last. A file of other content is an error: numbers under a benchmark's
    /// name are that benchmark's.
    pub fn table(&self) -> Result<Table> {
        let table = match &self.place {
            Place::BuiltIn => Table::from_reader(built_in(self.set.name), self.file_name())?,
            Place::File(file) => match self.set.fingerprint {
                Fingerprint::File(expected) => year::read(file, self.set, expected)?,
                Fingerprint::Numbers(_) => Table::read(file)?,
            },
        };
        self.set.check(&table).map_err(|difference| {
            let (name, file) = (self.set.name, table.file().to_owned());
            DataSetError::Other { name, file, difference }
        })?;
        Ok(table)
    }

    /// Split `index`, counted from 0: from `splits/NAME.txt.gz` or `splits/NAME.txt` beside the
    /// table where there is one, otherwise [as the literature makes it](DataSet::split).
    pub fn split(&self, index: usize) -> Result<Split> {
        Ok(match self.split_file() {
            Some(file) => Split::from_file(file, self.set.rows, index)?,
            None => self.set.split(index)?,
        })
    }

    /// The file that [`Self::split`] reads, if there is one.
    pub fn split_file(&self) -> Option<PathBuf> {
        let folder = self.file()?.parent()?.join("splits");
        ["txt.gz", "txt"]
            .into_iter()
            .map(|ending| folder.join(format!("{}.{ending}", self.set.name)))
            .find(|file| file.is_file())
    }
}

impl DataSet {
    /// Whether `table` is this data set, by columns, rows and the [fingerprint](Fingerprint::Numbers)
    /// of its numbers.
    pub fn check(&self, table: &Table) -> Result<(), Difference> {
        let (found, expected) = (table.columns(), self.columns());
        if found != expected {
            return Err(Difference::Columns { found: found.to_vec(), expected });
        }
        let (found, expected) = (table.values().rows(), self.rows);
        if found != expected {
            return Err(Difference::Rows { found, expected });
        }
        // The fingerprint of a file is taken before it is read.
        if let Fingerprint::Numbers(expected) = self.fingerprint {
            let found = content_sha256(table.values());
            if found != expected {
                return Err(Difference::Content { what: "its numbers", found, expected });
            }
        }
        Ok(())
    }
}
