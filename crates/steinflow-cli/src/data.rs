//! `steinflow data`: the regression sets that have a name, what they hold, and how to get them.

mod archive;
mod convert;
mod download;
mod fetch;
mod list;
mod sheet;
mod show;
mod sketch;
mod trouble;

pub use trouble::{FetchError, Trouble};

use std::process::ExitCode;

use crate::args::{DataArguments, DataCommand};
use crate::error::Result;

pub fn command(arguments: &DataArguments) -> Result<ExitCode> {
    let folder = arguments.data_dir.as_deref();
    match &arguments.command {
        DataCommand::List(list) => list::command(folder, list.json),
        DataCommand::Show(show) => show::command(&show.name, folder, show.json),
        DataCommand::Fetch(fetch) => fetch::command(fetch, folder),
    }
}
