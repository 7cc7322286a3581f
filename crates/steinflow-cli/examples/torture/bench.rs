//! What all ordeals share: the command, a folder to work in, random numbers, and what must not differ.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use steinflow_io::{Values, read_parquet};

pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The command under test, and a folder that vanishes.
pub struct Bench {
    pub program: PathBuf,
    pub desk: tempfile::TempDir,
}

impl Bench {
    pub fn new(program: &Path) -> Result<Self> {
        Ok(Self { program: program.to_owned(), desk: tempfile::tempdir()? })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.desk.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.desk.path()).args(arguments.split_whitespace());
        command.env_remove("STEINFLOW_DATA").stdin(Stdio::null());
        command
    }

    pub fn start(&self, arguments: &str) -> Result<Child> {
        Ok(self.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    pub fn run(&self, arguments: &str) -> Result<Output> {
        Ok(self.command(arguments).output()?)
    }

    /// Runs to success, or says why not.
    pub fn succeed(&self, arguments: &str) -> Result<String> {
        let output = self.run(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() || said.contains("panicked") {
            return Err(format!("`steinflow {arguments}`: {} {said}", output.status).into());
        }
        Ok(said)
    }

    /// The names in the folder.
    pub fn listing(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.desk.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    pub fn remove(&self, name: &str) {
        let _ = fs::remove_dir_all(self.path(name));
    }
}

/// The checkpoints of the unfinished run `name`, the newest first.
pub fn checkpoints(bench: &Bench, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.path(&format!("{name}.unfinished")));
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("checkpoint-"))
        })
        .collect();
    found.sort();
    found.reverse();
    found
}

/// Everything in a run folder that an interruption must not change, by name. Left out: the picture,
/// which is drawn from the particles; the checkpoint, whose content is compared by the library's
/// tests; and wherever a clock was read, `seconds` in the trace and in the summary.
pub fn lasting(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for name in ["config.toml", "particles.parquet", "samples.parquet", "predictions.csv"] {
        if let Ok(bytes) = fs::read(folder.join(name)) {
            found.insert(name.to_owned(), bytes);
        }
    }
    for column in read_parquet(folder.join("trace.parquet"))? {
        let bytes = match column.values {
            _ if column.name == "seconds" => continue,
            Values::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::U64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        found.insert(format!("trace {}", column.name), bytes);
    }
    let summary = fs::read_to_string(folder.join("summary.json"))?;
    let lines: Vec<&str> = summary.lines().filter(|line| !line.contains("\"seconds\"")).collect();
    found.insert("summary.json".to_owned(), lines.join("\n").into_bytes());
    Ok(found)
}

/// SplitMix64: enough to choose instants and bytes.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    /// From 0 to `longest`.
    pub fn instant(&mut self, longest: Duration) -> Duration {
        longest.mul_f64((self.roll() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}
