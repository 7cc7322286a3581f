//! The folder of a run that is under way: `NAME.unfinished` beside where the run will be.
//!
//! It holds the run's settings, its two newest checkpoints, and a file that says whose it is and that
//! its process keeps locked. It appears with all of that in it, goes when the run is in its place, and
//! stays when the process is killed; `steinflow resume` looks for it. A folder of that name without the
//! file is somebody else's, and is never touched.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use crate::checksum::checksum_of;
use crate::leftovers::{create_unique, remove_stale};
use crate::record::{CONFIG, SUMMARY};
use crate::run_folder::{missing_ancestors, parent_of, sync_folder};
use crate::{CheckpointFile, Error, Result};

/// Says whose the folder is, and is locked as long as its process lives.
const MARK: &str = ".steinflow-unfinished";
/// The checksum of the summary of the run that this has become, once it is about to.
const ENDED: &str = "ended";
const PARTIAL: &str = ".checkpoint.partial";
const PREFIX: &str = "checkpoint-";
/// If the newest was being written to a failing disk, there is one more.
const KEPT: usize = 2;

/// A run under way; no other process can have it meanwhile.
#[derive(Debug)]
pub struct Unfinished {
    run: PathBuf,
    /// Where the folder is: hidden until the run begins.
    path: PathBuf,
    /// Held as long as this lives, and let go by the system when the process dies.
    lock: File,
    /// Whether an earlier process has left it: then it stays when this one fails.
    is_found: bool,
    created_parents: Vec<PathBuf>,
}

impl Unfinished {
    /// Where the unfinished run lies that will be at `run`.
    pub fn path_of(run: &Path) -> PathBuf {
        let mut name = run.file_name().unwrap_or_default().to_owned();
        name.push(".unfinished");
        run.with_file_name(name)
    }

    /// Takes the folder that an earlier process has left of the run at `run`, or a new one, which
    /// [`begin`](Self::begin) puts in its place.
    pub fn open(run: &Path) -> Result<Self> {
        if let Some(found) = Self::find(run)? {
            return Ok(found);
        }
        let parent = parent_of(run);
        let created_parents = missing_ancestors(parent);
        fs::create_dir_all(parent).map_err(Error::io("create folder", parent))?;
        let path = create_unique(parent, &hidden_prefix(run))?;
        let mark = path.join(MARK);
        let lock = File::create_new(&mark)
            .and_then(|mut file| {
                file.write_all(mark_of(run).as_bytes())?;
                file.sync_all()?;
                file.try_lock()?;
                Ok(file)
            })
            .map_err(Error::io("write", &mark))?;
        Ok(Self { run: run.to_owned(), path, lock, is_found: false, created_parents })
    }

    /// Takes the folder that an earlier process has left of the run at `run`; none where there is none.
    pub fn find(run: &Path) -> Result<Option<Self>> {
        let path = Self::path_of(run);
        loop {
            if !is_ours(run)? {
                return Ok(None);
            }
            let mark = path.join(MARK);
            let lock = match OpenOptions::new().read(true).write(true).open(&mark) {
                Ok(file) => file,
                // Its run ended between the two lines above.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("write", &mark)(error)),
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::RunInUse { path: run.to_owned() });
                }
                Err(TryLockError::Error(error)) => return Err(Error::io("lock", &mark)(error)),
            }
            // Where its run ended before the lock was had, the file is one that no other sees.
            if is_same(&lock, &mark) {
                let (run, created_parents) = (run.to_owned(), Vec::new());
                return Ok(Some(Self { run, path, lock, is_found: true, created_parents }));
            }
        }
    }

    /// Begins the run with these settings, from `first`, the checkpoint of a step, or from its first step.
    ///
    /// A folder that is new appears in its place with them in it. In one that was found, the run that it
    /// was of is forgotten before the settings change, so that two runs never mix.
    pub fn begin(&mut self, config: &[u8], first: Option<(u64, &[u8])>) -> Result<()> {
        // What processes have left that were killed before they had begun.
        remove_stale(parent_of(&self.run), &format!("{}-", hidden_prefix(&self.run)), false);
        if first.is_none() {
            for (_, old) in self.checkpoints() {
                fs::remove_file(&old).map_err(Error::io("delete", &old))?;
            }
        }
        if let Some((step, checkpoint)) = first {
            self.write_checkpoint(step, |file| file.write_all(checkpoint))?;
        }
        self.write_whole(CONFIG, |file| file.write_all(config))?;
        let (ended, place) = (self.path.join(ENDED), Self::path_of(&self.run));
        if self.path == place {
            return match fs::remove_file(&ended) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(Error::io("delete", &ended)(error))
                }
                _ => Ok(()),
            };
        }
        // It fails where another process has begun meanwhile.
        if let Err(error) = fs::rename(&self.path, &place) {
            let is_taken = is_ours(&self.run)?;
            let in_use = Error::RunInUse { path: self.run.clone() };
            return Err(if is_taken { in_use } else { Error::io("create folder", &place)(error) });
        }
        self.path = place;
        sync_folder(parent_of(&self.path));
        Ok(())
    }

    /// Whether there is an unfinished run with a checkpoint for this place.
    pub fn exists(run: &Path) -> bool {
        is_ours(run).unwrap_or(false) && !checkpoints(&Self::path_of(run)).is_empty()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings that the run was begun with.
    pub fn config(&self) -> Option<PathBuf> {
        Some(self.path.join(CONFIG)).filter(|path| path.is_file())
    }

    /// Notes, before the folder of the run is put in its place, the checksum of its summary.
    pub fn note_end(&self, summary: &str) -> Result<()> {
        self.write_whole(ENDED, |file| file.write_all(summary.as_bytes()))
    }

    /// Whether the folder in the run's place is what this has become: its process was killed between
    /// putting the one in its place and removing the other.
    pub fn has_become(&self, run: &Path) -> bool {
        let noted = fs::read_to_string(self.path.join(ENDED)).ok();
        noted.is_some() && noted == checksum_of(&run.join(SUMMARY)).ok()
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
        if is_ours(run).unwrap_or(false) {
            remove(&Self::path_of(run));
        }
    }

    /// Removes the folder: its run is in its place.
    pub fn remove(self) {
        remove(&self.path);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_found && self.checkpoints().is_empty() {
            remove(&self.path);
            for parent in self.created_parents.iter().rev() {
                // Removes empty folders only.
                let _ = fs::remove_dir(parent);
            }
        }
        let _ = self.lock.unlock();
    }
}

/// What the mark in the folder of a run says.
fn mark_of(run: &Path) -> String {
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    format!("Steinflow is at work on the run `{name}` here, or was: `steinflow resume` goes on.\n")
}

/// Where the folder of a run is until it begins, but for the number of the process.
fn hidden_prefix(run: &Path) -> String {
    format!(".{}.beginning", run.file_name().unwrap_or_default().to_string_lossy())
}

/// Whether there is a folder of the unfinished run; an error where it is not Steinflow's, or of another
/// run.
fn is_ours(run: &Path) -> Result<bool> {
    let path = Unfinished::path_of(run);
    let foreign = |found| Err(Error::NotUnfinished { path: path.clone(), found });
    // Without following links: what is behind one is somebody's.
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(found) if found.is_symlink() => return foreign("a symbolic link"),
        Ok(_) => return foreign("a file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io("look at", &path)(error)),
    }
    let (mark, mut text) = (path.join(MARK), String::new());
    let is_file = mark.symlink_metadata().is_ok_and(|found| found.is_file());
    // However long it is, a mark is short.
    let read = File::open(&mark).and_then(|file| file.take(1 << 16).read_to_string(&mut text));
    match read {
        Ok(_) if is_file && text == mark_of(run) => Ok(true),
        Ok(_) if is_file => foreign("the folder of another run"),
        // Gone, or empty: a process was killed while it was removing it.
        _ if fs::read_dir(&path).map_or(true, |mut entries| entries.next().is_none()) => Ok(false),
        _ => foreign("a folder without its mark"),
    }
}

/// Removes an unfinished run, its own files alone: a folder that others have put something into stays.
fn remove(path: &Path) {
    let checkpoints = checkpoints(path).into_iter().map(|(_, path)| path);
    // The mark last: without it nobody may remove the rest.
    let others = [CONFIG, PARTIAL, ENDED, MARK].map(|name| path.join(name));
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
fn is_same(_: &File, path: &Path) -> bool {
    path.exists()
}
