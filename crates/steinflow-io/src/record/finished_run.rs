//! A run folder, read back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::manifest::Manifest;

use super::{CONFIG, DIAGNOSIS, Diagnosis, SUMMARY, Summary, Table};
use crate::{Error, Result, Unfinished, is_finished_run};

/// The folder of a finished run.
#[derive(Debug)]
pub struct FinishedRun {
    folder: PathBuf,
    manifest: Manifest,
}

impl FinishedRun {
    /// The run at this place; an error that says what is there instead.
    pub fn open(given: &Path) -> Result<Self> {
        let not = |found: String| Error::NotARun { path: given.to_owned(), found };
        if is_finished_run(given) {
            // `.` and the like have a name of their own.
            let named = given.file_name().is_some();
            let own = if named { Ok(given.components().collect()) } else { given.canonicalize() };
            let folder: PathBuf = own.map_err(|error| not(error.to_string()))?;
            return Ok(Self { manifest: Manifest::read(&folder)?, folder });
        }
        if Unfinished::exists(given) {
            let resume = format!("`steinflow resume {}` goes on", given.display());
            return Err(not(format!("was not finished ({resume})")));
        }
        let found = match given.symlink_metadata() {
            Err(_) => "does not exist",
            Ok(_) if given.is_dir() => {
                "is not the folder of a finished run (it has no `.steinflow-run`)"
            }
            Ok(_) => "is a file",
        };
        Err(not(found.to_owned()))
    }

    /// Where it is, by its own name.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of one of its files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Its settings.
    pub fn config(&self) -> Result<String> {
        self.text(CONFIG)
    }

    /// Its summary.
    pub fn summary(&self) -> Result<Summary> {
        self.json(SUMMARY)
    }

    /// Its verdict; none where it has none.
    pub fn diagnosis(&self) -> Result<Option<Diagnosis>> {
        self.has(DIAGNOSIS).then(|| self.json(DIAGNOSIS)).transpose()
    }

    /// Whether it has this file.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// One of its JSON files.
    pub fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let text = self.text(name)?;
        serde_json::from_str(&text).map_err(|error| self.damaged(name, error.to_string()))
    }

    /// One of its text files.
    pub fn text(&self, name: &str) -> Result<String> {
        self.check(name)?;
        fs::read_to_string(self.path(name)).map_err(|error| self.damaged(name, error.to_string()))
    }

    /// One of its tables.
    pub fn table(&self, name: &str) -> Result<Table> {
        self.check(name)?;
        Table::open(self.path(name))
    }

    /// One of its tables; none where it has none, or one without rows.
    pub fn filled_table(&self, name: &str) -> Result<Option<Table>> {
        if !self.has(name) {
            return Ok(None);
        }
        self.table(name).map(|table| Some(table).filter(|table| table.rows() > 0))
    }

    /// Checks all files against their checksums; what is wrong, file by file. A file that the run has not
    /// listed is not its own.
    pub fn verify(&self) -> Vec<Error> {
        let summed = self.manifest.0.iter().filter(|(_, sum)| sum.is_some());
        summed.filter_map(|(name, _)| self.check(&name.to_string_lossy()).err()).collect()
    }

    /// How many files have a checksum, and how many were written before there were any.
    pub fn summed(&self) -> (usize, usize) {
        let with = self.manifest.0.values().filter(|sum| sum.is_some()).count();
        (with, self.manifest.0.len() - with)
    }

    /// That a file is there, and as it was written.
    fn check(&self, name: &str) -> Result<()> {
        let trouble = if self.has(name) {
            self.manifest.trouble(&self.folder, Path::new(name))
        } else {
            Some("it is not there".to_owned())
        };
        trouble.map_or(Ok(()), |reason| Err(self.damaged(name, reason)))
    }

    /// Why one of its files cannot be used.
    pub fn damaged(&self, name: &str, reason: String) -> Error {
        Error::RunDamaged { path: self.path(name), reason }
    }
}
