//! Runs and jobs over several ranks: processes of this machine. Needs the feature `mpi` and `mpirun`.
#![cfg(feature = "mpi")]

#[allow(dead_code, reason = "other tests read and write files")]
#[path = "support/desk.rs"]
mod desk;

use std::fmt::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use desk::Desk;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steinflow");

/// `mpirun`, and not yet what.
fn mpirun(desk: &Desk) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"])
        .env_remove("STEINFLOW_DATA")
        .current_dir(desk.0.path());
    command
}

/// `mpirun -n RANKS steinflow …`, not yet started.
fn over(desk: &Desk, ranks: usize, arguments: &str) -> Command {
    let mut command = mpirun(desk);
    command.args(["-n", &ranks.to_string(), PROGRAM]).args(arguments.split_whitespace());
    command
}

fn run(desk: &Desk, ranks: usize, arguments: &str) -> Output {
    over(desk, ranks, arguments).output().expect("mpirun is there where the feature `mpi` is")
}

fn succeed(desk: &Desk, ranks: usize, arguments: &str) {
    let output = run(desk, ranks, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ranks} ranks, {arguments}: {error}");
}

/// The particles of a run, to the byte.
fn particles(desk: &Desk, run: &str) -> Vec<u8> {
    std::fs::read(desk.path(run).join("particles.parquet")).unwrap()
}

/// What a run has found out, to the byte: its particles and its verdict.
fn findings(desk: &Desk, run: &str) -> (Vec<u8>, String) {
    (particles(desk, run), desk.read(&format!("{run}/diagnosis.json")))
}

/// Narrow and wide right-hand sides, slopes of their own, several factors, a noise, denominators, partners, half
/// precision, an accept step, an adapted metric: every way that work is cut, by any number of threads; and what rank 0
/// does alone.
#[test]
fn the_number_of_ranks_and_threads_changes_neither_a_bit_nor_the_verdict() {
    let desk = Desk::new();
    let runs = [
        ("banana --method svgd --particles 700 --steps 4", vec![1, 2, 3, 4]),
        ("banana --method svgd --particles 700 --steps 4 --threads 3", vec![2]),
        ("standard-normal --dim 20 --method sghmc-stein --particles 500 --steps 3", vec![3]),
        (
            "standard-normal --dim 20 --method svgd --precision f32 --particles 300 --steps 3",
            vec![2],
        ),
        (
            "banana --method sghmc-stein --kernel imq --kernel-on product --particles 300 --steps 3",
            vec![3],
        ),
        (
            "banana --method sghmc-stein --kernel-on product --interactions 16 --particles 300 --steps 3",
            vec![3],
        ),
        ("banana --method blob --particles 400 --steps 3", vec![2]),
        ("banana --method gfsd --particles 400 --steps 3", vec![4]),
        ("banana --method gfsf --particles 300 --steps 3", vec![2]),
        ("banana --method sge --particles 300 --steps 3", vec![2]),
        ("banana --method lawgd --particles 300 --steps 3", vec![2]),
        ("banana --method svgd-product --particles 300 --steps 3", vec![2]),
        ("banana --method svgd --warm-up --particles 300", vec![3]),
        // What is not a number is met by one rank alone, and dealt with as by one process.
        (
            "--density 0.1*log(x)-x^2/2 --method svgd --particles 300 --steps 4 --non-finite freeze",
            vec![3],
        ),
        (
            "--density 0.1*log(x)-x^2/2 --method svgd --particles 300 --steps 4 --non-finite shrink",
            vec![3],
        ),
        ("banana --method svgd --interactions 16 --particles 700 --steps 4", vec![2, 3]),
        ("banana --method sghmc --particles 100 --steps 20", vec![3]),
        ("banana --effective 300 --seed 3", vec![2]),
    ];
    for (number, (arguments, ranks)) in runs.into_iter().enumerate() {
        let alone = format!("alone-{number}");
        desk.succeed(&format!("sample --quiet {arguments} --out {alone}"));
        for ranks in ranks {
            let over = format!("over-{number}-{ranks}");
            succeed(&desk, ranks, &format!("sample --quiet {arguments} --out {over}"));
            assert!(findings(&desk, &alone) == findings(&desk, &over), "{ranks}: {arguments}");
        }
    }
}

/// Data that every rank reads for itself, tiles of particles, and minibatches.
#[test]
fn regressions_and_networks_are_evaluated_by_all() {
    let desk = Desk::new();
    let mut table = String::from("a,b,y\n");
    for i in 0..60 {
        let (a, b) = (f64::from(i % 7) - 3.0, f64::from(i % 5));
        writeln!(table, "{a},{b},{}", 0.5 * a - b + f64::from(i % 3)).unwrap();
    }
    desk.write("table.csv", table);
    for (name, arguments) in [
        (
            "linear",
            "linear-regression --data table.csv --target y --method svgd --particles 300 --steps 4",
        ),
        ("network", "bnn --data table.csv --target y --hidden 8 --particles 40 --steps 20"),
    ] {
        desk.succeed(&format!("sample --quiet {arguments} --out alone-{name}"));
        succeed(&desk, 3, &format!("sample --quiet {arguments} --out over-{name}"));
        assert!(
            particles(&desk, &format!("alone-{name}")) == particles(&desk, &format!("over-{name}")),
            "{name}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_once_and_ends_all_ranks() {
    let desk = Desk::new();
    for (arguments, code, words) in [
        ("sample --method svdg", 2, "did you mean `svgd`?"),
        (
            "sample banana --method svgd --particles 400 --step-size 1e200 --steps 9",
            1,
            "try a smaller step size",
        ),
        ("sample --nonsense", 2, "--nonsense"),
    ] {
        let output = run(&desk, 3, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {error}");
        assert_eq!(error.matches(words).count(), 1, "{arguments}: {error}");
    }
    assert!(
        !desk.path("runs").exists()
            || std::fs::read_dir(desk.path("runs")).unwrap().next().is_none()
    );
}

/// Time is up for all ranks at once, and the run is whole.
#[test]
fn a_run_that_is_out_of_time_ends_everywhere() {
    let desk = Desk::new();
    let settings = "banana --method svgd --particles 1000 --steps 100000 --budget 1";
    succeed(&desk, 3, &format!("sample {settings} --out short"));
    assert!(desk.read("short/summary.json").contains("out of time"));
    desk.fail("resume short --steps 1", 2, &["give at least as many as were taken"]);
}

/// The process of a rank, among those that mpirun has started.
fn process_of(rank: usize, mpirun: &Child) -> Option<String> {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    std::fs::read_dir("/proc").ok()?.find_map(|entry| {
        let id = entry.ok()?.file_name().into_string().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // After the name: the state, and then the parent.
        let parent = status.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned();
        let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
        let is_it =
            environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes());
        (parent == mpirun.id().to_string() && is_it).then_some(id)
    })
}

/// Waits until something has happened to a command that is under way.
fn wait_until(what: &str, mut has_happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !has_happened() {
        assert!(begun.elapsed() < Duration::from_secs(240), "{what}: not in four minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The step of the newest checkpoint of a run that has not ended.
fn last_checkpoint(desk: &Desk, run: &str) -> Option<u64> {
    let folder = std::fs::read_dir(desk.path(&format!("{run}.unfinished"))).ok()?;
    let step_of = |name: &str| name.strip_prefix("checkpoint-")?.parse().ok();
    folder.flatten().filter_map(|file| step_of(&file.file_name().to_string_lossy())).max()
}

/// How far a run has come that was ended early, in good order or not.
fn steps_taken(desk: &Desk, run: &str) -> u64 {
    last_checkpoint(desk, run).unwrap_or_else(|| {
        let summary = serde_json::from_str(&desk.read(&format!("{run}/summary.json")));
        let summary: serde_json::Value = summary.unwrap();
        summary["steps"].as_u64().unwrap()
    })
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

const LONG: &str = "banana --method svgd --particles 1000 --checkpoint-every 10";

/// A run over ranks that has written a checkpoint, and that no machine ends while a test lasts.
fn under_way(desk: &Desk, ranks: usize, run: &str) -> Child {
    let arguments = format!("sample --quiet {LONG} --steps 10000000 --out {run}");
    let mut command = over(desk, ranks, &arguments);
    command.env("STEINFLOW_RANK_PATIENCE", "8").stderr(Stdio::piped());
    let mpirun = command.spawn().unwrap();
    wait_until("a checkpoint", || last_checkpoint(desk, run).is_some());
    mpirun
}

/// A rank that is killed or stopped, the first one too, and a signal end the run everywhere; it goes on from its
/// checkpoint, on another number of ranks, to the same bits.
#[test]
fn a_rank_that_is_lost_costs_what_came_after_the_last_checkpoint() {
    let desk = Desk::new();
    for (run, kind, rank) in [
        ("killed", "-KILL", Some(2)),
        ("beheaded", "-KILL", Some(0)),
        ("stopped", "-STOP", Some(1)),
        ("headless", "-STOP", Some(0)),
        ("asked", "-TERM", None),
    ] {
        let mpirun = under_way(&desk, 3, run);
        let process = |rank| process_of(rank, &mpirun).expect("the rank is there");
        signal(kind, &rank.map_or_else(|| mpirun.id().to_string(), process));
        let output = mpirun.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{run}: {error}");
        let words = match (kind, rank) {
            ("-STOP", Some(rank)) => format!("rank {rank} was not heard of for 8 s"),
            ("-TERM", _) => {
                format!("if not, go on from the last checkpoint with `steinflow resume {run}`")
            }
            // A process that is killed says nothing; mpirun does.
            _ => "exited on signal 9".to_owned(),
        };
        assert_eq!(error.matches(&words).count(), 1, "{run}: {error}");
        // One that is asked to stop may find the time to do so in good order.
        assert!(rank.is_none() || !desk.path(run).exists(), "{run} looks finished");
        let steps = steps_taken(&desk, run) + 100;
        succeed(&desk, 2, &format!("resume --quiet {run} --steps {steps}"));
        desk.succeed(&format!("sample --quiet {LONG} --steps {steps} --out {run}-alone"));
        assert!(particles(&desk, &format!("{run}-alone")) == particles(&desk, run), "{run}");
    }
}

/// Rank 0 writes, and the others nothing: so a disk that is full is rank 0's.
#[test]
fn a_full_disk_ends_the_run_with_one_message_and_the_run_goes_on() {
    let desk = Desk::new();
    let settings = "standard-normal --dim 40 --method ld --particles 1000 --steps 30 --collect-from 0 \
                    --checkpoint-every 10";
    desk.succeed(&format!("sample --quiet {settings} --out alone"));
    let limited = |ranks: [&str; 2], run: &str| {
        let arguments = format!("sample --quiet {settings} --out {run}");
        let [first, others] = ranks.map(|limit| format!("{limit} exec {PROGRAM} {arguments}"));
        let mut mpirun = mpirun(&desk);
        // Through sockets, for shared memory is a file too.
        mpirun.args(["--mca", "btl", "self,tcp", "-n", "1", "bash", "-c", &first]);
        mpirun.args([":", "-n", "2", "bash", "-c", &others]).output().unwrap()
    };
    // Blocks of 1024 bytes: room for the first checkpoint, and not for the samples.
    let output = limited(["ulimit -f 5000;", ""], "full");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.matches("error: cannot write").count(), 1, "{error}");
    assert!(!desk.path("full").exists(), "half of a run");
    succeed(&desk, 2, "resume --quiet full");
    assert!(particles(&desk, "alone") == particles(&desk, "full"));
    let output = limited(["", "ulimit -f 10;"], "others");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(particles(&desk, "alone") == particles(&desk, "others"));
}

/// The files of a folder, but for the list of them.
fn contents(desk: &Desk, folder: &str) -> Vec<(String, Vec<u8>)> {
    let names =
        desk::listing(&desk.path(folder)).into_iter().filter(|name| name != ".steinflow-run");
    names.map(|name| (name.clone(), std::fs::read(desk.path(folder).join(name)).unwrap())).collect()
}

/// Particles that travel; lists of jobs of which rank 0 does one alone, as it takes its times; networks, and verdicts.
/// Files with times in them are left out.
#[test]
fn jobs_over_ranks_give_the_files_of_one_process() {
    let desk = Desk::new();
    desk.write(
        "plan.toml",
        "particles = 4\nbatch-size = 50\nprecision = 'f32'\nkernel-on = 'joint'\nsteps = 20\nprecondition = 'none'\n\
         [search]\nvalidation-fraction = 0.2\nrungs = [{ steps = 10, keep = 1 }]\n[grid]\neta = [1e-6, 1e-4]\n\
         [[dataset]]\nname = 'penguins'\n[[run]]\nlabel = 'SVGD'\nmethod = 'svgd'\nsearch = ['eta']\n",
    );
    for (experiment, arguments, file) in [
        ("samples", "", None),
        ("interactions", "", Some("long.csv")),
        ("uci", "--settings plan.toml --splits 0-2", Some("traces.csv")),
        ("verdict", "--targets banana --ways svgd;ld", Some("verdict.md")),
    ] {
        let quick = if experiment == "uci" { "" } else { "--quick" };
        let job = |out: &str| format!("reproduce {experiment} {quick} {arguments} --out {out}");
        let [alone, over] = ["alone", "over"].map(|who| format!("{who}-{experiment}"));
        desk.succeed(&job(&alone));
        succeed(&desk, 3, &job(&over));
        let of = |folder: &str| match file {
            Some(file) => {
                vec![(file.to_owned(), desk.read(&format!("{folder}/{file}")).into_bytes())]
            }
            None => contents(&desk, folder),
        };
        let (alone, over) = (of(&alone), of(&over));
        assert!(!alone[0].1.is_empty() && alone == over, "{experiment}");
    }
    // Journals are kept of parts alone.
    let journals = desk.listing().into_iter().filter(|name| name.ends_with(".jobs.jsonl"));
    assert_eq!(
        journals.collect::<Vec<_>>(),
        ["alone-verdict.jobs.jsonl", "over-verdict.jobs.jsonl"]
    );
}

/// A rank that is killed costs the jobs that were under way: one process goes on from the others.
#[test]
fn a_killed_rank_costs_the_jobs_that_were_under_way() {
    let desk = Desk::new();
    desk.succeed("reproduce collapse --quick --out alone");
    let journal = desk.path("killed.jobs.jsonl");
    let results = || {
        std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count().saturating_sub(1))
    };
    let mut mpirun = over(&desk, 3, "reproduce collapse --quick --out killed")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("two results", || results() >= 2);
    let lost = process_of(1, &mpirun).expect("rank 1 is there");
    signal("-KILL", &lost);
    assert!(!mpirun.wait().unwrap().success());
    let kept = results();
    assert!(kept >= 2 && !desk.path("killed").exists());
    let output = desk.run("reproduce collapse --quick --out killed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains(&format!("going on: {kept} results")), "{error}");
    assert!(contents(&desk, "alone") == contents(&desk, "killed"));
}

/// What is wrong on any rank ends the command with one message.
#[test]
fn what_is_wrong_with_jobs_is_said_once() {
    let desk = Desk::new();
    desk.succeed("reproduce collapse --quick --out there");
    let one = |first: &str, others: &str, code: i32, words: &str| {
        let mut mpirun = mpirun(&desk);
        mpirun.args(["-n", "1", PROGRAM]);
        mpirun.args(first.split_whitespace()).args([":", "-n", "1", PROGRAM]);
        let output = mpirun.args(others.split_whitespace()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{first}: {error}");
        assert_eq!(error.matches(words).count(), 1, "{first}: {error}");
    };
    let there = "reproduce collapse --quick --out there";
    one(there, there, 2, "--force");
    // Arguments of its own, as of another version: other jobs.
    let (quick, whole) = ("reproduce collapse --quick --out new", "reproduce collapse --out new");
    one(quick, whole, 1, "its jobs are others than those of rank 0");
    let (verdict, unknown) =
        ("reproduce verdict --quick --targets banana --out v", "reproduce verdict --targets pear");
    one(verdict, unknown, 1, "rank 1: there is no target `pear`");
}
