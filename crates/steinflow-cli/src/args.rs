//! The command line, as typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use steinflow::diagnostics::Verdict;

use crate::checkpoints::Every;
use crate::flags::Flags;

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
pub struct VerifyArguments {
    /// Folders of finished runs.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
}

const PREDICT_EXAMPLES: &str = "\
Examples:
  steinflow predict runs/bnn-svgd-1 --data new.csv                        the CSV on the terminal
  steinflow predict runs/bnn-svgd-1 --data new.csv --out predictions.csv
  steinflow predict runs/bnn-svgd-1 --data new.csv --level 0.025,0.975    a 95 % interval";

#[derive(Args, Debug)]
#[command(after_help = PREDICT_EXAMPLES)]
pub struct PredictArguments {
    /// The folder of a run on a regression or on bnn.
    pub run: PathBuf,
    /// What to predict for: a CSV file (may be gzipped), a Parquet file, or a name of `steinflow data list`.
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// Where to look for data sets by name, before $STEINFLOW_DATA and the cache.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The file to write [default, or with `-`: standard output, and the summary on standard error].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Quantile to predict, between 0 and 1; repeat, or separate by commas
    /// [default: 0.05,0.25,0.5,0.75,0.95].
    #[arg(long = "level", value_name = "P", value_delimiter = ',')]
    pub levels: Vec<f64>,
    /// Replace the file if it exists.
    #[arg(long)]
    pub force: bool,
    /// Print the summary as JSON; the predictions then need a file.
    #[arg(long, requires = "out")]
    pub json: bool,
    /// No progress bar.
    #[arg(long, short)]
    pub quiet: bool,
    /// Threads to use [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

#[derive(Args, Debug)]
pub struct CompareArguments {
    /// Folders of finished runs on regressions or on bnn.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Threads to use [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  steinflow diagnose runs/banana-svgd-1
  steinflow diagnose runs/banana-svgd-1 --reference long-run.parquet
  steinflow diagnose runs/banana-svgd-1 runs/banana-svgd-2 runs/banana-svgd-3    seeds against one another";

#[derive(Args, Debug)]
#[command(after_help = DIAGNOSE_EXAMPLES)]
pub struct DiagnoseArguments {
    /// Folders of finished runs of one model.
    #[arg(required_unless_present = "draws", conflicts_with = "draws", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Draws that were made elsewhere: a Parquet or CSV file whose columns have the model's parameter names,
    /// with columns `chain` and `draw` where they are of several chains.
    #[arg(long, value_name = "FILE", requires = "model")]
    pub draws: Option<PathBuf>,
    /// What they were drawn from: a name of `steinflow models`.
    #[arg(long, value_name = "MODEL", requires = "draws")]
    pub model: Option<String>,
    /// Dimension of a model that comes in any.
    #[arg(long, value_name = "D", requires = "draws")]
    pub dim: Option<usize>,
    /// Data of the model: a CSV file, or a name of `steinflow data list`.
    #[arg(long, value_name = "FILE", requires = "draws")]
    pub data: Option<PathBuf>,
    /// The draws are particles at rest, spread evenly, such as those of SVGD.
    #[arg(long, requires = "draws")]
    pub resting: bool,
    /// Points to compare with: a Parquet or CSV file whose columns have the model's parameter names,
    /// such as particles.parquet of another run.
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
    /// Bandwidth of Stein discrepancies: median-log, liu-wang, numpyro, median, or a number.
    #[arg(long, value_name = "RULE", default_value = "median")]
    pub bandwidth: String,
    /// Bootstrap replicates behind a p-value.
    #[arg(long, value_name = "COUNT", default_value_t = 999)]
    pub replicates: usize,
    /// Seed of the bootstrap.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Threads to use [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  steinflow report runs/banana-svgd-1                      writes runs/banana-svgd-1/report.html
  steinflow report runs/banana-svgd-1 --force              again, over the old one
  steinflow report runs/banana-svgd-1 runs/banana-ld-1     writes runs/comparison.html
  steinflow report runs/banana-* --out banana.html";

#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArguments {
    /// Folders of `steinflow sample`.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The page to write [default: RUN/report.html, or comparison.html beside the first of several].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the page if it exists.
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Debug)]
pub struct ReproduceArguments {
    #[command(subcommand)]
    pub experiment: Experiment,
}

#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// How much of the variance of N(0, I) each method keeps, by dimension.
    Collapse(CommonArguments),
    /// Where deterministic points beat draws and where not, and what each ingredient of them does.
    Derandomised(CommonArguments),
    /// Cost and error of particles that meet only some others in a step, up to a million of them.
    Interactions(CommonArguments),
    /// The paper's toy on three crescents: the four figures below, and a page about them.
    Toy(ToyArguments),
    /// One chain of SGLD and of SGHMC beside the particles of SVGD and of SGHMC-Stein.
    Table1(ToyArguments),
    /// Final particles of every method, and over many seeds the share of each crescent.
    Samples(ToyArguments),
    /// Paths of a few particles of every method.
    Traces(ToyArguments),
    /// SGRHMC-Stein at four moments, and an animation.
    Evolution(ToyArguments),
    /// The default and the de-randomised methods on posteriors on raw scales, against long runs of others.
    Posteriors(PartArguments),
    /// Bayesian neural networks on the UCI regression sets, the paper's tables beside ours.
    Uci(UciArguments),
    /// How often the verdict on a run is right, over targets whose exact draws or moments are known.
    Verdict(PartArguments),
}

/// What every experiment takes.
#[derive(Args, Clone, Debug)]
pub struct CommonArguments {
    /// Where to put tables, figures, their raw numbers and the settings [default:
    /// runs/reproduce-EXPERIMENT].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the folder if it exists.
    #[arg(long)]
    pub force: bool,
    /// A small part of the experiment, in seconds.
    #[arg(long)]
    pub quick: bool,
}

impl CommonArguments {
    /// The folder asked for, or one named after the experiment.
    pub fn out(&self, experiment: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| format!("runs/reproduce-{experiment}").into())
    }
}

#[derive(Args, Debug)]
pub struct ToyArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// The first seed [default: 0].
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// Of an experiment over targets, ways to sample from them and seeds, all or a part.
#[derive(Args, Debug)]
pub struct PartArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Only these targets, separated by commas; results stay in OUT.jobs.jsonl for the whole [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub targets: Vec<String>,
    /// Only these ways to sample, separated by semicolons, as the table names them [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ';')]
    pub ways: Vec<String>,
    /// Only so many seeds [default: as many as the published table has].
    #[arg(long, value_name = "COUNT")]
    pub seeds: Option<usize>,
    /// Other seeds than those of the published table: as many from this one on.
    #[arg(long, value_name = "SEED")]
    pub first_seed: Option<u64>,
    /// Threads to use, a job each [default: all cores]. The result does not depend on it.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

impl PartArguments {
    /// Whether some targets or ways are left out.
    pub fn is_part(&self) -> bool {
        !self.targets.is_empty() || !self.ways.is_empty()
    }

    /// The targets that were asked for, of those that there are.
    pub fn takes_target(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|asked| asked == name)
    }

    /// The same of ways.
    pub fn takes_way(&self, name: &str) -> bool {
        self.ways.is_empty() || self.ways.iter().any(|asked| asked == name)
    }

    /// Refuses names that there are not.
    pub fn check(&self, targets: &[&str], ways: &[&str]) -> steinflow::Result<()> {
        for (kind, asked, known) in [("target", &self.targets, targets), ("way", &self.ways, ways)]
        {
            if let Some(name) = asked.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(steinflow::Error::unknown(kind, name, known.iter().copied()));
            }
        }
        Ok(())
    }

    /// The seeds, where the published table has these.
    pub fn seeds(&self, published: &[u64]) -> Vec<u64> {
        let count = self.seeds.unwrap_or(published.len());
        match self.first_seed {
            Some(first) => (first..).take(count).collect(),
            None => published.iter().copied().take(count).collect(),
        }
    }
}

#[derive(Args, Debug)]
pub struct UciArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Only these data sets, separated by commas [default: all that are here].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub datasets: Vec<String>,
    /// Only these methods, separated by commas [default: all].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Only these splits: a number K or a range as in 0-9 [default: all].
    #[arg(long, value_name = "RANGE", value_parser = split_range)]
    pub splits: Option<std::ops::RangeInclusive<usize>>,
    /// `paper`, `best`, or a TOML file like theirs.
    #[arg(long, value_name = "NAME", default_value = "paper")]
    pub settings: String,
    /// Where to look for the data sets, before $STEINFLOW_DATA and the cache.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

fn split_range(text: &str) -> Result<std::ops::RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("write one number as in 3, or a range as in 0-9".to_owned()),
    }
}

#[derive(Args, Debug)]
pub struct DataArguments {
    #[command(subcommand)]
    pub command: DataCommand,
    /// Look here before $STEINFLOW_DATA and the cache, and fetch to here.
    #[arg(long, value_name = "DIR", global = true)]
    pub data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// The sets: rows, features, target, licence, and where each is on this computer.
    List(ListArguments),
    /// One set: columns, target, splits, citation.
    Show(ShowArguments),
    /// Download a set from its publisher, check it, and keep it.
    Fetch(FetchArguments),
}

#[derive(Args, Debug)]
pub struct ShowArguments {
    /// A name of `steinflow data list`.
    pub name: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct FetchArguments {
    /// A name of `steinflow data list`.
    pub name: String,
    /// Another address, or a file that is already here: the publisher's, or NAME.csv.
    #[arg(long, value_name = "URL|FILE")]
    pub from: Option<String>,
    /// Fetch even if the set is here.
    #[arg(long)]
    pub force: bool,
    /// No progress bar.
    #[arg(long, short)]
    pub quiet: bool,
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
