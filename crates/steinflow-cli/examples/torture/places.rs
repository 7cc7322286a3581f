//! Places that are taken: by another run, which a new one is to replace, or by somebody's own files.

use std::fs;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Dice, Result, lasting};

const OLD: &str = "sample ring --method svgd --steps 50 --step-size 0.05 -n 30 -q --threads 1";
const NEW: &str = "sample banana --method sghmc --steps 6000 --step-size 0.05 -n 40 -q --threads 1";

/// What came of new runs that were killed in the place of an old one.
#[derive(Default)]
pub struct Replaced {
    pub runs: usize,
    /// Killed before the new one had begun: the old one is as it was.
    pub old: usize,
    /// The new one, to its own numbers.
    pub new: usize,
    /// Neither.
    pub mixed: usize,
    pub litter: usize,
}

/// Kills so many runs that were to replace another, and goes on with them.
pub fn replaced(bench: &Bench, times: usize, dice: &mut Dice) -> Result<Replaced> {
    bench.succeed(&format!("{OLD} --out old"))?;
    let begun = Instant::now();
    bench.succeed(&format!("{NEW} --out new"))?;
    let length = begun.elapsed();
    let (old, new) = (lasting(&bench.path("old"))?, lasting(&bench.path("new"))?);
    let mut tally = Replaced::default();
    for _ in 0..times {
        bench.succeed(&format!("{OLD} --out x"))?;
        let every = ["7", "20ms", "1000000"][dice.below(3)];
        let mut child =
            bench.start(&format!("{NEW} --out x --force --checkpoint-every {every}"))?;
        // Half of them at the very beginning, where it is decided which run it is.
        let span = if dice.below(2) == 0 { Duration::from_millis(15) } else { length };
        std::thread::sleep(span.mul_f64(dice.below(1000) as f64 / 1000.0));
        child.kill()?;
        child.wait()?;
        let has_begun = bench.path("x.unfinished/config.toml").exists();
        // It fails where the run in its place is finished, and says so.
        bench.run("resume x -q")?;
        let found = lasting(&bench.path("x"))?;
        tally.runs += 1;
        if found == new {
            tally.new += 1;
        } else if found == old && !has_begun {
            tally.old += 1;
        } else {
            tally.mixed += 1;
        }
        // The next process in this place tidies up what a killed one has left.
        bench.succeed(&format!("{OLD} --out x --force"))?;
        bench.remove("x");
        for name in bench.listing()?.iter().filter(|name| name.contains('x')) {
            tally.litter += 1;
            bench.remove(name);
        }
    }
    Ok(tally)
}

/// Somebody's own folders under the names that unfinished runs have: how many requests were refused and
/// left everything as it was, of how many.
pub fn taken(bench: &Bench) -> Result<(usize, usize)> {
    bench.succeed(&format!("{OLD} --out run.unfinished"))?;
    fs::create_dir_all(bench.path("mine.unfinished/lock"))?;
    fs::create_dir(bench.path("theirs"))?;
    for folder in ["mine.unfinished", "theirs"] {
        for name in ["config.toml", "checkpoint-000000000007", "notes"] {
            fs::write(bench.path(folder).join(name), name)?;
        }
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("theirs", bench.path("link.unfinished"))?;
    let before = everything(bench)?;
    let (mut refused, mut tried) = (0, 0);
    let names = if cfg!(unix) { &["run", "mine", "link"][..] } else { &["run", "mine"] };
    for name in names {
        for request in [
            format!("{NEW} --out {name}"),
            format!("{NEW} --out {name} --force"),
            format!("resume {name} -q"),
        ] {
            let output = bench.run(&request)?;
            tried += 1;
            refused += usize::from(output.status.code() == Some(2) && everything(bench)? == before);
        }
    }
    Ok((refused, tried))
}

/// Every file under the folder, with its bytes.
fn everything(bench: &Bench) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut folders = vec![bench.desk.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let name = path.display().to_string();
            if entry.file_type()?.is_dir() {
                found.push((name, Vec::new()));
                folders.push(path);
            } else {
                found.push((name, fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    Ok(found)
}
