//! SHA-256 of files, as text: bits that have changed since they were written are noticed.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The checksum of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

/// The checksum of a file.
pub(crate) fn checksum_of(path: &Path) -> io::Result<String> {
    let mut sum = Summing::new(io::sink());
    io::copy(&mut File::open(path)?, &mut sum)?;
    Ok(sum.finish())
}

fn hexadecimal(sum: Sha256) -> String {
    let mut text = String::new();
    for byte in sum.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A writer that knows the checksum of what went through it.
pub(crate) struct Summing<W> {
    writer: W,
    sum: Sha256,
}

impl<W> Summing<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, sum: Sha256::new() }
    }

    pub(crate) fn finish(self) -> String {
        hexadecimal(self.sum)
    }

    /// The checksum of what went through it so far.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.sum.clone().finalize().into()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.writer.write(bytes)?;
        self.sum.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
