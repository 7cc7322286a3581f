//! `steinflow data fetch`: download, unpack, convert, check, keep.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flate2::Compression;
use flate2::write::GzEncoder;
use steinflow_models::data::{
    Archive, DataSet, Fingerprint, MAX_TEXT_BYTES, cache_folder, data_set, file_sha256, find,
};

use super::download::{discard, download};
use super::{FetchError, Trouble, archive, convert};
use crate::args::FetchArguments;
use crate::error::Result;

/// The most that any set but the largest may take, packed or unpacked: the next has 4 MB.
const SMALL: u64 = 64 << 20;

pub fn command(arguments: &FetchArguments, folder: Option<&Path>) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let set = data_set(&arguments.name)?;
    let Some(name) = set.file_names().first().cloned() else {
        writeln!(out, "{} is built in: there is nothing to fetch", set.name)?;
        return Ok(ExitCode::SUCCESS);
    };
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => cache_folder().ok_or(FetchError::NoFolder)?,
    };
    let file = folder.join(&name);
    if file.exists() && !arguments.force {
        find(set.name, Some(&folder))?.table()?;
        writeln!(out, "{} is already here: {}", set.name, file.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut tries = Vec::new();
    for source in sources(set, arguments.from.as_deref())? {
        match fetch(set, &source, &file, arguments.quiet) {
            Ok(()) => {
                writeln!(out, "{} is here: {}", set.name, file.display())?;
                writeln!(out, "licence: {}; cite: {}", set.licence, set.citation)?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(trouble) => tries.push((source.place.to_string(), trouble)),
        }
    }
    let by_hand: Vec<&str> = set.archives.iter().map(|archive| archive.url).collect();
    let by_hand = by_hand.join(" or ");
    Err(FetchError::Unfetched { name: set.name, tries, by_hand, file: name, folder }.into())
}

/// Where an archive is, and how to read it.
struct Source {
    place: Place,
    archive: Archive,
}

enum Place {
    Url(String),
    File(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => out.write_str(url),
            Self::File(file) => write!(out, "{}", file.display()),
        }
    }
}

/// The publishers, or what the user gives, read as any of their files.
fn sources(set: &DataSet, from: Option<&str>) -> Result<Vec<Source>, FetchError> {
    set.archives
        .iter()
        .map(|&archive| {
            let place = match from {
                None => Place::Url(archive.url.to_owned()),
                Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
                    Place::Url(url.to_owned())
                }
                Some(file) if Path::new(file).is_file() => Place::File(file.into()),
                Some(from) => return Err(FetchError::FileMissing { from: from.to_owned() }),
            };
            Ok(Source { place, archive })
        })
        .collect()
}

fn fetch(set: &DataSet, source: &Source, file: &Path, quiet: bool) -> Result<(), Trouble> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let cannot_write = |source| Trouble::Write { file: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(cannot_write)?;
    let limit =
        if matches!(set.fingerprint, Fingerprint::File(_)) { MAX_TEXT_BYTES } else { SMALL };
    match &source.place {
        Place::File(packed) => keep(set, &source.archive, packed, file, limit),
        Place::Url(url) => {
            let part = folder.join(format!("{}.part", set.name));
            download(url, &part, limit, quiet)?;
            let official = source.archive.sha256.filter(|_| source.archive.url == url);
            let kept = official
                .map_or(Ok(()), |expected| check_bytes(&part, expected))
                .and_then(|()| keep(set, &source.archive, &part, file, limit));
            // Whole, so there is nothing to go on from: right and used, or wrong and of no use.
            discard(&part);
            kept
        }
    }
}

fn check_bytes(file: &Path, expected: &'static str) -> Result<(), Trouble> {
    let found =
        file_sha256(file).map_err(|source| Trouble::Read { file: file.to_owned(), source })?;
    if found == expected { Ok(()) } else { Err(Trouble::OtherBytes { found, expected }) }
}

/// Unpacks, converts and checks, then puts the result in its place in one step: there is never half a
/// file under the set's name.
fn keep(
    set: &DataSet,
    archive: &Archive,
    packed: &Path,
    file: &Path,
    limit: u64,
) -> Result<(), Trouble> {
    let new = file.with_file_name(format!("{}.{}.new", set.name, std::process::id()));
    let cannot_write = |source| Trouble::Write { file: new.clone(), source };
    let written = (|| {
        let mut out = BufWriter::new(File::create(&new).map_err(cannot_write)?);
        match set.fingerprint {
            Fingerprint::File(_) => archive::unpack(packed, archive.member, limit, &mut out)?,
            Fingerprint::Numbers(_) => {
                let mut bytes = Vec::new();
                archive::unpack(packed, archive.member, limit, &mut bytes)?;
                let text = convert::to_csv(&bytes, set, archive, limit)?;
                let mut encoder = GzEncoder::new(&mut out, Compression::best());
                encoder.write_all(text.as_bytes()).map_err(cannot_write)?;
                encoder.finish().map_err(cannot_write)?;
            }
        }
        let out = out.into_inner().map_err(|error| cannot_write(error.into_error()))?;
        out.sync_all().map_err(cannot_write)?;
        if let Fingerprint::File(expected) = set.fingerprint {
            check_bytes(&new, expected)?;
        }
        std::fs::rename(&new, file).map_err(cannot_write)
    })();
    if written.is_err() {
        // It may not have been made.
        let _ = std::fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
