//! The text of a file, plain or gzip-compressed by its content, with a limit on its length; in UTF-8, or as
//! spreadsheets write it on some computers: in UTF-16, or in Windows' code page 1252.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// The longest text that is read from one file, after decompression: 512 MiB. The largest benchmark
/// set (`year`) has 428 MiB; a compressed file that goes on for longer would exhaust the memory.
pub const MAX_TEXT_BYTES: u64 = 512 << 20;

/// How a gzip file begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A text, and the encoding that it was in where that is not UTF-8.
pub(super) type Decoded = (String, Option<&'static str>);

/// Reads all of `reader`, decompressed where it is compressed; `None` when it holds more than `limit`
/// bytes.
pub(super) fn read_limited(reader: impl Read, limit: u64) -> io::Result<Option<Decoded>> {
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
    decode(bytes).map(Some)
}

fn decode(bytes: Vec<u8>) -> io::Result<Decoded> {
    let wide = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        Some([0xfe, 0xff]) => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    if let (Some(unit), (pairs, [])) = (wide, bytes.as_chunks::<2>()) {
        let units: Vec<u16> = pairs[1..].iter().map(|&pair| unit(pair)).collect();
        if let Ok(text) = String::from_utf16(&units) {
            return Ok((text, Some("UTF-16")));
        }
    }
    String::from_utf8(bytes).map(|text| (text, None)).or_else(|error| {
        let text: Option<String> = error.as_bytes().iter().map(|&byte| of_windows(byte)).collect();
        let what = error.utf8_error();
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, what);
        text.map(|text| (text, Some("Windows-1252"))).ok_or_else(wrong)
    })
}

/// The character of a byte of Windows' code page 1252; none where there is none, or where it is not of a text.
fn of_windows(byte: u8) -> Option<char> {
    /// From 0x80 on.
    const OWN: [char; 32] = [
        '€', '\0', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\0', 'Ž', '\0', '\0',
        '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\0', 'ž', 'Ÿ',
    ];
    match byte {
        b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0xa0..=0xff => Some(char::from(byte)),
        0x80..=0x9f => Some(OWN[usize::from(byte - 0x80)]).filter(|&own| own != '\0'),
        _ => None,
    }
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
            assert_eq!(read_limited(&bytes[..], 8).unwrap().unwrap().0, "a,b\n1,2\n");
        }
        assert_eq!(read_limited(&b""[..], 8).unwrap().unwrap().0, "");
        assert_eq!(read_limited(&b"\x1f"[..], 8).unwrap().unwrap().0, "\x1f");
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
        // No text in any encoding.
        assert!(read_limited(&b"\xff\xfe\x00\xd8"[..], 100).is_err());
        assert!(read_limited(&b"a\x00\xff"[..], 100).is_err());
        assert!(read_limited(&b"a\x81"[..], 100).is_err());
    }

    #[test]
    fn encodings_of_spreadsheets_are_known() {
        let read = |bytes: &[u8]| read_limited(bytes, 100).unwrap().unwrap();
        assert_eq!(read("größe €".as_bytes()), ("größe €".to_owned(), None));
        let windows = b"gr\xf6\xdfe \x80";
        assert_eq!(read(windows), ("größe €".to_owned(), Some("Windows-1252")));
        let units = "\u{feff}größe €".encode_utf16();
        let little: Vec<u8> = units.clone().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units.flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            assert_eq!(read(&bytes), ("größe €".to_owned(), Some("UTF-16")));
        }
    }
}
