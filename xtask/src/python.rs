//! The Python package: its extension module, an environment of its own, lints, tests, and the wheel.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::site;
use crate::stage::{Stage, root};

const ABSENT: &str = "there is no Python 3.11 or newer (`python3`)";

/// The extension module and the environment that it is used in, or a stage that says why they are skipped.
pub fn prepared() -> Vec<Stage> {
    if !python_is_installed() {
        return vec![Stage::skipped("python", ABSENT)];
    }
    vec![
        // With all targets, cargo builds the module from what the tests before have built already.
        Stage::cargo("extension", &["build", "--workspace", "--all-targets"]),
        Stage::new("environment", "python3".into(), &["crates/steinflow-py/environment.py"]),
    ]
}

/// The checks of the package and of the site.
pub fn checks() -> Vec<Stage> {
    let mut stages = prepared();
    if stages.len() == 1 {
        return stages;
    }
    stages.extend([
        Stage::new("python lints", program("ruff"), &["check"]),
        Stage::new("python format", program("ruff"), &["format", "--check"]),
        Stage::new("python", program("python"), &["-m", "pytest", "-q", "-rs", "--durations=5"]),
        torch("--torch-where-it-is"),
        site::build(),
    ]);
    stages
}

/// Installs PyTorch and runs the tests that need it.
pub fn with_torch() -> Vec<Stage> {
    let mut stages = prepared();
    if stages.len() > 1 {
        stages.push(torch("--torch"));
    }
    stages
}

fn torch(how: &str) -> Stage {
    Stage::new("PyTorch", "python3".into(), &["crates/steinflow-py/environment.py", how])
}

/// Builds the wheel into `target/wheels`, and tries it. On Linux it is linked by zig, against the glibc of manylinux
/// 2014 whatever this machine has.
pub fn wheel() -> Vec<Stage> {
    if !python_is_installed() {
        return vec![Stage::skipped("wheel", ABSENT)];
    }
    let script = "crates/steinflow-py/environment.py";
    let mut build = vec!["build", "--release", "--locked", "--out", "target/wheels"];
    if cfg!(target_os = "linux") {
        build.extend(["--zig", "--compatibility", "manylinux2014"]);
    }
    let python = program("python");
    vec![
        Stage::new("environment", "python3".into(), &[script, "--tools-only"]),
        Stage::new("wheel", program("maturin"), &build)
            // Zig is a package of this Python.
            .with_variable("CARGO_ZIGBUILD_PYTHON_PATH", &python.to_string_lossy()),
        Stage::new("wheel installed", "python3".into(), &["crates/steinflow-py/wheel_test.py"]),
    ]
}

/// A program of the environment.
pub fn program(name: &str) -> PathBuf {
    let folder = if cfg!(windows) { "Scripts" } else { "bin" };
    root().join("target").join("python").join(folder).join(format!("{name}{EXE_SUFFIX}"))
}

fn python_is_installed() -> bool {
    Command::new("python3")
        .args(["-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
