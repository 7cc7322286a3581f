//! `steinflow doctor`: what is here, and what is missing for what.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;
use steinflow_cuda::devices;
use steinflow_models::data::{data_sets, find, search_folders};

use crate::error::Result;

/// A thing that may be here.
#[derive(Serialize)]
struct Finding {
    what: &'static str,
    /// Whether it is; `None` for what is a fact and not a want.
    is_here: Option<bool>,
    found: String,
    /// What it is needed for, where it is missing.
    for_what: &'static str,
}

impl Finding {
    fn fact(what: &'static str, found: String) -> Self {
        Self { what, is_here: None, found, for_what: "" }
    }
}

pub fn command(as_json: bool) -> Result<ExitCode> {
    let findings = [
        Finding::fact("version", format!("{} ({})", env!("CARGO_PKG_VERSION"), build())),
        Finding::fact("processor", format!("{}, {}", std::env::consts::ARCH, features())),
        Finding::fact("threads", rayon::current_num_threads().to_string()),
        gpu(),
        tool("MPI", &["mpirun", "mpiexec"], "runs over several machines"),
        tool("C++ compiler", &["c++", "g++", "clang++"], "compiling Stan programs"),
        bridge_stan(),
        tool("Python", &["python3"], "the Python package and `cargo xtask test`"),
        data(),
    ];
    let mut out = anstream::stdout().lock();
    if as_json {
        steinflow_io::write_json(&findings, &mut out)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    for Finding { what, is_here, found, for_what } in &findings {
        let mark = match is_here {
            Some(true) => "✓",
            Some(false) => "–",
            None => " ",
        };
        let needed = if *is_here == Some(false) {
            format!("; needed for {for_what}")
        } else {
            String::new()
        };
        writeln!(out, "{mark} {what:<13} {found}{needed}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "development build" } else { "release build" }
}

/// What the kernel sums can make use of.
fn features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("AVX-512", std::is_x86_feature_detected!("avx512f")),
            ("AVX2", std::is_x86_feature_detected!("avx2")),
            ("FMA", std::is_x86_feature_detected!("fma")),
        ];
        let here: Vec<&str> =
            known.iter().filter(|(_, is_here)| *is_here).map(|(name, _)| *name).collect();
        if here.is_empty() { "no AVX: sums will be slow".to_owned() } else { here.join(", ") }
    }
    #[cfg(not(target_arch = "x86_64"))]
    "its own vector units".to_owned()
}

fn gpu() -> Finding {
    let (is_here, found) = match devices() {
        Ok(gpus) if !gpus.is_empty() => {
            (true, gpus.iter().map(|gpu| gpu.name.clone()).collect::<Vec<_>>().join(", "))
        }
        Ok(_) => (false, "none".to_owned()),
        Err(why) => (false, why.to_string()),
    };
    Finding { what: "GPU", is_here: Some(is_here), found, for_what: "--device cuda" }
}

/// The first of these programs that answers, by the first line of what it says of its version.
fn tool(what: &'static str, names: &[&str], for_what: &'static str) -> Finding {
    let version = |name: &&str| {
        let output = Command::new(name).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next().unwrap_or_default().trim().to_owned();
        output.status.success().then(|| format!("{name}: {line}"))
    };
    let found = names.iter().find_map(version);
    Finding {
        what,
        is_here: Some(found.is_some()),
        found: found.unwrap_or_else(|| format!("no {}", names[0])),
        for_what,
    }
}

fn bridge_stan() -> Finding {
    let place = std::env::var_os("BRIDGESTAN").map(PathBuf::from);
    let is_here = place.as_ref().is_some_and(|place| place.join("Makefile").exists());
    let found = match &place {
        Some(place) if is_here => place.display().to_string(),
        Some(place) => format!("$BRIDGESTAN is {}, which has no Makefile", place.display()),
        None => "$BRIDGESTAN is not set".to_owned(),
    };
    Finding { what: "BridgeStan", is_here: Some(is_here), found, for_what: "Stan programs" }
}

fn data() -> Finding {
    let sets = data_sets();
    let here = sets.iter().filter(|set| find(set.name, None).is_ok()).count();
    let places: Vec<String> =
        search_folders(None).iter().map(|folder| folder.display().to_string()).collect();
    Finding {
        what: "data sets",
        is_here: Some(here == sets.len()),
        found: format!("{here} of {}, looked for in {}", sets.len(), places.join(" and ")),
        for_what: "`reproduce uci`: steinflow data fetch NAME",
    }
}
