//! The checks of `cargo xtask test`, from the quickest to tell to the slowest.

use std::env::consts::EXE_SUFFIX;

use crate::stage::{Stage, root};
use crate::{deny, gpu, python, ranks, strict, torture};

/// All checks, in the order in which they run. Where a tool is missing, its check is skipped, or if
/// `strict` installed or failed.
pub fn stages(strict: bool) -> Vec<Stage> {
    let mut stages = vec![
        Stage::cargo("format", &["fmt", "--all", "--check"])
            .needs("fmt", "rustfmt is not installed; `rustup component add rustfmt` installs it"),
        Stage::cargo("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
            .needs("clippy", "clippy is not installed; `rustup component add clippy` installs it"),
        // Not `--all-targets`, which leaves the doc tests out; examples are built either way.
        Stage::cargo("tests", &["test", "--workspace"]),
        example(),
        torture::short(),
        Stage::cargo("docs", &["doc", "--workspace", "--no-deps"])
            .with_variable("RUSTDOCFLAGS", "-D warnings"),
    ];
    stages.extend(if strict {
        deny::install_and_check()
    } else {
        vec![deny::check_if_installed()]
    });
    stages.extend(gpu::compile());
    stages.extend(python::checks());
    let mut stages = if strict { strict::strictly(stages) } else { stages };
    // Last, for they build the command once more; and excused where there is no MPI to be had.
    stages.extend(ranks::checks(strict));
    stages
}

/// The example of dynamics of one's own, as the tests have built it: by itself it would be built with other features,
/// and all that it depends on once more.
fn example() -> Stage {
    let built = root().join("target").join("debug").join("examples");
    Stage::new("example", built.join(format!("own_dynamics{EXE_SUFFIX}")), &[])
}
