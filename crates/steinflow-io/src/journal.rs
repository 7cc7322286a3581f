//! Results of long experiments, kept job by job: a command that is killed goes on where it stood.
//!
//! A journal is a text file of JSON lines. The first holds the settings that the results belong to,
//! each further one the key and the result of a job.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result};

#[derive(Deserialize, Serialize)]
struct Header {
    settings: String,
}

#[derive(Deserialize, Serialize)]
struct Entry<V> {
    job: String,
    result: V,
}

/// An open journal; no other process can open it meanwhile.
///
/// ```
/// use steinflow_io::Journal;
/// # let path = std::env::temp_dir().join(format!("steinflow-journal-doc-{}", std::process::id()));
/// let journal = Journal::open(&path, "steps = 10")?;
/// journal.record("seed 1", &0.25)?;
/// drop(journal);
///
/// let again = Journal::open(&path, "steps = 10")?;
/// assert_eq!(again.find::<f64>("seed 1"), Some(0.25));
/// assert!(again.find::<f64>("seed 2").is_none());
/// drop(again);
/// assert!(Journal::open(&path, "steps = 20").is_err());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), steinflow_io::Error>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    done: HashMap<String, Value>,
}

impl Journal {
    /// Opens the journal of an experiment with these settings, or begins one.
    ///
    /// A last line that was cut short by a kill is dropped. Results of other settings are an error,
    /// never mixed in and never deleted.
    pub fn open(path: impl AsRef<Path>, settings: &str) -> Result<Self> {
        let path = path.as_ref();
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create folder", parent))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Error::io("write", path))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::JournalInUse { path: path.to_owned() },
            TryLockError::Error(source) => Error::io("lock", path)(source),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
        // A line that was cut short may end inside a character.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let mut journal =
            Self { path: path.to_owned(), file: Mutex::new(file), done: HashMap::new() };
        let mut lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
        let own = Header { settings: settings.to_owned() };
        match lines.next() {
            // Nothing, or the beginning of a first line: anything else is not ours to erase.
            None if line_of(&own)?.starts_with(&bytes) => {
                journal.cut(0)?;
                journal.append(&own)?;
            }
            None => return Err(Error::NotAJournal { path: path.to_owned() }),
            Some(first) => {
                let Ok(header) = serde_json::from_slice::<Header>(first) else {
                    return Err(Error::NotAJournal { path: path.to_owned() });
                };
                if header.settings != settings {
                    return Err(Error::OtherJournal { path: path.to_owned() });
                }
                for (number, line) in lines.enumerate() {
                    let entry: Entry<Value> = serde_json::from_slice(line).map_err(|error| {
                        let (path, line) = (path.to_owned(), number + 2);
                        Error::JournalDamaged { path, line, reason: error.to_string() }
                    })?;
                    journal.done.insert(entry.job, entry.result);
                }
                journal.cut(whole as u64)?;
            }
        }
        Ok(journal)
    }

    /// How many results were in it when it was opened.
    pub fn found(&self) -> usize {
        self.done.len()
    }

    /// The result of a job that was in the journal when it was opened.
    pub fn find<R: DeserializeOwned>(&self, job: &str) -> Option<R> {
        serde_json::from_value(self.done.get(job)?.clone()).ok()
    }

    /// Keeps a result; it is on the disk when this returns.
    pub fn record(&self, job: &str, result: &impl Serialize) -> Result<()> {
        self.append(&Entry { job: job.to_owned(), result })
    }

    /// Deletes the journal, once its results stand somewhere else.
    pub fn delete(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(Error::io("delete", &self.path))
    }

    fn append(&self, line: &impl Serialize) -> Result<()> {
        let bytes = line_of(line)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes)
            .and_then(|()| file.sync_data())
            .map_err(Error::io("write", &self.path))
    }

    /// Drops what stands after `length` bytes.
    fn cut(&self, length: u64) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.set_len(length)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map(|_| ())
            .map_err(Error::io("write", &self.path))
    }
}

fn line_of(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
