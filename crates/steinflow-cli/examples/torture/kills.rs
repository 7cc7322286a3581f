//! Kills at random instants: what is resumed must be what was never interrupted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::bench::{Bench, Dice, Result, checkpoints, lasting};

/// Nine samplers: diffusion, Stein with splitting, thermostat with minibatches, product space,
/// adaptive integrator with minibatches, starred Blob with collected samples and a policy that goes
/// back; the default, Hamiltonian moves, and a warm-up before a flow. Short, so that a thousand can be
/// killed in minutes.
pub const CASES: [(&str, &str); 9] = [
    ("sghmc", "banana --method sghmc --steps 4000 --step-size 0.05 -n 40"),
    ("sghmc-stein", "tri-crescent --method sghmc-stein --steps 600 --step-size 0.05 -n 40"),
    (
        "sgnht-stein, minibatches, f32",
        "bnn --method sgnht-stein --hidden 6 -n 8 --steps 1500 --batch-size 20 --precision f32",
    ),
    ("svgd-product", "gaussian --dim 3 --method svgd-product --steps 500 --step-size 0.05 -n 40"),
    (
        "svgd by Adam, minibatches",
        "linear-regression --data line.csv --method svgd --integrator adam --batch-size 10 \
         --steps 3000 --step-size 0.01 -n 30",
    ),
    (
        "sghmc-blob-alt, resampled, shrink",
        "ring --method sghmc-blob-alt --friction 0.01 -n 40 --steps 1000 --step-size 0.05 \
         --resample-every 30 --collect-from 100 --collect-every 10 --non-finite shrink",
    ),
    ("auto", "banana --method auto --effective 400"),
    ("hmc, f32", "gaussian --dim 3 --method hmc --effective 400 --precision f32"),
    ("svgd after a warm-up", "gaussian --dim 3 --method svgd --warm-up -n 40"),
];

/// How a process is asked to end.
#[derive(Clone, Copy, PartialEq)]
pub enum Blow {
    Kill,
    Interrupt,
    Terminate,
    InterruptTwice,
}

/// What came of one case.
#[derive(Default)]
pub struct Tally {
    pub runs: usize,
    pub blows: usize,
    /// Of these, before there was a checkpoint.
    pub early: usize,
    pub identical: usize,
    pub different: usize,
    pub lost: Vec<String>,
    /// Exit codes that are not those of the signal.
    pub wrong_codes: usize,
    /// Files left behind after the run was in its place.
    pub litter: usize,
}

/// Ends so many runs, shared out among all cases, with so many of them at a time; a tally for each.
pub fn all(program: &Path, kills: usize, jobs: usize, seed: u64) -> Result<Vec<Tally>> {
    let next = AtomicUsize::new(0);
    let tallies = CASES.map(|_| Mutex::new(Err("it was not reached".to_owned())));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, settings)) = CASES.get(index) else { break };
            let runs = kills / CASES.len() + usize::from(index < kills % CASES.len());
            // Of its own, so that it does not matter who comes first.
            let mut dice = Dice(seed.wrapping_add(index as u64));
            let tally = Bench::new(program)
                .and_then(|bench| ordeal(&bench, settings, Blow::Kill, runs, &mut dice));
            eprintln!("{name}: {runs} runs killed");
            *tallies[index].lock().unwrap_or_else(PoisonError::into_inner) =
                tally.map_err(|error| format!("{name}: {error}"));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let taken =
        tallies.into_iter().map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(taken.collect::<Result<Vec<Tally>, String>>()?)
}

/// Numbers on a line with noise, for the case with data.
fn write_data(bench: &Bench) -> Result<()> {
    let mut dice = Dice(3);
    let mut text = String::from("x,y\n");
    for i in 0..60 {
        let noise = (dice.below(2000) as f64 - 1000.0) / 1000.0;
        let y = 0.3 * f64::from(i) - 2.0 + noise;
        writeln!(text, "{i},{y}")?;
    }
    Ok(std::fs::write(bench.path("line.csv"), text)?)
}

/// Ends so many runs of a case, some twice, goes on with each, and compares.
pub fn ordeal(
    bench: &Bench,
    settings: &str,
    blow: Blow,
    runs: usize,
    dice: &mut Dice,
) -> Result<Tally> {
    write_data(bench)?;
    let base = format!("sample {settings} -q");
    let begun = Instant::now();
    bench.succeed(&format!("{base} --threads 1 --out whole"))?;
    let mut length = begun.elapsed();
    let expected = lasting(&bench.path("whole"))?;
    let mut tally = Tally::default();
    while tally.runs < runs {
        // A checkpoint more often than any user would want, so that many are cut short.
        let every = ["7", "40", "20ms", "1000000"][dice.below(4)];
        let threads = 1 + dice.below(2);
        let output = format!("--checkpoint-every {every} --threads {threads}");
        let command = format!("{base} {output} --out cut");
        if !end_at_random(bench, &command, blow, length, dice, &mut tally)? {
            // It was quicker than the blow, perhaps because the machine has less to do now.
            length = length.mul_f64(0.9);
            bench.remove("cut");
            continue;
        }
        // Every third one is ended again while it goes on.
        if dice.below(3) == 0 && !is_complete(bench) {
            let resume = format!("resume cut -q {output}");
            end_at_random(bench, &resume, blow, length, dice, &mut tally)?;
        }
        tally.runs += 1;
        match go_on(bench, &command).and_then(|()| lasting(&bench.path("cut"))) {
            Ok(found) if found == expected => tally.identical += 1,
            Ok(_) => tally.different += 1,
            Err(error) => tally.lost.push(error.to_string()),
        }
        bench.remove("cut");
        for name in bench.listing()?.iter().filter(|name| name.contains("cut")) {
            tally.litter += 1;
            bench.remove(name);
        }
    }
    Ok(tally)
}

/// Does what a user would do after a crash.
fn go_on(bench: &Bench, command: &str) -> Result<()> {
    let has_begun = bench.path("cut").exists() || bench.path("cut.unfinished/config.toml").exists();
    if !has_begun {
        // Killed before it had written anything: `resume` says so.
        bench.succeed(command)?;
    } else if is_complete(bench) {
        // Killed after the last thing that matters: there is nothing more to do, and it says so.
        let output = bench.run("resume cut -q")?;
        if output.status.code() != Some(2) {
            return Err("a finished run was not told from an unfinished one".into());
        }
    } else {
        bench.succeed("resume cut -q")?;
    }
    Ok(())
}

/// Whether the run in `cut` has taken all of its steps.
fn is_complete(bench: &Bench) -> bool {
    std::fs::read_to_string(bench.path("cut/summary.json"))
        .is_ok_and(|summary| summary.contains("\"ended\": \"finished\""))
}

/// Starts a command and ends it at a random instant; whether it was under way until then.
fn end_at_random(
    bench: &Bench,
    arguments: &str,
    blow: Blow,
    length: Duration,
    dice: &mut Dice,
    tally: &mut Tally,
) -> Result<bool> {
    let mut child = bench.start(arguments)?;
    if blow != Blow::Kill {
        // Before it listens, a signal ends it as any other program.
        while child.try_wait()?.is_none() && !bench.path("cut.unfinished/config.toml").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A run that goes on has that file already.
        std::thread::sleep(Duration::from_millis(200));
    }
    std::thread::sleep(dice.instant(length));
    if child.try_wait()?.is_some() {
        return Ok(false);
    }
    let early = checkpoints(bench, "cut").is_empty();
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status();
    let code = match blow {
        Blow::Kill => {
            child.kill()?;
            None
        }
        Blow::Interrupt => signal("-INT").map(|_| Some(130))?,
        Blow::Terminate => signal("-TERM").map(|_| Some(143))?,
        Blow::InterruptTwice => {
            signal("-INT")?;
            std::thread::sleep(dice.instant(Duration::from_millis(10)));
            signal("-INT").map(|_| Some(130))?
        }
    };
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(false);
    }
    tally.blows += 1;
    tally.early += usize::from(early);
    if output.status.code() != code {
        tally.wrong_codes += 1;
        eprintln!("{arguments}: {}", output.status);
    }
    Ok(true)
}
