//! All that needs a GPU: the tests of the engine, runs of the command, and times with JAX beside them.

use std::process::Command;

use crate::bench::date;
use crate::stage::{Stage, root};

/// Tests, builds, and writes `benches/runs/<date>-<GPU>`.
pub fn stages() -> Vec<Stage> {
    let Some(name) = gpu_name() else {
        return vec![Stage::skipped("gpu", "`nvidia-smi` finds no GPU here")];
    };
    let folder = format!("benches/runs/{}-{name}", date());
    let packages = ["--package", "steinflow-bench", "--package", "steinflow-cli"];
    let build = [&["build", "--release", "--bin", "gpu", "--bin", "steinflow"][..], &packages];
    let data = std::env::var("STEINFLOW_DATA").unwrap_or_default();
    vec![
        Stage::cargo("tests", &["test", "--package", "steinflow-cuda", "--", "--nocapture"]),
        Stage::cargo("build", &build.concat()),
        Stage::new("runs", "benches/gpu.sh".into(), &["target/release", &folder, &data]),
    ]
}

/// Runs the tests of the engine on an emulated GPU, but those that would take hours there.
pub fn emulated() -> Vec<Stage> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return vec![Stage::skipped("emulator", "it switches stacks as Linux on x86-64 does")];
    }
    let folder = root().join("target/emulator");
    let mut test =
        vec!["test", "--package", "steinflow-cuda", "--test", "device", "--", "--nocapture"];
    for long in ["a_million", "comes_to_rest", "moments_of_the_target"] {
        test.extend(["--skip", long]);
    }
    let build = "crates/steinflow-cuda/emulator/build.sh";
    vec![
        Stage::new("emulator", build.into(), &["target/emulator"]),
        Stage::cargo("tests", &test).with_variable("LD_LIBRARY_PATH", &folder.to_string_lossy()),
    ]
}

/// Compiles every kernel, which takes NVRTC and no GPU.
pub fn compile() -> Vec<Stage> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return vec![Stage::skipped("kernels", "PyPI has NVRTC for Linux on x86-64")];
    }
    let library = root().join("target/nvrtc/nvidia/cu13/lib");
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        "target/nvrtc",
        "nvidia-cuda-nvrtc==13.0.88",
    ];
    let test = ["test", "--workspace", "--lib", "--", "kernels_compile"];
    let compile =
        Stage::cargo("kernels", &test).with_variable("LD_LIBRARY_PATH", &library.to_string_lossy());
    if library.is_dir() {
        return vec![compile];
    }
    vec![Stage::new("nvrtc", "python3".into(), &install), compile]
}

/// The GPU in a word: `h200`.
fn gpu_name() -> Option<String> {
    let asked =
        Command::new("nvidia-smi").args(["--query-gpu=name", "--format=csv,noheader"]).output();
    let text = String::from_utf8(asked.ok()?.stdout).ok()?;
    let name = text.lines().next()?.trim().to_lowercase();
    let name = name.trim_start_matches("nvidia ").replace(' ', "-");
    (!name.is_empty()).then_some(name)
}
