//! The jobs of an experiment: over all cores, with a bar, each kept as soon as it is done.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steinflow_io::{Journal, RunFolder};

use crate::error::{Error, Result};

/// Results so far, beside the folder that will hold the finished experiment.
pub struct Ledger {
    journal: Journal,
}

impl Ledger {
    /// Opens `OUT.jobs.jsonl`. From now on Ctrl-C says how to go on.
    pub fn open(folder: &RunFolder, settings: &str) -> Result<Self> {
        let mut path = folder.path().as_os_str().to_owned();
        path.push(".jobs.jsonl");
        let path = PathBuf::from(path);
        // Another version may compute other numbers from the same settings.
        let settings = format!("# steinflow {}\n{settings}", env!("CARGO_PKG_VERSION"));
        let journal = Journal::open(&path, &settings)?;
        if journal.found() > 0 {
            eprintln!("going on: {} results are in `{}`", journal.found(), path.display());
        }
        let unfinished = folder.partial_path().to_owned();
        let installed = ctrlc::set_handler(move || {
            let _ = std::fs::remove_dir_all(&unfinished);
            eprintln!("stopped; the same command goes on from `{}`", path.display());
            std::process::exit(i32::from(Error::INTERRUPTED));
        });
        if let Err(error) = installed {
            eprintln!("warning: Ctrl-C will say nothing: {error}");
        }
        Ok(Self { journal })
    }

    /// Does the jobs that are not in the journal; results come in the order of the jobs.
    pub fn run<J: Sync, R: Send + Serialize + DeserializeOwned>(
        &self,
        name: &'static str,
        jobs: &[J],
        key: impl Fn(&J) -> String + Sync,
        work: impl Fn(&J) -> R + Sync,
    ) -> Result<Vec<R>> {
        let style = ProgressStyle::with_template("{prefix} [{bar:32}] {pos}/{len} eta {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(jobs.len() as u64).with_style(style).with_prefix(name);
        let kept: Vec<Option<R>> = jobs.iter().map(|job| self.journal.find(&key(job))).collect();
        // Time left is judged by the jobs that take time.
        bar.set_position(kept.iter().flatten().count() as u64);
        bar.reset_eta();
        // One at a time, in order: long jobs stand first so that no core waits long at the end.
        let results = kept
            .into_par_iter()
            .zip(jobs)
            .with_max_len(1)
            .map(|(kept, job)| {
                if let Some(result) = kept {
                    return Ok(result);
                }
                let result = alone(|| work(job));
                self.journal.record(&key(job), &result)?;
                bar.inc(1);
                Ok(result)
            })
            .collect();
        bar.finish_and_clear();
        results
    }

    /// Forgets the results, once the folder holds them.
    pub fn delete(self) -> Result<()> {
        Ok(self.journal.delete()?)
    }
}

/// Does a job on a single thread of its own: with more jobs than cores, sharing one job between cores
/// only costs.
fn alone<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        // No thread to be had: this one will do.
        Err(_) => work(),
    }
}
