//! A folder of results that appears whole or not at all.
//!
//! Files are written into a hidden sibling, `.NAME.partial-PID`, which takes its name in one
//! `rename` when all of them are on the disk. A reader therefore never sees half a run.
//!
//! The last file, `.steinflow-run`, lists the others with their checksums. It marks a complete run, and it tells the run's
//! own files, which another run may replace, from those that somebody put beside them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use crate::checksum::{Summing, checksum};
use crate::leftovers::{create_unique, remove_stale};
use crate::manifest::{MANIFEST, Manifest};
use crate::{Error, Result, WholeFile};

/// A run folder that is being written.
///
/// Dropped without [`commit`](Self::commit), it removes everything that it wrote.
#[derive(Debug)]
pub struct RunFolder {
    target: PathBuf,
    partial: PathBuf,
    force: bool,
    /// What was written, and its checksums.
    files: Manifest,
    /// Parents that this folder created, outermost first; removed again if nothing is committed.
    created_parents: Vec<PathBuf>,
    /// Whether `partial` must stay when this value is dropped.
    keep: bool,
    /// Whether complete folders that earlier processes could not put in place may go at the commit.
    replaces_leftovers: bool,
}

impl RunFolder {
    /// Starts the folder that [`commit`](Self::commit) will put at `path`, with missing parents.
    ///
    /// Fails at once, before any work is done, when `path` exists and `force` is false, when it is
    /// not a run folder and `force` is true, or when nothing can be written there. A run folder is
    /// one that holds nothing but what a run wrote, as its `.steinflow-run` tells, or nothing at all.
    ///
    /// Removes what earlier processes that were killed left of a run of this name.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<Self> {
        let target = path.as_ref().to_path_buf();
        let Some(name) = target.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Err(Error::BadPath {
                path: target,
                remedy: "give the name of a new folder, such as runs/first",
            });
        };
        check_free(&target, force)?;

        let parent = parent_of(&target).to_path_buf();
        let mut folder = Self {
            partial: PathBuf::new(),
            target,
            force,
            files: Manifest::default(),
            created_parents: missing_ancestors(&parent),
            keep: true,
            replaces_leftovers: false,
        };
        // From here on a failure drops `folder`, which takes back the parents made so far.
        fs::create_dir_all(&parent).map_err(Error::io("create folder", &parent))?;
        remove_stale(&parent, &format!(".{name}.partial-"), false);
        folder.partial = create_unique(&parent, &format!(".{name}.partial"))?;
        folder.keep = false;
        Ok(folder)
    }

    /// Says that this is the same run as one that was killed before it was in its place: what that one
    /// has left is not needed once this one is.
    pub fn replacing_leftovers(mut self) -> Self {
        self.replaces_leftovers = true;
        self
    }

    /// Where the folder will be after [`commit`](Self::commit).
    pub fn path(&self) -> &Path {
        &self.target
    }

    /// Where the files are until then: for a process that ends without dropping this value, to remove.
    pub fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Writes one file; `name` may lead into subfolders, as in `plots/final.png`.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.prepare(name)?;
        fs::write(&path, bytes).map_err(Error::io("write", &self.shown(name)))?;
        self.files.0.insert(name.into(), Some(checksum(bytes)));
        Ok(())
    }

    /// Writes one file through a buffered writer that `fill` is given.
    pub fn write_with(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        let path = self.prepare(name)?;
        let shown = self.shown(name);
        let file = File::create(&path).map_err(Error::io("write", &shown))?;
        let mut buffer = BufWriter::new(Summing::new(file));
        fill(&mut buffer).map_err(|error| error.in_file(&shown))?;
        let sum = buffer.into_inner().map_err(io::IntoInnerError::into_error);
        let sum = sum.map_err(Error::io("write", &shown))?.finish();
        self.files.0.insert(name.into(), Some(sum));
        Ok(())
    }

    /// The checksum of a file that was written.
    pub fn checksum(&self, name: &str) -> Option<&str> {
        self.files.0.get(Path::new(name))?.as_deref()
    }

    /// Forces all files to the disk and puts the folder in its place; returns that place.
    ///
    /// With `force` the old folder is moved aside, and deleted only once the new one stands. If the
    /// place was taken in the meantime, the complete results stay where they are and the error says
    /// where: no run is lost to a name.
    pub fn commit(mut self) -> Result<PathBuf> {
        for name in self.files.0.keys() {
            self.sync(name)?;
        }
        // Last, so that a list stands for files that are on the disk.
        let list = self.files.text();
        self.write(MANIFEST, list.as_bytes())?;
        self.sync(Path::new(MANIFEST))?;
        sync_folder(&self.partial);
        self.keep = true;
        self.move_into_place().map_err(|reason| Error::NotMoved {
            path: self.target.clone(),
            kept: self.partial.clone(),
            reason,
        })?;
        let parent = parent_of(&self.target);
        sync_folder(parent);
        // A process that was killed between the two moves has left what it replaced.
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        remove_stale(parent, &format!(".{name}.old-"), true);
        if self.replaces_leftovers {
            remove_stale(parent, &format!(".{name}.partial-"), true);
        }
        self.created_parents.clear();
        Ok(self.target.clone())
    }

    /// Forces one file to the disk.
    fn sync(&self, name: &Path) -> Result<()> {
        OpenOptions::new()
            .write(true)
            .open(self.partial.join(name))
            .and_then(|file| file.sync_all())
            .map_err(Error::io("write", &self.target.join(name)))
    }

    /// Swaps the finished folder with whatever `force` allows to be replaced.
    fn move_into_place(&self) -> std::result::Result<(), String> {
        check_free(&self.target, self.force).map_err(|error| error.to_string())?;
        let old = if self.target.symlink_metadata().is_ok() {
            let name = self.target.file_name().unwrap_or_default().to_string_lossy();
            let shelter = create_unique(parent_of(&self.target), &format!(".{name}.old"))
                .map_err(|error| error.to_string())?;
            // A rename onto an empty folder replaces it, here and for the new folder below.
            fs::rename(&self.target, &shelter).map_err(|error| error.to_string())?;
            Some(shelter)
        } else {
            None
        };
        if let Err(error) = fs::rename(&self.partial, &self.target) {
            if let Some(shelter) = &old {
                // Best effort: the first error is the one to report.
                let _ = fs::rename(shelter, &self.target);
            }
            return Err(error.to_string());
        }
        if let Some(shelter) = old {
            // The new folder stands; a leftover of the old one is no reason to fail the run.
            let _ = fs::remove_dir_all(shelter);
        }
        Ok(())
    }

    /// The path of a file inside the partial folder, with its subfolders made.
    fn prepare(&mut self, name: &str) -> Result<PathBuf> {
        let relative = Path::new(name);
        let stays_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || name.ends_with('/') || !stays_inside {
            return Err(Error::BadPath {
                path: relative.to_path_buf(),
                remedy: "a file of a run is named relative to its folder, without `..`",
            });
        }
        let path = self.partial.join(relative);
        // Only what is inside: if the folder itself was removed, that was to end the run.
        if let Some(inner) = relative.parent() {
            let mut folder = self.partial.clone();
            for part in inner.components() {
                folder.push(part);
                match fs::create_dir(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(Error::io("create folder", &folder)(error));
                    }
                    _ => {}
                }
            }
        }
        Ok(path)
    }

    /// The path that the user knows: the final one, not the hidden one.
    fn shown(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Errors cannot be reported from here, and a leftover is hidden and named `.partial`.
        if !self.keep {
            let _ = fs::remove_dir_all(&self.partial);
        }
        for parent in self.created_parents.iter().rev() {
            // Removes empty folders only, so what others put there meanwhile stays.
            let _ = fs::remove_dir(parent);
        }
    }
}

/// Whether `folder` holds a complete run, by the list of its files, which is written last.
pub fn is_finished_run(folder: impl AsRef<Path>) -> bool {
    folder.as_ref().join(MANIFEST).is_file()
}

/// Puts one more file into the folder of a finished run, as one of the run's own: another run may
/// replace it with the rest.
pub fn add_to_run(folder: &Path, name: &str, bytes: &[u8], force: bool) -> Result<()> {
    let file = WholeFile::create(folder.join(name), force)?;
    let mut manifest = Manifest::read(folder)?;
    let list = |manifest: &Manifest| {
        WholeFile::create(folder.join(MANIFEST), true)?.write(manifest.text().as_bytes())
    };
    // First a name without a checksum, which is right whether the file is old, new or not there yet.
    manifest.0.insert(name.into(), None);
    list(&manifest)?;
    file.write(bytes)?;
    manifest.0.insert(name.into(), Some(checksum(bytes)));
    list(&manifest)
}

/// Whether a run may be put at `path`. Advises `force` only where it would help.
fn check_free(path: &Path, force: bool) -> Result<()> {
    let path = path.to_path_buf();
    // Without following links: a link is somebody's, and a dangling one still takes the name.
    let kind = match path.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("look at", &path)(error)),
    };
    if kind.is_symlink() {
        return Err(Error::NotARunFolder { path, found: "a symbolic link" });
    }
    if !kind.is_dir() {
        return Err(Error::NotARunFolder { path, found: "a file" });
    }
    if let Some(entry) = first_foreign(&path)? {
        return Err(Error::ForeignEntry { path, entry });
    }
    if force { Ok(()) } else { Err(Error::FolderExists { path }) }
}

/// The first entry of a folder, by name, that its manifest does not list.
fn first_foreign(folder: &Path) -> Result<Option<PathBuf>> {
    // Without a list nothing is known to be a run's.
    let mut own: BTreeSet<PathBuf> = Manifest::read(folder)?.0.into_keys().collect();
    own.insert(MANIFEST.into());
    first_not_in(&own, folder, Path::new(""))
}

/// The first entry below `inner`, a subfolder of `folder`, that is not in `own` nor leads there.
fn first_not_in(own: &BTreeSet<PathBuf>, folder: &Path, inner: &Path) -> Result<Option<PathBuf>> {
    let here = folder.join(inner);
    let mut entries = fs::read_dir(&here)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(Error::io("look into", &here))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = inner.join(entry.file_name());
        let kind = entry.file_type().map_err(Error::io("look at", &entry.path()))?;
        if kind.is_dir() && own.iter().any(|file| file != &name && file.starts_with(&name)) {
            if let Some(foreign) = first_not_in(own, folder, &name)? {
                return Ok(Some(foreign));
            }
        } else if !kind.is_file() || !own.contains(&name) {
            // A run writes plain files: a link or folder under a listed name is somebody else's.
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The folder that holds `path`; `.` where the path is a bare name.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The ancestors of a folder (and itself) that do not exist yet, outermost first.
pub(crate) fn missing_ancestors(folder: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err())
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}

/// Makes renames inside a folder durable, where the system lets a folder be opened.
pub(crate) fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        // Some network file systems refuse this; the files themselves are already on the disk.
        let _ = File::open(folder).and_then(|handle| handle.sync_all());
    }
}
