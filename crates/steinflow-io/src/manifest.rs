//! `.steinflow-run`: the list of a run's files with their checksums, in the format of `sha256sum`.
//!
//! Earlier versions wrote names alone; such files are taken as they are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::checksum::checksum_of;
use crate::{Error, Result};

/// The name of the list, which is not in it.
pub(crate) const MANIFEST: &str = ".steinflow-run";

/// Files, relative to the folder, and their checksums where they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest(pub(crate) BTreeMap<PathBuf, Option<String>>);

impl Manifest {
    /// The list of a folder; an empty one where there is none.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self(text.lines().map(entry).collect())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, checksum) in &self.0 {
            if let Some(checksum) = checksum {
                text += checksum;
                text += "  ";
            }
            text += &name.to_string_lossy();
            text.push('\n');
        }
        text
    }

    /// What is wrong with one of the files; none where it is as it was written, or of an earlier version.
    pub(crate) fn trouble(&self, folder: &Path, name: &Path) -> Option<String> {
        let expected = match self.0.get(name) {
            Some(Some(checksum)) => checksum,
            None if self.0.values().any(Option::is_some) => {
                return Some(format!(
                    "`{MANIFEST}`, the list of the run's files, does not name it"
                ));
            }
            Some(None) | None => return None,
        };
        match checksum_of(&folder.join(name)) {
            Ok(found) if found == *expected => None,
            Ok(_) => Some("its bytes are not those that were written (SHA-256)".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// A line: 64 hexadecimal digits, two spaces and a name, or a name alone.
fn entry(line: &str) -> (PathBuf, Option<String>) {
    match line.split_once("  ") {
        Some((sum, name)) if sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit()) => {
            (name.into(), Some(sum.to_owned()))
        }
        _ => (line.into(), None),
    }
}
