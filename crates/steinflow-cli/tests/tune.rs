//! `steinflow tune` and `sample --tune`: what they write, that they find the same on any number of
//! threads, and what they say to requests that make no sense.

mod support {
    #[allow(dead_code, reason = "other tests read and write files")]
    pub mod desk;
}

use std::fs;
use std::process::{Command, Stdio};

use support::desk::{Desk, listing};

/// Fields of the rows of a `tried.csv`.
fn tried(desk: &Desk, folder: &str) -> Vec<Vec<String>> {
    let text = desk.read(&format!("{folder}/tried.csv"));
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(cells).collect()
}

#[test]
fn what_tune_finds_can_be_run() {
    let desk = Desk::new();
    let text = desk.succeed("tune gaussian --steps 256 -n 30 -q --out tuned");
    assert!(text.contains("candidates") && text.contains("best: eta"), "{text}");
    let files = listing(&desk.path("tuned"));
    assert_eq!(
        files[1..],
        ["config.toml", "tried.csv", "tried.png"],
        "and the mark of a run folder"
    );
    assert!(fs::read(desk.path("tuned/tried.png")).unwrap().starts_with(b"\x89PNG"));

    let rows = tried(&desk, "tuned");
    let fates = |fate: &str| rows.iter().filter(|row| row[8] == fate).count();
    assert_eq!((fates("best"), rows[0][6].as_str()), (1, "2"));
    assert!(fates("dropped") > 5 && fates("kept") > 5, "{rows:?}");
    let best = rows.iter().find(|row| row[8] == "best").unwrap();
    assert_eq!(best[6], "128");
    // Rows of a round that were dropped are no better than those that were kept.
    let scores = |round: &str, fate: &str| -> Vec<f64> {
        let of_round = rows.iter().filter(|row| row[5] == round && row[8] == fate);
        of_round.map(|row| row[7].parse().unwrap()).collect()
    };
    for round in ["1", "2", "3"] {
        let kept = scores(round, "kept").into_iter().fold(f64::MIN, f64::max);
        assert!(scores(round, "dropped").into_iter().all(|score| score >= kept), "round {round}");
    }

    desk.succeed("sample --config tuned/config.toml -q --out run");
    assert!(desk.read("run/config.toml").contains(&format!("step-size = \"{}\"", best[1])));
}

#[test]
fn same_bytes_on_any_number_of_threads_and_without_tuning_again() {
    let desk = Desk::new();
    let tune = "tune banana --method sgnht-stein --mu 1 --steps 64 -n 80 -q";
    desk.succeed(&format!("{tune} --threads 1 --out one"));
    desk.succeed(&format!("{tune} --threads 2 --out two"));
    for name in ["config.toml", "tried.csv"] {
        assert_eq!(desk.read(&format!("one/{name}")), desk.read(&format!("two/{name}")), "{name}");
    }
    // μ was given, and so not searched; η and α were.
    assert!(tried(&desk, "one").iter().all(|row| row[3].is_empty() && !row[2].is_empty()));

    let run = "sample banana --method sgnht-stein --mu 1 --steps 64 -n 80 -q --tune --out run";
    desk.succeed(run);
    assert_eq!(desk.read("run-tuning/tried.csv"), desk.read("one/tried.csv"));
    desk.succeed("sample --config run/config.toml -q --out again");
    let particles = |run: &str| fs::read(desk.path(&format!("{run}/particles.parquet"))).unwrap();
    assert_eq!(particles("run"), particles("again"));
}

#[test]
fn a_network_is_tuned_by_rows_that_it_did_not_see() {
    let desk = Desk::new();
    let tune = "tune bnn --hidden 5 --steps 32 --rungs 2 --mu 1 -q --json --out tuned";
    let found: serde_json::Value = serde_json::from_str(&desk.succeed(tune)).unwrap();
    assert_eq!(found["judge"], "−log-likelihood");
    assert!(found["best"]["eta"].as_f64().unwrap() > 1e-8);
    let config = desk.read("tuned/config.toml");
    assert!(
        config.contains("particles = 20") && config.contains("test-fraction = 0.1"),
        "{config}"
    );
    desk.succeed("sample --config tuned/config.toml -q --out run");
}

#[test]
fn wrong_requests_are_told_what_to_do() {
    let desk = Desk::new();
    for (arguments, words) in [
        ("tune banana --step-size 0.1", ["nothing to tune", "leave some of it open"]),
        ("tune banana --method sghmc --eta 1e-3 --friction 1", ["nothing to tune", "friction"]),
        ("tune --method lawgd", ["nothing to tune", "without tuning"]),
        ("tune --phase euler:0.1x10", ["--phase does not fit tuning", "--steps"]),
        ("tune banana --budget-steps 0", ["budget-steps is 0", "or more"]),
        ("tune banana --budget-steps 50", ["budget-steps is 50", "candidates"]),
        ("tune banana --rungs 0", ["rungs is 0", "1 to 16"]),
        ("tune banana --steps 0", ["steps is 0", "1 or more"]),
        ("tune banana --judge likelihood", ["--judge does not fit", "take ksd"]),
        ("tune banana --judge looks", ["no judge `looks`", "ksd"]),
        ("tune bananas", ["no model `bananas`", "banana"]),
        ("sample banana --tune --step-size 0.1", ["nothing to tune", "step size"]),
        ("tune banana --method ld --step-size 0.1 --alpha 0.1", ["--alpha does not fit", "ld"]),
    ] {
        desk.fail(arguments, 2, &words);
    }
    // Nothing helps a start where the density is not a number.
    desk.fail("tune funnel --start-mean -1e5 -q", 1, &["all", "diverged", "--start-mean"]);
}

#[test]
fn a_budget_is_kept() {
    let desk = Desk::new();
    let text = desk.succeed("tune banana --budget-steps 400 -q --json --out tuned");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let steps = found["pilot_steps"].as_u64().unwrap();
    assert!((100..=400).contains(&steps), "{steps}");
    // The run that it is for is as long as ever.
    assert!(desk.read("tuned/config.toml").contains("steps = 1000"));
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_nothing_behind() {
    let desk = Desk::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("steinflow"))
        .current_dir(desk.0.path())
        .args(["tune", "banana", "--steps", "1000000000", "--out", "tuned"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while desk.listing().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    // A moment for the process to look where its folder is.
    std::thread::sleep(std::time::Duration::from_millis(300));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(desk.listing().is_empty(), "{:?}", desk.listing());
}

#[test]
fn the_experiment_can_be_made_again() {
    let desk = Desk::new();
    let text = desk.succeed("reproduce tune --quick --out tune");
    assert!(text.contains("| tri-crescent |") && text.contains("| funnel |"), "{text}");
    for file in ["tune.csv", "grid.csv", "tune.md", "tune.png", "settings.toml", "simulated.csv"] {
        assert!(desk.path("tune").join(file).exists(), "{file}");
    }
    // A row a target; the share of the steps is a share.
    let rows: Vec<String> = desk.read("tune/tune.csv").lines().skip(1).map(str::to_owned).collect();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        let share: f64 = cells[9].parse().unwrap();
        assert!(share > 0.0 && share < 1.0, "{row}");
    }
}
