//! As much of HTTP/1.1 as one page for one user takes, and no more.
//!
//! Another page in the user's browser may send requests here, and by a name of its own that resolves to
//! this machine (DNS rebinding) read the answers. So a request must name this machine itself as `Host`,
//! and as `Origin` if it has one.

use std::io::{ErrorKind, Read as _, Result, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a request; browsers send about a thousand.
const MOST_BYTES: usize = 8192;
/// A visitor who is slower than this is gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// How soon the end of the run is noticed while a visitor is silent.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, PartialEq)]
pub enum Resource {
    Page,
    State,
}

/// Why there is no answer: status and reason.
#[derive(Debug, PartialEq)]
pub struct Refusal(u16, &'static str);

const GARBAGE: Refusal = Refusal(400, "Bad Request");
const FOREIGN: Refusal = Refusal(403, "Forbidden");
const UNKNOWN: Refusal = Refusal(404, "Not Found");
const NOT_GET: Refusal = Refusal(405, "Method Not Allowed");
const SLOW: Refusal = Refusal(408, "Request Timeout");
const LARGE: Refusal = Refusal(431, "Request Header Fields Too Large");

pub struct Response {
    status: u16,
    reason: &'static str,
    kind: &'static str,
    body: Arc<str>,
}

impl Response {
    pub fn html(body: Arc<str>) -> Self {
        Self { status: 200, reason: "OK", kind: "text/html; charset=utf-8", body }
    }

    pub fn json(body: Arc<str>) -> Self {
        Self { status: 200, reason: "OK", kind: "application/json", body }
    }
}

impl From<Refusal> for Response {
    fn from(Refusal(status, reason): Refusal) -> Self {
        let body = format!("{reason}\n").into();
        Self { status, reason, kind: "text/plain; charset=utf-8", body }
    }
}

pub fn prepare(stream: &TcpStream) -> Result<()> {
    // Where accepted connections take after their listener.
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// The lines of a request up to the empty one.
pub fn read_head(
    mut stream: &TcpStream,
    is_over: impl Fn() -> bool,
) -> std::result::Result<Vec<u8>, Refusal> {
    let (begun, mut head, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    loop {
        if begun.elapsed() > PATIENCE || is_over() {
            return Err(SLOW);
        }
        match stream.read(&mut part) {
            Ok(0) => return Err(GARBAGE),
            Ok(count) => head.extend_from_slice(&part[..count]),
            Err(error) if is_patience(error.kind()) => continue,
            Err(_) => return Err(GARBAGE),
        }
        if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(head);
        }
        if head.len() > MOST_BYTES {
            return Err(LARGE);
        }
    }
}

fn is_patience(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// What is asked for, if it may be.
pub fn understand(head: &[u8], port: u16) -> std::result::Result<Resource, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| GARBAGE)?;
    let mut lines = text.split("\r\n");
    let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, path, "HTTP/1.1" | "HTTP/1.0"] = line[..] else { return Err(GARBAGE) };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(GARBAGE);
    }
    let (mut hosts, mut origins) = (Vec::new(), Vec::new());
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(GARBAGE)?;
        match name.to_ascii_lowercase().as_str() {
            "host" => hosts.push(value.trim()),
            "origin" => origins.push(value.trim()),
            _ => {}
        }
    }
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let is_own = |host: &str| own.iter().any(|own| own.eq_ignore_ascii_case(host));
    let [host] = hosts[..] else { return Err(GARBAGE) };
    let is_own_origin = |origin: &&str| origin.strip_prefix("http://").is_some_and(is_own);
    if !is_own(host) || !origins.iter().all(is_own_origin) {
        return Err(FOREIGN);
    }
    match (method, path) {
        ("GET", "/") => Ok(Resource::Page),
        ("GET", "/state") => Ok(Resource::State),
        ("GET", _) => Err(UNKNOWN),
        _ => Err(NOT_GET),
    }
}

/// Answers and closes.
pub fn answer(mut stream: &TcpStream, response: &Response) -> Result<()> {
    let Response { status, reason, kind, body } = response;
    let allow = if *status == NOT_GET.0 { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}\
         Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    // What is left of the request must be read, or closing takes the answer back.
    let (begun, mut rest) = (Instant::now(), [0; 4096]);
    while begun.elapsed() < PATIENCE && stream.read(&mut rest).is_ok_and(|count| count > 0) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(head: &str) -> std::result::Result<Resource, u16> {
        understand(head.as_bytes(), 8080).map_err(|Refusal(status, _)| status)
    }

    #[test]
    fn only_this_machine_may_ask() {
        let own = "Host: 127.0.0.1:8080";
        assert_eq!(ask(&format!("GET / HTTP/1.1\r\n{own}")), Ok(Resource::Page));
        assert_eq!(ask("GET /state HTTP/1.1\r\nhOsT: LocalHost:8080"), Ok(Resource::State));
        let origin = |origin: &str| ask(&format!("GET / HTTP/1.1\r\n{own}\r\nOrigin: {origin}"));
        assert_eq!(origin("http://localhost:8080"), Ok(Resource::Page));
        for foreign in ["null", "http://evil.test", "https://127.0.0.1:8080", "http://localhost"] {
            assert_eq!(origin(foreign), Err(403), "{foreign}");
        }
        for host in [
            "evil.test",
            "evil.test:8080",
            "127.0.0.1",
            "127.0.0.1:8081",
            "127.0.0.1.evil.test:8080",
            "",
        ] {
            assert_eq!(ask(&format!("GET / HTTP/1.1\r\nHost: {host}")), Err(403), "{host}");
        }
        let two =
            format!("GET / HTTP/1.1\r\n{own}\r\nOrigin: http://localhost:8080\r\nOrigin: null");
        assert_eq!(ask(&two), Err(403));
    }

    #[test]
    fn only_get_is_answered_and_only_two_paths() {
        for method in ["POST", "HEAD", "OPTIONS", "PUT", "DELETE"] {
            assert_eq!(ask(&format!("{method} / HTTP/1.1\r\nHost: localhost:8080")), Err(405));
        }
        for path in ["/../etc/passwd", "/state?x", "//", "http://localhost:8080/"] {
            assert_eq!(ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost:8080")), Err(404));
        }
    }

    #[test]
    fn garbage_is_told_so() {
        let host = "Host: localhost:8080";
        for head in [
            "",
            "GET",
            "GET /",
            "GET / HTTP/2",
            "get / HTTP/1.1",
            " / HTTP/1.1",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 x",
        ] {
            assert_eq!(ask(&format!("{head}\r\n{host}")), Err(400), "{head}");
        }
        assert_eq!(ask("GET / HTTP/1.1"), Err(400), "no host");
        assert_eq!(ask(&format!("GET / HTTP/1.1\r\n{host}\r\n{host}")), Err(400), "two hosts");
        assert_eq!(ask(&format!("GET / HTTP/1.1\r\n{host}\r\nno colon")), Err(400));
        assert_eq!(understand(b"\xff\xfe", 8080), Err(GARBAGE));
    }
}
