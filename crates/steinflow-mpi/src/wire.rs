//! Messages between ranks: headers, words and numbers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::topology::SimpleCommunicator;
pub(crate) use mpi::traits::Equivalence;
use mpi::traits::{Communicator as _, Destination as _, Root as _, Source as _};

/// This process among those that were started together: asked for also when the connection has ended.
static RANK: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(1);

/// Whether this process is one of several.
pub(crate) fn has_joined() -> bool {
    size() > 1
}

/// Numbers in a message: MPI counts them by a C `int`.
const PIECE: usize = 1 << 27;

/// What messages are marked with that are no one's but the request's under way.
const PLAIN: i32 = 0;

/// What holds the connection; it ends with it.
pub(crate) struct Connection {
    _universe: Universe,
    /// Whether more than one thread may send at a time.
    pub has_threads: bool,
}

/// Connects to the processes that were started together; none where this one was started alone, or by something else
/// than MPI.
pub(crate) fn connect() -> Option<Connection> {
    // Open MPI, and MPICH with its kin.
    let variables = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    let is_one_of_many = variables
        .iter()
        .filter_map(|name| std::env::var(name).ok()?.parse::<usize>().ok())
        .any(|size| size > 1);
    if !is_one_of_many {
        return None;
    }
    let (universe, threading) = mpi::initialize_with_threading(Threading::Multiple)?;
    let world = SimpleCommunicator::world();
    RANK.store(usize::try_from(world.rank()).unwrap_or(0), Ordering::Relaxed);
    SIZE.store(usize::try_from(world.size()).unwrap_or(1), Ordering::Relaxed);
    Some(Connection { _universe: universe, has_threads: threading == Threading::Multiple })
}

/// Ends all ranks at once.
pub(crate) fn abort(code: i32) -> ! {
    SimpleCommunicator::world().abort(code)
}

pub(crate) fn rank() -> usize {
    RANK.load(Ordering::Relaxed)
}

pub(crate) fn size() -> usize {
    SIZE.load(Ordering::Relaxed)
}

/// Numbers that are broadcast at once: enough for a pipeline through all ranks, and a copy of them stays in a cache.
const BROADCAST: usize = 1 << 19;

/// From rank 0 to all.
pub(crate) fn broadcast<N: Equivalence>(numbers: &mut [N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks_mut(BROADCAST) {
        world.process_at_rank(0).broadcast_into(piece);
    }
}

/// Rank 0's side of [`broadcast`], for numbers that it may not change, as MPI would ask for.
pub(crate) fn tell<N: Equivalence + Copy>(numbers: &[N]) {
    let mut copy = Vec::new();
    for piece in numbers.chunks(BROADCAST) {
        copy.clear();
        copy.extend_from_slice(piece);
        broadcast(&mut copy);
    }
}

/// From rank 0 to all, in words that somebody may wait long for: with `pause` between two looks.
pub(crate) fn broadcast_words(words: &mut [u64], pause: Option<Duration>) {
    let world = SimpleCommunicator::world();
    mpi::request::scope(|scope| {
        let mut request = world.process_at_rank(0).immediate_broadcast_into(scope, words);
        while let Err(again) = request.test() {
            request = again;
            if let Some(pause) = pause {
                std::thread::sleep(pause);
            }
        }
    });
}

/// A rank as MPI counts it.
fn number(rank: usize) -> i32 {
    i32::try_from(rank).unwrap_or(0)
}

pub(crate) fn send<N: Equivalence>(to: usize, numbers: &[N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks(PIECE) {
        world.process_at_rank(number(to)).send_with_tag(piece, PLAIN);
    }
}

pub(crate) fn receive<N: Equivalence>(from: usize, numbers: &mut [N]) {
    let world = SimpleCommunicator::world();
    for piece in numbers.chunks_mut(PIECE) {
        world.process_at_rank(number(from)).receive_into_with_tag(piece, PLAIN);
    }
}

/// Sends words that stand apart from what else is under way, under a number.
pub(crate) fn post(to: usize, tag: i32, words: &[u64]) {
    SimpleCommunicator::world().process_at_rank(number(to)).send_with_tag(words, tag);
}

/// Such words that have come, and who from.
pub(crate) fn collect(tag: i32) -> Option<(usize, Vec<u64>)> {
    let world = SimpleCommunicator::world();
    let (words, status) =
        world.any_process().immediate_matched_probe_with_tag(tag)?.matched_receive_vec::<u64>();
    Some((usize::try_from(status.source_rank()).unwrap_or(0), words))
}
