//! `steinflow report`: one HTML page about a run, or about several beside each other.

mod backdrop;
mod read;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use steinflow_io::report::{Page, Run};
use steinflow_io::{Unfinished, WholeFile, add_to_run, is_finished_run};

use crate::args::ReportArguments;
use crate::error::{Error, Result};

pub use backdrop::Backdrop;

/// Numbers of particles in a page, over all runs; each takes about eight bytes.
const MOST_NUMBERS: usize = 240_000;

pub fn command(arguments: &ReportArguments) -> Result<ExitCode> {
    let folders: Vec<PathBuf> =
        arguments.runs.iter().map(|run| find(run)).collect::<Result<_>>()?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None if folders.len() == 1 => folders[0].join("report.html"),
        None => folders[0].with_file_name("comparison.html"),
    };
    // What is put into a run's folder becomes one of the run's own files, which --force of another
    // run may replace.
    let run = out.parent().filter(|parent| is_finished_run(parent));
    // Before anything is read.
    let file = WholeFile::create(&out, arguments.force)?;
    let mut runs: Vec<Run> = Vec::new();
    for folder in &folders {
        runs.push(read::run(folder, MOST_NUMBERS / folders.len(), folders.len() == 1)?);
    }
    tell_apart(&mut runs, &arguments.runs);
    let html = Page::report(runs).html();
    match (run, out.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(name)) => add_to_run(folder, name, html.as_bytes(), arguments.force)?,
        _ => file.write(html.as_bytes())?,
    }
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The folder of a finished run, with its own name.
fn find(given: &Path) -> Result<PathBuf> {
    let not = |found: &str| Error::NotARun { path: given.to_owned(), found: found.to_owned() };
    if is_finished_run(given) {
        let named = given.file_name().is_some();
        let own = if named { Ok(given.components().collect()) } else { given.canonicalize() };
        return own.map_err(|error| not(&error.to_string()));
    }
    if Unfinished::exists(given) {
        let resume = format!("was not finished (`steinflow resume {}` goes on)", given.display());
        return Err(not(&resume));
    }
    Err(not(match given.symlink_metadata() {
        Err(_) => "does not exist",
        Ok(_) if given.is_dir() => {
            "is not the folder of a finished run (it has no `.steinflow-run`)"
        }
        Ok(_) => "is a file",
    }))
}

/// Runs of the same name in several places are called by their paths.
fn tell_apart(runs: &mut [Run], given: &[PathBuf]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for ((run, path), name) in runs.iter_mut().zip(given).zip(&names) {
        if names.iter().filter(|other| *other == name).count() > 1 {
            run.name = path.display().to_string();
        }
    }
}
