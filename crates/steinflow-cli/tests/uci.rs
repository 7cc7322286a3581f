//! `steinflow reproduce uci`, on the data set that is built in.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

const PLAN: &str = r#"
particles = 5
batch-size = 50
precision = "f32"
kernel-on = "joint"
steps = 40
precondition = "none"

[search]
validation-fraction = 0.2
rungs = [{ steps = 10, keep = 2 }]

[grid]
eta = [1e-6, 1e-5, 1e-4]
alpha = [0.1, 0.5]

[[dataset]]
name = "penguins"

[[run]]
label = "SVGD"
method = "svgd"
search = ["eta"]

[[run]]
label = "SGHMC-Stein"
method = "sghmc-stein"
search = ["eta", "alpha"]

[[run]]
label = "ours, preconditioned"
method = "sgnht-stein"
friction = 5.0
precondition = "rms"
phase = [{ integrator = "splitting", step-size = "linear:0.3:0.1", steps = 10 }]
"#;

fn uci(folder: &Path, more: &[&str]) -> assert_cmd::assert::Assert {
    fs::write(folder.join("plan.toml"), PLAN).unwrap();
    Command::cargo_bin("steinflow")
        .unwrap()
        .current_dir(folder)
        .args(["reproduce", "uci", "--settings", "plan.toml"])
        .args(more)
        .assert()
}

#[test]
fn a_plan_gives_tables_traces_and_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = uci(here, &["--splits", "0-1", "--out", "out"]).success();
    let shown = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("| method | penguins (2) |"), "{shown}");

    let runs = fs::read_to_string(here.join("out/runs.csv")).unwrap();
    let rows: Vec<&str> = runs.lines().skip(1).collect();
    assert_eq!(rows.len(), 6, "{runs}");
    assert!(rows.iter().all(|row| row.ends_with(",0,0,")), "no run failed or shrank: {runs}");
    // What was chosen is a point of the grid.
    let stein: Vec<&str> = rows[1].split(',').collect();
    assert!(["0.000001", "0.00001", "0.0001"].contains(&stein[3]), "{stein:?}");
    assert!(["0.1", "0.5"].contains(&stein[4]), "{stein:?}");

    let traces = fs::read_to_string(here.join("out/traces.csv")).unwrap();
    assert!(traces.lines().count() > 6 * 15, "{traces}");
    assert!(fs::read(here.join("out/traces-penguins.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(fs::read_to_string(here.join("out/tables.tex")).unwrap().contains("\\toprule"));
    assert_eq!(fs::read_to_string(here.join("out/settings.toml")).unwrap(), PLAN);
    assert!(!here.join("out.jobs.jsonl").exists());
}

#[test]
fn a_run_goes_on_from_what_a_killed_one_left() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    uci(here, &["--splits", "0", "--methods", "svgd", "--out", "whole"]).success();
    let whole = fs::read_to_string(here.join("whole/runs.csv")).unwrap();

    // What a killed run leaves: a journal with a result, which must be used and not computed again.
    let header = format!("# steinflow {}\n{PLAN}", env!("CARGO_PKG_VERSION"));
    let header = serde_json::json!({ "settings": header });
    let found = serde_json::json!({
        "job": "penguins, SVGD, split 0",
        "result": { "Err": "marked by the test" },
    });
    fs::write(here.join("half.jobs.jsonl"), format!("{header}\n{found}\n")).unwrap();
    let more = ["--splits", "0-1", "--methods", "SVGD", "--out", "half"];
    let done = uci(here, &more).success();
    let said = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(said.contains("1 results are in"), "{said}");
    let half = fs::read_to_string(here.join("half/runs.csv")).unwrap();
    assert!(half.contains("marked by the test"), "{half}");
    assert!(half.lines().nth(2).unwrap().starts_with("penguins,\"SVGD\",1,"), "{half}");
    assert!(whole.lines().nth(1).unwrap().starts_with("penguins,\"SVGD\",0,"), "{whole}");
}

#[test]
fn a_setting_that_does_not_exist_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        ("method = \"svgd\"", "method = \"svgd\"\nnoise-rates = 0.1"),
        ("steps = 40", "steps = 40\nparticels = 7"),
        ("name = \"penguins\"", "name = \"penguins\"\nstep = 3"),
        ("label = \"SVGD\"\n", ""),
    ] {
        fs::write(folder.path().join("wrong.toml"), PLAN.replace(from, to)).unwrap();
        let refused = Command::cargo_bin("steinflow")
            .unwrap()
            .current_dir(folder.path())
            .args(["reproduce", "uci", "--settings", "wrong.toml"])
            .assert()
            .code(2);
        let message = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        let named = to.lines().last().unwrap_or("label").split(' ').next().unwrap();
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn wrong_requests_are_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (more, word) in [
        (&["--methods", "svdg"][..], "SVGD"),
        (&["--datasets", "pinguins"], "penguins"),
        (&["--splits", "9-3"], "0-9"),
    ] {
        let refused = uci(here, more).code(2);
        let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        assert!(said.contains(word), "{said}");
    }
    let mut absent = Command::cargo_bin("steinflow").unwrap();
    absent.current_dir(here).args(["reproduce", "uci", "--settings", "absent.toml"]);
    let refused = absent.assert().code(2);
    let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(said.contains("absent.toml"), "{said}");
    assert!(!here.join("runs").exists());
}

#[test]
fn a_data_set_may_have_particles_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let scores = |name: &str, plan: &str| -> Vec<String> {
        fs::write(here.join("plan.toml"), plan).unwrap();
        let words = "reproduce uci --settings plan.toml --methods SVGD --splits 0 --out";
        let mut command = Command::cargo_bin("steinflow").unwrap();
        command.current_dir(here).args(words.split(' ')).arg(name).assert().success();
        let runs = fs::read_to_string(here.join(name).join("runs.csv")).unwrap();
        // Up to the time that it took.
        runs.lines().nth(1).unwrap().split(',').take(16).map(str::to_owned).collect()
    };
    let own = PLAN.replace("name = \"penguins\"", "name = \"penguins\"\nparticles = 3");
    let three = PLAN.replace("particles = 5", "particles = 3");
    assert_eq!(scores("own", &own), scores("three", &three));
    assert_ne!(scores("own-again", &own), scores("five", PLAN));
}
