//! What is asked of the project's experiments.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    Verdict(VerdictArguments),
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
pub struct VerdictArguments {
    #[command(flatten)]
    pub part: PartArguments,
    /// Runs nothing: prints the tables of rows that are there, as in verdict.csv.
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub rows: Option<PathBuf>,
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
    /// `paper`, `best`, `noise`, or a TOML file like theirs.
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
