//! Jobs that any rank may do: rank 0 hands them out one at a time, and the others bring what they found.
//!
//! Every rank knows the list of jobs, so that numbers are all that is handed out; results are bytes. Whoever asks first gets the next
//! one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;

use crate::wire::{broadcast, collect, has_joined, post, receive, send, size};
use crate::words::{Kind, PAUSE, announce, hear_patiently, hear_text, receive_answer, send_answer};

/// What a rank says to rank 0 about jobs, and with what number.
const JOBS: i32 = 2;
/// What rank 0 says back.
const REPLY: i32 = 3;
const WANTED: u64 = 0;
const DONE: u64 = 1;
const LEAVING: u64 = 2;

/// A list of jobs, as both ends must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    count: u64,
    names: u64,
}

impl Jobs {
    /// The jobs of these names.
    pub fn of(names: &[String]) -> Self {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        Self { count: names.len() as u64, names: hasher.finish() }
    }
}

/// Rank 0 opens a list of jobs to the others, who learn what was found before.
pub fn open(jobs: Jobs, found_before: &str) {
    if has_joined() {
        announce((Kind::Jobs, [jobs.count, jobs.names, found_before.len() as u64]));
        broadcast(&mut found_before.as_bytes().to_vec());
    }
}

/// Rank 0 hands out what `next` gives and keeps what comes back, until nobody is at work any more. `miss` hears at once of a
/// rank that cannot take part, and why.
pub fn hand_out(
    mut next: impl FnMut() -> Option<usize>,
    mut keep: impl FnMut(usize, Result<Vec<u8>, String>),
    mut miss: impl FnMut(String),
) {
    let mut at_work = size() - 1;
    while at_work > 0 {
        let Some((rank, words)) = collect(JOBS) else {
            sleep(PAUSE);
            continue;
        };
        match words[..] {
            [WANTED, ..] => {
                // One more than its number; none left is 0.
                let job = next().map_or(0, |job| job as u64 + 1);
                post(rank, REPLY, &[job]);
            }
            [DONE, job, length] => {
                let answer = receive_answer(rank);
                let mut bytes = vec![0_u8; length as usize];
                receive(rank, &mut bytes);
                keep(job as usize, answer.map(|()| bytes));
            }
            _ => {
                at_work -= 1;
                if let Err(message) = receive_answer(rank) {
                    miss(format!("rank {rank}: {message}"));
                }
            }
        }
    }
}

/// What rank 0 says to one that waits for jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// There are jobs, and this is what those before have found.
    Jobs(Jobs, String),
    /// Go home.
    Quit,
}

/// Waits until rank 0 opens a list of jobs.
pub fn await_jobs() -> Notice {
    loop {
        match hear_patiently() {
            (Kind::Jobs, [count, names, length]) => {
                return Notice::Jobs(Jobs { count, names }, hear_text(length));
            }
            (Kind::Quit, _) => return Notice::Quit,
            _ => {}
        }
    }
}

/// A rank's way to jobs, for all of its threads.
#[derive(Debug, Default)]
pub struct Taker(Mutex<()>);

impl Taker {
    /// The number of a job that nobody else does; none where none is left.
    pub fn next(&self) -> Option<usize> {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        post(0, JOBS, &[WANTED]);
        loop {
            if let Some((_, words)) = collect(REPLY) {
                return (words[0] as usize).checked_sub(1);
            }
            sleep(PAUSE);
        }
    }

    /// What a job has found, or why nothing.
    pub fn bring(&self, job: usize, found: &Result<Vec<u8>, String>) {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = found.as_deref().unwrap_or_default();
        post(0, JOBS, &[DONE, job as u64, bytes.len() as u64]);
        send_answer(0, &found.as_ref().map(|_| ()).map_err(Clone::clone));
        send(0, bytes);
    }

    /// Takes no more of them, as there are none or for a reason.
    pub fn leave(self, reason: &Result<(), String>) {
        post(0, JOBS, &[LEAVING]);
        send_answer(0, reason);
    }
}
