//! The threads that compute: the one that calls, and others that help it.
//!
//! A target in Python is called on the caller's thread, so a run stays there. As a member of a pool that
//! thread begins the work it shares out itself; from outside of one it would hand every piece over and wait,
//! some ten times a step. A process that was forked has no threads but the one that forked: it computes
//! alone, where from outside of the pool it would wait for ever.

use pyo3::marker::Ungil;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

thread_local! {
    // Each thread has its own: in a shared one, work would wait for members that are busy in Python.
    static POOL: Option<ThreadPool> = ThreadPoolBuilder::new().use_current_thread().build().ok();
}

/// Does work that needs no Python, or takes it back for as long as it does.
pub fn compute<R: Ungil>(py: Python<'_>, work: impl Ungil + FnOnce() -> R) -> R {
    // The calling thread joins its pool for as long as it lives. Where it cannot, work is handed over.
    POOL.with(|_| ());
    py.detach(work)
}
