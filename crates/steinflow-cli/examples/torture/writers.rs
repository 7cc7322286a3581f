//! Several processes that want to write one run.

use std::time::Duration;

use crate::bench::{Bench, Dice, Result, checkpoints, lasting};

/// How many were refused, of how many; and whether the first came to its own numbers.
pub fn ordeal(bench: &Bench, times: usize, dice: &mut Dice) -> Result<(usize, usize, bool)> {
    let run = "sample banana --method sghmc -n 40 --steps 40000 --step-size 0.05 -q --threads 1";
    bench.succeed(&format!("{run} --out whole"))?;
    let mut first = bench.start(&format!("{run} --out cut --checkpoint-every 20ms"))?;
    while checkpoints(bench, "cut").is_empty() && first.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (mut refused, mut tried) = (0, 0);
    for _ in 0..times {
        let others = [
            "resume cut -q".to_owned(),
            format!("{run} --out cut --force"),
            format!("{run} --out cut"),
        ];
        let output = bench.run(&others[dice.below(3)])?;
        if first.try_wait()?.is_some() {
            break;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        tried += 1;
        let is_clear = said.contains("another process") || said.contains("was not finished");
        refused += usize::from(output.status.code() == Some(2) && is_clear);
    }
    let status = first.wait()?;
    let is_same = lasting(&bench.path("cut"))? == lasting(&bench.path("whole"))?;
    Ok((refused, tried, status.success() && is_same))
}
