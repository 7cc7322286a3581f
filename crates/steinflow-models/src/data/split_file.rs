//! Split files: one line per split, the zero-based numbers of its test rows separated by spaces.

use std::fs::File;
use std::path::Path;

use super::SplitError;
use super::text::read_limited;

/// Far above the longest standard file (0.5 MB), far below what could hurt.
const MAX_SPLIT_BYTES: u64 = 64 << 20;

/// The test rows of every split in a file, plain or compressed with gzip.
pub(super) fn read(file: &Path) -> Result<Vec<Vec<usize>>, SplitError> {
    let cannot_read = |source| SplitError::Read { file: file.to_owned(), source };
    let opened = File::open(file).map_err(cannot_read)?;
    let (text, _) = read_limited(opened, MAX_SPLIT_BYTES)
        .map_err(cannot_read)?
        .ok_or_else(|| SplitError::TooLarge { file: file.to_owned(), limit: MAX_SPLIT_BYTES })?;
    // Empty lines are kept: they would shift the numbers of the splits below.
    text.trim_end()
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let row = |word: &str| {
                let not_a_row = |_| SplitError::NotARow {
                    file: file.to_owned(),
                    line: index + 1,
                    text: word.to_owned(),
                };
                word.parse().map_err(not_a_row)
            };
            line.split_whitespace().map(row).collect()
        })
        .collect()
}
