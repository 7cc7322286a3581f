//! The text of a file, plain or gzip-compressed by its content, with a limit on its length.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// The longest text that is read from one file, after decompression: 512 MiB. The largest benchmark
/// set (`year`) has 428 MiB; a compressed file that goes on for longer would exhaust the memory.
pub const MAX_TEXT_BYTES: u64 = 512 << 20;

/// How a gzip file begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads all of `reader`, decompressed where it is compressed; `None` when it holds more than `limit`
/// bytes.
pub(super) fn read_limited(reader: impl Read, limit: u64) -> io::Result<Option<String>> {
    let mut reader = BufReader::new(reader);
    let mut magic = Vec::new();
    (&mut reader).take(GZIP_MAGIC.len() as u64).read_to_end(&mut magic)?;
    let compressed = magic == GZIP_MAGIC;
    let whole = io::Cursor::new(magic).chain(reader);
    // One byte more than allowed tells a text that is too long from one that just fits.
    let mut bytes = Vec::new();
    if compressed {
        let decoder = MultiGzDecoder::new(BufReader::new(whole));
        decoder.take(limit + 1).read_to_end(&mut bytes)?;
    } else {
        whole.take(limit + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > limit {
        return Ok(None);
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::read_limited;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_recognised_by_content() {
        for bytes in [b"a,b\n1,2\n".to_vec(), gzip(b"a,b\n1,2\n")] {
            assert_eq!(read_limited(&bytes[..], 8).unwrap().unwrap(), "a,b\n1,2\n");
        }
        assert_eq!(read_limited(&b""[..], 8).unwrap().unwrap(), "");
        assert_eq!(read_limited(&b"\x1f"[..], 8).unwrap().unwrap(), "\x1f");
    }

    #[test]
    fn a_text_above_the_limit_is_not_kept() {
        assert!(read_limited(&b"123456789"[..], 8).unwrap().is_none());
        // A million bytes in a thousand.
        let bomb = gzip(&vec![b'0'; 1_000_000]);
        assert!(bomb.len() < 2_000, "{}", bomb.len());
        assert!(read_limited(&bomb[..], 999_999).unwrap().is_none());
        assert!(read_limited(&bomb[..], 1_000_000).unwrap().is_some());
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let mut cut = gzip(b"a,b\n1,2\n");
        cut.truncate(cut.len() - 6);
        assert!(read_limited(&cut[..], 100).is_err());
        assert!(read_limited(&b"\xff\xfe"[..], 100).is_err());
    }
}
