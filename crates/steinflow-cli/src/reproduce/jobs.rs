//! The jobs of an experiment: over all cores, with a bar, each kept as soon as it is done.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steinflow_io::{Journal, RunFolder};

use crate::error::Result;
use crate::signals::on_signal;

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
            tell!("going on: {} results are in `{}`", journal.found(), path.display());
        }
        let unfinished = folder.partial_path().to_owned();
        on_signal(move |code| {
            let _ = std::fs::remove_dir_all(&unfinished);
            tell!("stopped; the same command goes on from `{}`", path.display());
            std::process::exit(i32::from(code));
        });
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
        let results = spread(jobs, kept, |job| {
            let result = work(job);
            self.journal.record(&key(job), &result)?;
            bar.inc(1);
            Ok(result)
        });
        bar.finish_and_clear();
        results
    }

    /// Forgets the results, once the folder holds them.
    pub fn delete(self) -> Result<()> {
        Ok(self.journal.delete()?)
    }
}

/// Does what is not kept, a job a core at a time, in order: long jobs stand first so that no core
/// waits long at the end.
///
/// Every job has a single thread of its own: with more jobs than cores, sharing one between cores
/// only costs. Plain threads hand them out, because a rayon worker that waits for a job would begin
/// the next one meanwhile.
fn spread<J: Sync, R: Send>(
    jobs: &[J],
    kept: Vec<Option<R>>,
    work: impl Fn(&J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let results: Vec<Mutex<Option<Result<R>>>> =
        kept.into_iter().map(|kept| Mutex::new(kept.map(Ok))).collect();
    let slot = |i: usize| results[i].lock().unwrap_or_else(PoisonError::into_inner);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        while !failed.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(i) else { break };
            if slot(i).is_none() {
                let result = work(job);
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                *slot(i) = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(jobs.len()) {
            scope.spawn(|| match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => pool.install(take),
                // No thread to be had: this one will do.
                Err(_) => take(),
            });
        }
    });
    // A failure leaves jobs undone behind it, but not before it.
    let mut done = Vec::with_capacity(results.len());
    for result in results {
        match result.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(result) => done.push(result?),
            None => break,
        }
    }
    Ok(done)
}
