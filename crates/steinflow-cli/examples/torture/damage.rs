//! Damaged checkpoints: each must be found out, and the older one used.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use steinflow_io::{CheckpointFile, Unfinished};

use crate::bench::{Bench, Dice, Result, checkpoints, lasting};

/// What can happen to a file.
const KINDS: [&str; 7] =
    ["one bit", "some bytes", "cut short", "longer", "a block of zeros", "empty", "another file"];

/// So many are looked at by the library alone for each that goes through the command.
const LOOKED_AT: usize = 20;

#[derive(Default)]
pub struct Tally {
    pub damaged: usize,
    /// Found out, and the older one read to its own bits.
    pub older_used: usize,
    /// Of these, resumed by the command to the bits of an uninterrupted run.
    pub resumed: usize,
    /// Taken for good.
    pub accepted: usize,
    pub panics: usize,
    pub troubles: Vec<String>,
}

fn damage(bytes: &mut Vec<u8>, kind: &str, dice: &mut Dice) {
    let place = dice.below(bytes.len());
    match kind {
        "one bit" => bytes[place] ^= 1 << dice.below(8),
        "some bytes" => {
            for _ in 0..=dice.below(16) {
                let place = dice.below(bytes.len());
                bytes[place] = bytes[place].wrapping_add(1 + dice.below(255) as u8);
            }
        }
        "cut short" => bytes.truncate(place),
        "longer" => bytes.extend((0..=dice.below(64)).map(|k| k as u8)),
        "a block of zeros" => {
            let end = (place + 512).min(bytes.len());
            // Zeros where there are zeros are no damage.
            if bytes[place..end].iter().all(|&byte| byte == 0) {
                bytes[0] = 0;
            }
            bytes[place..end].fill(0);
        }
        "empty" => bytes.clear(),
        _ => *bytes = b"model = 'banana'\n".repeat(1 + dice.below(50)),
    }
}

/// Damages the newer of two checkpoints so many times, and goes on from what is left.
pub fn ordeal(bench: &Bench, times: usize, dice: &mut Dice) -> Result<Tally> {
    let run = "sample gaussian --method sghmc -n 10 --steps 60000 --step-size 0.05 -q --threads 1 \
               --trace-every 20000";
    bench.succeed(&format!("{run} --out whole"))?;
    let expected = lasting(&bench.path("whole"))?;
    // Killed late, so that going on takes no time.
    let mut child = bench.start(&format!("{run} --out cut --checkpoint-every 2500"))?;
    let late = bench.path("cut.unfinished/checkpoint-000000045000");
    while checkpoints(bench, "cut").first().is_none_or(|newest| *newest < late) {
        if child.try_wait()?.is_some() {
            return Err("the run ended before it could be killed".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill()?;
    child.wait()?;
    let kept = checkpoints(bench, "cut");
    let [newest, older, ..] = &kept[..] else {
        return Err("a killed run has not two checkpoints".into());
    };
    let good = (fs::read(newest)?, fs::read(older)?);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
    let (newest, older) = (name(newest), name(older));
    let beside = ["config.toml", ".steinflow-unfinished"];
    let beside = beside.map(|name| (name, fs::read(bench.path("cut.unfinished").join(name))));
    let known = CheckpointFile::open(bench.path("cut.unfinished").join(&older))?.decode::<f64>()?;
    let mut tally = Tally::default();
    for trial in 0..times {
        let folder = bench.path("cut.unfinished");
        bench.remove("cut");
        fs::create_dir_all(&folder)?;
        let mut bytes = good.0.clone();
        let kind = KINDS[trial % KINDS.len()];
        damage(&mut bytes, kind, dice);
        fs::write(folder.join(&newest), &bytes)?;
        fs::write(folder.join(&older), &good.1)?;
        for (name, bytes) in &beside {
            fs::write(folder.join(name), bytes.as_ref().map_err(ToString::to_string)?)?;
        }
        tally.damaged += 1;
        let unfinished = Unfinished::open(&bench.path("cut"))?;
        let Ok((found, wrong)) = catch_unwind(AssertUnwindSafe(|| unfinished.newest())) else {
            tally.panics += 1;
            continue;
        };
        drop(unfinished);
        let found = found.and_then(|file| file.decode::<f64>().ok());
        if wrong.is_empty() {
            tally.accepted += 1;
            tally.troubles.push(format!("{kind}: taken for good"));
        } else if found.as_ref() != Some(&known) {
            tally.troubles.push(format!("{kind}: the older one is not used"));
        } else if !trial.is_multiple_of(LOOKED_AT) {
            tally.older_used += 1;
        } else {
            let output = bench.run("resume cut -q --threads 1")?;
            let said = String::from_utf8_lossy(&output.stderr);
            let is_told = said.contains("cannot be used") && !said.contains("first step");
            tally.panics += usize::from(said.contains("panicked"));
            if is_told && output.status.success() && lasting(&bench.path("cut"))? == expected {
                (tally.older_used, tally.resumed) = (tally.older_used + 1, tally.resumed + 1);
            } else {
                tally.troubles.push(format!("{kind}: {said}"));
            }
        }
    }
    bench.remove("cut");
    Ok(tally)
}
