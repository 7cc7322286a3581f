//! An experiment: its jobs over all cores and ranks, each kept as soon as it is done, and the folder of what they came to.
//!
//! Over several ranks every one of them goes through the whole experiment, so that all know the same jobs. Rank 0 has the
//! journal and the folder, hands out the jobs and does some itself; the others take jobs, learn what all have found,
//! and write nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steinflow_io::{Journal, RunFolder};
use steinflow_mpi::jobs::{self, Jobs, Notice, Taker};

use crate::args::CommonArguments;
use crate::error::{Error, Result};
use crate::signals::on_signal;

/// An experiment under way.
pub struct Study {
    post: Post,
}

enum Post {
    /// Results so far stand beside the folder that will hold the finished experiment.
    Lead { folder: RunFolder, journal: Journal, found_before: String },
    /// What rank 0 has opened.
    Help { opened: Jobs },
}

/// How jobs are done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A core each, as many at a time as there are.
    SideBySide,
    /// All cores of rank 0 each, one after another: for jobs that take time.
    InTurn,
}

impl Study {
    /// Begins the experiment, or goes on with what `OUT.jobs.jsonl` has of it. From now on Ctrl-C says how to go on.
    pub fn begin(arguments: &CommonArguments, name: &str, settings: &str) -> Result<Self> {
        if steinflow_mpi::is_helper() {
            let (opened, _) = await_jobs()?;
            return Ok(Self { post: Post::Help { opened } });
        }
        let folder = RunFolder::create(arguments.out(name), arguments.force)?;
        let mut path = folder.path().as_os_str().to_owned();
        path.push(".jobs.jsonl");
        let path = PathBuf::from(path);
        // Another version may compute other numbers from the same settings, and so does a small part of the whole.
        let part = if arguments.quick { "# --quick\n" } else { "" };
        let settings = format!("# steinflow {}\n{part}{settings}", env!("CARGO_PKG_VERSION"));
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
        Ok(Self { post: Post::Lead { folder, journal, found_before: String::new() } })
    }

    /// Does the jobs that are not in the journal, on all cores and ranks; results come in the order of the jobs.
    pub fn run<J: Sync, R: Send + Serialize + DeserializeOwned>(
        &mut self,
        name: &'static str,
        jobs: &[J],
        key: impl Fn(&J) -> String,
        work: impl Fn(&J) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.run_in(Way::SideBySide, name, jobs, key, work)
    }

    /// As [`Study::run`], in one way or the other.
    pub fn run_in<J: Sync, R: Send + Serialize + DeserializeOwned>(
        &mut self,
        way: Way,
        name: &'static str,
        jobs: &[J],
        key: impl Fn(&J) -> String,
        work: impl Fn(&J) -> R + Sync,
    ) -> Result<Vec<R>> {
        let names: Vec<String> = jobs.iter().map(key).collect();
        let by_number = |i: usize| work(&jobs[i]);
        let found: Vec<Option<R>> = match &mut self.post {
            Post::Lead { journal, found_before, .. } => {
                jobs::open(Jobs::of(&names), found_before);
                let found = lead(journal, way, name, &names, by_number)?;
                *found_before = serde_json::to_string(&found).map_err(steinflow_io::Error::from)?;
                found
            }
            Post::Help { opened } => {
                help(*opened, way, &names, by_number);
                let (next, found) = await_jobs()?;
                *opened = next;
                let found: Vec<serde_json::Value> =
                    serde_json::from_str(&found).unwrap_or_default();
                found.into_iter().map(|found| serde_json::from_value(found).ok()).collect()
            }
        };
        let mut found = found.into_iter();
        // What JSON cannot carry, a NaN, is found again by whoever needs it.
        Ok(jobs.iter().map(|job| found.next().flatten().unwrap_or_else(|| work(job))).collect())
    }

    /// Writes a file of the folder.
    pub fn write(&mut self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        if let Post::Lead { folder, .. } = &mut self.post {
            folder.write(name, bytes.as_ref())?;
        }
        Ok(())
    }

    /// Puts the folder in its place and forgets the journal; returns that place.
    pub fn publish(self) -> Result<PathBuf> {
        let (path, journal) = self.commit()?;
        journal.delete()?;
        Ok(path)
    }

    /// As [`Study::publish`], where the whole experiment has more jobs, that may use the results.
    pub fn publish_part(self) -> Result<PathBuf> {
        Ok(self.commit()?.0)
    }

    fn commit(self) -> Result<(PathBuf, Journal)> {
        match self.post {
            Post::Lead { folder, journal, .. } => Ok((folder.commit()?, journal)),
            Post::Help { .. } => loop {
                await_jobs()?;
            },
        }
    }
}

/// Waits until rank 0 opens a list of jobs; the end of the command is an error, as it is for one that works on it.
fn await_jobs() -> Result<(Jobs, String)> {
    match jobs::await_jobs() {
        Notice::Jobs(jobs, found) => Ok((jobs, found)),
        Notice::Quit => Err(Error::Dismissed),
    }
}

/// Rank 0, or one process alone.
fn lead<R: Send + Serialize + DeserializeOwned>(
    journal: &Journal,
    way: Way,
    name: &'static str,
    names: &[String],
    work: impl Fn(usize) -> R + Sync,
) -> Result<Vec<Option<R>>> {
    let style = ProgressStyle::with_template("{prefix} [{bar:32}] {pos}/{len} eta {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(names.len() as u64).with_style(style).with_prefix(name);
    let slots: Vec<Mutex<Option<R>>> =
        names.iter().map(|name| Mutex::new(journal.find(name))).collect();
    let slot = |i: usize| slots[i].lock().unwrap_or_else(PoisonError::into_inner);
    // Time left is judged by the jobs that take time.
    bar.set_position((0..names.len()).filter(|&i| slot(i).is_some()).count() as u64);
    bar.reset_eta();

    let trouble = Mutex::new(Trouble::default());
    let troubled = || trouble.lock().unwrap_or_else(PoisonError::into_inner);
    let counter = AtomicUsize::new(0);
    let next = || {
        // Where nothing can be kept, or somebody is missing, nothing more is begun.
        let is_open = troubled().lets_go_on();
        let begin = || Some(counter.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < names.len());
        is_open.then(|| std::iter::from_fn(begin).find(|&i| slot(i).is_none())).flatten()
    };
    let keep = |i: usize, found: Result<R, String>| {
        bar.inc(1);
        match found {
            Ok(found) => match journal.record(&names[i], &found) {
                Ok(()) => *slot(i) = Some(found),
                Err(error) => troubled().journal = Some(error),
            },
            Err(message) => troubled().failures.push((i, message)),
        }
    };
    let hand_out = |next: &dyn Fn() -> Option<usize>| {
        let take = |i, found: Result<Vec<u8>, String>| {
            match found.map(|bytes| serde_json::from_slice(&bytes)) {
                Ok(Ok(found)) => keep(i, Ok(found)),
                // Found again, later.
                Ok(Err(_)) => {}
                Err(message) => keep(i, Err(message)),
            }
        };
        jobs::hand_out(next, take, |message| troubled().rank = Some(message));
    };
    match way {
        Way::SideBySide => side_by_side(names.len(), &next, &keep, &work, || hand_out(&next)),
        Way::InTurn => {
            hand_out(&|| None);
            work_off(&next, &keep, &work);
        }
    }
    bar.finish_and_clear();
    trouble.into_inner().unwrap_or_else(PoisonError::into_inner).into_result(names)?;
    Ok(slots
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

/// What went wrong beside the results of jobs, which hold their own errors.
#[derive(Default)]
struct Trouble {
    journal: Option<steinflow_io::Error>,
    /// Of one that could not take part.
    rank: Option<String>,
    /// Of jobs that ended without a result.
    failures: Vec<(usize, String)>,
}

impl Trouble {
    fn lets_go_on(&self) -> bool {
        self.journal.is_none() && self.rank.is_none()
    }

    fn into_result(mut self, names: &[String]) -> Result<()> {
        if let Some(error) = self.journal {
            return Err(error.into());
        }
        if let Some(message) = self.rank {
            return Err(steinflow::Error::User(message.into()).into());
        }
        self.failures.sort();
        match self.failures.first() {
            None => Ok(()),
            Some((i, message)) => Err(Error::Jobs {
                count: self.failures.len(),
                first: names[*i].clone(),
                message: message.clone(),
            }),
        }
    }
}

/// Another rank.
fn help<R: Send + Serialize>(
    opened: Jobs,
    way: Way,
    names: &[String],
    work: impl Fn(usize) -> R + Sync,
) {
    let taker = Taker::default();
    if opened != Jobs::of(names) {
        let reason = "its jobs are others than those of rank 0: give all ranks the same program, arguments and data";
        return taker.leave(&Err(reason.to_owned()));
    }
    if way == Way::SideBySide {
        let bring = |i: usize, found: Result<R, String>| {
            let found =
                found.and_then(|it| serde_json::to_vec(&it).map_err(|error| error.to_string()));
            taker.bring(i, &found);
        };
        side_by_side(names.len(), &|| taker.next(), &bring, &work, || ());
    }
    taker.leave(&Ok(()));
}

/// Takes jobs as long as there are any. One that panics costs itself only.
fn work_off<R>(
    next: &(impl Fn() -> Option<usize> + Sync),
    keep: &(impl Fn(usize, Result<R, String>) + Sync),
    work: &(impl Fn(usize) -> R + Sync),
) {
    while let Some(i) = next() {
        let found = catch_unwind(AssertUnwindSafe(|| work(i)));
        keep(i, found.map_err(|panic| said(&*panic)));
    }
}

/// What a panic has said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// Works jobs off, a job a core at a time, in order: long jobs stand first so that no core waits long at the end.
///
/// Every job has a single thread of its own: with more jobs than cores, sharing one between cores
/// only costs. Plain threads take them, because a rayon worker that waits for a job would begin
/// the next one meanwhile.
fn side_by_side<R: Send>(
    count: usize,
    next: &(impl Fn() -> Option<usize> + Sync),
    keep: &(impl Fn(usize, Result<R, String>) + Sync),
    work: &(impl Fn(usize) -> R + Sync),
    meanwhile: impl FnOnce(),
) {
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(count) {
            scope.spawn(|| match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => pool.install(|| work_off(next, keep, work)),
                // No thread to be had: this one will do.
                Err(_) => work_off(next, keep, work),
            });
        }
        meanwhile();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that panics, and one whose result JSON does not hold.
    #[test]
    fn a_job_that_panics_costs_itself_only() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Journal::open(folder.path().join("jobs.jsonl"), "settings").unwrap();
        let names: Vec<String> = (0..8).map(|i| format!("job {i}")).collect();
        let work = |i: usize| {
            assert!(i != 5, "five is too much");
            if i == 3 { f64::NAN } else { i as f64 }
        };
        for way in [Way::SideBySide, Way::InTurn] {
            let error = lead(&open(), way, "jobs", &names, work).unwrap_err();
            let Error::Jobs { count: 1, first, message } = error else { panic!("{error}") };
            assert_eq!((&*first, &*message), ("job 5", "five is too much"));
        }
        // Kept, but for the one that failed; and the one that has to be done again.
        let journal = open();
        assert_eq!(journal.found(), 7);
        let found = lead(&journal, Way::InTurn, "jobs", &names, |i| {
            assert!([3, 5].contains(&i), "job {i} was done twice");
            -1.0
        });
        let expected = [0.0, 1.0, 2.0, -1.0, 4.0, -1.0, 6.0, 7.0].map(Some);
        assert_eq!(found.unwrap(), expected);
    }
}
