//! Steinflow against its peers: same inputs, same precision, one run, turn about.
//!
//! `cargo xtask bench` sets up the peers and runs this.

mod contest;
mod inputs;
mod peers;
mod record;
mod scaling;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use contest::Contest;
use peers::Peers;

/// Times Steinflow against its peers.
#[derive(Parser)]
struct Arguments {
    /// The Python that has the peers; without it, Steinflow runs alone
    #[arg(long)]
    python: Option<PathBuf>,
    /// The folder for this run's numbers
    #[arg(long)]
    out: PathBuf,
    /// Works whose name contains one of these; all when there is none
    only: Vec<String>,
    /// Turns of every contender
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Leave out what takes minutes (10⁵ points)
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the benchmark failed: {error}");
            ExitCode::FAILURE
        }
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.out)?;
    let chosen = |name: &str| {
        arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part))
    };
    let mut peers = arguments.python.as_deref().map(Peers::start).transpose()?;
    let versions = peers.as_mut().map(Peers::versions).transpose()?;
    let mut record = record::Record::new(&arguments.out, versions);
    for make in work::all(arguments.quick) {
        if chosen(&make.name) {
            let contest = Contest::hold(&make, peers.as_mut(), arguments.rounds)?;
            println!("{}", contest.markdown());
            record.add(&contest)?;
        }
    }
    if chosen("scaling") {
        scaling::run(&arguments.out, arguments.quick)?;
    }
    record.finish()
}
