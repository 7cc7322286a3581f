//! Instructions of two kernels, counted by callgrind: a regression shows on a noisy machine too.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use crate::stage::root;

const KERNELS: [&str; 2] = ["kernel-sums", "network-gradient"];
/// What the kernels took when this was last committed.
const COMMITTED: &str = "benches/instructions.csv";
/// More than this many times the committed count is a regression.
const MOST: f64 = 1.03;

/// Counts, compares with the committed numbers, and replaces them if `write` is asked for.
pub fn run(write: bool) -> ExitCode {
    match count_all() {
        Ok(counts) => report(&counts, write),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn report(counts: &[(&str, f64)], write: bool) -> ExitCode {
    let path = root().join(COMMITTED);
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let before = |kernel: &str| -> Option<f64> {
        let line = committed.lines().find(|line| line.split(',').next() == Some(kernel))?;
        line.split(',').nth(1)?.parse().ok()
    };
    let mut worse = false;
    let mut csv = String::from("kernel,instructions\n");
    for (kernel, count) in counts {
        let ratio = before(kernel).map(|before| count / before);
        let change = ratio.map_or(String::new(), |r| format!(" ({:+.1} %)", 100.0 * (r - 1.0)));
        println!("{kernel:<18}{count:>14.0} instructions{change}");
        worse |= ratio.is_some_and(|ratio| ratio > MOST);
        let _ = writeln!(csv, "{kernel},{count:.0}");
    }
    if write {
        return match fs::write(&path, csv) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{} cannot be written: {error}", path.display());
                ExitCode::FAILURE
            }
        };
    }
    if worse {
        println!("more than {COMMITTED} has; if that is meant, `cargo xtask instructions --write`");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn count_all() -> Result<Vec<(&'static str, f64)>, String> {
    let build = ["build", "--release", "--package", "steinflow-bench", "--bin", "instructions"];
    let built = Command::new("cargo").current_dir(root()).args(build).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the kernels could not be built".to_owned());
    }
    // The difference of many and few repetitions is what the repetitions cost.
    let (few, many) = (2, 10);
    let per_call = |kernel| -> Result<f64, String> {
        Ok((collected(kernel, many)? - collected(kernel, few)?) / f64::from(many - few))
    };
    KERNELS.iter().map(|&kernel| Ok((kernel, per_call(kernel)?))).collect()
}

/// What callgrind collects in one run.
fn collected(kernel: &str, repeats: i32) -> Result<f64, String> {
    let program = root().join("target/release/instructions");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([kernel, &repeats.to_string()])
        .output()
        .map_err(|error| {
            format!("valgrind does not start ({error}); install it, e.g. `apt install valgrind`")
        })?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .ok_or_else(|| format!("callgrind gave no count:\n{text}"))?;
    Ok(count)
}
