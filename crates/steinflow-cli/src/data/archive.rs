//! The file that holds the table, taken out of what was downloaded: a zip archive, gzip, or itself.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use super::Trouble;

const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
/// How old Excel files begin.
pub const XLS_MAGIC: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0];

/// What every `.xlsx` file, which is a zip archive too, has inside.
const XLSX_MARK: &str = "[Content_Types].xml";

/// Writes the file called `member`, in whatever folder of the archive it is, to `out`. A file that is
/// no archive is taken as it is. Never writes more than `limit` bytes.
pub fn unpack(
    file: &Path,
    member: Option<&str>,
    limit: u64,
    out: &mut dyn Write,
) -> Result<(), Trouble> {
    let unreadable = |source| Trouble::Read { file: file.to_owned(), source };
    let mut opened = File::open(file).map_err(unreadable)?;
    let mut magic = Vec::new();
    (&mut opened).take(4).read_to_end(&mut magic).map_err(unreadable)?;
    opened.rewind().map_err(unreadable)?;
    let is_xlsx = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xlsx"));
    if is_xlsx && magic != ZIP_MAGIC && magic != XLS_MAGIC {
        return Err(Trouble::NotExcel("it is no zip archive".to_owned()));
    }
    if magic == ZIP_MAGIC {
        let mut archive = ZipArchive::new(BufReader::new(opened)).map_err(damaged)?;
        if archive.index_for_name(XLSX_MARK).is_none() {
            if is_xlsx {
                return Err(Trouble::NotExcel(format!("there is no `{XLSX_MARK}` in it")));
            }
            return take_member(&mut archive, member.unwrap_or_default(), limit, out, true);
        }
        let opened = File::open(file).map_err(unreadable)?;
        return copy(opened, limit, out);
    }
    if magic.starts_with(GZIP_MAGIC) {
        return copy(MultiGzDecoder::new(BufReader::new(opened)), limit, out);
    }
    copy(opened, limit, out)
}

/// How many bytes a zip archive unpacks to; nothing is kept, and nothing is believed.
pub fn unpacked_size(bytes: &[u8], limit: u64) -> Result<u64, Trouble> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut total = 0;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(damaged)?;
        total += io::copy(&mut entry.take(limit + 1 - total), &mut io::sink()).map_err(damaged)?;
        if total > limit {
            return Err(Trouble::TooLarge(limit));
        }
    }
    Ok(total)
}

fn take_member<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    member: &str,
    limit: u64,
    out: &mut dyn Write,
    look_inside: bool,
) -> Result<(), Trouble> {
    let names: Vec<String> =
        archive.file_names().filter_map(Result::ok).map(std::borrow::Cow::into_owned).collect();
    let last = |name: &str| name.rsplit(['/', '\\']).next().unwrap_or(name).to_owned();
    if let Some(name) = names.iter().find(|name| last(name).eq_ignore_ascii_case(member)) {
        return copy(archive.by_name(name).map_err(damaged)?, limit, out);
    }
    // Some archives hold the archive that was published before.
    let is_zip = |name: &&String| Path::new(name).extension().is_some_and(|e| e == "zip");
    if look_inside && let Some(name) = names.iter().find(is_zip) {
        let mut bytes = Vec::new();
        copy(archive.by_name(name).map_err(damaged)?, limit, &mut bytes)?;
        let mut inner = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        return take_member(&mut inner, member, limit, out, false);
    }
    Err(Trouble::NoMember { member: member.to_owned(), found: names.join(", ") })
}

fn copy(reader: impl Read, limit: u64, out: &mut dyn Write) -> Result<(), Trouble> {
    // One byte more than allowed tells what is too long from what just fits.
    let written = io::copy(&mut reader.take(limit + 1), out).map_err(damaged)?;
    if written > limit { Err(Trouble::TooLarge(limit)) } else { Ok(()) }
}

fn damaged(error: impl std::fmt::Display) -> Trouble {
    Trouble::Damaged(error.to_string())
}
