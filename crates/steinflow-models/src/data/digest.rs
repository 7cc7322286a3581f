//! The fingerprint of a table's content: SHA-256 over its numbers.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use steinflow::Matrix;

/// SHA-256 of the numbers in row order, each as the eight little-endian bytes of its `f64` (with −0
/// as 0), in lower-case hexadecimal.
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

/// Bytes, two digits each.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
