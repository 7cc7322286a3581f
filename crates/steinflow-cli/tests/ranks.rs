//! One run over several ranks: processes of this machine. Needs the feature `mpi` and `mpirun`.
#![cfg(feature = "mpi")]

#[allow(dead_code, reason = "other tests read and write files")]
#[path = "support/desk.rs"]
mod desk;

use std::fmt::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use desk::Desk;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steinflow");

/// `mpirun -n RANKS steinflow …`, not yet started.
fn over(desk: &Desk, ranks: usize, arguments: &str) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n"])
        .arg(ranks.to_string())
        .arg(PROGRAM)
        .args(arguments.split_whitespace())
        .env_remove("STEINFLOW_DATA")
        .current_dir(desk.0.path());
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

/// Narrow and wide right-hand sides, slopes of their own, several factors, a noise, denominators, partners, half
/// precision, an accept step: every way that work is cut.
#[test]
fn the_number_of_ranks_changes_no_bit() {
    let desk = Desk::new();
    let runs = [
        ("banana --method svgd --particles 700 --steps 4", vec![2, 3, 4]),
        ("standard-normal --dim 20 --method sghmc-stein --particles 500 --steps 3", vec![3]),
        (
            "standard-normal --dim 20 --method svgd --precision f32 --particles 300 --steps 3",
            vec![2],
        ),
        (
            "banana --method sghmc-stein --kernel imq --kernel-on product --particles 300 --steps 3",
            vec![3],
        ),
        ("banana --method blob --particles 400 --steps 3", vec![2]),
        ("banana --method svgd-product --particles 300 --steps 3", vec![2]),
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
            assert!(particles(&desk, &alone) == particles(&desk, &over), "{ranks}: {arguments}");
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

/// A rank that is killed ends the run everywhere; it goes on from its checkpoint, on another number of ranks, to the
/// same bits.
#[test]
fn a_killed_rank_costs_what_came_after_the_last_checkpoint() {
    let desk = Desk::new();
    let settings = "banana --method svgd --particles 1000 --steps 400 --checkpoint-every 10";
    desk.succeed(&format!("sample --quiet {settings} --out alone"));
    let mut mpirun = over(&desk, 3, &format!("sample --quiet {settings} --out killed"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let is_under_way = || {
        let folder = std::fs::read_dir(desk.path("killed.unfinished"));
        folder.is_ok_and(|files| {
            files
                .flatten()
                .any(|file| file.file_name().to_string_lossy().starts_with("checkpoint-"))
        })
    };
    while !is_under_way() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint in two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
    let helper = process_of(2, &mpirun).expect("rank 2 is there");
    assert!(Command::new("kill").args(["-9", &helper]).status().unwrap().success());
    assert!(!mpirun.wait().unwrap().success());
    assert!(!desk.path("killed").exists(), "a run that was not finished looks as if it were");
    succeed(&desk, 2, "resume --quiet killed");
    assert!(particles(&desk, "alone") == particles(&desk, "killed"));
}
