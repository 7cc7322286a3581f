//! Runs over MPI, as processes of this machine.

use std::process::{Command, Stdio};

use crate::stage::Stage;

/// What Debian calls an MPI library, its starter, and what reads its headers. Without a network this gives up soon.
const INSTALL: &str = "\
    o='-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20'; \
    apt-get $o update && DEBIAN_FRONTEND=noninteractive apt-get $o install -y libopenmpi-dev openmpi-bin libclang-dev";

/// The tests, or a stage that says why they are skipped; strictly, MPI is installed first where that can be done.
pub fn checks(strict: bool) -> Vec<Stage> {
    if strict && !is_there() {
        println!("installing MPI: {INSTALL}");
        // Where it fails, the stage below says what is missing.
        let _ = Command::new("sh").args(["-c", INSTALL]).stdin(Stdio::null()).status();
    }
    if !is_there() {
        return vec![Stage::skipped(
            "ranks",
            "there is no `mpirun`; docs/mpi.md says how to install it",
        )];
    }
    // Of the whole workspace, as the stages before: then only what has the feature is built once more.
    let lints = [
        "clippy",
        "--workspace",
        "--features",
        "steinflow-cli/mpi",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    let tests = ["test", "--workspace", "--features", "steinflow-cli/mpi", "--test", "ranks"];
    vec![Stage::cargo("lints of ranks", &lints), Stage::cargo("ranks", &tests)]
}

fn is_there() -> bool {
    let answers = |name: &str| Command::new(name).arg("--version").output();
    ["mpirun", "mpicc"].iter().all(|name| answers(name).is_ok_and(|asked| asked.status.success()))
}
