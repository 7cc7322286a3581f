//! Runs over MPI, as processes of this machine.

use std::process::Command;

use crate::stage::Stage;

/// The tests, or a stage that says why they are skipped.
pub fn checks() -> Vec<Stage> {
    let is_there =
        Command::new("mpirun").arg("--version").output().is_ok_and(|asked| asked.status.success());
    if !is_there {
        return vec![Stage::skipped(
            "ranks",
            "there is no `mpirun`; docs/mpi.md says how to install it",
        )];
    }
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
