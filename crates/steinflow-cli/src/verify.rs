//! `steinflow verify`: whether the files of runs are as they were written.

use std::io::Write as _;
use std::process::ExitCode;

use steinflow_io::record::FinishedRun;

use crate::args::VerifyArguments;
use crate::error::{Error, Result};

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
