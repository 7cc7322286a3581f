//! What a strict run of the checks may do without: what neither cargo nor pip can install, or not within
//! reason. A test that lacks anything else fails.

use crate::stage::Stage;

/// Tests read it: the names that may be missing. Where it is not set, anything may.
const VARIABLE: &str = "STEINFLOW_EXCUSED";

/// Names, the checks that need them, and why they are excused. A test that would be skipped passes if
/// its reason has one of the names in it.
const EXCUSED: [(&str, &str, &str); 7] = [
    ("chromium", "pages are drawn", "no registry of Rust or Python has a browser"),
    ("torch", "PyTorch among its peers", "it is tested in an environment of its own"),
    ("Stan toolchain", "Stan programs", "its sources are on GitHub alone"),
    ("mount", "full and read-only disks", "it takes a right that containers often do not have"),
    (
        "GPU",
        "the engine for GPUs against the processor",
        "`cargo xtask gpu` runs it where there is one",
    ),
    ("mpirun", "runs over ranks", "it is installed from Debian's packages, where those can be had"),
    ("STEINFLOW_DATA", "data sets as published", "their files stay with their publishers"),
];

/// Makes stages strict.
pub fn strictly(stages: Vec<Stage>) -> Vec<Stage> {
    let names = EXCUSED.map(|(name, ..)| name).join(", ");
    let strict = |stage: Stage| stage.strictly().with_variable(VARIABLE, &names);
    stages.into_iter().map(strict).collect()
}

/// Says what may have been left out.
pub fn announce() {
    println!("\nleft out where it is not there:");
    for (name, what, reason) in EXCUSED {
        println!("  {name:<16}{what}: {reason}");
    }
}
