//! The benchmark: the peers in an environment of their own, then all contenders in one run.

use std::process::Command;

use crate::stage::{Stage, root};

/// Sets up the peers and runs the benchmark; `options` go to it as they are.
pub fn stages(options: &[&str]) -> Vec<Stage> {
    let python = root().join("target").join("bench-peers").join("bin").join("python");
    let out = format!("benches/runs/{}", date());
    let run =
        ["run", "--release", "--package", "steinflow-bench", "--bin", "steinflow-bench", "--"];
    let own = ["--python", "target/bench-peers/bin/python", "--out", &out];
    let requirements = "benches/peers/requirements.txt";
    vec![
        Stage::new("environment", "python3".into(), &["-m", "venv", "target/bench-peers"]),
        Stage::new("peers", python, &["-m", "pip", "install", "--quiet", "-r", requirements]),
        Stage::cargo("bench", &[&run[..], &own[..], options].concat()),
    ]
}

/// Today, as the folder of a run is called.
pub fn date() -> String {
    let asked = Command::new("date").arg("+%Y-%m-%d").output();
    let text = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "undated".to_owned(), |text| text.trim().to_owned())
}
