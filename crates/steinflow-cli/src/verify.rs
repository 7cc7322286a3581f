//! `steinflow verify`: whether the files of runs are as they were written.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use steinflow_io::record::FinishedRun;

use crate::error::{Error, Result};

/// Check the files of runs against the SHA-256 that was written with them.
///
/// Whatever else reads a run checks what it reads in the same way. `sha256sum --check .steinflow-run`
/// inside the folder says the same.
#[derive(Debug, Parser)]
#[command(name = "verify")]
pub struct VerifyArguments {
    /// Folders of finished runs.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
}

pub fn command(arguments: &VerifyArguments) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut count = 0;
    for path in &arguments.runs {
        let run = FinishedRun::open(path)?;
        let (troubles, (summed, unknown)) = (run.verify(), run.summed());
        for trouble in &troubles {
            tell!("{trouble}");
        }
        let good = summed - troubles.len();
        write!(out, "{}: {good} of {summed} files are as they were written", path.display())?;
        match unknown {
            0 => writeln!(out)?,
            unknown => writeln!(out, "; {unknown} have no checksum")?,
        }
        count += troubles.len();
    }
    if count == 0 { Ok(ExitCode::SUCCESS) } else { Err(Error::NotVerified { count }) }
}
