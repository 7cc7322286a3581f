//! Who is there, and whether all of them still are.
//!
//! A process that dies ends the others: `mpirun` sees to that. One that is stopped, or whose machine is out of
//! reach, would be waited for without end. So every rank has a thread that says a word to rank 0 now and then, and
//! hears one back; whoever hears nothing for too long says so and ends the run. A silence is the time spent looking, and
//! not that of the clock: all ranks may be stopped together and go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout, spawn};
use std::time::Duration;

use crate::wire::{self, Connection};

/// What words about being there are marked with.
const PULSE: i32 = 1;
const ALIVE: u64 = 1;
const FAREWELL: u64 = 0;

/// Between two looks, and when the end is near.
const PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_millis(1);

/// What to do about a rank that is silent, before all ranks are ended.
pub type OnSilence = fn(rank: usize);

/// The processes that were started together.
pub struct World {
    // First to be dropped: a thread that sends must end before the connection does.
    _pulse: Option<Pulse>,
    _connection: Connection,
}

impl World {
    /// Joins them; none where this process was started alone, or by something else than MPI. A rank that is silent
    /// for as long as `patience` ends all of them.
    pub fn join(patience: Duration, on_silence: OnSilence) -> Option<Self> {
        let connection = wire::connect()?;
        let pulse = connection.has_threads.then(|| Pulse::start(patience, on_silence));
        Some(Self { _pulse: pulse, _connection: connection })
    }
}

/// Whether this process helps another, which leads.
pub fn is_helper() -> bool {
    wire::rank() > 0
}

/// The thread that says and hears who is there.
struct Pulse {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    fn start(patience: Duration, on_silence: OnSilence) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let listener = Listener { is_over: Arc::clone(&is_over), patience, on_silence };
        let thread =
            spawn(move || if wire::rank() == 0 { listener.watch() } else { listener.beat() });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

struct Listener {
    is_over: Arc<AtomicBool>,
    patience: Duration,
    on_silence: OnSilence,
}

impl Listener {
    /// Rank 0 answers whoever says a word, until all have taken their leave.
    fn watch(&self) {
        // Of those that are there.
        let mut silences: Vec<Option<Duration>> = vec![Some(Duration::ZERO); wire::size()];
        silences[0] = None;
        loop {
            while let Some((rank, words)) = wire::collect(PULSE) {
                silences[rank] = (words[0] != FAREWELL).then_some(Duration::ZERO);
                if words[0] != FAREWELL {
                    wire::post(rank, PULSE, &[ALIVE]);
                }
            }
            if silences.iter().all(Option::is_none) {
                return;
            }
            let pause = self.wait();
            for (rank, silence) in silences.iter_mut().enumerate() {
                if let Some(silence) = silence {
                    *silence += pause;
                    self.bear(rank, *silence);
                }
            }
        }
    }

    /// Another rank says a word, hears one back, and says the next.
    fn beat(&self) {
        loop {
            wire::post(0, PULSE, &[ALIVE]);
            let mut silence = Duration::ZERO;
            while wire::collect(PULSE).is_none() {
                silence += self.wait();
                // Not all at once: one of them says it for all, and ends the others before it is their turn.
                let turn = (wire::rank() as u32 - 1).min(8);
                self.bear(0, silence.saturating_sub(self.patience / 8 * turn));
            }
            if self.is_over.load(Ordering::Relaxed) {
                return wire::post(0, PULSE, &[FAREWELL]);
            }
            self.wait();
        }
    }

    fn wait(&self) -> Duration {
        let pause = if self.is_over.load(Ordering::Relaxed) { LAST_PAUSE } else { PAUSE };
        park_timeout(pause);
        pause
    }

    fn bear(&self, rank: usize, silence: Duration) {
        if silence > self.patience {
            (self.on_silence)(rank);
            wire::abort(1);
        }
    }
}
