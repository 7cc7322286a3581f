//! Messages where there is no MPI: nobody is there to hear or to say any.

use std::process;
use std::time::Duration;

pub trait Equivalence {}

impl<N> Equivalence for N {}

pub(crate) struct Connection {
    pub has_threads: bool,
}

pub(crate) fn connect() -> Option<Connection> {
    None
}

pub(crate) fn has_joined() -> bool {
    false
}

pub(crate) fn abort(code: i32) -> ! {
    process::exit(code)
}

pub(crate) fn rank() -> usize {
    0
}

pub(crate) fn size() -> usize {
    1
}

pub(crate) fn broadcast<N: Equivalence>(_: &mut [N]) {}

pub(crate) fn tell<N: Equivalence>(_: &[N]) {}

pub(crate) fn broadcast_words(_: &mut [u64], _: Option<Duration>) {}

pub(crate) fn send<N: Equivalence>(_: usize, _: &[N]) {}

pub(crate) fn receive<N: Equivalence>(_: usize, _: &mut [N]) {}

pub(crate) fn post(_: usize, _: i32, _: &[u64]) {}

pub(crate) fn collect(_: i32) -> Option<(usize, Vec<u64>)> {
    None
}
