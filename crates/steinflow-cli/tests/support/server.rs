//! A web server for tests: one thread, one answer per connection, and it can break off.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What a client asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// `name: value` in lower case.
    pub headers: Vec<String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }

    /// N of `range: bytes=N-`.
    pub fn range(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What it gets.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
    /// Bytes of the body that are sent before the connection closes.
    pub sent: usize,
}

impl Answer {
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self { status, headers: Vec::new(), body: body.to_vec(), sent: body.len() }
    }

    pub fn header(mut self, line: impl Into<String>) -> Self {
        self.headers.push(line.into());
        self
    }

    pub fn break_off_after(mut self, bytes: usize) -> Self {
        self.sent = bytes;
        self
    }
}

pub struct Server {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers the k-th request, counted from 0, with `answer(k, request)`, for as long as the tests run.
    pub fn start(answer: impl Fn(usize, &Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                let headers = lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .map(|line| {
                        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
                        format!("{}: {value}", name.to_lowercase())
                    })
                    .collect();
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                let request = Request { path, headers };
                let count = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request.clone());
                    seen.len() - 1
                };
                let answer = answer(count, &request);
                let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", answer.status);
                // Chunks have their own lengths.
                if !answer.headers.iter().any(|line| line.starts_with("transfer-encoding")) {
                    let length = answer.body.len().to_string();
                    head = head + "content-length: " + &length + "\r\n";
                }
                for line in &answer.headers {
                    head.push_str(line);
                    head.push_str("\r\n");
                }
                head.push_str("\r\n");
                // The client may have gone; that is its business.
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(&answer.body[..answer.sent]);
            }
        });
        Self { address, requests }
    }

    /// The address of a file on it.
    pub fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}
