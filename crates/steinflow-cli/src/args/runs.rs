//! What is asked of a run that is to be made, or to go on.

use std::path::PathBuf;

use clap::Args;
use steinflow::diagnostics::Verdict;

use super::EXAMPLES;
use crate::checkpoints::Every;
use crate::flags::Flags;

#[derive(Args, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct SampleArguments {
    #[command(flatten)]
    pub settings: Flags,

    /// Read settings from a TOML file; flags win over it. Every run writes its own `config.toml`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub config: Option<PathBuf>,

    /// Where to put the run folder [default: runs/MODEL-METHOD-K, the first K that is free].
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Replace the run folder if it exists.
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub output: OutputArguments,
}

/// What does not change the numbers.
#[derive(Args, Debug, Default)]
pub struct OutputArguments {
    /// Write a checkpoint every so many steps as in 1000, every so often as in 30s, 5m or 1h, or
    /// never [default: 30s].
    #[arg(long, value_name = "N|TIME", help_heading = "Output")]
    pub checkpoint_every: Option<Every>,

    /// Show the run while it goes on as a page on this machine, on this port or any that is free.
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0",
          value_parser = port, help_heading = "Output")]
    pub live: Option<u16>,

    /// Write the page of `steinflow report` too, and say where it is.
    #[arg(long, help_heading = "Output")]
    pub report: bool,

    /// Print the summary as JSON instead of tables.
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// No progress bar.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,

    /// Exit with code 3 when the verdict is worse than this: trust, means-only, not-converged or collapsed.
    #[arg(long, value_name = "VERDICT", value_parser = verdict, help_heading = "Output")]
    pub require: Option<Verdict>,

    /// Threads to use [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT", help_heading = "Output")]
    pub threads: Option<usize>,
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let names = || Verdict::ALL.iter().map(|verdict| verdict.name());
    Verdict::ALL
        .into_iter()
        .find(|verdict| verdict.name() == text)
        .ok_or_else(|| format!("write one of {}", names().collect::<Vec<_>>().join(", ")))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| {
        "write a port from 1 to 65535, or nothing for any that is free (and then put --live last)"
            .to_owned()
    })
}

const RESUME_EXAMPLES: &str = "\
Examples:
  steinflow resume runs/bnn-svgd-1
  steinflow resume runs/bnn-svgd-1 --steps 20000                      a run that ended too early
  steinflow resume runs/bnn-svgd-1 --config new.toml --branch runs/b  with other settings";

#[derive(Args, Debug)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct ResumeArguments {
    /// The folder that the run was to be in, whether it is there yet or not.
    pub run: PathBuf,
    /// Go on to this many steps in all; the last phase gets longer.
    #[arg(long, value_name = "K")]
    pub steps: Option<u64>,
    /// Stop after this many seconds, those before included; 0 for no limit.
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<f64>,
    /// Stop once the root-mean-square velocity is below this.
    #[arg(long, value_name = "V")]
    pub tolerance: Option<f64>,
    /// Go on with the settings of this file instead of the run's own config.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Go on in a new folder, with other settings if there are any; the run stays as it is.
    #[arg(long, value_name = "DIR")]
    pub branch: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArguments,
}
