//! `--live`: who is answered, and that the run does not notice.

mod support {
    pub mod desk;
}

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};

use support::desk::Desk;

/// A run that goes on until it is told to stop, and the port of its page.
struct Endless {
    child: Child,
    port: u16,
    /// Open as long as the run may have something to say.
    _stderr: BufReader<ChildStderr>,
}

impl Endless {
    fn start(desk: &Desk, model: &str) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
            .current_dir(desk.0.path())
            .args([
                "sample",
                model,
                "-m",
                "svgd",
                "--steps",
                "1000000000",
                "--step-size",
                "0.001",
                "-n",
                "20",
            ])
            .args(["--trace-every", "100000", "-q", "--out", "run", "--live"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap();
        let port = port.parse().unwrap_or_else(|_| panic!("{line}"));
        Self { child, port, _stderr: stderr }
    }

    /// Sends bytes and gives the answer, if there is one.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        let port = self.port;
        self.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
    }

    fn body(&self, path: &str) -> String {
        let answer = self.get(path);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_follows_the_run() {
    let desk = Desk::new();
    let run = Endless::start(&desk, "banana");
    let page = run.body("/");
    assert!(page.contains("Under way") && page.contains("id=\"animation\""), "{page}");
    let step = || {
        let state: serde_json::Value = serde_json::from_str(&run.body("/state")).unwrap();
        let run = &state["runs"][0];
        assert!(state["now"].as_str().unwrap().contains("under way"));
        assert_eq!(run["points"]["columns"][0].as_array().unwrap().len(), 20);
        run["frames"]["steps"][0].as_u64().unwrap()
    };
    let first = step();
    while step() == first {}
}

#[test]
fn strangers_and_nonsense_are_refused() {
    let desk = Desk::new();
    let run = Endless::start(&desk, "gaussian");
    let port = run.port;
    let status = |bytes: &[u8]| {
        let answer = run.send(bytes);
        answer.split(' ').nth(1).unwrap_or("none").to_owned()
    };
    let own = format!("Host: 127.0.0.1:{port}");
    let cases = [
        (format!("GET / HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n"), "403"),
        (format!("GET /state HTTP/1.1\r\n{own}\r\nOrigin: http://evil.test\r\n\r\n"), "403"),
        (format!("POST / HTTP/1.1\r\n{own}\r\nContent-Length: 5\r\n\r\nhello"), "405"),
        (format!("GET /config.toml HTTP/1.1\r\n{own}\r\n\r\n"), "404"),
        ("\0\u{1}garbage\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\n{own}\r\nX: {}\r\n\r\n", "x".repeat(20_000)), "431"),
    ];
    for (request, expected) in cases {
        assert_eq!(status(request.as_bytes()), expected, "{request}");
    }
    // It still answers its own user, and writes nothing.
    run.body("/");
    assert_eq!(
        desk.listing(),
        [".run.partial-", "run.unfinished"].map(|name| {
            if name.ends_with('-') { format!("{name}{}", run.child.id()) } else { name.to_owned() }
        })
    );
}

#[cfg(unix)]
#[test]
fn visitors_who_say_nothing_do_not_hold_up_the_end() {
    let desk = Desk::new();
    let mut run = Endless::start(&desk, "banana");
    let silent: Vec<TcpStream> =
        (0..30).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, run.port)).unwrap()).collect();
    Command::new("kill").args(["-INT", &run.child.id().to_string()]).status().unwrap();
    assert_eq!(run.child.wait().unwrap().code(), Some(130));
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, run.port)).is_err(), "nobody listens");
    assert!(desk.path("run/particles.parquet").exists());
    drop(silent);
}

#[test]
fn a_watched_run_has_the_same_bits() {
    let desk = Desk::new();
    desk.write(
        "settings.toml",
        "model = 'tri-crescent'\nmethod = 'svgd'\nsteps = 300\nstep-size = '0.01'\n",
    );
    let run = "sample --config settings.toml -q";
    desk.succeed(&format!("{run} --out alone"));
    desk.succeed(&format!("{run} --out watched --live"));
    assert_eq!(desk.read("alone/config.toml"), desk.read("watched/config.toml"));
    for name in ["particles.parquet", "frames.parquet", "particles.png"] {
        let read = |folder: &str| fs::read(desk.path(folder).join(name)).unwrap();
        assert!(read("alone") == read("watched"), "{name}");
    }
}

#[test]
fn a_port_in_use_is_told_before_the_run_starts() {
    let desk = Desk::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    desk.fail(
        &format!("sample -m svgd banana --steps 5 --out run --live {port}"),
        2,
        &[&format!("port {port}"), "--live PORT"],
    );
    desk.fail("sample --live banana", 2, &["port", "put --live last"]);
}

#[test]
fn slow_visitors_are_in_nobodys_way() {
    let desk = Desk::new();
    let run = Endless::start(&desk, "banana");
    let slow: Vec<TcpStream> = (0..24)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, run.port)).unwrap();
            stream.write_all(b"GET / HT").unwrap();
            stream
        })
        .collect();
    // All of them still wait when somebody else asks, again and again.
    for _ in 0..3 {
        assert!(run.body("/state").contains("under way"));
        assert!(run.body("/").contains("Under way"));
    }
    drop(slow);
}
