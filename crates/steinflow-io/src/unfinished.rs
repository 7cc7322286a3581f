//! The folder of a run that is under way: `NAME.unfinished` beside where the run will be.
//!
//! It holds the run's settings, a lock, and its two newest checkpoints. It goes when the run is in
//! its place, and stays when the process is killed; `steinflow resume` looks for it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::run_folder::{missing_ancestors, parent_of, sync_folder};
use crate::{CheckpointFile, Error, Result};

const LOCK: &str = "lock";
const PARTIAL: &str = ".checkpoint.partial";
const PREFIX: &str = "checkpoint-";
/// If the newest was being written to a failing disk, there is one more.
const KEPT: usize = 2;

/// A run under way; no other process can have it meanwhile.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    /// Held as long as this lives, and let go by the system when the process dies.
    lock: File,
    created_parents: Vec<PathBuf>,
}

impl Unfinished {
    /// Where the unfinished run lies that will be at `run`.
    pub fn path_of(run: &Path) -> PathBuf {
        let mut name = run.file_name().unwrap_or_default().to_owned();
        name.push(".unfinished");
        run.with_file_name(name)
    }

    /// Takes the folder of the run that will be at `run`, and makes it where it is missing.
    pub fn open(run: &Path) -> Result<Self> {
        let path = Self::path_of(run);
        let created_parents = missing_ancestors(parent_of(&path));
        loop {
            fs::create_dir_all(&path).map_err(Error::io("create folder", &path))?;
            let lock = path.join(LOCK);
            let mut options = OpenOptions::new();
            let file = match options.read(true).write(true).create(true).truncate(false).open(&lock)
            {
                Ok(file) => file,
                // Its run ended between the two lines above.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("write", &lock)(error)),
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::RunInUse { path: run.to_owned() });
                }
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", &lock)(error)),
            }
            // Where its run ended before the lock was had, the file is one that no other sees.
            if lock.exists() && is_same(&file, &lock) {
                return Ok(Self { path, lock: file, created_parents });
            }
        }
    }

    /// Whether there is an unfinished run with a checkpoint for this place.
    pub fn exists(run: &Path) -> bool {
        !checkpoints(&Self::path_of(run)).is_empty()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a small file beside the checkpoints.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_whole(name, |file| file.write_all(bytes))
    }

    /// Writes the checkpoint of a step: on the disk when this returns, whole or not at all. The two
    /// newest are kept.
    pub fn write_checkpoint(
        &self,
        step: u64,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        self.write_whole(&format!("{PREFIX}{step:012}"), fill)?;
        for (_, old) in self.checkpoints().into_iter().skip(KEPT) {
            // What cannot be deleted now will be with the folder.
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    fn write_whole(
        &self,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<()> {
        let (partial, path) = (self.path.join(PARTIAL), self.path.join(name));
        let written = File::create(&partial).and_then(|mut file| {
            fill(&mut file)?;
            file.sync_all()?;
            fs::rename(&partial, &path)
        });
        if let Err(error) = written {
            // The first error is the one to report.
            let _ = fs::remove_file(&partial);
            return Err(Error::io("write", &path)(error));
        }
        sync_folder(&self.path);
        Ok(())
    }

    /// The checkpoints that are there, with their steps, the newest first.
    pub fn checkpoints(&self) -> Vec<(u64, PathBuf)> {
        checkpoints(&self.path)
    }

    /// Begins anew: forgets all checkpoints.
    pub fn forget_checkpoints(&self) -> Result<()> {
        for (_, old) in self.checkpoints() {
            fs::remove_file(&old).map_err(Error::io("delete", &old))?;
        }
        Ok(())
    }

    /// The newest checkpoint that is whole, and what was wrong with newer ones.
    pub fn newest(&self) -> (Option<CheckpointFile>, Vec<Error>) {
        let mut wrong = Vec::new();
        for (_, path) in self.checkpoints() {
            match CheckpointFile::open(&path) {
                Ok(file) => return (Some(file), wrong),
                Err(error) => wrong.push(error),
            }
        }
        (None, wrong)
    }

    /// Removes the folder of a run of this process that ends without dropping this value.
    pub fn discard(run: &Path) {
        remove(&Self::path_of(run));
    }

    /// Removes the folder: its run is in its place.
    pub fn remove(self) {
        remove(&self.path);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.checkpoints().is_empty() {
            remove(&self.path);
            for parent in self.created_parents.iter().rev() {
                // Removes empty folders only.
                let _ = fs::remove_dir(parent);
            }
        }
        let _ = self.lock.unlock();
    }
}

/// Removes an unfinished run, its own files alone: a folder that others have put something into stays.
fn remove(path: &Path) {
    let checkpoints = checkpoints(path).into_iter().map(|(_, path)| path);
    let others = ["config.toml", PARTIAL, LOCK].map(|name| path.join(name));
    // A leftover is no reason to fail a run that is in its place.
    for file in checkpoints.chain(others) {
        let _ = fs::remove_file(file);
    }
    let _ = fs::remove_dir(path);
}

/// The checkpoints of an unfinished run, with their steps, the newest first.
fn checkpoints(folder: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let step = name.to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
            Some((step, entry.path()))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(own), Ok(other)) => identity(own) == identity(other),
        _ => false,
    }
}

/// Elsewhere an open file cannot be deleted.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Path) -> bool {
    true
}
