//! One file over HTTP, to a `.part` file that a later attempt goes on from.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ureq::http::{HeaderMap, StatusCode, header};
use ureq::{Agent, Body};

use super::Trouble;

/// How often a connection may break off before the user is asked.
const ATTEMPTS: u32 = 5;
/// Nothing arrives for this long: the connection is dead.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(20);
/// Less than this in the time of a [`SILENCE`] is as good as nothing.
const LEAST: u64 = 64 << 10;

/// Downloads `url` to the file `part`, at most `limit` bytes. Where an earlier attempt left part of
/// the same version of the file, only the rest is asked for.
pub fn download(url: &str, part: &Path, limit: u64, quiet: bool) -> Result<(), Trouble> {
    let agent: Agent = Agent::config_builder()
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("steinflow/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .build()
        .into();
    let bar = if quiet { ProgressBar::hidden() } else { progress(url) };
    let mut attempt = 1;
    let done = loop {
        match one_attempt(&agent, url, part, limit, &bar) {
            Err(Trouble::BrokeOff(_)) if attempt < ATTEMPTS => {
                sleep(Duration::from_millis(100 << attempt));
                attempt += 1;
            }
            done => break done,
        }
    };
    bar.finish_and_clear();
    done
}

/// Removes a `.part` file and what is known of it.
pub fn discard(part: &Path) {
    // What cannot be removed is written over by the next download.
    let _ = std::fs::remove_file(part);
    let _ = std::fs::remove_file(version_file(part));
}

fn one_attempt(
    agent: &Agent,
    url: &str,
    part: &Path,
    limit: u64,
    bar: &ProgressBar,
) -> Result<(), Trouble> {
    let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity");
    let resume = resumable(url, part);
    if let Some((length, version)) = &resume {
        request = request
            .header(header::RANGE, format!("bytes={length}-"))
            .header(header::IF_RANGE, version);
    }
    let response = request.call().map_err(|error| Trouble::NoConnection(error.to_string()))?;
    let (head, body) = response.into_parts();
    let mut length = match head.status {
        StatusCode::OK => {
            discard(part);
            0
        }
        StatusCode::PARTIAL_CONTENT => {
            let asked = resume.map_or(0, |(length, _)| length);
            if range_start(&head.headers) != Some(asked) {
                discard(part);
                return Err(Trouble::BrokeOff("the server sends another part".to_owned()));
            }
            asked
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            discard(part);
            return Err(Trouble::BrokeOff("the server has no more of it".to_owned()));
        }
        status if status.is_server_error() => {
            return Err(Trouble::BrokeOff(format!("the server answers {}", status.as_u16())));
        }
        status => return Err(Trouble::Status(status.as_u16())),
    };
    let total = body.content_length().map(|rest| length + rest);
    if total.is_some_and(|total| total > limit) {
        return Err(Trouble::TooLarge(limit));
    }
    remember_version(url, part, &head.headers)?;
    bar.set_length(total.unwrap_or(0));
    bar.set_position(length);
    append(body, part, &mut length, limit, bar)?;
    match total {
        Some(total) if length != total => {
            Err(Trouble::BrokeOff(format!("after {length} of {total} bytes")))
        }
        _ => Ok(()),
    }
}

fn append(
    body: Body,
    part: &Path,
    length: &mut u64,
    limit: u64,
    bar: &ProgressBar,
) -> Result<(), Trouble> {
    let cannot_write = |source| Trouble::Write { file: part.to_owned(), source };
    let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(cannot_write)?;
    let mut reader = body.into_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut pace = Pace { since: Instant::now(), length: *length };
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return file.sync_all().map_err(cannot_write),
            Ok(count) => count,
            Err(error) => return Err(Trouble::BrokeOff(error.to_string())),
        };
        *length += count as u64;
        if *length > limit {
            discard(part);
            return Err(Trouble::TooLarge(limit));
        }
        file.write_all(&buffer[..count]).map_err(cannot_write)?;
        bar.set_position(*length);
        if pace.is_too_slow(Instant::now(), *length) {
            let (kibibytes, seconds) = (LEAST >> 10, SILENCE.as_secs());
            let slow = format!("the server sends less than {kibibytes} KiB in {seconds} s");
            return Err(Trouble::BrokeOff(slow));
        }
    }
}

/// How much had come by when.
struct Pace {
    since: Instant,
    length: u64,
}

impl Pace {
    /// Whether too little has come in a [`SILENCE`].
    fn is_too_slow(&mut self, now: Instant, length: u64) -> bool {
        if now.duration_since(self.since) < SILENCE {
            return false;
        }
        let is_slow = length - self.length < LEAST;
        (self.since, self.length) = (now, length);
        is_slow
    }
}

/// The bytes that are here and the version of the file that they are of, if the server gave it one.
fn resumable(url: &str, part: &Path) -> Option<(u64, String)> {
    let length = std::fs::metadata(part).ok()?.len();
    let known = std::fs::read_to_string(version_file(part)).ok()?;
    let (of, version) = known.split_once('\n')?;
    (length > 0 && of == url).then(|| (length, version.to_owned()))
}

/// Keeps what tells this version of the file from another: without it, a rest cannot be trusted to
/// belong to the beginning.
fn remember_version(url: &str, part: &Path, headers: &HeaderMap) -> Result<(), Trouble> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // A weak tag allows bytes to differ.
    let tag = text(header::ETAG).filter(|tag| !tag.starts_with("W/"));
    let Some(version) = tag.or_else(|| text(header::LAST_MODIFIED)) else { return Ok(()) };
    let file = version_file(part);
    File::create(&file)
        .and_then(|mut opened| opened.write_all(format!("{url}\n{version}").as_bytes()))
        .map_err(|source| Trouble::Write { file, source })
}

fn version_file(part: &Path) -> PathBuf {
    part.with_extension("version")
}

/// N of `Content-Range: bytes N-M/TOTAL`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

fn progress(url: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} eta {eta}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar())
    .progress_chars("=> ");
    let name = url.rsplit('/').next().unwrap_or(url).to_owned();
    ProgressBar::new(0).with_style(style).with_prefix(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_sends_a_byte_a_second_is_given_up_on() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut slow = Pace { since: begun, length: 7 };
        assert_eq!((1..100).find(|&second| slow.is_too_slow(at(second), 7 + second)), Some(60));
        let mut fine = Pace { since: begun, length: 7 };
        assert!(!(1..1000).any(|second| fine.is_too_slow(at(second), 7 + 2000 * second)));
        // Whatever had come before, what comes now decides.
        assert!((1000..1200).any(|second| fine.is_too_slow(at(second), 2_000_007)));
    }
}
