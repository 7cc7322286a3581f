//! Ends runs in every way that a machine can, goes on with them, and compares the bits.
//!
//! `cargo xtask torture` builds the command and runs this; the table goes to standard output.

mod bench;
mod damage;
mod disk;
mod kills;
mod places;
mod writers;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use bench::{Bench, Dice, Result};
use kills::{Blow, CASES};

#[derive(Parser)]
struct Arguments {
    /// The command to torture.
    #[arg(long)]
    program: PathBuf,
    /// Runs to kill, over all nine cases.
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// How many of these cases to go through at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Runs to interrupt in each of three ways.
    #[arg(long, default_value_t = 20)]
    signals: usize,
    /// Checkpoints to damage.
    #[arg(long, default_value_t = 1000)]
    damaged: usize,
    /// Runs to kill in the place of another that they were to replace.
    #[arg(long, default_value_t = 50)]
    replaced: usize,
    /// Second writers.
    #[arg(long, default_value_t = 20)]
    writers: usize,
    /// Of every random choice; instants still depend on the machine.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match torture(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("something was lost: see the table");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table; whether everything held.
fn torture(arguments: &Arguments) -> Result<bool> {
    let Arguments { kills, jobs, signals, damaged, replaced, writers, seed, .. } = *arguments;
    let mut dice = Dice(seed);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!(
        "steinflow {}, {} {}, {cores} cores; `cargo xtask torture --kills {kills} --jobs {jobs} --signals \
         {signals} --damaged {damaged} --replaced {replaced} --writers {writers} --seed {seed}`\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    let mut all_well = true;

    let columns = "runs | blows | before a checkpoint | identical | different | lost | left behind";
    println!("| run | ended by | {columns} |");
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|");
    let mut total = kills::Tally::default();
    let tallies = kills::all(&arguments.program, kills, jobs, seed)?;
    for ((name, _), tally) in CASES.into_iter().zip(tallies) {
        all_well &= row(name, "SIGKILL", &tally);
        total.runs += tally.runs;
        total.blows += tally.blows;
        total.early += tally.early;
        total.identical += tally.identical;
        total.different += tally.different;
        total.litter += tally.litter;
        total.lost.extend(tally.lost);
    }
    row("all", "SIGKILL", &total);
    let blows = [
        (Blow::Interrupt, "SIGINT"),
        (Blow::Terminate, "SIGTERM"),
        (Blow::InterruptTwice, "SIGINT twice"),
    ];
    for (index, (blow, name)) in blows.into_iter().enumerate() {
        let (case, settings) = CASES[index * 2];
        let tally = one(arguments, settings, blow, signals, &mut dice)?;
        all_well &= row(case, name, &tally) && tally.wrong_codes == 0;
        if tally.wrong_codes > 0 {
            eprintln!("{} exit codes were wrong", tally.wrong_codes);
        }
    }

    let bench = Bench::new(&arguments.program)?;
    let tally = damage::ordeal(&bench, damaged, &mut dice)?;
    println!(
        "\n| checkpoints damaged | older one used | of these, resumed by the command: identical | taken \
         for good | panics | other |"
    );
    println!("|--:|--:|--:|--:|--:|--:|");
    let damage::Tally { damaged, older_used, resumed, accepted, panics, .. } = tally;
    let other = tally.troubles.len() - accepted;
    println!("| {damaged} | {older_used} | {resumed} | {accepted} | {panics} | {other} |");
    all_well &= tally.older_used == tally.damaged && tally.panics == 0;
    tally.troubles.iter().take(3).for_each(|trouble| eprintln!("{trouble}"));

    println!("\n| ordeal | what came of it |");
    println!("|---|---|");
    let bench = Bench::new(&arguments.program)?;
    let places::Replaced { runs, old, new, mixed, litter } =
        places::replaced(&bench, replaced, &mut dice)?;
    println!(
        "| {runs} runs killed in the place of another | {old} had not begun, and the other is as it was; \
         {new} went on to their own numbers; {mixed} mixed, {litter} left behind |"
    );
    all_well &= mixed == 0 && litter == 0 && old + new == runs;
    let bench = Bench::new(&arguments.program)?;
    let (refused, tried) = places::taken(&bench)?;
    println!(
        "| {tried} runs where somebody's own folder is | {refused} refused, nothing touched |"
    );
    all_well &= refused == tried;
    let bench = Bench::new(&arguments.program)?;
    let (refused, tried, is_same) = writers::ordeal(&bench, writers, &mut dice)?;
    println!(
        "| {tried} second writers | {refused} refused; the first is {} |",
        if is_same { "identical" } else { "different" }
    );
    all_well &= refused == tried && is_same;
    let bench = Bench::new(&arguments.program)?;
    for (what, came) in disk::ordeal(&bench)? {
        all_well &= !came.contains("FAILED");
        println!("| {what} | {came} |");
    }
    Ok(all_well)
}

fn one(
    arguments: &Arguments,
    settings: &str,
    blow: Blow,
    runs: usize,
    dice: &mut Dice,
) -> Result<kills::Tally> {
    kills::ordeal(&Bench::new(&arguments.program)?, settings, blow, runs, dice)
}

/// Prints a row; whether nothing was lost.
fn row(name: &str, how: &str, tally: &kills::Tally) -> bool {
    let kills::Tally { runs, blows, early, identical, different, lost, litter, .. } = tally;
    println!(
        "| {name} | {how} | {runs} | {blows} | {early} | {identical} | {different} | {} | {litter} |",
        lost.len()
    );
    lost.iter().take(3).for_each(|error| eprintln!("{name}: {error}"));
    *different == 0 && lost.is_empty() && *litter == 0
}
