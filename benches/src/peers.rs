//! The peers: a Python process that waits while ours works, and the other way round.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Result;

pub struct Peers {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peers {
    pub fn start(python: &Path) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/serve.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", python.display()))?;
        let to = process.stdin.take().ok_or("no pipe to the peers")?;
        let from = BufReader::new(process.stdout.take().ok_or("no pipe from the peers")?);
        Ok(Self { process, to, from })
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.to, "{request}")?;
        self.to.flush()?;
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            return Err("the peers' process has ended; its last words stand above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// The versions of everything that takes part.
    pub fn versions(&mut self) -> Result<Value> {
        self.ask(&json!({ "do": "versions" }))
    }

    /// Sets up a work on the inputs in `folder`; returns who takes part.
    pub fn prepare(&mut self, kind: &str, folder: &Path, given: &Value) -> Result<Vec<String>> {
        let request = json!({ "do": "prepare", "work": kind, "folder": folder, "given": given });
        Ok(serde_json::from_value(self.ask(&request)?)?)
    }

    /// Has a contender write its answer into the work's folder, under its name.
    pub fn answer(&mut self, contender: &str) -> Result<()> {
        self.ask(&json!({ "do": "answer", "contender": contender })).map(drop)
    }

    /// Seconds that `repeats` repetitions take.
    pub fn time(&mut self, contender: &str, repeats: usize) -> Result<f64> {
        let request = json!({ "do": "time", "contender": contender, "repeats": repeats });
        Ok(serde_json::from_value(self.ask(&request)?)?)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Not waiting for it would leave a zombie; it may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
