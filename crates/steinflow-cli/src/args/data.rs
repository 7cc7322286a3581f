//! What is asked about data sets.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListArguments;

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
