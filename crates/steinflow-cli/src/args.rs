//! The command line, as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::Settings;

const EXAMPLES: &str = "\
Examples:
  steinflow                                            the paper's toy, in seconds
  steinflow sample banana --method svgd --steps 2000 --step-size 0.2
  steinflow sample gaussian --dim 10 --method sghmc-stein --eta 0.01 --alpha 0.1
  steinflow sample logistic-regression --data patients.csv --target outcome
  steinflow sample --config runs/tri-crescent-sgrhmc-stein-1/config.toml --seed 7
  steinflow methods";

/// Draw samples from a density known up to a constant, with deterministic interacting particles.
///
/// Without a command: `steinflow sample` on the paper's toy.
#[derive(Debug, Parser)]
#[command(name = "steinflow", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a sampler on a model and write a run folder.
    Sample(Box<SampleArguments>),
    /// Make a table or a figure of the project's experiments again.
    Reproduce(ReproduceArguments),
    /// List the samplers: name, formula, settings, reference.
    Methods(ListArguments),
    /// List the models: name, density, reference.
    Models(ListArguments),
}

impl Default for Command {
    fn default() -> Self {
        Self::Sample(Box::default())
    }
}

#[derive(Args, Debug)]
pub struct ReproduceArguments {
    /// Which experiment.
    pub experiment: Experiment,
    /// Where to put tables, figures, their raw numbers and the settings.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs/reproduce",
        default_value_ifs = [
            ("experiment", "toy", "runs/reproduce-toy"),
            ("experiment", "table1", "runs/reproduce-table1"),
            ("experiment", "samples", "runs/reproduce-samples"),
            ("experiment", "traces", "runs/reproduce-traces"),
            ("experiment", "evolution", "runs/reproduce-evolution"),
        ]
    )]
    pub out: PathBuf,
    /// The first seed of the toy experiments [default: 0].
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Replace the folder if it exists.
    #[arg(long)]
    pub force: bool,
    /// A small part of the experiment, in seconds.
    #[arg(long)]
    pub quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// How much of the variance of N(0, I) each method keeps, by dimension.
    Collapse,
    /// The paper's toy on three crescents: the four figures below, and a page about them.
    Toy,
    /// One chain of SGLD and of SGHMC beside the particles of SVGD and of SGHMC-Stein.
    Table1,
    /// Final particles of every method, and over many seeds the share of each crescent.
    Samples,
    /// Paths of a few particles of every method.
    Traces,
    /// SGRHMC-Stein at four moments, and an animation.
    Evolution,
}

#[derive(Args, Debug)]
pub struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct SampleArguments {
    #[command(flatten)]
    pub settings: Settings,

    /// Read settings from a TOML file; flags win over it. Every run writes its own `config.toml`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub config: Option<PathBuf>,

    /// Where to put the run folder [default: runs/MODEL-METHOD-K, the first K that is free].
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Replace the run folder if it exists.
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Print the summary as JSON instead of tables.
    #[arg(long, help_heading = "Output")]
    pub json: bool,

    /// No progress bar.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,

    /// Threads to use [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT", help_heading = "Output")]
    pub threads: Option<usize>,
}
