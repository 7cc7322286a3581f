//! cargo-deny: the licences, duplicates and sources of the dependencies, as `deny.toml` rules.

use std::env::consts::EXE_SUFFIX;
use std::path::PathBuf;

use crate::stage::{Stage, cargo_has, root};

const NAME: &str = "dependencies";

// Without `advisories`, whose database has to be fetched anew and changes by itself.
const CHECK: [&str; 5] = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];

/// The check, or a stage that says why it is skipped.
pub fn check_if_installed() -> Stage {
    installed_check().unwrap_or_else(|| {
        Stage::skipped(NAME, "cargo-deny is not installed; `cargo xtask deny` installs and runs it")
    })
}

/// The check, after an installation where it is needed.
pub fn install_and_check() -> Vec<Stage> {
    match installed_check() {
        Some(check) => vec![check],
        None => vec![
            Stage::cargo(
                "install",
                // Without optimisation it is built in a third of the time, and quick enough.
                &["install", "cargo-deny", "--locked", "--debug", "--root", "target/tools"],
            ),
            own_check(),
        ],
    }
}

fn installed_check() -> Option<Stage> {
    if own_program().is_file() {
        Some(own_check())
    } else if cargo_has("deny") {
        Some(Stage::cargo(NAME, &[&["deny"], &CHECK[..]].concat()))
    } else {
        None
    }
}

fn own_check() -> Stage {
    Stage::new(NAME, own_program(), &CHECK)
}

/// Where [`install_and_check`] puts the program.
fn own_program() -> PathBuf {
    root().join("target").join("tools").join("bin").join(format!("cargo-deny{EXE_SUFFIX}"))
}
