//! A disk that is full or cannot be written to, where the system lets us make one.

use std::fs;
use std::path::Path;
use std::process::Command;

use steinflow_io::CheckpointFile;

use crate::bench::{Bench, Result, checkpoints, lasting};

/// A file system in memory, for as long as this lives.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    /// None where it is not permitted, with the reason.
    fn mount(at: &'a Path, options: &str) -> Result<Self, String> {
        let _ = fs::create_dir_all(at);
        mount(at, options).map(|()| Self(at))
    }

    fn remount(&self, options: &str) -> Result<(), String> {
        mount(self.0, &format!("remount,{options}"))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn mount(at: &Path, options: &str) -> Result<(), String> {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output();
    match done {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The lines of the table: what was done, and what came of it.
pub fn ordeal(bench: &Bench) -> Result<Vec<(String, String)>> {
    let at = bench.path("disk");
    // Its samples grow until they do not fit.
    let run = "banana --method sghmc -n 50 --steps 4000 --step-size 0.05 -q --threads 1 \
               --trace-every 100 --collect-from 0 --collect-every 2";
    bench.succeed(&format!("sample {run} --out whole"))?;
    let expected = lasting(&bench.path("whole"))?;
    let disk = match Disk::mount(&at, "size=1m") {
        Ok(disk) => disk,
        Err(reason) => {
            let excused = std::env::var("STEINFLOW_EXCUSED").unwrap_or("mount".to_owned());
            let word = if excused.contains("mount") { "skipped" } else { "FAILED" };
            let reason = format!("{word}: no file system can be mounted here ({reason})");
            return Ok(vec![("a disk of 1 MiB, a read-only disk".to_owned(), reason)]);
        }
    };
    let mut lines = Vec::new();
    let output = bench.run(&format!("sample {run} --out disk/cut --checkpoint-every 100"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let kept = checkpoints(bench, "disk/cut");
    let step =
        kept.first().and_then(|path| CheckpointFile::open(path).ok()).map(|file| file.step());
    let is_clear = output.status.code() == Some(1)
        && said.contains("free some space")
        && said.contains("steinflow resume disk/cut")
        && !said.contains("panicked");
    lines.push((
        "a disk of 1 MiB fills up".to_owned(),
        match step {
            Some(step) if is_clear => {
                format!("exit code 1, an error that says so, the checkpoint of step {step} is good")
            }
            _ => format!("FAILED: {:?} {said}", output.status.code()),
        },
    ));
    disk.remount("size=64m")?;
    bench.succeed("resume disk/cut -q")?;
    let is_same = lasting(&bench.path("disk/cut"))? == expected;
    lines.push((
        "then there is room again, and `resume`".to_owned(),
        if is_same { "identical" } else { "FAILED: different" }.to_owned(),
    ));
    disk.remount("ro")?;
    let output = bench.run(&format!("sample {run} --out disk/more"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_clear = output.status.code() == Some(1) && said.contains("cannot create");
    lines.push((
        "a read-only disk".to_owned(),
        if is_clear && !said.contains("panicked") {
            "exit code 1 before the first step, an error that says so".to_owned()
        } else {
            format!("FAILED: {:?} {said}", output.status.code())
        },
    ));
    Ok(lines)
}
