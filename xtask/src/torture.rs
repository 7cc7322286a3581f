//! Runs ended in every way that a machine can, taken up again, and compared bit by bit.

use std::env::consts::EXE_SUFFIX;

use crate::stage::{Stage, root};

/// Builds the command and its tormentor, then lets them meet.
pub fn stages(arguments: &[&str]) -> Vec<Stage> {
    // All of the workspace, as the tests build it, so that nothing is built twice.
    let build = ["build", "--workspace", "--bin", "steinflow", "--example", "torture"];
    vec![Stage::cargo("torture build", &build), run("torture", arguments)]
}

/// A small one, for every day. The tests have built the two: the command for those that run it, and
/// all examples.
pub fn short() -> Stage {
    let few =
        ["--kills", "9", "--signals", "1", "--damaged", "7", "--replaced", "4", "--writers", "3"];
    run("torture", &few)
}

fn run(name: &'static str, arguments: &[&str]) -> Stage {
    let built = root().join("target").join("debug");
    let program = built.join(format!("steinflow{EXE_SUFFIX}")).to_string_lossy().into_owned();
    let tormentor = built.join("examples").join(format!("torture{EXE_SUFFIX}"));
    Stage::new(name, tormentor, &[&["--program", program.as_str()], arguments].concat())
}
