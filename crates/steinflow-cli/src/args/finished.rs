//! What is asked of finished runs.

use std::path::PathBuf;

use clap::Args;

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
