//! Checkpoint files: a run between two steps, with its settings and what it has recorded.
//!
//! ```text
//! "steinflow checkpoint 4\n"    so that a person who looks into the file knows it, and its version
//! length of the payload         u64, little-endian like all that follows
//! payload                       see payload.rs
//! SHA-256 of all of the above   32 bytes
//! ```
//!
//! Nothing in a file is used before its checksum is found right.

mod bytes;
mod payload;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use steinflow::Real;
use steinflow::run::{Checkpoint, Samples, TraceRow};

use crate::checksum::Summing;
use crate::{Error, Result};
use bytes::{Damage, Eye};

const NAME: &str = "steinflow checkpoint ";
/// Raised when the payload changes.
const VERSION: &str = "4";
const CHECKSUM: usize = 32;

/// A run as a checkpoint file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedRun<'a, T: Real> {
    /// The settings, as `config.toml` has them.
    pub config: String,
    /// Fingerprints of the files that the run reads, a line each.
    pub inputs: String,
    /// Where the run is.
    pub checkpoint: Checkpoint<T>,
    /// The rows of its trace so far.
    pub trace: Cow<'a, [TraceRow]>,
    /// What it has collected so far, if it collects.
    pub samples: Option<Collected<'a, T>>,
    /// θ of some particles at some steps, if it keeps them for an animation.
    pub frames: Option<Collected<'a, f32>>,
}

/// Samples that were collected: see [`Samples`].
#[derive(Clone, Debug, PartialEq)]
pub struct Collected<'a, T: Real> {
    /// Particles of a draw.
    pub chains: usize,
    /// The step of every draw.
    pub steps: Cow<'a, [u64]>,
    /// θ, draw after draw and particle after particle.
    pub values: Cow<'a, [T]>,
}

impl<'a, T: Real> From<&'a Samples<T>> for Collected<'a, T> {
    fn from(samples: &'a Samples<T>) -> Self {
        Self {
            chains: samples.chains(),
            steps: samples.steps().into(),
            values: samples.values().into(),
        }
    }
}

/// Writes the bytes of a checkpoint file.
pub fn write_checkpoint<T: Real>(run: &SavedRun<'_, T>, out: impl Write) -> io::Result<()> {
    // Twice through the numbers, so that they are never in memory as bytes.
    let mut length = Counter(0);
    payload::write(run, &mut length)?;
    let mut out = Summing::new(BufWriter::with_capacity(1 << 16, out));
    out.write_all(format!("{NAME}{VERSION}\n").as_bytes())?;
    out.write_all(&length.0.to_le_bytes())?;
    payload::write(run, &mut out)?;
    let checksum = out.digest();
    out.write_all(&checksum)?;
    out.flush()
}

/// The bytes of a checkpoint file whose checksum is right.
#[derive(Clone, Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    payload: Vec<u8>,
}

impl CheckpointFile {
    /// Reads a file and checks its frame.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(Error::io("read", path))?;
        Self::parse(path, bytes)
    }

    /// Checks the frame of bytes that were read from `path`.
    pub fn parse(path: &Path, mut bytes: Vec<u8>) -> Result<Self> {
        let range = frame(&bytes).map_err(|reason| damaged(path, reason))?;
        bytes.truncate(range.end);
        bytes.drain(..range.start);
        let file = Self { path: path.to_owned(), payload: bytes };
        file.opening()?;
        Ok(file)
    }

    /// The run's settings, as `config.toml` has them.
    pub fn config(&self) -> &str {
        self.opening().map_or("", |opening| opening.config)
    }

    /// Fingerprints of the files that the run reads.
    pub fn inputs(&self) -> &str {
        self.opening().map_or("", |opening| opening.inputs)
    }

    /// Steps taken.
    pub fn step(&self) -> u64 {
        self.opening().map_or(0, |opening| opening.step)
    }

    /// The run, in the precision that its settings name.
    pub fn decode<T: Real>(&self) -> Result<SavedRun<'static, T>> {
        payload::read(&self.payload).map_err(|reason| damaged(&self.path, reason))
    }

    fn opening(&self) -> Result<payload::Opening<'_>> {
        payload::read_opening(&mut Eye(&self.payload)).map_err(|reason| damaged(&self.path, reason))
    }
}

fn damaged(path: &Path, reason: Damage) -> Error {
    Error::CheckpointDamaged { path: path.to_owned(), reason }
}

/// Where the payload is in the bytes of a file that is whole.
fn frame(bytes: &[u8]) -> std::result::Result<std::ops::Range<usize>, Damage> {
    let Some(rest) = bytes.strip_prefix(NAME.as_bytes()) else {
        return Err("does not begin as a checkpoint does".to_owned());
    };
    // No version will have more digits.
    let end = rest.iter().take(8).position(|&byte| byte == b'\n');
    let Some(end) = end else { return Err("has no version".to_owned()) };
    let version = String::from_utf8_lossy(&rest[..end]);
    if version != VERSION {
        return Err(format!("is of version `{version}`, and this program knows {VERSION}"));
    }
    let start = NAME.len() + end + 1 + 8;
    let length = bytes.get(start - 8..start).ok_or("is cut short")?;
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes were taken"));
    let body = bytes.len().checked_sub(start + CHECKSUM).ok_or("is cut short")?;
    if length != body as u64 {
        return Err(format!("should have {length} bytes of content and has {body}"));
    }
    let (content, checksum) = bytes.split_at(start + body);
    if Sha256::digest(content).as_slice() != checksum {
        return Err("has another checksum than it should".to_owned());
    }
    Ok(start..start + body)
}

/// Counts what would be written.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
