//! The command line, as typed.

mod data;
mod experiments;
mod finished;
mod runs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::data::{DataArguments, DataCommand, FetchArguments};
pub use self::experiments::{
    CommonArguments, Experiment, PartArguments, ReproduceArguments, ToyArguments, UciArguments,
    VerdictArguments,
};
pub use self::finished::{
    CompareArguments, DiagnoseArguments, PredictArguments, ReportArguments, VerifyArguments,
};
pub use self::runs::{OutputArguments, ResumeArguments, SampleArguments};

const EXAMPLES: &str = "\
Examples:
  steinflow                                            the paper's toy, in a second
  steinflow sample banana --method svgd --steps 2000 --step-size 0.2
  steinflow sample gaussian --dim 10 --method sghmc-stein --eta 0.01 --alpha 0.1
  steinflow sample logistic-regression --data patients.csv --target outcome
  steinflow sample linear-regression --data eight-schools --groups school --noise-column error
  steinflow sample --density '-(x^2)/2 - 2*(y - x^2)^2'
  steinflow sample --config runs/tri-crescent-sgrhmc-stein-1/config.toml --seed 7
  steinflow sample bnn --data houses.csv --target price --steps 2000
  steinflow resume runs/bnn-svgd-1                     after Ctrl-C or a crash
  steinflow predict runs/bnn-svgd-1 --data new.csv --out predictions.csv
  steinflow diagnose runs/banana-svgd-1                whether to believe it
  steinflow compare runs/a runs/b                      which model predicts better
  steinflow sample banana --steps 100000 --live        watch it in a browser
  steinflow report runs/bnn-svgd-1                     an HTML page about it
  steinflow data fetch yacht
  steinflow methods";

/// Draw samples from a density known up to a constant, with deterministic interacting particles.
///
/// Without a command: particles at rest on the paper's toy, and a page about them.
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
    /// Go on with a run that was interrupted or killed, to the numbers it would have had.
    ///
    /// Looks for the newest good checkpoint of the run. With --steps, a run that has ended goes on to
    /// more of them; settings that would change the numbers ask for --branch, which leaves the run as
    /// it is and goes on in a folder of its own.
    Resume(ResumeArguments),
    /// Predict for the rows of a table with a regression or a network that was sampled before.
    ///
    /// Gives mean, standard deviation and quantiles for every row, or the probability of every class, as
    /// CSV. The table has the columns that the model was fitted to, by name and in any order, and is read
    /// as they were; where it has the target too, the predictions are scored. The data of the fit is not
    /// needed.
    Predict(PredictArguments),
    /// Say which of several fits predicts best, by leaving out every row of their data in turn.
    ///
    /// For regressions and networks that were fitted to the same rows of the same target, whose data is still in
    /// its place. Nothing is fitted again: draws are weighted, and rows for which that fails are counted.
    Compare(CompareArguments),
    /// Say whether the particles of a run can be believed, why, and what to try next.
    ///
    /// Judges means, spreads and modes by the target's score and log density, and gives Stein
    /// discrepancies (of the Langevin operator and of the run's own dynamics) with p-values, and distances
    /// to a reference and to exact draws where the model knows them. Several runs of one model, that
    /// differ in their seed, give moments with standard errors. Every run writes the verdict into its
    /// folder, as diagnosis.json, and this makes it anew.
    Diagnose(DiagnoseArguments),
    /// Write an HTML page about a run, or one that compares several.
    ///
    /// The page needs no other file and no network: verdict, numbers, marginals, pairs, the course of
    /// the run, an animation in two dimensions, predictions of a network, settings.
    Report(ReportArguments),
    /// Check the files of runs against the SHA-256 that was written with them.
    ///
    /// Whatever else reads a run checks what it reads in the same way. `sha256sum --check .steinflow-run`
    /// inside the folder says the same.
    Verify(VerifyArguments),
    /// Make a table or a figure of the project's experiments again.
    Reproduce(ReproduceArguments),
    /// List, describe and fetch the regression data sets that have a name.
    Data(DataArguments),
    /// List where particles can be kept: the processor, and GPUs with their memory.
    Devices(ListArguments),
    /// List the samplers: name, formula, settings, reference.
    Methods(ListArguments),
    /// List the models: name, density, reference.
    Models(ListArguments),
    /// Say what is here and what is missing for what: processor, threads, GPU, tools, data.
    Doctor(ListArguments),
    /// Print completions for a shell.
    Completions(CompletionsArguments),
    /// Write a manual page for every command into a folder.
    Man(ManArguments),
}

/// What is run without a command: a warm-up finds all three crescents, and a kernel as narrow as the space
/// between particles shows how they keep apart.
const FIRST_RUN: &str = "sample tri-crescent --method svgd --warm-up --particles 400 --bandwidth 0.2 --steps 300 --report";

impl Command {
    /// The first run of somebody who has just built the command.
    pub fn first_run() -> Self {
        tell!("steinflow {FIRST_RUN}\n");
        let words = std::iter::once("steinflow").chain(FIRST_RUN.split_whitespace());
        Arguments::parse_from(words).command.expect("the first run is a command")
    }
}

#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// bash, elvish, fish, powershell or zsh.
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub struct ManArguments {
    /// The folder; it is made if it is not there.
    pub folder: PathBuf,
}

#[derive(Args, Debug)]
pub struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
