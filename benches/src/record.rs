//! What a run leaves behind: raw numbers, versions, machine, command, and tables to read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Result;
use crate::contest::Contest;

pub struct Record {
    folder: PathBuf,
    about: Value,
    contests: Vec<Value>,
    tables: String,
}

impl Record {
    pub fn new(folder: &Path, versions: Option<Value>) -> Self {
        let about = json!({
            "command": "cargo xtask bench",
            "arguments": std::env::args().skip(1).filter(|a| !a.contains('/')).collect::<Vec<_>>(),
            "steinflow": env!("CARGO_PKG_VERSION"),
            "peers": versions,
            "machine": machine(),
            "threads": rayon::current_num_threads(),
        });
        Self { folder: folder.to_owned(), about, contests: Vec::new(), tables: String::new() }
    }

    pub fn add(&mut self, contest: &Contest) -> Result<()> {
        self.contests.push(serde_json::to_value(contest)?);
        self.tables.push_str(&contest.markdown());
        self.tables.push('\n');
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        let numbers = json!({ "about": self.about, "contests": self.contests });
        fs::write(self.folder.join("numbers.json"), serde_json::to_string_pretty(&numbers)?)?;
        let text = format!(
            "# Steinflow against its peers\n\nTimes are medians over rounds; contenders take turns in \
             one run, on the same inputs, in f32 on {} threads ({}). Raw numbers and versions: \
             `numbers.json`.\n\n{}",
            rayon::current_num_threads(),
            self.about["machine"].as_str().unwrap_or("unknown machine"),
            self.tables
        );
        Ok(fs::write(self.folder.join("README.md"), text)?)
    }
}

/// The processor and its widest instructions.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = value("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let flags = value("flags").unwrap_or_default();
    let widest = ["avx512f", "avx2"].into_iter().find(|flag| flags.contains(flag));
    format!("{name}, {}", widest.unwrap_or("no AVX2"))
}
