//! A single file that appears whole or not at all.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::leftovers::remove_stale_files;
use crate::run_folder::parent_of;
use crate::{Error, Result};

/// The place of a file that is yet to be written.
///
/// ```
/// use steinflow_io::WholeFile;
/// # let folder = std::env::temp_dir().join(format!("steinflow-file-doc-{}", std::process::id()));
/// # std::fs::create_dir(&folder).unwrap();
/// # let path = folder.join("table.csv");
/// let file = WholeFile::create(&path, false)?;
/// // … work that may fail …
/// file.write(b"x,y\n1,2\n")?;
/// assert!(WholeFile::create(&path, false).is_err());
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), steinflow_io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    force: bool,
}

impl WholeFile {
    /// Checks, before any work is done, that a file may be put at `path`: that its folder exists, and
    /// that nothing is there, or with `force` nothing but a file.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<Self> {
        let file = Self { path: path.as_ref().to_path_buf(), force };
        file.check_free()?;
        Ok(file)
    }

    /// Writes the file under a temporary name beside its place and gives it its own.
    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.partial-");
        remove_stale_files(parent_of(&self.path), &prefix);
        let partial = self.path.with_file_name(format!("{prefix}{}", std::process::id()));
        let moved = self.check_free().and_then(|()| {
            let written = File::create(&partial).and_then(|mut file| {
                file.write_all(bytes)?;
                file.sync_all()?;
                fs::rename(&partial, &self.path)
            });
            written.map_err(Error::io("write", &self.path))
        });
        if moved.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&partial);
        }
        moved
    }

    fn check_free(&self) -> Result<()> {
        let path = self.path.clone();
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let remedy = match path.symlink_metadata() {
            _ if path.file_name().is_none() => "give the name of a file",
            _ if folder.is_some_and(|folder| !folder.is_dir()) => {
                "its folder does not exist: create it, or choose another --out"
            }
            Err(_) => return Ok(()),
            Ok(found) if !found.is_file() => "it is not a file: choose another --out",
            Ok(_) if self.force => return Ok(()),
            Ok(_) => return Err(Error::FileExists { path }),
        };
        Err(Error::BadPath { path, remedy })
    }
}
