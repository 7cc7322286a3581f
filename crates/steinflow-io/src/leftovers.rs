//! Names with the number of a process in them, and what processes that were killed have left under such
//! names.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::manifest::MANIFEST;
use crate::{Error, Result};

/// Makes a folder `PREFIX-PID`, or `PREFIX-PID-1` and so on where that name is taken.
pub(crate) fn create_unique(parent: &Path, prefix: &str) -> Result<PathBuf> {
    let pid = std::process::id();
    let mut attempt = 0_usize;
    loop {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = parent.join(format!("{prefix}-{pid}{suffix}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(Error::io("create a folder in", parent)(error)),
        }
    }
}

/// Removes the folders `PREFIXpid` and `PREFIXpid-k` whose process is gone.
///
/// One with a manifest is a complete run, which stays unless `complete` ones may go too.
pub(crate) fn remove_stale(parent: &Path, prefix: &str, complete: bool) {
    for entry in stale(parent, prefix) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && (complete || !entry.path().join(MANIFEST).exists()) {
            // A leftover that cannot be removed is no reason to fail the run.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the files `PREFIXpid` whose process is gone.
pub(crate) fn remove_stale_files(parent: &Path, prefix: &str) {
    for entry in stale(parent, prefix) {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What is called `PREFIXpid` or `PREFIXpid-k` after a process that is gone.
fn stale(parent: &Path, prefix: &str) -> Vec<DirEntry> {
    // Elsewhere, or where it is hidden, there is no telling which processes live.
    if !(cfg!(target_os = "linux") && Path::new("/proc/self").exists()) {
        return Vec::new();
    }
    let is_stale = |entry: &DirEntry| {
        let name = entry.file_name();
        let Some(suffix) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else {
            return false;
        };
        let (pid, attempt) = suffix.split_once('-').unwrap_or((suffix, "1"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_number(pid) && is_number(attempt) && !Path::new("/proc").join(pid).exists()
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(is_stale).collect()
}
