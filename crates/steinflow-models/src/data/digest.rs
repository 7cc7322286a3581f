//! Fingerprints: SHA-256 of a table's numbers, or of a file's bytes, in lower-case hexadecimal.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use steinflow::Matrix;

/// SHA-256 of the numbers in row order, each as the eight little-endian bytes of its `f64` (with −0
/// as 0).
///
/// Numbers rather than text, because one archive writes `2.50` where another writes `2.5`.
pub fn content_sha256(values: &Matrix<f64>) -> String {
    let mut hasher = Sha256::new();
    for row in 0..values.rows() {
        for &value in values.row(row) {
            // −0 + 0 is 0; every other number stays itself.
            hasher.update((value + 0.0).to_le_bytes());
        }
    }
    hexadecimal(&hasher.finalize())
}

/// SHA-256 of a text.
pub(crate) fn text_sha256(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

/// SHA-256 of the bytes of a file.
pub fn file_sha256(file: impl AsRef<Path>) -> io::Result<String> {
    let mut file = File::open(file)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hexadecimal(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of FIPS 180.
    #[test]
    fn fingerprints_are_sha256() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(file_sha256(&file).unwrap(), abc);
        // The bytes of 0 are eight zeros, with either sign.
        std::fs::write(&file, [0; 16]).unwrap();
        let zeros = Matrix::from_vec(vec![0.0, -0.0], 1, 2).unwrap();
        assert_eq!(content_sha256(&zeros), file_sha256(&file).unwrap());
    }
}
